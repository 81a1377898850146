"""Variables of models: their creation, their selection by scope and name, and their initial values from files."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.export import export
from stoker._src.contrib.framework.arg_scopes import add_arg_scope
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import device as device_scope
from stoker._src.ops.array import constants
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.variables import variable_scope
from stoker._src.ops.variables.creators import VariableAggregation, VariableSynchronization
from stoker._src.ops.variables.partitioned import PartitionedVariable
from stoker._src.ops.variables.variables import Variable
from stoker._src.train.checkpoints.reader import CheckpointReader
from stoker._src.train.checkpoints.saver import Saver


def _both(name: str) -> tuple[str, str]:
    """The names of a function in `contrib.framework` and in `contrib.slim`."""
    return f"contrib.framework.{name}", f"contrib.slim.{name}"


@export(v1=_both("variable"))
@add_arg_scope
def variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """Returns the variable of that name in the variable scope, like `tf.get_variable`, on the device `device`.

    Args:
        device: a device, or a function from an op to a device.
        custom_getter: a function that takes the place of `tf.get_variable`.
        others: those of `tf.get_variable`.
    """
    collections = list(dict.fromkeys([GraphKeys.GLOBAL_VARIABLES] if collections is None else collections))
    getter: Callable[..., Any] = variable_scope.get_variable
    if custom_getter is not None:
        getter = functools.partial(custom_getter, reuse=variable_scope.get_variable_scope().reuse)
    with device_scope(device or ""):
        return getter(
            name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=collections,
            caching_device=caching_device,
            partitioner=partitioner,
            use_resource=use_resource,
            synchronization=synchronization,
            aggregation=aggregation,
        )


@export(v1=_both("model_variable"))
@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """Returns the variable of that name in the variable scope, as one of MODEL_VARIABLES: what inference needs.

    The arguments are those of `variable`.
    """
    arguments = dict(locals())
    arguments["collections"] = [*(collections or []), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(**arguments)


@export(v1=_both("local_variable"))
def local_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Any:
    """Creates a variable in LOCAL_VARIABLES, which is neither trained nor saved."""
    return _outside_of_scopes(initial_value, validate_shape, name, use_resource, GraphKeys.LOCAL_VARIABLES)


@export(v1=_both("global_variable"))
def global_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Any:
    """Creates a variable in GLOBAL_VARIABLES that is not trained."""
    return _outside_of_scopes(initial_value, validate_shape, name, use_resource, GraphKeys.GLOBAL_VARIABLES)


def _outside_of_scopes(
    initial_value: Any, validate_shape: bool, name: str | None, use_resource: bool | None, collection: str
) -> Any:
    return Variable(
        initial_value,
        trainable=False,
        collections=[collection],
        validate_shape=validate_shape,
        use_resource=use_resource,
        name=name,
    )


@export(v1=_both("add_model_variable"))
def add_model_variable(var: Any) -> None:
    """Adds a variable to MODEL_VARIABLES, unless it is there."""
    graph = context.get_default_graph()
    if not any(var is each for each in graph.get_collection(GraphKeys.MODEL_VARIABLES)):
        graph.add_to_collection(GraphKeys.MODEL_VARIABLES, var)


# -- selection -------------------------------------------------------------------------------------------------------


@export(v1=_both("get_variables"))
def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """The variables of a collection whose name starts with `scope` (a regular expression or a scope) and ends with `suffix`."""
    if isinstance(scope, variable_scope.VariableScope):
        scope = scope.name
    if suffix is not None:
        if ":" not in suffix:
            suffix += ":"
        scope = (scope or "") + ".*" + suffix
    return context.get_default_graph().get_collection(collection, scope)


@export(v1=_both("get_model_variables"))
def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables in MODEL_VARIABLES, chosen as by `get_variables`."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


@export(v1=_both("get_local_variables"))
def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables in LOCAL_VARIABLES, chosen as by `get_variables`."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


@export(v1=_both("get_trainable_variables"))
def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables in TRAINABLE_VARIABLES, chosen as by `get_variables`."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


@export(v1=_both("get_variables_by_name"))
def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The variables whose name, without its scopes, is `given_name`."""
    return get_variables(scope, f"/{given_name}:|^{given_name}:")


