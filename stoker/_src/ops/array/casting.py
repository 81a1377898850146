"""Conversion between dtypes: Cast, Bitcast and the functions built on them."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, INTS, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.base.export import export, named
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, VIEW, define, unchanged
from stoker._src.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue
from stoker._src.graph.static_values import Sight, constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.handles import is_resource_variable
from stoker._src.ops.support.values import torch_dtype

# ---- Cast -------------------------------------------------------------------------------------------------------

CAST = define("Cast(x: SrcT) -> (y: DstT)", VIEW, SrcT=ANY, DstT=ANY, Truncate=False)
CAST.small("cast")
CAST.shape(unchanged)
_OF_LOOPS = (dtypes.float32, dtypes.float64, *INDEX)
_NO_NUMBERS = frozenset((dtypes.string, dtypes.resource, dtypes.variant))


@CAST.kernel
def cast_kernel(x: torch.Tensor, *, SrcT: DType, DstT: DType) -> torch.Tensor:
    if SrcT in _NO_NUMBERS or DstT in _NO_NUMBERS:
        raise UnimplementedError(None, None, f"Cast {SrcT.name} to {DstT.name} is not supported")
    wanted = torch_dtype(DstT)
    if x.is_complex() and not wanted.is_complex:
        x = x.real
    if x.is_floating_point() and not (wanted.is_floating_point or wanted.is_complex):
        return _to_integer(x, wanted)
    return x.to(wanted)


def _widens(op: Operation) -> Any:
    """Integers that become wider: nothing can be lost, and no loop of floats would fuse with it."""
    source, target = op.attrs["SrcT"], op.attrs["DstT"]
    return (source, target) if source is dtypes.int32 and target is dtypes.int64 else None


@CAST.together(_widens)
def cast_many(rows: list[Any], attributes: Any) -> list[torch.Tensor]:
    return [x.to(torch.int64) for (x,) in rows]


def _to_integer(x: torch.Tensor, wanted: torch.dtype) -> torch.Tensor:
    # Convert through the widest integer: a narrow conversion of an out-of-range number is undefined in C++.
    if wanted in (torch.int64, torch.int32, torch.bool):
        return x.to(wanted)
    if x.dtype is torch.bfloat16 and wanted in (torch.uint8, torch.int8, torch.uint16, torch.int16):
        # TensorFlow's conversion of bfloat16 saturates: 255.5 rounds to 256, which must not become black.
        limits = torch.iinfo(wanted)
        return (
            x.float()
            .nan_to_num(limits.min, limits.max, limits.min)
            .clamp_(limits.min, limits.max)
            .to(torch.int64)
            .to(wanted)
        )
    return x.to(torch.int64).to(wanted) if wanted is not torch.uint64 else x.to(wanted)


@CAST.lower
def cast_lower(build: Any, op: Operation, x: Any) -> Any:
    """Booleans are numbers inside of fused loops."""
    source, result = op._inputs[0].dtype.base_dtype, op.outputs[0].dtype.base_dtype
    if source is dtypes.bool_ and result in (dtypes.float32, dtypes.float64):
        return build.reshape(x, x.shape)
    exact = source in (dtypes.bool_, *INDEX)
    return build.cast(x, result.name if result in INDEX else "") if exact and result in _OF_LOOPS else None


@CAST.grad
def cast_grad(op: Operation, g: Tensor) -> Tensor | None:
    source, result = op.attr("SrcT"), op.attr("DstT")
    flows = (*FLOATS, *dtypes.COMPLEX)
    return cast(g, source) if source in flows and result in flows else None


@CAST.spelled_shape
def shape_behind_cast(op: Operation, index: int, sight: Sight) -> Shape:
    """A shape vector cast from int32 to int64 (or back) still denotes the same shape."""
    return constant_value_as_shape(op._inputs[0], sight)


_WITH_PLACES = (SparseTensor, SparseTensorValue, IndexedSlices, IndexedSlicesValue)


@export("cast", "dtypes.cast")
@elementwise
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """Casts `x` to `dtype`. Fractions are truncated, and imaginary parts are dropped."""
    wanted = as_dtype(dtype).base_dtype
    if (isinstance(x, Tensor) or is_resource_variable(x)) and x.dtype.base_dtype is wanted:
        return x  # this may be a resource variable, which is read where it is used
    with name_scope(name, "Cast", [x]) as scope:
        parts: Any = x
        if isinstance(x, _WITH_PLACES):  # the values are cast; the indices stay the same
            values = cast(parts.values, wanted, scope)
            return type(parts)(values=values, indices=parts.indices, dense_shape=parts.dense_shape)
        x = convert_to_tensor(x, name="x")
        return x if x.dtype.base_dtype is wanted else CAST(x, DstT=wanted, name=scope)


def _converter(dtype: DType, python_name: str, node_name: str) -> Any:
    @export(v1=python_name)
    @named(python_name, f"`tf.cast(x, tf.{dtype.name})`, the spelling of 1.x.")
    def convert(x: Any, name: str = node_name) -> Any:
        return cast(x, dtype, name=name)

    return convert


to_float = _converter(dtypes.float32, "to_float", "ToFloat")
to_double = _converter(dtypes.float64, "to_double", "ToDouble")
to_int32 = _converter(dtypes.int32, "to_int32", "ToInt32")
to_int64 = _converter(dtypes.int64, "to_int64", "ToInt64")
to_bfloat16 = _converter(dtypes.bfloat16, "to_bfloat16", "ToBFloat16")
to_complex64 = _converter(dtypes.complex64, "to_complex64", "ToComplex64")
to_complex128 = _converter(dtypes.complex128, "to_complex128", "ToComplex128")

# ---- Bitcast ----------------------------------------------------------------------------------------------------

_BITCAST_TYPES = (
    *FLOATS,
    *INTS,
    *dtypes.COMPLEX,
    dtypes.qint8,
    dtypes.quint8,
    dtypes.qint16,
    dtypes.quint16,
    dtypes.qint32,
)
BITCAST = define("Bitcast(input: T) -> (output: type)", VIEW, T=_BITCAST_TYPES, type=_BITCAST_TYPES)


@BITCAST.kernel
def bitcast_kernel(input: torch.Tensor, *, type: DType) -> torch.Tensor:
    wanted = torch_dtype(type)
    before, after = input.element_size(), wanted.itemsize
    if before == after:
        return input.view(wanted)
    if before > after:
        return input.unsqueeze(-1).contiguous().view(wanted)
    if input.ndim == 0 or input.shape[-1] * before != after:
        raise InvalidArgumentError(
            None,
            None,
            f"Cannot bitcast from {str(input.dtype).removeprefix('torch.')} to {type.name}: "
            f"shape {list(input.shape)} does not end in {after // before}.",
        )
    if not input.numel():
        return input.new_empty(input.shape[:-1], dtype=wanted)
    return input.contiguous().view(wanted).squeeze(-1)


@BITCAST.shape
def bitcast_shape(input: Shape, *, T: DType, type: DType) -> Shape:
    if input.dims is None:
        return UNKNOWN_SHAPE
    before, after = T.size, type.size
    if before == after:
        return input
    if before > after:
        return Shape((*input.dims, before // after))
    if not input.dims or input.dims[-1] not in (None, after // before):
        raise InvalidArgumentError(
            None, None, f"Cannot bitcast from {T.name} to {type.name}: shape {input} does not end in {after // before}."
        )
    return input[:-1]


@export("bitcast")
def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """Reinterprets the bytes of `input` as another dtype. If the widths differ, a last dimension is added or dropped."""
    return BITCAST(input, type=as_dtype(type), name=name)
