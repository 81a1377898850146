"""Shape and layout: identity, shape, reshape, fill, transpose, expand_dims, squeeze."""

from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Dim, Shape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import (
    ANY,
    INT,
    INTS,
    OF_SHAPES,
    PASSES,
    STATEFUL,
    TYPES,
    VIEW,
    define,
    one_of,
    unchanged,
)
from stoker._src.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting
from stoker._src.ops.array.constants import constant, constant_of
from stoker._src.ops.support import rows
from stoker._src.ops.support.dispatching import dispatched, elementwise
from stoker._src.ops.support.lowering import reshaped
from stoker._src.ops.support.movement import allocatable, itemsize, misfit
from stoker._src.ops.support.values import torch_dtype

# ---- Identity, StopGradient -------------------------------------------------------------------------------------

IDENTITY = define("Identity(input: T) -> (output: T)", PASSES, T=ANY)
IDENTITY.kernel(lambda input: input)
IDENTITY.shape(unchanged)
IDENTITY.grad(lambda op, g: g)

STOP_GRADIENT = define("StopGradient(input: T) -> (output: T)", PASSES, T=ANY).not_differentiable()
STOP_GRADIENT.kernel(lambda input: input)
STOP_GRADIENT.shape(unchanged)

SNAPSHOT = define("Snapshot(input: T) -> (output: T)", PASSES, T=ANY)
SNAPSHOT.kernel(lambda input: input)
SNAPSHOT.shape(unchanged)

GUARANTEE_CONST = define("GuaranteeConst(input: T) -> (output: T)", PASSES | STATEFUL, T=ANY)
GUARANTEE_CONST.kernel(lambda input: input)
GUARANTEE_CONST.shape(unchanged)

PREVENT_GRADIENT = define("PreventGradient(input: T) -> (output: T)", PASSES, T=ANY, message="")
PREVENT_GRADIENT.kernel(lambda input: input)
PREVENT_GRADIENT.shape(unchanged)


@PREVENT_GRADIENT.grad
def prevent_gradient_grad(op: Operation, g: Tensor) -> Any:
    raise LookupError(f"Gradient explicitly disabled. Reason: {op.attr('message')!r}")


IDENTITY_N = define("IdentityN(input: [T]) -> (output: [T])", VIEW, T=TYPES(minimum=1))
IDENTITY_N.kernel(lambda input: list(input))
IDENTITY_N.shape(lambda input: list(input))
IDENTITY_N.grad(lambda op, *gs: list(gs))


@export("identity")
@elementwise
def identity(input: Any, name: str | None = None) -> Tensor:
    """Returns the same value as the output of a separate op."""
    return IDENTITY(input, name=name)


@export("identity_n")
def identity_n(input: Any, name: str | None = None) -> list[Tensor]:
    """Returns the same values as the outputs of one op."""
    return IDENTITY_N(input, name=name)


@export("guarantee_const")
def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """Returns the same value, without a gradient. In TensorFlow, this promises that the value never changes."""
    return GUARANTEE_CONST(input, name=name)


@export("stop_gradient")
def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """Returns the same value. Gradients treat it as a constant."""
    return STOP_GRADIENT(input, name=name)


# ---- Shape, Rank, Size ------------------------------------------------------------------------------------------

SHAPE_OP = define(
    "Shape(input: T) -> (output: out_type)", OF_SHAPES, T=ANY, out_type=one_of(*INDEX, default=dtypes.int32)
).not_differentiable()
SHAPE_OP.small("shape")


@SHAPE_OP.kernel
def shape_kernel(input: Any, *, out_type: DType) -> torch.Tensor:
    return torch.tensor(input.shape, dtype=torch_dtype(out_type))


@SHAPE_OP.shape
def shape_shape(input: Shape) -> Shape:
    return Shape((input.rank,))


@SHAPE_OP.static_value
def static_shape(op: Operation) -> Any:
    shape = op._inputs[0].static_shape
    return np.array(shape.dims, op.attrs["out_type"].as_numpy_dtype) if shape.known else None


SHAPE_OP.spelled_shape(lambda op, index, sight: sight.shape_of(op._inputs[0]))


SHAPE_N = define(
    "ShapeN(input: N * T) -> (output: N * out_type)",
    OF_SHAPES,
    N=INT(minimum=1),
    T=ANY,
    out_type=one_of(*INDEX, default=dtypes.int32),
).not_differentiable()
SHAPE_N.small("shapes")


