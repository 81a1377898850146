"""The global step: the variable that counts training steps."""

from __future__ import annotations

import logging
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.ops.variables.creators import VariableAggregation
from stoker._src.ops.variables.variables import Variable

_log = logging.getLogger("stoker")


@export(v1="train.global_step")
def global_step(sess: Any, global_step_tensor: Any) -> int:
    """Returns the value of the global step in a session.

    Args:
        sess: the session (unused in eager mode).
        global_step_tensor: the tensor or variable, or its name.
    """
    if context.executing_eagerly():
        return int(global_step_tensor.numpy())
    return int(sess.run(global_step_tensor))


@export(v1="train.get_global_step")
def get_global_step(graph: Any = None) -> Any:
    """Returns the global step of a graph (the default graph if None): from the collection GLOBAL_STEP, or the tensor `global_step:0`.

    Returns:
        The variable or tensor; None if there is none.

    Raises:
        TypeError: the tensor found is not a scalar integer.
    """
    graph = graph or context.get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) == 1:
        step = found[0]
    elif not found:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    else:
        _log.error("Multiple tensors in global_step collection.")
        return None
    assert_global_step(step)
    return step


@export(v1="train.create_global_step")
def create_global_step(graph: Any = None) -> Any:
    """Creates the global step: a non-trainable int64 scalar with value 0, in GLOBAL_VARIABLES and GLOBAL_STEP.

    Raises:
        ValueError: the graph already has one.
    """
    graph = graph or context.get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    made = {
        "shape": [],
        "dtype": dtypes.int64,
        "initializer": initializers.Zeros(),
        "trainable": False,
        "aggregation": VariableAggregation.ONLY_FIRST_REPLICA,
        "collections": [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
    }
    if context.executing_eagerly():
        step = variable_scope.get_variable(GraphKeys.GLOBAL_STEP, **made)
        graph.add_to_collection(GraphKeys.GLOBAL_STEP, step)
        return step
    with graph.as_default(), name_scope(None):
        return variable_scope.get_variable(GraphKeys.GLOBAL_STEP, **made)


@export(v1="train.get_or_create_global_step")
def get_or_create_global_step(graph: Any = None) -> Any:
    """Returns the global step of a graph (the default graph if None). Creates it if there is none."""
    graph = graph or context.get_default_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


_READ_CACHE = "global_step_read_op_cache"


def global_step_read(graph: Any = None) -> Any:
    """Returns a tensor with the value of the global step, even before initialization; None if there is no global step.

    It is created once per graph, because monitored sessions fetch it in every run.

    Raises:
        RuntimeError: there are several global steps.
    """
    graph = graph or context.get_default_graph()
    cached = graph.get_collection(_READ_CACHE)
    if len(cached) > 1:
        raise RuntimeError(
            "There are multiple items in collection global_step_read_op_cache. There should be only one."
        )
    if cached:
        return cached[0]
    step = get_global_step(graph)
    if step is None:
        return None
    # Adding zero makes a copy, because fetching a 1.x variable returns its value at the end of a run.
    with graph.as_default(), name_scope(f"{step.op.name}/"):
        value = step.initialized_value() if isinstance(step, Variable) else step
        read = value + 0
    graph.add_to_collection(_READ_CACHE, read)
    return read


@export(v1="train.assert_global_step")
def assert_global_step(global_step_tensor: Any) -> None:
    """Checks that a tensor is valid as a global step.

    Raises:
        TypeError: it is not a variable or tensor, not an integer, or not a scalar.
    """
    if not isinstance(global_step_tensor, (Variable, Tensor)):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.')
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {global_step_tensor.dtype}')
    if global_step_tensor.static_shape.rank not in (None, 0):
        raise TypeError(f'Existing "global_step" is not scalar: {global_step_tensor.shape}')
