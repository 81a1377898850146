"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, DTypeSet
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export, named
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, TensorShape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, define
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, constants, joining, pads, ranges, shaping, slicing
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.values import torch_dtype

_COMPLEX = DTypeSet(dtypes.COMPLEX, dtypes.complex64)
_REAL = DTypeSet((dtypes.float32, dtypes.float64), dtypes.float32)
_SUFFIX = {1: "", 2: "2D", 3: "3D"}
_NAMES = {1: "", 2: "2d", 3: "3d"}

# ---- complex transforms -----------------------------------------------------------------------------------------


def _check_rank(input: torch.Tensor, rank: int, op: str) -> None:
    if input.ndim < rank:
        raise InvalidArgumentError(
            None, None, f"{op}: input must have rank of at least {rank} but got: {list(input.shape)}"
        )


def _complex_op(rank: int, inverse: bool) -> OpDefinition:
    name = f"{'I' if inverse else ''}FFT{_SUFFIX[rank]}"
    transform = torch.fft.ifftn if inverse else torch.fft.fftn
    axes = list(range(-rank, 0))

    def kernel(input: torch.Tensor) -> torch.Tensor:
        _check_rank(input, rank, name)
        return transform(input, dim=axes) if input.numel() else input.clone()

    kernel.__name__ = kernel.__qualname__ = f"{name.lower()}_kernel"
    definition = define(f"{name}(input: Tcomplex) -> (output: Tcomplex)", Tcomplex=_COMPLEX)
    definition.kernel(kernel)
    definition.shape(lambda input: input.at_least(rank))
    return definition


FFTS = {rank: _complex_op(rank, False) for rank in (1, 2, 3)}
IFFTS = {rank: _complex_op(rank, True) for rank in (1, 2, 3)}


def _count(x: Tensor, rank: int, kind: DType) -> Tensor:
    """The number of elements that a transform covers, as a number of type `kind`."""
    sizes = x.static_shape
    if sizes.rank is not None and sizes[len(sizes) - rank :].known:
        return convert_to_tensor(sizes[len(sizes) - rank :].size, kind)
    return casting.cast(_product(shaping.SHAPE_OP(x)[-rank:]), kind)


def _product(sizes: Tensor) -> Tensor:
    return reductions.reduce_prod(sizes)


def _complex_gradients(rank: int) -> None:
    """The adjoint of a transform is its inverse, up to a factor of the number of elements."""

    def forward(op: Operation, g: Tensor) -> Tensor:
        return arithmetic.multiply(IFFTS[rank](g), _count(g, rank, g.dtype.base_dtype))

    def backward(op: Operation, g: Tensor) -> Tensor:
        return arithmetic.multiply(FFTS[rank](g), unary_functions.reciprocal(_count(g, rank, g.dtype.base_dtype)))

    FFTS[rank].grad(forward)
    IFFTS[rank].grad(backward)


for _rank in (1, 2, 3):
    _complex_gradients(_rank)

for _rank in (1, 2, 3):  # names from TensorFlow 0.12
    for _table, _prefix in ((FFTS, "BatchFFT"), (IFFTS, "BatchIFFT")):
        _batch = define(f"{_prefix}{_SUFFIX[_rank]}(input: complex64) -> (output: complex64)")
        _batch.same_as(_table[_rank])

# ---- real transforms --------------------------------------------------------------------------------------------


def _lengths_checked(fft_length: list[int], rank: int, op: str) -> list[int]:
    if len(fft_length) != rank:
        raise InvalidArgumentError(None, None, f"{op}: fft_length must have {rank} elements, got {fft_length}")
    if any(n < 0 for n in fft_length):
        raise InvalidArgumentError(None, None, f"{op}: fft_length must be >= 0, got {fft_length}")
    return fft_length


def _check_long_enough(input: torch.Tensor, lengths: list[int], op: str) -> None:
    first = input.ndim - len(lengths)
    for axis, (size, least) in enumerate(zip(input.shape[first:], lengths), first):
        if size < least:
            raise InvalidArgumentError(
                None, None, f"{op}: Input dimension {axis} must have length of at least {least} but got: {size}"
            )


def _rfft_shape(rank: int, inverse: bool) -> Callable[..., Shape]:
    def rule(input: Shape, fft_length: np.ndarray | None) -> Shape:
        input = input.at_least(rank)
        if fft_length is not None and len(fft_length) != rank:
            raise InvalidArgumentError(None, None, f"Dimension must be {rank} but is {len(fft_length)}: fft_length")
        if input.dims is None:
            return UNKNOWN_SHAPE
        if fft_length is None:
            last: list[Any] = [None] * rank
        else:
            last = [None if n < 0 else int(n) for n in fft_length]  # the kernel rejects negative ones
            if not inverse:
                last[-1] = last[-1] // 2 + 1 if last[-1] else last[-1]
        return Shape((*input.dims[: len(input) - rank], *last))

    return rule


