"""Checks and small functions of `tf.contrib.framework`, and names that have become public elsewhere."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, shapes
from stoker._src.base.export import export, export_constant
from stoker._src.graph import context, conversion, public, scopes, sparse_tensor
from stoker._src.graph import tensor as graph_tensor
from stoker._src.graph.interchange import meta_graph
from stoker._src.layers import weights
from stoker._src.layers.base import known_flag
from stoker._src.ops.array import casting, constants, shaping
from stoker._src.ops.control_flow import assertions, branches_and_loops, debugging
from stoker._src.ops.math import arithmetic, comparison, reductions, sorting
from stoker._src.train import training_util
from stoker._src.train.checkpoints import initializers, reader

for _module, _names in (
    (sorting, "sort argsort"),
    (debugging, "assert_same_float_dtype assert_scalar"),
    (sparse_tensor, "convert_to_tensor_or_sparse_tensor"),
    (meta_graph, "strip_name_scope prepend_name_scope"),
    (initializers, "init_from_checkpoint"),
    (reader, "list_variables load_checkpoint load_variable"),
):
    for _name in _names.split():
        export_constant(_module.__name__, _name, v1=f"contrib.framework.{_name}")
for _name in "create_global_step get_global_step get_or_create_global_step assert_global_step".split():
    export_constant(training_util.__name__, _name, v1=(f"contrib.framework.{_name}", f"contrib.slim.{_name}"))


@export(v1=("contrib.framework.assert_or_get_global_step", "contrib.slim.assert_or_get_global_step"))
def assert_or_get_global_step(graph: Any = None, global_step_tensor: Any = None) -> Any:
    """Checks a global step, or returns that of the graph if there is none given."""
    if global_step_tensor is None:
        return training_util.get_global_step(graph)
    training_util.assert_global_step(global_step_tensor)
    return global_step_tensor


@export(v1="contrib.framework.assert_scalar_int")
def assert_scalar_int(tensor: Any, name: str | None = None) -> Any:
    """Returns a tensor after checking that it is a scalar integer.

    Raises:
        ValueError: it is not.
    """
    with scopes.NameScope(name, "assert_scalar_int", [tensor]):
        tensor = conversion.convert_to_tensor(tensor)
        if not tensor.dtype.base_dtype.is_integer:
            raise ValueError(f"Expected integer type for {tensor.name}, received type: {tensor.dtype}.")
        return debugging.assert_scalar(tensor)


@export(v1="contrib.framework.get_graph_from_inputs")
def get_graph_from_inputs(op_input_list: Any, graph: Any = None) -> Any:
    """The graph of some tensors; the default graph if there are none.

    Raises:
        ValueError: they are from different graphs.
    """
    for each in op_input_list:
        mine = getattr(each, "graph", None)
        if graph is None:
            graph = mine
        elif mine is not None and mine is not graph:
            raise ValueError(f"{each} must be from the same graph as the others: {graph}.")
    return context.get_default_graph() if graph is None else graph


@export(v1="contrib.framework.get_name_scope")
def get_name_scope() -> str:
    """The name of the current name scope."""
    return context.get_default_graph().get_name_scope()


@export(v1="contrib.framework.get_placeholders")
def get_placeholders(graph: Any) -> list[Any]:
    """The placeholders of a graph."""
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


@export(v1="contrib.framework.reduce_sum_n")
def reduce_sum_n(tensors: Any, name: str | None = None) -> Any:
    """The sum of all elements of some tensors.

    Raises:
        ValueError: there are no tensors.
    """
    if not tensors:
        raise ValueError("No tensors provided.")
    with scopes.NameScope(name, "reduce_sum_n", tensors) as scope:
        sums = [reductions.reduce_sum(each, name=f"{each.op.name.rpartition('/')[2]}/sum") for each in tensors]
        return sums[0] if len(sums) == 1 else arithmetic.add_n(sums, name=scope)


@export(v1="contrib.framework.remove_squeezable_dimensions")
def remove_squeezable_dimensions(predictions: Any, labels: Any, name: str | None = None) -> tuple[Any, Any]:
    """Removes the last dimension of size 1 from predictions or labels if one of them has a dimension more."""
    with scopes.NameScope(name, "remove_squeezable_dimensions", [predictions, labels]):
        predictions, labels = conversion.convert_to_tensor(predictions), conversion.convert_to_tensor(labels)
        return weights.squeezed_like(predictions, labels), weights.squeezed_like(labels, predictions)


@export(v1="contrib.framework.smart_constant_value")
def smart_constant_value(pred: Any) -> bool | None:
    """The value of a predicate as a bool; None if it is not known before the graph runs."""
    return known_flag(pred)


@export(v1="contrib.framework.smart_cond")
def smart_cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Any:
    """The result of one of two functions. Only if the predicate is not known before the graph runs, both are built.

    Raises:
        TypeError: an argument is not callable.
    """
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("`true_fn` must be callable." if not callable(true_fn) else "`false_fn` must be callable.")
    known = known_flag(pred)
    if known is None:
        return branches_and_loops.cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


@export(v1="contrib.framework.smart_case")
def smart_case(pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, name: str = "smart_case") -> Any:
    """`tf.case` that leaves out what is known before the graph runs."""
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    open_pairs = []
    for pred, function in pairs:
        known = known_flag(pred)
        if known is None:
            open_pairs.append((pred, function))
        elif known:
            if not open_pairs:
                return function()
            default = function
            break
    if not open_pairs and default is not None:
        return default()
    return branches_and_loops.case(open_pairs, default=default, exclusive=exclusive, name=name)


@export(v1="contrib.framework.with_shape")
def with_shape(expected_shape: Any, tensor: Any) -> Any:
    """Returns a tensor after checking its shape, where this is possible before the graph runs, else when it runs.

    Raises:
        ValueError: the shapes are known to differ.
    """
    tensor = conversion.convert_to_tensor(tensor)
    if isinstance(expected_shape, graph_tensor.Tensor):
        known = public.get_static_value(expected_shape)
        expected_shape = expected_shape if known is None else [None if size < 0 else int(size) for size in known]
    if not isinstance(expected_shape, graph_tensor.Tensor):
        shape = shapes.TensorShape(expected_shape)
        if not tensor.get_shape().is_compatible_with(shape):
            raise ValueError(f"Invalid shape for tensor {tensor.name}, expected {shape}, got {tensor.get_shape()}.")
        if tensor.get_shape().is_fully_defined():
            return tensor
        sizes = [-1 if size is None else size for size in shape.as_list()]
        given: Any = constants.constant(sizes, dtypes.int32)
    else:
        given = casting.cast(expected_shape, dtypes.int32)
    found = shaping.shape(tensor)
    fits = reductions.reduce_all(comparison.logical_or(comparison.equal(given, found), comparison.less(given, 0)))
    check = assertions.assert_op(fits, ["Wrong shape for %s [expected] [actual]." % tensor.name, given, found])
    with scopes.control_dependencies([check]):
        checked = shaping.identity(tensor)
    if not isinstance(expected_shape, graph_tensor.Tensor):
        checked.set_shape(shapes.TensorShape(expected_shape))
    return checked


@export(v1="contrib.framework.with_same_shape")
def with_same_shape(expected_tensor: Any, tensor: Any) -> Any:
    """Returns a tensor after checking that it has the shape of another one."""
    with scopes.NameScope(f"{tensor.op.name}/", values=[expected_tensor, tensor]):
        shape = expected_tensor.get_shape()
        return with_shape(shape if shape.is_fully_defined() else shaping.shape(expected_tensor), tensor)


@export(v1=("contrib.framework.zero_initializer", "contrib.slim.zero_initializer"))
def zero_initializer(ref: Any, use_locking: bool = True, name: str = "zero_initializer") -> Any:
    """Returns an op that sets a variable to zeros."""
    return ref.assign(shaping.zeros(ref.get_shape(), ref.dtype.base_dtype), use_locking=use_locking, name=name)