@SHAPE_N.kernel
def shape_n_kernel(input: list[Any], *, out_type: DType) -> list[torch.Tensor]:
    kind = torch_dtype(out_type)
    return [torch.tensor(each.shape, dtype=kind) for each in input]


@SHAPE_N.shape
def shape_n_shape(input: list[Shape]) -> list[Shape]:
    return [Shape((each.rank,)) for each in input]


SHAPE_N.spelled_shape(lambda op, index, sight: sight.shape_of(op._inputs[index]))


@export("shape_n")
def shape_n(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors, each as a vector."""
    return SHAPE_N(input, out_type=out_type, name=name)


_KNOWING_THEIRS = (SparseTensor, SparseTensorValue, IndexedSlices, IndexedSlicesValue)


@export(v1="shape")
def shape(input: Any, name: str | None = None, out_type: Any = None, optimize: bool = True) -> Tensor:
    """The shape of `input` as a vector; a constant if it is statically known and `optimize` is set."""
    out_type = dtypes.int32 if out_type is None else out_type
    if isinstance(input, _KNOWING_THEIRS):
        with name_scope(name, "Shape"):
            return casting.cast(input.dense_shape, out_type)
    if not isinstance(input, Tensor):
        with name_scope(name, "Shape") as scope:
            return shape(convert_to_tensor(input), scope, out_type, optimize)
    tensor = convert_to_tensor(input)
    known = tensor.static_shape
    if optimize and known.known and (out_type in dtypes.INDEX or not context.executing_eagerly()):
        return constant(list(known), as_dtype(out_type), name=name or "Shape", shape=[len(known)])
    return SHAPE_OP(tensor, out_type=as_dtype(out_type), name=name)


@export(v2="shape")
def shape_v2(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """The shape of `input` as a vector."""
    return shape(input, name, out_type)


# ---- Reshape ----------------------------------------------------------------------------------------------------

RESHAPE = define(
    "Reshape(tensor: T, shape: host Tshape) -> (output: T)", VIEW, T=ANY, Tshape=one_of(*INDEX, default=dtypes.int32)
)
RESHAPE.small("reshape")


RESHAPE.lower(reshaped).vanishing(0)


def _reshapes_padding(op: Operation, padded: list[bool], shape_of: Any) -> list[bool] | None:
    before, after = shape_of(op._inputs[0]), shape_of(op.outputs[0])
    keeps = bool(before.rank) and bool(after.rank) and before[0] is not None and before[0] == after[0]
    return [True] if padded[0] and keeps else None


RESHAPE.planning.padded = _reshapes_padding


@RESHAPE.kernel
def reshape_kernel(tensor: Any, shape: Any) -> Any:
    if type(shape) is not list:
        shape = [shape]
    try:
        if len(shape) > 1 and min(shape) < -1:  # NumPy treats any negative number like -1
            raise ValueError
        return tensor.reshape(shape)
    except (RuntimeError, ValueError, TypeError, OverflowError):
        if 0 in tensor.shape and 0 in shape and shape.count(-1) == 1 and min(shape) == -1:
            # Any size would be valid. Use the quotient of the nonzero sizes.
            kept, wanted = (product([size for size in each if size > 0]) for each in (tensor.shape, shape))
            return tensor.reshape([kept // wanted if size == -1 else size for size in shape])
        raise misfit(tensor, shape) from None


@RESHAPE.together(lambda op: op.outputs[0].dtype if op.outputs[0].dtype.is_integer else None)
def reshape_many(rows: list[Any], attributes: Any) -> list[Any] | None:
    return [tensor.view(shape) for tensor, shape in rows] if all(type(shape) is list for _, shape in rows) else None


@RESHAPE.shape(as_shapes=["shape"], values=[])
def reshape_shape(tensor: Shape, shape: Shape, *, op: Any = None) -> Shape:
    if op is not None:
        op._inputs[1].static_shape.of_rank(1)
    if shape.dims is None:
        return UNKNOWN_SHAPE
    missing = [i for i, size in enumerate(shape.dims) if size is None]
    total = tensor.size
    if total is None or len(missing) > 1:
        return shape
    known = 1
    for size in shape.dims:
        known *= 1 if size is None else size
    if not missing:
        if known != total:
            raise InvalidArgumentError(
                None, None, f"Cannot reshape a tensor with {total} elements to shape {shape} ({known} elements)."
            )
        return shape
    if known == 0 or total % known:
        if known == 0 and total == 0:
            return shape
        raise InvalidArgumentError(
            None,
            None,
            f"Cannot reshape a tensor with {total} elements to shape {shape}: {total} is not divisible by {known}.",
        )
    dims: list[Dim] = list(shape.dims)
    dims[missing[0]] = total // known
    return Shape(dims)


@RESHAPE.grad
def reshape_grad(op: Operation, g: Any) -> Any:
    return reshape(g, shape(op.inputs[0])), None


@export("reshape", v1="manip.reshape")
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Reshapes `tensor`. One size may be -1 and is then inferred."""
    return RESHAPE(tensor, shape, name=name)


# ---- Fill -------------------------------------------------------------------------------------------------------

FILL = define(
    "Fill(dims: host index_type, value: T) -> (output: T)", T=ANY, index_type=one_of(*INDEX, default=dtypes.int32)
)
FILL.small("fill")


@FILL.kernel
def fill_kernel(dims: list[int], value: Any) -> Any:
    dims = allocatable(dims if isinstance(dims, list) else [dims], itemsize(value))
    if value.ndim and value.shape != (1,):
        raise InvalidArgumentError(None, None, f"value must represent a scalar, got shape {Shape(value.shape)}")
    if isinstance(value, np.ndarray):
        return np.broadcast_to(value.reshape(()), dims).copy()  # np.full would drop trailing zero bytes
    if value.is_cpu and value.dtype in _PLAIN:
        return torch.full(dims, value.item(), dtype=value.dtype)
    return value.reshape(()).expand(dims).clone(memory_format=torch.contiguous_format)


_PLAIN = frozenset((torch.float32, torch.float64, torch.int32, torch.int64, torch.bool))


@FILL.shape(as_shapes=["dims"])
def fill_shape(dims: Shape, value: Shape, *, op: Operation) -> Shape:
    value.of_rank(0)
    known = constant_value(op.inputs[0])
    if known is not None and (known < 0).any():
        raise InvalidArgumentError(None, None, f"Fill dimensions must be >= 0: {known.tolist()}")
    return dims


@FILL.grad
def fill_grad(op: Operation, g: Tensor) -> Any:
    return None, ops.reduce_sum(g)


@export("fill")
def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Tensor:
    """A tensor of shape `dims` filled with `value`."""
    _no_layout(layout)
    return FILL(dims, value, name=name)


def _no_layout(layout: Any) -> None:
    """Refuses DTensor layouts, which distribute a tensor over a mesh of devices. stoker has no meshes."""
    if layout is not None:
        raise NotImplementedError("Tensors with a DTensor layout are not supported; leave `layout` out.")


def _filled(shape: Any, dtype: DType, number: Any, name: str | None, default: str) -> Tensor:
    """Zeros or ones: a constant for small static shapes, else a Fill node, named as in TensorFlow."""
    blank: Any = number
    if dtype is dtypes.bool_:
        blank = bool(number)
    elif dtype is dtypes.string:
        if number:
            raise TypeError(f"Expected string, but got {number} of type 'int': there are no ones of strings.")
        blank = b""
    elif dtype in (dtypes.resource, dtypes.variant):
        raise TypeError(f"`dtype` {dtype!r} is not compatible with {number} of dtype int64.")
    with name_scope(name, default, [shape]) as scope:
        if not isinstance(shape, Tensor):
            try:
                known = as_shape(shape)
            except (TypeError, ValueError):
                known = UNKNOWN_SHAPE
            if known.known and (known.size or 0) < 1000:
                array = np.full(tuple(known), blank, dtype=dtype.as_numpy_dtype)  # type: ignore[arg-type]
                return constant_of(array, dtype, scope)
            if known.known:
                shape = convert_to_tensor(known, name="shape_as_tensor")
            else:
                packed = isinstance(shape, (list, tuple)) and any(isinstance(size, Tensor) for size in shape)
                shape = convert_to_tensor(shape, None if packed else dtypes.int32)
        if shape.static_shape.rank == 0:
            shape = reshape(shape, [-1])
        return fill(shape, constant(blank, dtype), name=scope)


@export("zeros")
def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None) -> Tensor:
    """A tensor of zeros (empty strings or False for those dtypes)."""
    _no_layout(layout)
    return _filled(shape, as_dtype(dtype).base_dtype, 0, name, "zeros")


