"""Helpers of `tensorflow.python.framework`: names, conversions, shapes, and conditions with static values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base import devices, dtypes, shapes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import OpError
from stoker._src.base.shapes import Dimension, Shape, TensorShape, as_shape
from stoker._src.formats import gfile
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import find_definition
from stoker._src.graph.gradient_registry import gradient_function
from stoker._src.graph.graph import Graph, enter_session
from stoker._src.graph.interchange.meta_graph import (  # noqa: F401 (names of ops.py)
    prepend_name_scope,
    proto_functions,
    register_proto_function,
    strip_name_scope,
)
from stoker._src.graph.interchange.node_def import op_def_of
from stoker._src.graph.scopes import graph_of, name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.type_spec import composite_spec
from stoker._src.layers import base
from stoker._src.ops.array import ranges, scattering, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.variables import variable_functions, variables
from stoker._src.ops.variables.state_ops import VARIABLE_V2
from stoker._src.ops.variables.variables import Variable

_numbers = itertools.count(1)

# ---- framework.ops ---------------------------------------------------------------------------------------------

name_scope_v1 = name_scope


def uid() -> int:
    """Returns a number that is unique in this process."""
    return next(_numbers)


def get_gradient_function(op: Any) -> Any:
    """Returns the function registered for the gradient of `op`, or None.

    Raises:
        LookupError: nothing is registered.
    """
    return gradient_function(op) if op.inputs else None


def name_from_scope_name(name: str) -> str:
    """`a/b/` -> `a/b`."""
    return name.removesuffix("/")


def get_name_scope() -> str:
    """Returns the current name scope."""
    return context.get_default_graph().get_name_scope()


get_current_name_scope = get_name_scope


def internal_convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
    ctx: Any = None,
) -> Any:
    """Like `convert_to_tensor`, but can also return a 1.x variable's reference."""
    del ctx  # the current context is used instead
    return convert_to_tensor(value, dtype, name, dtype_hint=preferred_dtype or dtype_hint, as_ref=as_ref)


def internal_convert_n_to_tensor(
    values: Any,
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
    ctx: Any = None,
) -> list[Any]:
    """Converts each of several values like `internal_convert_to_tensor`."""
    if not hasattr(values, "__iter__"):
        raise TypeError("values must be iterable.")
    return [
        internal_convert_to_tensor(
            value, dtype, None if name is None else f"{name}_{i}", as_ref, preferred_dtype, ctx=ctx
        )
        for i, value in enumerate(values)
    ]


