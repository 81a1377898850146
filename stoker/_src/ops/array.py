"""Shapes and layout: identity, reshape, transpose, shape, fill, concatenation and the like."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Dim, Shape, as_shape
from stoker._src.graph.conversion import convert_to_tensor, dtype_of, is_tensor, register_tensor_conversion_function
from stoker._src.graph.definition import ANY, PASSES, VIEW, define, one_of, unchanged
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import SHAPE_READERS, VALUE_READERS, constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops import math, ranges, reductions
from stoker._src.ops.constants import constant, constant_of
from stoker._src.ops.values import torch_dtype

# ---- Identity, StopGradient -------------------------------------------------------------------------------------

IDENTITY = define("Identity(input: T) -> (output: T)", PASSES, T=ANY)
IDENTITY.kernel(lambda input: input)
IDENTITY.shape(unchanged)
IDENTITY.grad(lambda op, g: g)

STOP_GRADIENT = define("StopGradient(input: T) -> (output: T)", PASSES, T=ANY).not_differentiable()
STOP_GRADIENT.kernel(lambda input: input)
STOP_GRADIENT.shape(unchanged)


@export("identity")
def identity(input: Any, name: str | None = None) -> Tensor:
    """The same value, as the output of an op of its own."""
    return IDENTITY(input, name=name)


@export("stop_gradient")
def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The same value; gradients take it for a constant."""
    return STOP_GRADIENT(input, name=name)


# ---- Shape, Rank, Size ------------------------------------------------------------------------------------------

SHAPE_OP = define(
    "Shape(input: T) -> (output: out_type)", T=ANY, out_type=one_of(*INDEX, default=dtypes.int32)
).not_differentiable()


@SHAPE_OP.kernel
def shape_kernel(input: Any, *, out_type: DType) -> torch.Tensor:
    return torch.tensor(input.shape, dtype=torch_dtype(out_type))


@SHAPE_OP.shape
def shape_shape(input: Shape) -> Shape:
    return Shape((input.rank,))


def _static_shape(op: Operation) -> Any:
    shape = op._inputs[0].static_shape
    return np.array(shape.dims, op.attrs["out_type"].as_numpy_dtype) if shape.known else None


VALUE_READERS["Shape"] = _static_shape
SHAPE_READERS["Shape"] = lambda op, index: op._inputs[0].static_shape


@export(v1="shape")
def shape(input: Any, name: str | None = None, out_type: Any = dtypes.int32, optimize: bool = True) -> Tensor:
    """The sizes of `input` as a vector; a constant when they are known and `optimize` is set."""
    tensor = convert_to_tensor(input)
    known = tensor.static_shape
    if optimize and known.known:
        return constant(list(known), as_dtype(out_type), name=name or "Shape", shape=[len(known)])
    return SHAPE_OP(tensor, out_type=as_dtype(out_type), name=name)


