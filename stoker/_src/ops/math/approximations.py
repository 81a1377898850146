"""The nearest monotonic sequence, the largest elements by approximation, points that fill a cube evenly, and transforms over any axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, REAL, DType, DTypeSet
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export, named
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import INT, OpDefinition, define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import gathering, ranges, scattering, shaping
from stoker._src.ops.math import arithmetic, reductions, segment_reductions, sorting
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.values import torch_dtype


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


# ---- IsotonicRegression -----------------------------------------------------------------------------------------

ISOTONIC_REGRESSION = define(
    "IsotonicRegression(input: T) -> (output: output_dtype, segments: int32)",
    T=REAL,
    output_dtype=one_of(*FLOATS, default=dtypes.float32),
)
ISOTONIC_REGRESSION.shape(lambda input: (input, input))


def _pooled(row: list[float]) -> list[tuple[float, int]]:
    """The runs (mean, length) of the nearest sequence that never rises: neighbours that rise are averaged."""
    blocks: list[tuple[float, int]] = []  # sum and count
    for value in row:
        total, count = value, 1
        while blocks and blocks[-1][0] * count < total * blocks[-1][1]:
            before, many = blocks.pop()
            total, count = before + total, many + count
        blocks.append((total, count))
    return [(total / count, count) for total, count in blocks]


@ISOTONIC_REGRESSION.kernel
def isotonic_regression_kernel(input: torch.Tensor, *, output_dtype: DType) -> tuple[torch.Tensor, torch.Tensor]:
    width = input.shape[-1] if input.ndim else 1
    rows = input.reshape(-1, width) if input.numel() else input.reshape(0, max(width, 1))
    values, numbers = np.empty(rows.shape), np.empty(rows.shape, np.int32)
    for i, row in enumerate(rows.to(torch.float64).tolist()):
        means, counts = zip(*_pooled(row))
        values[i] = np.repeat(means, counts)
        numbers[i] = np.repeat(np.arange(len(counts)), counts)
    found = torch.from_numpy(values).to(torch_dtype(output_dtype)).reshape(input.shape)
    return found.to(input.device), torch.from_numpy(numbers).reshape(input.shape)


@ISOTONIC_REGRESSION.grad
def isotonic_regression_grad(op: Operation, g: Tensor, _: Any) -> Tensor:
    """Each run passes the mean of its gradients."""
    segments = op.outputs[1]
    sizes = shaping.shape(segments)
    width, rows = sizes[-1], reductions.reduce_prod(sizes[:-1])  # type: ignore[index]
    flat = shaping.reshape(segments, shaping.PACK([rows, width]))
    starts = arithmetic.multiply(ranges.range(rows), width)
    places = shaping.reshape(arithmetic.add(flat, shaping.reshape(starts, [-1, 1])), [-1])
    slopes, count = shaping.reshape(g, [-1]), ranges.SIZE(segments)
    sums = segment_reductions.UNSORTED_SEGMENT_SUM(slopes, places, count)
    counts = segment_reductions.UNSORTED_SEGMENT_SUM(shaping.ones_like(slopes), places, count)
    mean = arithmetic.divide(sums, arithmetic.maximum(counts, shaping.ones_like(counts)))
    return arithmetic.cast(
        shaping.reshape(gathering.gather(mean, places), shaping.shape(segments)), op.inputs[0].dtype.base_dtype
    )


@export(v2="nn.isotonic_regression")
def isotonic_regression(inputs: Any, decreasing: bool = True, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The sequence nearest to `inputs` along `axis` that never rises (or, with `decreasing` False, never falls).

    Returns:
        The sequence (float64 for integers of 32 bits and more), and for each element the number of the run of equal values it is in.
    """
    inputs = convert_to_tensor(inputs)
    kind = inputs.dtype.base_dtype
    if not kind.is_floating:
        kind = dtypes.float32 if kind.size < 4 else dtypes.float64
    rank = inputs.static_shape.rank
    moved = inputs
    order: list[int] = []
    if axis != -1 and not (rank is not None and axis == rank - 1):
        if rank is None:
            raise ValueError("isotonic_regression along another axis than the last needs inputs of known rank.")
        axis = inputs.static_shape.normalize_axis(axis)
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        moved = shaping.transpose(inputs, order)
    result, runs = ISOTONIC_REGRESSION(moved if decreasing else arithmetic.negative(moved), output_dtype=kind)
    result = result if decreasing else arithmetic.negative(result)
    return (shaping.transpose(result, order), shaping.transpose(runs, order)) if order else (result, runs)


# ---- ApproxTopK -------------------------------------------------------------------------------------------------

APPROX_TOP_K = define(
    "ApproxTopK(input: rank>0 T) -> (values: T, indices: int32)",
    k=INT(minimum=0),
    reduction_dimension=-1,
    recall_target=0.95,
    is_max_k=True,
    reduction_input_size_override=-1,
    aggregate_to_topk=True,
    T=(dtypes.float16, dtypes.bfloat16, dtypes.float32),
)