@export(v1=_both("get_variables_by_suffix"))
def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The variables whose name ends with `suffix`."""
    return get_variables(scope, suffix)


@export(v1=_both("get_unique_variable"))
def get_unique_variable(var_op_name: str) -> Any:
    """The only variable of that full name.

    Raises:
        ValueError: there is none, or several share the name.
    """
    candidates = get_variables(scope=var_op_name)
    if not candidates:
        raise ValueError(f"Couldn't find variable {var_op_name}")
    for candidate in candidates:
        if candidate.op.name == var_op_name:
            return candidate
    raise ValueError(f'Variable "{var_op_name}" does not uniquely identify a variable')


@export(v1=_both("get_variables_to_restore"))
def get_variables_to_restore(include: Any = None, exclude: Any = None) -> list[Any]:
    """The global variables in the scopes of `include`, without those in the scopes of `exclude`.

    Raises:
        TypeError: `include` or `exclude` is not a list or tuple.
    """
    if include is None:
        chosen = get_variables()
    else:
        if not isinstance(include, (list, tuple)):
            raise TypeError("include is provided but is not a list or a tuple.")
        chosen = [each for scope in include for each in get_variables(scope)]
    if exclude is None:
        return chosen
    if not isinstance(exclude, (list, tuple)):
        raise TypeError("exclude is provided but is not a list or a tuple.")
    left_out = {id(each) for scope in exclude for each in get_variables(scope)}
    return [each for each in chosen if id(each) not in left_out]


@export(v1=_both("filter_variables"))
def filter_variables(
    var_list: list[Any], include_patterns: Any = None, exclude_patterns: Any = None, reg_search: bool = True
) -> list[Any]:
    """The variables whose name matches one of the first patterns and none of the second.

    Args:
        var_list: variables.
        include_patterns, exclude_patterns: regular expressions; None for no condition.
        reg_search: whether a pattern may match anywhere in the name, and not only at its start.
    """
    matches = re.search if reg_search else re.match

    def any_matches(patterns: Any, each: Any) -> bool:
        return any(matches(pattern, each.op.name) for pattern in patterns)

    chosen = (
        var_list if include_patterns is None else [each for each in var_list if any_matches(include_patterns, each)]
    )
    return [each for each in chosen if not any_matches(exclude_patterns or (), each)]


@export(v1=_both("get_variable_full_name"))
def get_variable_full_name(var: Any) -> str:
    """The name under which checkpoints hold a variable. A part of a partitioned variable has the whole variable's name."""
    part = getattr(var, "_save_slice_info", None)
    return part.full_name if part else var.op.name


# -- values ----------------------------------------------------------------------------------------------------------


@export(v1=_both("assign_from_values"))
def assign_from_values(var_names_to_values: dict[str, Any]) -> tuple[Any, dict[Any, Any]]:
    """Returns an op that assigns arrays to variables by their names, and its feeds.

    Raises:
        ValueError: a variable is not there, or the shape of its value does not fit.
    """
    feeds, assigned = {}, []
    for name, value in var_names_to_values.items():
        found = get_unique_variable(name)
        fed = constants.placeholder(found.dtype, found.get_shape(), name="placeholder/" + name.replace(":", "_"))
        assigned.append(found.assign(fed))
        feeds[fed] = value.reshape(found.get_shape().as_list())
    return grouping.group(*assigned), feeds


@export(v1=_both("assign_from_values_fn"))
def assign_from_values_fn(var_names_to_values: dict[str, Any]) -> Callable[[Any], Any]:
    """Returns a function of a session that assigns arrays to variables by their names."""
    assigned, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(assigned, feeds)