@export(v2="shape")
def shape_v2(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """The sizes of `input` as a vector."""
    return shape(input, name, out_type)


# ---- Reshape ----------------------------------------------------------------------------------------------------

RESHAPE = define(
    "Reshape(tensor: T, shape: host Tshape) -> (output: T)", VIEW, T=ANY, Tshape=one_of(*INDEX, default=dtypes.int32)
)


@RESHAPE.kernel
def reshape_kernel(tensor: Any, shape: list[int]) -> Any:
    return tensor.reshape(shape)


@RESHAPE.shape(as_shapes=["shape"], values=[])
def reshape_shape(tensor: Shape, shape: Shape) -> Shape:
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


@export("reshape")
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in another shape; one size may be -1 and is worked out."""
    return RESHAPE(tensor, shape, name=name)


# ---- Fill -------------------------------------------------------------------------------------------------------

FILL = define(
    "Fill(dims: host index_type, value: T) -> (output: T)", T=ANY, index_type=one_of(*INDEX, default=dtypes.int32)
)


@FILL.kernel
def fill_kernel(dims: list[int], value: Any) -> Any:
    if any(size < 0 for size in dims):
        raise InvalidArgumentError(None, None, f"Dimensions must be >= 0, got {dims}.")
    if isinstance(value, np.ndarray):
        return np.full(dims, value[()], dtype=object)
    return value.expand(dims).clone(memory_format=torch.contiguous_format)


@FILL.shape(as_shapes=["dims"])
def fill_shape(dims: Shape, value: Shape) -> Shape:
    value.of_rank(0)
    return dims


@FILL.grad
def fill_grad(op: Operation, g: Tensor) -> Any:
    return None, reductions.reduce_sum(g)


@export("fill")
def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape `dims`, every element `value`."""
    return FILL(dims, value, name=name)


def _filled(shape: Any, dtype: DType, number: Any, name: str | None, default: str) -> Tensor:
    """Zeros or ones: a constant for small known shapes, else a Fill, named as TensorFlow names them."""
    blank: Any = number
    if dtype is dtypes.bool_:
        blank = bool(number)
    elif dtype is dtypes.string:
        blank = b""
    with name_scope(name, default, [shape]) as scope:
        if not isinstance(shape, Tensor):
            try:
                known = as_shape(shape)
            except (TypeError, ValueError):
                known = UNKNOWN_SHAPE
            if known.known and (known.size or 0) < 1000:
                array = np.full(tuple(known), blank, dtype=dtype.as_numpy_dtype)  # type: ignore[arg-type]
                return constant_of(array, dtype, scope)
            shape = convert_to_tensor(shape, dtypes.int32 if known.known else None, "shape_as_tensor")
        return fill(shape, constant(blank, dtype), name=scope)


@export("zeros")
def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (empty strings, False)."""
    return _filled(shape, as_dtype(dtype).base_dtype, 0, name, "zeros")


@export("ones")
def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones."""
    return _filled(shape, as_dtype(dtype).base_dtype, 1, name, "ones")


ZEROS_LIKE = define("ZerosLike(x: T) -> (y: T)", T=ANY).not_differentiable()
ZEROS_LIKE.shape(unchanged)
ONES_LIKE = define("OnesLike(x: T) -> (y: T)", T=ANY).not_differentiable()
ONES_LIKE.shape(unchanged)


@ZEROS_LIKE.kernel
def zeros_like_kernel(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.full(x.shape, b"", dtype=object)
    return torch.zeros_like(x)


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
        if optimize and tensor.static_shape.known and wanted is not dtypes.variant:
            return make(tensor.static_shape, wanted, name=scope)
        if wanted is not tensor.dtype.base_dtype:
            return make(SHAPE_OP(tensor), wanted, name=scope)
        return definition(tensor, name=scope)


@export(v1="zeros_like")
def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Zeros in the shape (and dtype, unless given) of `tensor`."""
    return _like(tensor, dtype, optimize, name, 0, "zeros_like", ZEROS_LIKE)


@export(v1="ones_like")
def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones in the shape (and dtype, unless given) of `tensor`."""
    return _like(tensor, dtype, optimize, name, 1, "ones_like", ONES_LIKE)


@export(v2="zeros_like")
def zeros_like_v2(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """Zeros in the shape (and dtype, unless given) of `input`."""
    return zeros_like(input, dtype, name)


@export(v2="ones_like")
def ones_like_v2(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """Ones in the shape (and dtype, unless given) of `input`."""
    return ones_like(input, dtype, name)


# ---- Transpose --------------------------------------------------------------------------------------------------

TRANSPOSE = define(
    "Transpose(x: T, perm: host Tperm) -> (y: T)", VIEW, T=ANY, Tperm=one_of(*INDEX, default=dtypes.int32)
)


@TRANSPOSE.kernel
def transpose_kernel(x: Any, perm: list[int]) -> Any:
    return x.permute(perm) if isinstance(x, torch.Tensor) else x.transpose(perm)


@TRANSPOSE.shape(values=["perm"])
def transpose_shape(x: Shape, perm: np.ndarray | None) -> Shape:
    if perm is None:
        return UNKNOWN_SHAPE if x.rank is None else Shape((None,) * x.rank)
    x = x.of_rank(len(perm))
    if sorted(perm.tolist()) != list(range(len(perm))):
        raise InvalidArgumentError(
            None, None, f"perm {perm.tolist()} is not a permutation of the {len(perm)} dimensions."
        )
    return Shape(x[int(axis)] for axis in perm)


@TRANSPOSE.grad
def transpose_grad(op: Operation, g: Tensor) -> Any:
    return transpose(g, invert_permutation(op.inputs[1])), None


INVERT_PERMUTATION = define("InvertPermutation(x: T) -> (y: T)", T=INDEX).not_differentiable()
INVERT_PERMUTATION.shape(unchanged)


@INVERT_PERMUTATION.kernel
def invert_permutation_kernel(x: torch.Tensor) -> torch.Tensor:
    order = torch.argsort(x)
    if not torch.equal(x[order], torch.arange(x.numel(), dtype=x.dtype)):
        raise InvalidArgumentError(None, None, f"{x.tolist()} is not a permutation of 0..{x.numel() - 1}.")
    return order.to(x.dtype)


@export("math.invert_permutation", v1="invert_permutation")
def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation that undoes `x`."""
    return INVERT_PERMUTATION(x, name=name)


@export(v1="transpose")
def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """Dimensions in the order `perm`, or reversed; complex values conjugated if asked."""
    with name_scope(name, "transpose", [a]) as scope:
        a = convert_to_tensor(a, name="a")
        if conjugate and a.dtype.is_complex:
            a = math.conj(a)
        if perm is None:
            rank = a.static_shape.rank
            if rank is None:
                count = ranges.rank(a)
                perm = math.subtract(math.subtract(count, 1), ranges.range(0, count, 1))
            else:
                perm = np.arange(rank - 1, -1, -1, dtype=np.int32)
        return TRANSPOSE(a, perm, name=scope)


@export(v2="transpose")
def transpose_v2(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Tensor:
    """Dimensions in the order `perm`, or reversed; complex values conjugated if asked."""
    return transpose(a, perm, name, conjugate)


# ---- Pack -------------------------------------------------------------------------------------------------------

PACK = define("Pack(values: N * T) -> (output: T)", T=ANY, axis=0)


@PACK.kernel
def pack_kernel(values: list[Any], *, axis: int) -> Any:
    if isinstance(values[0], np.ndarray):
        return np.stack(values, axis)
    return torch.stack(values, axis)


@PACK.shape
def pack_shape(values: list[Shape], *, axis: int) -> Shape:
    merged = UNKNOWN_SHAPE
    for each in values:
        merged = merged.merge(each)
    if merged.dims is None:
        return UNKNOWN_SHAPE
    axis = merged.normalize_axis(axis, extra=1)
    return Shape((*merged.dims[:axis], len(values), *merged.dims[axis:]))


def _packed_shape(op: Operation, index: int) -> Shape:
    sizes = [constant_value(tensor) for tensor in op._inputs]
    return Shape(None if size is None or size < 0 else int(size) for size in sizes)


SHAPE_READERS["Pack"] = _packed_shape


def _packed(value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    """A list with tensors in it (at any depth), as one tensor."""
    if not _holds_tensors(value):
        return NotImplemented
    if dtype is None:
        dtype = next((found for item in _leaves(value) if (found := dtype_of(item)) is not None), None)
    parts = [
        _packed(item, dtype)
        if isinstance(item, (list, tuple)) and _holds_tensors(item)
        else convert_to_tensor(item, dtype)
        for item in value
    ]
    return PACK(parts, name=name or "packed")


def _leaves(value: Any) -> Any:
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def _holds_tensors(value: Any) -> bool:
    return any(is_tensor(item) for item in _leaves(value))


register_tensor_conversion_function((list, tuple), _packed, 99)

# ---- ConcatV2 ---------------------------------------------------------------------------------------------------

CONCAT_V2 = define(
    "ConcatV2(values: N * T, axis: host Tidx) -> (output: T)", T=ANY, Tidx=one_of(*INDEX, default=dtypes.int32)
)


@CONCAT_V2.kernel
def concat_kernel(values: list[Any], axis: int) -> Any:
    if isinstance(values[0], np.ndarray):
        return np.concatenate(values, axis)
    return torch.cat(values, axis)


@CONCAT_V2.shape(values=["axis"])
def concat_shape(values: list[Shape], axis: np.ndarray | None) -> Shape:
    merged = UNKNOWN_SHAPE
    if axis is None:
        ranks = {each.rank for each in values if each.rank is not None}
        return Shape((None,) * ranks.pop()) if len(ranks) == 1 else UNKNOWN_SHAPE
    for each in values:
        if each.dims is not None:
            at = each.normalize_axis(int(axis))
            merged = merged.merge(Shape(each.dims[:at] + (None,) + each.dims[at + 1 :]))
    if merged.dims is None:
        return UNKNOWN_SHAPE
    at = merged.normalize_axis(int(axis))
    sizes = [each[at] for each in values]
    total = None if None in sizes else sum(sizes)
    return Shape((*merged.dims[:at], total, *merged.dims[at + 1 :]))


@export("concat")
def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """The tensors joined along `axis`."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        return identity(values[0], name=name)
    return CONCAT_V2(list(values), axis, name=name)