def convert_to_tensor_or_composite(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Returns a composite (SparseTensor, IndexedSlices, RaggedTensor) unchanged, and anything else as a tensor.

    Raises:
        RuntimeError: a composite has a dtype other than `dtype`.
    """
    if composite_spec(value) is None:
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and as_dtype(dtype) != value.dtype:
        raise RuntimeError(f"Tensor conversion requested dtype {as_dtype(dtype).name} for {value!s}.")
    return value


internal_convert_to_tensor_or_composite = convert_to_tensor_or_composite
internal_convert_to_tensor_or_indexed_slices = convert_to_tensor_or_composite


def convert_n_to_tensor_or_composite(values: Any, dtype: Any = None, name: str | None = None) -> list[Any]:
    """Applies `convert_to_tensor_or_composite` to each value; None stays None."""
    return [
        None if value is None else convert_to_tensor_or_composite(value, dtype, None if name is None else f"{name}_{i}")
        for i, value in enumerate(values)
    ]


convert_n_to_tensor_or_indexed_slices = convert_n_to_tensor_or_composite
internal_convert_n_to_tensor_or_indexed_slices = convert_n_to_tensor_or_composite


def is_dense_tensor_like(t: Any) -> bool:
    """Whether `t` is a tensor or variable rather than a composite."""
    return isinstance(t, (Tensor, Variable))


def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether the tensor is a node of a graph."""
    spec = composite_spec(tensor)
    if spec is not None:
        return any(map(is_symbolic_tensor, spec._parts(tensor)))
    return isinstance(tensor, Tensor) and not getattr(tensor, "is_eager", False)


def default_session(session: Any) -> Any:
    """Returns a context in which `session` is the default session."""
    return enter_session(session)


def get_all_collection_keys() -> list[str]:
    return context.get_default_graph().get_all_collection_keys()


def has_default_graph() -> bool:
    """Whether `as_default` has made a graph current."""
    return context.has_default_graph()


def inside_function() -> bool:
    """Whether a function's body is being traced."""
    return bool(context.get_default_graph().building_function)


def dismantle_graph(graph: Graph) -> None:
    """No-op: TensorFlow breaks reference cycles here, but Python's garbage collector handles stoker's."""


@contextmanager
def null_contextmanager(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Returns a context manager that does nothing."""
    yield


NullContextmanager = null_contextmanager


class RegisterShape:
    """Registered a shape function in early 1.x. It has no effect, as in TensorFlow since 1.0."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self.op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return f


def get_collection_proto_type(collection_name: str) -> Any:
    return proto_functions(collection_name).kind


def get_to_proto_function(collection_name: str) -> Any:
    return proto_functions(collection_name).to_proto


def get_from_proto_function(collection_name: str) -> Any:
    return proto_functions(collection_name).from_proto


def _assert_same_graph(original_item: Any, item: Any) -> None:
    if original_item.graph is not item.graph:
        raise ValueError(f"{item} must be from the same graph as {original_item} (graphs are different).")


def _get_graph_from_inputs(op_input_list: Any, graph: Any = None) -> Any:
    return graph if graph is not None else graph_of(list(op_input_list)) or context.get_default_graph()


# ---- framework.tensor_shape, common_shapes, tensor_util ------------------------------------------------------------


def scalar() -> TensorShape:
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    return TensorShape([length])


def matrix(rows: Any, cols: Any) -> TensorShape:
    return TensorShape([rows, cols])


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Returns dimension `index` as a Dimension, in 1.x and 2.x behaviour; unknown for a shape of unknown rank."""
    return Dimension(None) if shape.rank is None else (shape.dims or [])[index]


def broadcast_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """Returns the shape that two shapes broadcast to.

    Raises:
        ValueError: the shapes are incompatible.
    """
    return TensorShape(shapes.broadcast(as_shape(shape_x), as_shape(shape_y)))


def is_broadcast_compatible(shape_x: Any, shape_y: Any) -> bool:
    """Whether both ranks are known and the known dimensions are compatible for broadcasting."""
    x, y = as_shape(shape_x), as_shape(shape_y)
    if x.rank is None or y.rank is None:
        return False
    try:
        shapes.broadcast(x, y)
    except ValueError:
        return False
    return True


def has_fully_defined_shape(tensor: Any) -> bool:
    return bool(getattr(tensor, "is_eager", False)) or tensor.shape.is_fully_defined()


def rank(tensor: Any) -> int | None:
    return tensor.shape.ndims if isinstance(tensor, (Tensor, Variable)) else len(as_shape(getattr(tensor, "shape", ())))


def shape_equals(tensor_proto: Any, shape: Any) -> bool:
    """Whether a TensorProto has this shape."""
    sizes = [dim.size for dim in getattr(shape, "dim", [])] if hasattr(shape, "dim") else list(shape)
    return [dim.size for dim in tensor_proto.tensor_shape.dim] == sizes


def tensor_shape_proto_to_list(shape: Any) -> list[int]:
    return [dim.size for dim in shape.dim]


def maybe_set_static_shape(tensor: Any, shape: Any) -> None:
    """Sets a tensor's static shape from a shape tensor whose value is known."""
    if getattr(tensor, "is_eager", False) or tensor.shape.is_fully_defined():
        return
    value = constant_value(shape) if isinstance(shape, Tensor) else shape
    if value is not None:
        tensor.set_shape(Shape(None if size is None or size < 0 else int(size) for size in value))


def is_constant(tensor_or_op: Any) -> bool:
    return getattr(tensor_or_op, "op", tensor_or_op).type == "Const"


# ---- framework.smart_cond, layers.utils --------------------------------------------------------------------------


def smart_constant_value(pred: Any) -> bool | None:
    """Returns the value of a predicate if it is known statically, else None.

    Raises:
        TypeError: `pred` is not a predicate.
    """
    if isinstance(pred, (bool, int)) and pred in (0, 1):
        return bool(pred)
    if not isinstance(pred, (Tensor, Variable)):
        raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Got: {type(pred)}")
    return base.known_flag(pred)


def smart_cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Any:
    """Returns one of two results. Both are built only if the predicate is not known statically.

    Raises:
        TypeError: a branch is not callable.
    """
    for label, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"`{label}` must be callable.")
    if isinstance(pred, Variable):
        return branches_and_loops.cond(pred, true_fn, false_fn, name=name)
    known = smart_constant_value(pred)
    if known is None:
        return branches_and_loops.cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


def smart_case(pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, name: str = "smart_case") -> Any:
    """Like `case`, but omits branches whose predicate is known."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    open_pairs = []
    for pred, function in pairs:
        known = smart_constant_value(pred)
        if known:
            if not open_pairs:
                return function()
            default = function
            break
        if known is None:
            open_pairs.append((pred, function))
    if not open_pairs and default is not None:
        return default()
    return branches_and_loops.case(open_pairs, default, exclusive, name=name)


# ---- framework.device, op_def_registry, importer ----------------------------------------------------------------


def check_valid(spec: str) -> None:
    """Raises ValueError unless `spec` is a valid device name."""
    devices.DeviceSpec.from_string(spec)


def is_device_spec(obj: Any) -> bool:
    return isinstance(obj, devices.DeviceSpec)


def merge_device(spec: Any) -> Callable[[Any], str]:
    """Returns a device function that merges `spec` into a node's device."""
    return lambda node: devices.merge_device(spec, getattr(node, "device", "") or "")


def get(name: str) -> Any:
    """Returns the OpDef of an op, or None (`op_def_registry.get`)."""
    definition = find_definition(name)
    return None if definition is None else op_def_of(definition)


# ---- ops.state_ops, ops.resource_variable_ops ---------------------------------------------------------------------


def variable_op_v2(
    shape: Any, dtype: Any, name: str = "Variable", container: str = "", shared_name: str = ""
) -> Tensor:
    """Creates only the op of a 1.x variable, without initializer and collections."""
    return VARIABLE_V2(shape=shape, dtype=dtype, name=name, container=container, shared_name=shared_name)


def variable_op(
    shape: Any, dtype: Any, name: str = "Variable", set_shape: bool = True, container: str = "", shared_name: str = ""
) -> Tensor:
    """Like `variable_op_v2`, but with an unknown static shape unless `set_shape` is true."""
    return variable_op_v2(shape if set_shape else None, dtype, name, container, shared_name)


def is_resource_variable(var: Any) -> bool:
    return isinstance(var, variables.ResourceVariable)


# ---- ops.array_ops, ops.state_ops, lib.io.file_io, ops.rnn_cell_impl ------------------------------------------------


def shape_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = None) -> Tensor:
    """Returns the shape of a tensor, as a constant if it is known and `optimize` is set."""
    return shaping.shape(input, name, dtypes.int32 if out_type is None else out_type)


