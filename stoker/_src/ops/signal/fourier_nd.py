"""Fourier transforms over any number of axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, DTypeSet
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, define
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import gathering, joining, shaping
from stoker._src.ops.math import arithmetic
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.values import torch_dtype


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


# ---- transforms over any axes -----------------------------------------------------------------------------------

_COMPLEX = DTypeSet(dtypes.COMPLEX, dtypes.complex64)
_REAL = DTypeSet((dtypes.float32, dtypes.float64), dtypes.float32)


def _transform(name: str, function: Any, *, real_in: bool = False, real_out: bool = False) -> OpDefinition:
    kind_in, kind_out = "Treal" if real_in else "Tcomplex", "Treal" if real_out else "Tcomplex"
    kinds = {"Treal": _REAL} if real_in or real_out else {}
    definition = define(
        f"{name}(input: {kind_in}, fft_length: vector host int32, axes: vector host int32) -> (output: {kind_out})",
        **kinds,
        Tcomplex=_COMPLEX,
    )

    def check(rank: int, fft_length: list[int], axes: list[int]) -> None:
        if len(fft_length) != len(axes):
            raise _invalid(f"{name}: fft_length {fft_length} and axes {axes} must have as many elements")
        if any(not -rank <= axis < rank for axis in axes) or len({axis % rank for axis in axes}) < len(axes):
            raise _invalid(f"{name}: axes {axes} must be different ones of rank {rank}")
        if any(length < 1 for length in fft_length):
            raise _invalid(f"{name}: fft_length must be positive, got {fft_length}")

    def sizes_after(sizes: Any, fft_length: list[int], axes: list[int]) -> list[Any]:
        found = list(sizes)
        for axis, length in zip(axes, fft_length):
            found[axis] = length
        if real_in and axes:
            found[axes[-1]] = fft_length[-1] // 2 + 1
        return found

    def kernel(input: torch.Tensor, fft_length: list[int], axes: list[int], **attrs: DType) -> torch.Tensor:
        check(input.ndim, fft_length, axes)
        kind = torch_dtype(attrs[kind_out])
        if not axes:
            return input.to(kind)
        allocatable([*input.shape, *fft_length], 16) if max(fft_length) > max(input.shape, default=0) else None
        if not input.numel():  # torch rejects empty inputs
            return input.new_zeros(sizes_after(input.shape, fft_length, axes), dtype=kind)
        return function(input, fft_length, axes).to(kind)

    def shape(input: Shape, fft_length: Any, axes: Any) -> Shape:
        if input.dims is None:
            return UNKNOWN_SHAPE
        if fft_length is None or axes is None:
            return Shape((None,) * len(input))
        lengths, places = fft_length.tolist(), axes.tolist()
        check(len(input), lengths, places)
        return Shape(sizes_after(input.dims, lengths, places))

    definition.kernel(kernel)
    definition.kernel_attrs = (kind_out,)
    definition.shape(shape, values=["fft_length", "axes"])
    return definition


FFTND = _transform("FFTND", torch.fft.fftn)
IFFTND = _transform("IFFTND", torch.fft.ifftn)
RFFTND = _transform("RFFTND", torch.fft.rfftn, real_in=True)
IRFFTND = _transform("IRFFTND", torch.fft.irfftn, real_out=True)


def _function(name: str, definition: OpDefinition, text: str) -> Any:
    def transform(
        input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
    ) -> Tensor:
        real = definition in (RFFTND, IRFFTND)
        hint = dtypes.float32 if definition is RFFTND else dtypes.complex64
        x = convert_to_tensor(input_tensor, dtype_hint=hint)
        if norm is not None:
            raise NotImplementedError(
                f"tf.signal.{definition.name.lower()} scales in one way; norm={norm!r} is not known."
            )
        rank = x.static_shape.rank
        if axes is None:
            if rank is None:
                raise ValueError("A transform over all axes needs an input of known rank.")
            axes = list(range(rank))
        fft_length, axes = (
            convert_to_tensor(each, dtypes.int32) if isinstance(each, Tensor) else each for each in (fft_length, axes)
        )
        x.shape.with_rank_at_least(len(axes) if isinstance(axes, list) else 0)
        if fft_length is None:
            sizes = shaping.shape(x)
            picked = gathering.gather(
                sizes,
                axes
                if rank is None
                else np.mod(axes, rank)
                if isinstance(axes, list)
                else arithmetic.floormod(axes, rank),
            )
            if definition is IRFFTND:
                last = arithmetic.multiply(picked[-1:] - 1, 2)
                picked = joining.concat([picked[:-1], arithmetic.maximum(last, 1)], 0)
            fft_length = picked
        kinds: dict[str, Any] = {}
        if real:
            wide = x.dtype.base_dtype in (dtypes.float64, dtypes.complex128)
            other = (
                (dtypes.complex128 if wide else dtypes.complex64)
                if definition is RFFTND
                else (dtypes.float64 if wide else dtypes.float32)
            )
            kinds = {"Tcomplex" if definition is RFFTND else "Treal": other}
        return definition(x, fft_length, axes, name=name, **kinds)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"{text} over `axes` (all by default). Each is truncated or zero-padded to `fft_length`."
    return export(f"signal.{name}")(transform)


fftnd = _function("fftnd", FFTND, "The discrete Fourier transform")
ifftnd = _function("ifftnd", IFFTND, "The inverse discrete Fourier transform")
rfftnd = _function(
    "rfftnd", RFFTND, "The discrete Fourier transform of real numbers, of which half of the last axis is held,"
)
irfftnd = _function("irfftnd", IRFFTND, "The inverse of the transform of real numbers")
