"""Functions on variables: collections, initializer ops, and the assign family."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.formats.protos import VariableDef
from stoker._src.graph import context
from stoker._src.graph.interchange.meta_graph import register_proto_function
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import device
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.variables import state_ops, variables


def _collection(key: str, scope: str | None) -> list[Any]:
    return context.get_default_graph().get_collection(key, scope)


@export(v1=("global_variables", "all_variables"))
def global_variables(scope: str | None = None) -> list[Any]:
    """Global variables, which are shared by all machines: the collection GLOBAL_VARIABLES."""
    return _collection(GraphKeys.GLOBAL_VARIABLES, scope)


@export(v1="local_variables")
def local_variables(scope: str | None = None) -> list[Any]:
    """Local variables, which belong to this process and are not saved: the collection LOCAL_VARIABLES."""
    return _collection(GraphKeys.LOCAL_VARIABLES, scope)


@export(v1="model_variables")
def model_variables(scope: str | None = None) -> list[Any]:
    """The collection MODEL_VARIABLES."""
    return _collection(GraphKeys.MODEL_VARIABLES, scope)


@export(v1="trainable_variables")
def trainable_variables(scope: str | None = None) -> list[Any]:
    """Trainable variables, which optimizers update by default: the collection TRAINABLE_VARIABLES."""
    return _collection(GraphKeys.TRAINABLE_VARIABLES, scope)


@export(v1="moving_average_variables")
def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The collection MOVING_AVERAGE_VARIABLES."""
    return _collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def start_with(variable: Any, value: Any) -> None:
    """Makes `value` what a variable's initializer assigns."""
    with device(variable.device):
        if isinstance(variable, variables.ResourceVariable):
            variable._initializer_op = state_ops.ASSIGN_VARIABLE_OP(variable.handle, value)
        else:
            variable._initializer_op = state_ops.ASSIGN(variable._as_graph_element(), value, use_locking=True).op


@export(v1=("variables_initializer", "initialize_variables", "initializers.variables"))
def variables_initializer(var_list: Any, name: str = "init") -> Any:
    """Returns an op that initializes all of `var_list`."""
    if var_list and not context.executing_eagerly():
        return grouping.group(*[variable.initializer for variable in var_list], name=name)
    return grouping.group(name=name)


@export(v1=("global_variables_initializer", "initialize_all_variables", "initializers.global_variables"))
def global_variables_initializer() -> Any:
    """Returns an op that initializes all global variables."""
    if context.executing_eagerly():
        return grouping.no_op(name="global_variables_initializer")
    return variables_initializer(global_variables())


@export(v1=("local_variables_initializer", "initialize_local_variables", "initializers.local_variables"))
def local_variables_initializer() -> Any:
    """Returns an op that initializes all local variables."""
    if context.executing_eagerly():
        return grouping.no_op(name="local_variables_initializer")
    return variables_initializer(local_variables())


@export(v1="assign")
def assign(
    ref: Any, value: Any, validate_shape: bool | None = None, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Assigns to a variable. Returns its updated value."""
    if not ref.dtype._is_ref_dtype:
        return ref.assign(value, name=name)
    return state_ops.ASSIGN(ref, value, validate_shape=validate_shape, use_locking=use_locking, name=name)


@export(v1="assign_add")
def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Adds to a variable. Returns its updated value."""
    if not ref.dtype._is_ref_dtype:
        return ref.assign_add(value, name=name)
    return state_ops.ASSIGN_ADD(ref, value, use_locking=use_locking, name=name)


@export(v1="assign_sub")
def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtracts from a variable. Returns its updated value."""
    if not ref.dtype._is_ref_dtype:
        return ref.assign_sub(value, name=name)
    return state_ops.ASSIGN_SUB(ref, value, use_locking=use_locking, name=name)


# A meta graph stores variables as messages that name their nodes.
for _key in (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.METRIC_VARIABLES,
    GraphKeys.MODEL_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.GLOBAL_STEP,
):
    register_proto_function(
        _key, proto_type=VariableDef, to_proto=variables.Variable.to_proto, from_proto=variables.Variable.from_proto
    )