def rank_internal(input: Any, name: str | None = None, optimize: bool = True) -> Tensor:
    return ranges.rank(input, name)


def size_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = dtypes.int32) -> Tensor:
    return ranges.size(input, name, out_type)


def reduced_shape(input_shape: Any, axes: Any) -> Tensor:
    """Returns the shape after a reduction that keeps the reduced dimensions."""
    sizes = convert_to_tensor(input_shape)
    places = shaping.reshape(convert_to_tensor(axes, dtypes.int32), [-1])
    places = (places + ranges.size(sizes)) % ranges.size(sizes)
    ones = shaping.ones(shaping.shape(places), sizes.dtype)
    return scattering.tensor_scatter_nd_update(sizes, shaping.expand_dims(places, 1), ones)


def init_variable(v: Any, init: Any, name: str = "init") -> Any:
    """Returns the op that assigns `init` (a value, or a function of shape and dtype) to a variable."""
    with name_scope(None, f"{v.op.name}/", [v, init]):
        value = init(v.shape.as_list(), v.dtype.base_dtype) if callable(init) else init
        return variable_functions.assign(v, value, name=name).op


def read_file_to_string(filename: Any, binary_mode: bool = False) -> Any:
    with gfile.GFile(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: Any, file_content: Any) -> None:
    with gfile.GFile(filename, "wb" if isinstance(file_content, bytes) else "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(filename: Any, contents: Any, overwrite: bool = True) -> None:
    """Writes a temporary file next to the target and renames it, so readers see either the old or the new content.

    Raises:
        AlreadyExistsError: the file exists and `overwrite` is not set.
    """
    beside = f"{filename}.tmp{uid()}"
    write_string_to_file(beside, contents)
    try:
        gfile.rename(beside, filename, overwrite)
    except OpError:
        gfile.remove(beside)
        raise


_WEIGHTS_VARIABLE_NAME, _BIAS_VARIABLE_NAME = "kernel", "bias"


def assert_like_rnncell(cell_name: str, cell: Any) -> None:
    """Raises TypeError unless `cell` has the attributes that an RNN needs."""
    for name in ("output_size", "state_size"):
        if not hasattr(cell, name):
            raise TypeError(f"The argument {cell_name!r} ({cell}) is not an RNNCell: {name!r} property is missing.")
    if not hasattr(cell, "zero_state") and not hasattr(cell, "get_initial_state"):
        raise TypeError(f"The argument {cell_name!r} ({cell}) is not an RNNCell: 'zero_state' method is missing.")
    if not callable(cell):
        raise TypeError(f"The argument {cell_name!r} ({cell}) is not an RNNCell: is not callable.")


def __getattr__(name: str) -> Any:
    """Returns reference dtypes, for example `float32_ref`."""
    if name.endswith("_ref"):
        try:
            return as_dtype(name)
        except TypeError:
            pass
    raise AttributeError(f"there is no helper {name!r}")