@export("ones")
def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None) -> Tensor:
    """A tensor of ones."""
    _no_layout(layout)
    return _filled(shape, as_dtype(dtype).base_dtype, 1, name, "ones")


ZEROS_LIKE = define("ZerosLike(x: T) -> (y: T)", OF_SHAPES, T=ANY).not_differentiable()
ZEROS_LIKE.small("zeros_like")
ZEROS_LIKE.vanishing().shape(unchanged)
ONES_LIKE = define("OnesLike(x: T) -> (y: T)", OF_SHAPES, T=(*dtypes.NUMERIC, dtypes.bool_)).not_differentiable()
ONES_LIKE.small("ones_like")
ONES_LIKE.shape(unchanged)


@ZEROS_LIKE.kernel
def zeros_like_kernel(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.full(x.shape, b"", dtype=object)
    if x is None:  # None for a branch that was not taken
        return None
    return torch.zeros_like(x) if isinstance(x, torch.Tensor) else x.zeros_like()


@ONES_LIKE.kernel
def ones_like_kernel(x: Any) -> Any:
    return torch.ones_like(x)


def _like(
    tensor: Any, dtype: Any, optimize: bool, name: str | None, number: int, default: str, definition: Any
) -> Tensor:
    with name_scope(name, default, [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else as_dtype(dtype).base_dtype
        make = zeros if number == 0 else ones
        if number == 1 and not context.executing_eagerly():
            return ones(shape(tensor, None, dtypes.int32, optimize), wanted, name=scope)
        if optimize and tensor.static_shape.known and wanted is not dtypes.variant:
            return make(list(tensor.static_shape), wanted, name=scope)
        if wanted is not tensor.dtype.base_dtype:
            return make(SHAPE_OP(tensor), wanted, name=scope)
        return definition(tensor, name=scope)


@export(v1="zeros_like")
@elementwise
def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """A tensor of zeros with the shape of `tensor`, and its dtype unless `dtype` is given."""
    return _like(tensor, dtype, optimize, name, 0, "zeros_like", ZEROS_LIKE)


@export(v1="ones_like")
@elementwise
def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """A tensor of ones with the shape of `tensor`, and its dtype unless `dtype` is given."""
    return _like(tensor, dtype, optimize, name, 1, "ones_like", ONES_LIKE)


@export(v2="zeros_like")
@elementwise
def zeros_like_v2(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """A tensor of zeros with the shape of `input`, and its dtype unless `dtype` is given."""
    _no_layout(layout)
    return zeros_like(input, dtype, name)


@export(v2="ones_like")
@elementwise
def ones_like_v2(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """A tensor of ones with the shape of `input`, and its dtype unless `dtype` is given."""
    _no_layout(layout)
    return ones_like(input, dtype, name)


# ---- Transpose --------------------------------------------------------------------------------------------------

TRANSPOSE = define(
    "Transpose(x: T, perm: vector host Tperm) -> (y: T)", VIEW, T=ANY, Tperm=one_of(*INDEX, default=dtypes.int32)
)
TRANSPOSE.small("transpose")


TRANSPOSE.vanishing(0)


@TRANSPOSE.kernel
def transpose_kernel(x: Any, perm: list[int]) -> Any:
    try:
        return x.permute(perm) if isinstance(x, torch.Tensor) else x.transpose(perm)
    except (RuntimeError, ValueError, IndexError):
        if len(perm) != x.ndim:
            raise InvalidArgumentError(
                None, None, f"transpose expects a vector of size {x.ndim}. But input(1) is a vector of size {len(perm)}"
            ) from None
        raise InvalidArgumentError(
            None, None, f"perm {perm} is not a permutation of the {x.ndim} dimensions of shape {Shape(x.shape)}."
        ) from None


@TRANSPOSE.lower
def transpose_lower(build: Any, op: Operation, x: Any, perm: list[int]) -> Any:
    return build.transpose(x, perm)


@TRANSPOSE.shape(values=["perm"])
def transpose_shape(x: Shape, perm: np.ndarray | None) -> Shape:
    if perm is None:
        return UNKNOWN_SHAPE if x.rank is None else Shape((None,) * x.rank)
    rank = len(perm)
    x = x.of_rank(rank)
    for axis in perm.tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(None, None, f"perm dim {axis} is out of range of input rank {rank}")
    if len({axis % rank for axis in perm.tolist()}) != rank:
        return Shape((None,) * rank)  # a repeated axis is reported at run time
    return Shape(x[int(axis)] for axis in perm)


@TRANSPOSE.rows
def transpose_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    order = rows.numbers(inputs[1])
    if order is None or not inputs[0].stacked:
        return None
    return [TRANSPOSE(inputs[0].tensor, [0, *(order + 1).tolist()])]


@TRANSPOSE.grad
def transpose_grad(op: Operation, g: Tensor) -> Any:
    return transpose(g, invert_permutation(op.inputs[1])), None


CONJUGATE_TRANSPOSE = define(
    "ConjugateTranspose(x: T, perm: vector host Tperm) -> (y: T)",
    VIEW,
    T=ANY,
    Tperm=one_of(*INDEX, default=dtypes.int32),
)
CONJUGATE_TRANSPOSE.shape(transpose_shape, values=["perm"])


@CONJUGATE_TRANSPOSE.kernel
def conjugate_transpose_kernel(x: Any, perm: list[int]) -> Any:
    moved = transpose_kernel(x, perm)
    return moved.conj().resolve_conj() if isinstance(moved, torch.Tensor) and moved.is_complex() else moved


@CONJUGATE_TRANSPOSE.grad
def conjugate_transpose_grad(op: Operation, g: Tensor) -> Any:
    return CONJUGATE_TRANSPOSE(g, invert_permutation(op.inputs[1])), None


INVERT_PERMUTATION = define(
    "InvertPermutation(x: vector T) -> (y: T)", T=one_of(*INDEX, default=dtypes.int32)
).not_differentiable()
INVERT_PERMUTATION.shape(lambda x: x.of_rank(1))


@INVERT_PERMUTATION.kernel
def invert_permutation_kernel(x: torch.Tensor) -> torch.Tensor:
    if x.ndim != 1:
        raise InvalidArgumentError(None, None, f"invert_permutation expects a 1D vector, got shape {Shape(x.shape)}.")
    order = torch.argsort(x)
    if not torch.equal(x[order], torch.arange(x.numel(), dtype=x.dtype, device=x.device)):
        raise InvalidArgumentError(None, None, f"{x.tolist()} is not a permutation of 0..{x.numel() - 1}.")
    return order.to(x.dtype)


@export("math.invert_permutation", v1="invert_permutation")
def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The inverse of the permutation `x`."""
    return INVERT_PERMUTATION(x, name=name)


@export(v1="transpose")
def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """Permutes the dimensions into the order `perm`, or reverses them. With `conjugate`, complex values are conjugated."""
    with name_scope(name, "transpose", [a]) as scope:
        a = convert_to_tensor(a, name="a")
        definition = CONJUGATE_TRANSPOSE if conjugate and a.dtype.is_complex else TRANSPOSE
        if perm is None:
            rank = a.static_shape.rank
            if rank is None:
                count = ops.rank(a)
                perm = ops.subtract(ops.subtract(count, 1), ops.range(0, count, 1))
            else:
                perm = np.arange(rank - 1, -1, -1, dtype=np.int32)
        return definition(a, perm, name=scope)


@export(v2="transpose")
def transpose_v2(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Tensor:
    """Permutes the dimensions into the order `perm`, or reverses them. With `conjugate`, complex values are conjugated."""
    return transpose(a, perm, name, conjugate)


# ---- ExpandDims, Squeeze ----------------------------------------------------------------------------------------

EXPAND_DIMS = define(
    "ExpandDims(input: T, dim: host Tdim) -> (output: T)", VIEW, T=ANY, Tdim=one_of(*INDEX, default=dtypes.int32)
)
EXPAND_DIMS.small("expand_dims")


EXPAND_DIMS.lower(reshaped)


@EXPAND_DIMS.kernel
def expand_dims_kernel(input: Any, dim: Any) -> Any:
    if type(dim) is list:
        if np.size(dim) != 1:
            raise InvalidArgumentError(None, None, f"'dim' input must be a tensor with a single value, got {dim}.")
        dim = int(np.ravel(dim)[0])
    try:
        return input.unsqueeze(dim) if isinstance(input, torch.Tensor) else np.expand_dims(input, dim)
    except (IndexError, ValueError):
        raise InvalidArgumentError(
            None, None, f"Tried to expand dim index {dim} for tensor with {input.ndim} dimensions."
        ) from None


@EXPAND_DIMS.shape(values=["dim"])
def expand_dims_shape(input: Shape, dim: np.ndarray | None) -> Shape:
    if input.dims is None:
        return UNKNOWN_SHAPE
    if dim is None:
        return Shape((None,) * (len(input) + 1))
    if dim.size != 1:
        raise InvalidArgumentError(None, None, f"'dim' input must be a tensor with a single value, got {dim.tolist()}.")
    at = input.normalize_axis(int(dim.reshape(())), extra=1)
    return Shape((*input.dims[:at], 1, *input.dims[at:]))


@EXPAND_DIMS.grad
def expand_dims_grad(op: Operation, g: Tensor) -> Any:
    return reshape(g, shape(op.inputs[0])), None


@export(v1="expand_dims")
@dispatched
def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Inserts a dimension of size 1 at `axis`.

    Raises:
        ValueError: both or neither of `axis` and its older name `dim` are given.
    """
    axis = _one_of("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return EXPAND_DIMS(input, axis, name=name)


@export(v2="expand_dims")
@dispatched
def expand_dims_v2(input: Any, axis: Any, name: str | None = None) -> Tensor:
    """Inserts a dimension of size 1 at `axis`."""
    return EXPAND_DIMS(input, axis, name=name)


def _one_of(name: str, value: Any, older_name: str, older: Any) -> Any:
    """The value of an argument that has a current and an older name."""
    if older is not None:
        if value is not None:
            raise ValueError(f"Cannot specify both '{name}' and '{older_name}'.")
        return older
    return value


SQUEEZE = define("Squeeze(input: T) -> (output: T)", VIEW, T=ANY, squeeze_dims=INTS((), minimum=0))
SQUEEZE.small("squeeze", lambda op: list(op.attrs["squeeze_dims"]))


SQUEEZE.lower(reshaped)


@SQUEEZE.kernel
def squeeze_kernel(input: Any, *, squeeze_dims: tuple[int, ...]) -> Any:
    if not squeeze_dims:
        return input.squeeze()
    sizes = input.shape
    for dim in squeeze_dims:
        if not -len(sizes) <= dim < len(sizes):
            raise InvalidArgumentError(
                None, None, f"Tried to squeeze dim index {dim} for tensor with {len(sizes)} dimensions."
            )
        if sizes[dim] != 1:
            raise InvalidArgumentError(
                None, None, f"Can not squeeze dim[{dim % len(sizes)}], expected a dimension of 1, got {sizes[dim]}"
            )
    if len(squeeze_dims) == 1:
        return input.squeeze(squeeze_dims[0])
    return input.squeeze(tuple({dim % len(sizes) for dim in squeeze_dims}))


@SQUEEZE.shape
def squeeze_shape(input: Shape, *, squeeze_dims: tuple[int, ...]) -> Shape:
    if input.dims is None:
        return UNKNOWN_SHAPE
    if not squeeze_dims:
        return UNKNOWN_SHAPE if None in input.dims else Shape(size for size in input.dims if size != 1)
    dropped = {input.normalize_axis(dim) for dim in squeeze_dims}
    for dim in dropped:
        if input.dims[dim] not in (None, 1):
            raise InvalidArgumentError(
                None, None, f"Can not squeeze dim[{dim}], expected a dimension of 1, got {input.dims[dim]}"
            )
    return Shape(size for i, size in enumerate(input.dims) if i not in dropped)


@EXPAND_DIMS.rows
def expand_dims_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    axis = rows.numbers(inputs[1])
    if axis is None or not inputs[0].stacked:
        return None
    return [EXPAND_DIMS(inputs[0].tensor, int(axis) + (int(axis) >= 0))]


@RESHAPE.rows
@SQUEEZE.rows
def reshape_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    """Reshapes rows of known size."""
    size = op.outputs[0].static_shape
    if not size.known or 0 in size or not inputs[0].stacked or any(each.stacked for each in inputs[1:]):
        return None
    stack = inputs[0].tensor
    if stack.static_shape[1:].known:
        return [reshape(stack, [-1, *size])]
    # Rows of another size are an error, also if all of them together would make up other rows.
    return [reshape(stack, ops.concat([shape(stack, out_type=dtypes.int64)[:1], np.array(size, np.int64)], 0))]


@SQUEEZE.grad
def squeeze_grad(op: Operation, g: Tensor) -> Tensor:
    return reshape(g, shape(op.inputs[0]))


@export(v1="squeeze")
def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """Removes dimensions of size 1: those in `axis`, or all of them."""
    axis = _one_of("axis", axis, "squeeze_dims", squeeze_dims)
    return squeeze_v2(input, axis, name)


@export(v2="squeeze")
def squeeze_v2(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Removes dimensions of size 1: those in `axis`, or all of them."""
    if axis is None:
        axis = ()
    elif not isinstance(axis, (list, tuple)):
        axis = [axis]
    return SQUEEZE(input, squeeze_dims=list(axis), name=name)