def _real_op(rank: int) -> OpDefinition:
    name = f"RFFT{_SUFFIX[rank]}"
    axes = list(range(-rank, 0))

    def kernel(input: torch.Tensor, fft_length: list[int], *, Tcomplex: DType) -> torch.Tensor:
        _check_rank(input, rank, name)
        lengths = _lengths_checked(fft_length, rank, name)
        if 0 in lengths or not input.numel():
            sizes = [*input.shape[: input.ndim - rank], *lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0]
            return torch.zeros(allocatable(sizes, Tcomplex.size), dtype=torch_dtype(Tcomplex), device=input.device)
        _check_long_enough(input, lengths, name)
        return torch.fft.rfftn(input, lengths, axes).to(torch_dtype(Tcomplex))

    kernel.__name__ = kernel.__qualname__ = f"{name.lower()}_kernel"
    definition = define(
        f"{name}(input: Treal, fft_length: vector host int32) -> (output: Tcomplex)", Treal=_REAL, Tcomplex=_COMPLEX
    )
    definition.kernel(kernel)
    definition.shape(_rfft_shape(rank, False), values=["fft_length"])
    return definition


def _inverse_real_op(rank: int) -> OpDefinition:
    name = f"IRFFT{_SUFFIX[rank]}"
    axes = list(range(-rank, 0))

    def kernel(input: torch.Tensor, fft_length: list[int], *, Treal: DType) -> torch.Tensor:
        _check_rank(input, rank, name)
        lengths = _lengths_checked(fft_length, rank, name)
        if 0 in lengths or not input.numel():
            return torch.zeros(
                allocatable([*input.shape[: input.ndim - rank], *lengths], Treal.size),
                dtype=torch_dtype(Treal),
                device=input.device,
            )
        _check_long_enough(input, [*lengths[:-1], lengths[-1] // 2 + 1], name)
        return torch.fft.irfftn(input, lengths, axes).to(torch_dtype(Treal))

    kernel.__name__ = kernel.__qualname__ = f"{name.lower()}_kernel"
    definition = define(
        f"{name}(input: Tcomplex, fft_length: vector host int32) -> (output: Treal)", Treal=_REAL, Tcomplex=_COMPLEX
    )
    definition.kernel(kernel)
    definition.shape(_rfft_shape(rank, True), values=["fft_length"])
    return definition


RFFTS = {rank: _real_op(rank) for rank in (1, 2, 3)}
IRFFTS = {rank: _inverse_real_op(rank) for rank in (1, 2, 3)}


def _real_gradients(rank: int) -> None:
    def forward(op: Operation, g: Tensor) -> Any:
        """Pads the half spectrum with zeros, transforms it back, and takes the real part, cut to the input's size."""
        x, lengths = op.inputs
        kind = g.dtype.base_dtype
        sizes = shaping.shape(x)
        full = _fit(g, lengths)
        back = arithmetic.multiply(IFFTS[rank](full), _total(lengths, kind))
        return _fit_to(unary_functions.real(back), sizes), None

    def backward(op: Operation, g: Tensor) -> Any:
        """Inner frequencies represent two, so they count twice. The first and (for even lengths) the last count once."""
        z, lengths = op.inputs
        kind = z.dtype.base_dtype
        n = lengths[-1]
        half = arithmetic.FLOOR_DIV(n, 2) + 1
        place = ranges.range(0, half)
        inner = comparison.logical_and(
            comparison.greater(place, 0), comparison.less(place, arithmetic.subtract(n, arithmetic.subtract(half, 1)))
        )
        weights = arithmetic.add(casting.cast(inner, kind), constants.number(1, z))
        spectrum = RFFTS[rank](g, lengths, Tcomplex=kind)
        scaled = arithmetic.multiply(
            arithmetic.multiply(spectrum, weights), unary_functions.reciprocal(_total(lengths, kind))
        )
        return _fit_to(scaled, shaping.shape(z)), None

    RFFTS[rank].grad(forward)
    IRFFTS[rank].grad(backward)


def _total(lengths: Tensor, kind: DType) -> Tensor:
    return casting.cast(_product(lengths), kind)


def _fit(x: Tensor, lengths: Tensor) -> Tensor:
    """Pads the last dimension of x with zeros to the last of `lengths`."""
    sizes = shaping.SHAPE_OP(x)
    missing = arithmetic.subtract(lengths[-1], sizes[-1])
    last = shaping.reshape(joining.PACK([convert_to_tensor(0), missing]), [1, 2])
    return pads.pad(x, joining.concat([_unpadded(x, 1), last], 0))


def _unpadded(x: Tensor, but: int) -> Any:
    """Zero paddings for all dimensions of x except the last `but` ones."""
    rank = x.static_shape.rank
    return (
        shaping.zeros([ranges.rank(x) - but, 2], dtypes.int32) if rank is None else np.zeros((rank - but, 2), np.int32)
    )


def _fit_to(x: Tensor, sizes: Tensor) -> Tensor:
    """Truncates x, or pads it with zeros, at the end of its dimensions to `sizes`."""
    missing = arithmetic.maximum(arithmetic.subtract(sizes, shaping.SHAPE_OP(x)), 0)
    padded = pads.pad(x, joining.PACK([shaping.zeros_like(missing), missing], axis=1))
    return slicing.slice(padded, shaping.zeros_like(sizes), sizes)


for _rank in (1, 2):  # TensorFlow registers no gradients for three dimensions
    _real_gradients(_rank)

# ---- functions --------------------------------------------------------------------------------------------------


def _complex_function(rank: int, inverse: bool) -> Any:
    definition = (IFFTS if inverse else FFTS)[rank]
    python_name = f"{'i' if inverse else ''}fft{_NAMES[rank]}"
    doc = f"The {'inverse ' if inverse else ''}discrete Fourier transform over the last {rank} dimension(s)."

    @export(f"signal.{python_name}", v1=(python_name, f"spectral.{python_name}"))
    @named(python_name, doc)
    def transform(input: Any, name: str | None = None) -> Tensor:
        return definition(input, name=name)

    return transform


fft, fft2d, fft3d = (_complex_function(rank, False) for rank in (1, 2, 3))
ifft, ifft2d, ifft3d = (_complex_function(rank, True) for rank in (1, 2, 3))


def _sizes_of(x: Tensor, rank: int, inverse: bool) -> Any:
    """The default of fft_length: the input's sizes; for the inverse, the last one is 2 * (size - 1)."""
    shape = x.static_shape
    if shape.rank is not None and shape[len(shape) - rank :].known:
        sizes = [int(n) for n in shape[len(shape) - rank :]]
        if inverse:
            sizes[-1] = max(0, 2 * (sizes[-1] - 1))
        return convert_to_tensor(np.array(sizes, np.int32), name="fft_length")
    sizes = shaping.SHAPE_OP(x)[-rank:]
    if not inverse:
        return sizes
    last = arithmetic.maximum(arithmetic.multiply(arithmetic.subtract(sizes[-1:], 1), 2), 0)
    return joining.concat([sizes[:-1], last], 0)


def _real_function(rank: int, inverse: bool) -> Any:
    definition = (IRFFTS if inverse else RFFTS)[rank]
    python_name = f"{'i' if inverse else ''}rfft{_NAMES[rank]}"
    kind = "inverse of the transform of real numbers" if inverse else "discrete Fourier transform of real numbers"
    doc = (
        f"The {kind} over the last {rank} dimension(s): only half of the last one is held, the rest mirrors it.\n\n"
        "Input is cut or filled up with zeros to `fft_length`, its own sizes if that is None."
    )

    @export(f"signal.{python_name}", v1=(python_name, f"spectral.{python_name}"))
    @named(python_name, doc)
    def transform(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        with name_scope(name, python_name, [input_tensor, fft_length]) as scope:
            if inverse:
                x = convert_to_tensor(input_tensor, dtype_hint=dtypes.complex64)
                taken, wide = "IRFFT requires tf.complex64 or tf.complex128", x.dtype.base_dtype is dtypes.complex128
            else:
                x = convert_to_tensor(input_tensor, dtype_hint=dtypes.float32)
                taken, wide = "RFFT requires tf.float32 or tf.float64", x.dtype.base_dtype is dtypes.float64
            if x.dtype.base_dtype not in (_COMPLEX if inverse else _REAL):
                raise ValueError(f"{taken} inputs, got: {x}")
            x.shape.with_rank_at_least(rank)
            if fft_length is None:
                lengths = _sizes_of(x, rank, inverse)
            else:
                lengths = convert_to_tensor(fft_length, dtypes.int32)
                if (known := constant_value(lengths)) is not None and known.ndim == 1:
                    TensorShape([None if n == -1 else int(n) for n in known])  # raises for sizes below -1
                x = _grown(x, lengths, rank, inverse)
            if inverse:
                return definition(x, lengths, Treal=dtypes.float64 if wide else dtypes.float32, name=scope)
            return definition(x, lengths, Tcomplex=dtypes.complex128 if wide else dtypes.complex64, name=scope)

    return transform


def _grown(x: Tensor, lengths: Tensor, rank: int, inverse: bool) -> Tensor:
    """Pads x with zeros where it is smaller than the transform requires."""
    if inverse:
        wanted = joining.concat([lengths[:-1], arithmetic.FLOOR_DIV(lengths[-1:], 2) + 1], 0)
    else:
        wanted = lengths
    missing = arithmetic.maximum(arithmetic.subtract(wanted, shaping.SHAPE_OP(x)[-rank:]), 0)
    last = joining.PACK([shaping.zeros_like(missing), missing], axis=1)
    return pads.pad(x, joining.concat([_unpadded(x, rank), last], 0))


rfft, rfft2d, rfft3d = (_real_function(rank, False) for rank in (1, 2, 3))
irfft, irfft2d, irfft3d = (_real_function(rank, True) for rank in (1, 2, 3))