@APPROX_TOP_K.kernel
def approx_top_k_kernel(
    input: torch.Tensor, *, k: int, reduction_dimension: int, is_max_k: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """All elements are looked at, so that the recall is 1, whatever is asked for."""
    if not -input.ndim <= reduction_dimension < input.ndim:
        raise _invalid(f"reduction_dimension {reduction_dimension} is out of range for rank {input.ndim}")
    moved = input.movedim(reduction_dimension, -1)
    if moved.shape[-1] < k:
        raise _invalid(f"input must have at least k columns. Had {moved.shape[-1]}, needed {k}")
    values, indices = sorting.top_k_kernel(moved if is_max_k else -moved, k=k)
    values = values if is_max_k else -values
    return tuple(each.movedim(-1, reduction_dimension).contiguous() for each in (values, indices))  # type: ignore[return-value]


@APPROX_TOP_K.shape
def approx_top_k_shape(input: Shape, *, k: int, reduction_dimension: int, recall_target: float) -> tuple[Shape, Shape]:
    if recall_target <= 0 or recall_target > 1:
        raise _invalid(f"recall_target must be in (0, 1], got {recall_target}")
    if input.dims is None:
        return UNKNOWN_SHAPE, UNKNOWN_SHAPE
    if not -len(input) <= reduction_dimension < len(input):
        raise _invalid(f"reduction_dimension {reduction_dimension} is out of range for rank {len(input)}")
    sizes = list(input.dims)
    if (size := sizes[reduction_dimension]) is not None and size < k:
        raise _invalid(f"input must have dimension {reduction_dimension} >= k = {k} but it was {size}")
    sizes[reduction_dimension] = k
    return Shape(sizes), Shape(sizes)


@APPROX_TOP_K.grad
def approx_top_k_grad(op: Operation, g: Tensor, _: Any) -> Tensor:
    """The gradient put back where the values came from."""
    x, axis = op.inputs[0], op.attr("reduction_dimension")
    rank = x.static_shape.rank
    if rank is None:
        raise ValueError("The gradient of ApproxTopK needs an input of known rank.")
    axis %= rank
    grid = [ranges.range(shaping.shape(op.outputs[1])[i]) for i in range(rank)]  # type: ignore[index]
    places = ranges.meshgrid(*grid, indexing="ij")
    places[axis] = op.outputs[1]
    where = shaping.PACK(places, axis=-1)
    return scattering.scatter_nd(where, g, shaping.shape(x))


def _approximate(name: str, which: str, is_max_k: bool) -> Callable[..., Any]:
    @export(f"math.{name}", f"nn.{name}")
    @named(
        name, f"The `k` {which} elements along a dimension, and their places. All of them are found: the recall is 1."
    )
    def top(
        operand: Any,
        k: int,
        reduction_dimension: int = -1,
        recall_target: float = 0.95,
        reduction_input_size_override: int = -1,
        aggregate_to_topk: bool = True,
        name: str | None = None,
    ) -> Any:
        return APPROX_TOP_K(
            operand, k=k, is_max_k=is_max_k, reduction_dimension=reduction_dimension, recall_target=recall_target,
            reduction_input_size_override=reduction_input_size_override, aggregate_to_topk=aggregate_to_topk, name=name,
        )  # fmt: skip

    return top


approx_max_k = _approximate("approx_max_k", "largest", True)
approx_min_k = _approximate("approx_min_k", "smallest", False)


# ---- SobolSample ------------------------------------------------------------------------------------------------

SOBOL_SAMPLE = define(
    "SobolSample(dim: scalar host int32, num_results: scalar host int32, skip: scalar host int32) -> (samples: dtype)",
    dtype=one_of(dtypes.float32, dtypes.float64, default=dtypes.float32),
)
_LONGEST = 2**30  # as many points the direction numbers tell apart


@SOBOL_SAMPLE.kernel
def sobol_sample_kernel(dim: int, num_results: int, skip: int, *, dtype: DType) -> torch.Tensor:
    for bad, message in (
        (dim < 1, "dim must be at least one"),
        (num_results < 1, "num_results must be at least one"),
        (skip < 0, "skip must be non-negative"),
        (dim > torch.quasirandom.SobolEngine.MAXDIM, f"dim must be at most {torch.quasirandom.SobolEngine.MAXDIM}"),
        (num_results + skip >= _LONGEST, f"num_results+skip must be less than {_LONGEST}"),
    ):
        if bad:
            raise _invalid(f"{message}, got dim {dim}, num_results {num_results}, skip {skip}")
    allocatable([num_results, dim], 8)
    engine = torch.quasirandom.SobolEngine(dim)
    engine.fast_forward(skip + 1)  # the first point of all, the origin, is left out
    return engine.draw(num_results, dtype=torch_dtype(dtype))


@SOBOL_SAMPLE.shape(values=["dim", "num_results"])
def sobol_sample_shape(dim: Any, num_results: Any, skip: Shape) -> Shape:
    sizes = [None if each is None else int(each) for each in (num_results, dim)]
    return Shape(size if size is None or size > 0 else None for size in sizes)


@export("math.sobol_sample")
def sobol_sample(
    dim: Any, num_results: Any, skip: Any = 0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """`num_results` points of the Sobol sequence of the unit cube of `dim` dimensions, without the first `skip`."""
    with name_scope(name, "sobol", [dim, num_results, skip]):
        return SOBOL_SAMPLE(dim, num_results, skip, dtype=dtype)


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
        if not input.numel():  # which torch refuses, of no rows of some length too
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
                last = arithmetic.multiply(picked[-1:] - 1, 2)  # type: ignore[index]
                picked = shaping.concat([picked[:-1], arithmetic.maximum(last, 1)], 0)  # type: ignore[index]
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
    transform.__doc__ = f"{text} over `axes` (all by default), each cut or filled up with zeros to `fft_length`."
    return export(f"signal.{name}")(transform)


fftnd = _function("fftnd", FFTND, "The discrete Fourier transform")
ifftnd = _function("ifftnd", IFFTND, "The inverse discrete Fourier transform")
rfftnd = _function(
    "rfftnd", RFFTND, "The discrete Fourier transform of real numbers, of which half of the last axis is held,"
)
irfftnd = _function("irfftnd", IRFFTND, "The inverse of the transform of real numbers")