def _by_name_in_file(var_list: Any) -> dict[str, list[Any]]:
    """{name in the checkpoint: variables, several ones if they are the parts of one}."""
    if isinstance(var_list, dict):
        named = var_list.items()
    else:
        named = [(get_variable_full_name(each), each) for each in var_list]
    found: dict[str, list[Any]] = {}
    for name, item in named:
        items = (
            item if isinstance(item, (list, tuple)) else list(item) if isinstance(item, PartitionedVariable) else [item]
        )
        found.setdefault(name, []).extend(items)
    return found


@export(v1=_both("assign_from_checkpoint"))
def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Any, dict[Any, Any]]:
    """Returns an op that assigns the values of a checkpoint to variables, and its feeds.

    Args:
        model_path: the prefix of the checkpoint.
        var_list: variables, or a dictionary from names in the checkpoint to a variable or to the parts of one.
        ignore_missing_vars: whether variables that the checkpoint does not have are left as they are.

    Raises:
        ValueError: the checkpoint lacks a variable, or its shape differs.
    """
    reader = CheckpointReader(model_path)
    feeds, assigned = {}, []
    for name, items in _by_name_in_file(var_list).items():
        if not reader.has_tensor(name):
            if not ignore_missing_vars:
                raise ValueError(f"Checkpoint is missing variable [{name}]")
            tf_logging.warning("Checkpoint is missing variable [%s]", name)
            continue
        value = reader.get_tensor(name)
        for item in items:
            fed = constants.placeholder(
                item.dtype.base_dtype, item.get_shape(), name=f"{item.op.name}/checkpoint_value"
            )
            part = getattr(item, "_save_slice_info", None)
            if part is None:
                mine = value
                if not item.get_shape().is_compatible_with(value.shape):
                    raise ValueError(
                        f"Total size of new array must be unchanged for {name} lh_shape: [{value.shape}], rh_shape: [{item.get_shape().as_list()}]"
                    )
            else:
                mine = value[tuple(slice(start, start + size) for start, size in zip(part.var_offset, part.var_shape))]
            assigned.append(item.assign(fed))
            feeds[fed] = mine.reshape(item.get_shape().as_list())
    return grouping.group(*assigned), feeds


@export(v1=_both("assign_from_checkpoint_fn"))
def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], None] | None:
    """Returns a function of a session that restores variables from a checkpoint; None if it would have nothing to restore.

    Args:
        model_path: the prefix of the checkpoint.
        var_list: variables, or a dictionary from names in the checkpoint to variables.
        ignore_missing_vars: whether variables that the checkpoint does not have are left as they are.
        reshape_variables: whether values are reshaped to their variables.

    Raises:
        ValueError: `var_list` is empty.
    """
    if not var_list:
        raise ValueError("var_list cannot be empty")
    if ignore_missing_vars:
        reader = CheckpointReader(model_path)
        named = var_list if isinstance(var_list, dict) else {each.op.name: each for each in var_list}
        var_list = {}
        for name, item in named.items():
            if reader.has_tensor(name):
                var_list[name] = item
            else:
                tf_logging.warning("Variable %s missing in checkpoint %s", name, model_path)
    if not var_list:
        tf_logging.warning("No Variables to restore")
        return None
    saver = Saver(var_list, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


@export(v1=_both("VariableDeviceChooser"))
class VariableDeviceChooser:
    """Places variables on parameter servers in turn, as a device function for `arg_scope([variable], device=...)`.

    Args:
        num_tasks: the number of parameter servers; 0 places on no task.
        job_name: the name of their job.
        device_type, device_index: the device on each of them.
        replica: the number of the replica, if any.
    """

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int = 0,
        replica: int | None = None,
    ) -> None:
        self._num_tasks, self._next = num_tasks, 0
        self._job = f"/job:{job_name}" if num_tasks > 0 else ""
        self._replica = "" if replica is None else f"/replica:{replica}"
        self._device = f"/device:{device_type}:{device_index}"

    def __call__(self, op: Any) -> str:
        task = ""
        if self._num_tasks > 0:
            task = f"/task:{self._next}"
            self._next = (self._next + 1) % self._num_tasks
        return f"{self._job}{self._replica}{task}{self._device}"
