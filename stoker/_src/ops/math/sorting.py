"""Sorting, top-k, unique elements, and search in sorted sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, REAL, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, INT32, define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, constants, joining, ranges, shaping, value_checks
from stoker._src.ops.math import arithmetic, comparison, reductions, segment_reductions, unary_functions
from stoker._src.ops.support import cuda_kernels, table_rows
from stoker._src.ops.support.unsigned import ordered
from stoker._src.ops.support.values import from_numpy, torch_dtype

_native: Any = extension("stoker._src.ops.native.largest")
_FEW_LARGEST, _MOST = (
    512,
    1 << 18,
)  # of the largest elements, and of all, that one thread finds faster than torch's sort

# ---- TopK -------------------------------------------------------------------------------------------------------

_COUNT = one_of(dtypes.int16, *INDEX, default=dtypes.int32)
TOP_K = define("TopK(input: T) -> (values: T, indices: int32)", k=INT32(minimum=0), sorted=True, T=REAL)
TOP_K_V2 = define(
    "TopKV2(input: rank>0 T, k: scalar host Tk) -> (values: T, indices: index_type)",
    sorted=True,
    T=REAL,
    Tk=_COUNT,
    index_type=_COUNT,
)


@ordered
def _largest(input: torch.Tensor, k: int, index_dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    if input.ndim == 0:
        raise InvalidArgumentError(None, None, "input must be >= 1-D, got shape []")
    if k < 0:
        raise InvalidArgumentError(None, None, f"Need k >= 0, got {k}")
    if input.shape[-1] < k:
        raise InvalidArgumentError(None, None, f"input must have at least k columns. Had {input.shape[-1]}, needed {k}")
    if k == 1 and input.shape[-1]:
        places = torch.argmax(input, -1, keepdim=True)
        return torch.gather(input, -1, places), places.to(index_dtype)
    found = _few_largest(input, k)
    if found is not None:
        return found[0], found[1].to(index_dtype)
    if input.shape[-1] >= 256 and k < input.shape[-1] // 4 and not input.is_cuda:  # a GPU would make the host wait
        values, places = torch.topk(input, k, -1)
        if not _has_ties(input, values):
            return values, places.to(index_dtype)
    # Of equal elements, the one with the lower index comes first. torch.topk does not guarantee that.
    values, places = torch.sort(input, dim=-1, descending=True, stable=True)
    return values[..., :k].contiguous(), places[..., :k].to(index_dtype)


def _few_largest(input: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The values and places in one pass over each row; None if this is not faster than sorting, or torch must do it."""
    if _native is None or input.dtype is not torch.float32 or not (0 < k <= _FEW_LARGEST and input.numel() <= _MOST):
        return None
    if not (input.is_cpu and input.is_contiguous()):
        return None
    sizes = (*input.shape[:-1], k)
    values, places = torch.empty(sizes), torch.empty(sizes, dtype=torch.int64)
    columns = input.shape[-1]
    return (values, places) if _native.top_k(values, places, input, input.numel() // columns, columns, k) else None


def _has_ties(input: torch.Tensor, values: torch.Tensor) -> bool:
    """Whether equal elements compete for a place among the largest `values`."""
    if not values.shape[-1]:
        return False
    reaching = (input >= values[..., -1:]).sum(-1)
    return bool((reaching > values.shape[-1]).any()) or bool((values[..., 1:] == values[..., :-1]).any())


@TOP_K.kernel
def top_k_kernel(input: torch.Tensor, *, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    return _largest(input, k, torch.int32)


@TOP_K_V2.kernel
def top_k_v2_kernel(input: torch.Tensor, k: int, *, index_type: DType) -> tuple[torch.Tensor, torch.Tensor]:
    return _largest(input, k, torch_dtype(index_type))


TOP_K.lower(lambda build, op, input: build.top(input, op.attr("k"), "int32"))
TOP_K_V2.lower(lambda build, op, input, k: build.top(input, k, op.attr("index_type").name))


def _top_k_shape(input: Shape, k: int | None) -> tuple[Shape, Shape]:
    if input.at_least(1).dims is None:
        return UNKNOWN_SHAPE, UNKNOWN_SHAPE
    last = input[-1]
    if k is not None and k < 0:
        raise InvalidArgumentError(None, None, f"k must be non-negative but is {k}")
    if k is not None and last is not None and last < k:
        raise InvalidArgumentError(None, None, f"input must have last dimension >= k = {k} but is {last}")
    result = input[:-1].concat(Shape((k,)))
    return result, result


@TOP_K.shape
def top_k_shape(input: Shape, *, k: int) -> tuple[Shape, Shape]:
    return _top_k_shape(input, k)


@TOP_K_V2.shape(values=["k"])
def top_k_v2_shape(input: Shape, k: np.ndarray | None) -> tuple[Shape, Shape]:
    return _top_k_shape(input, None if k is None else int(k))


def _top_k_grad(op: Operation, g: Tensor) -> Tensor:
    """Scatters the gradient back to the positions of the values, row by row of the flattened input."""
    x, places = op.inputs[0], casting.cast(op.outputs[1], dtypes.int32)
    known = x.static_shape
    sizes = shaping.shape(x)
    if known.known:
        width, count = known[-1], known.size
        rows: Any = known[:-1].size
    else:
        width, count, rows = sizes[-1], ranges.SIZE(x), reductions.reduce_prod(sizes[:-1])
    chosen = places.static_shape[-1]
    chosen = shaping.SHAPE_OP(places)[-1] if chosen is None else chosen
    starts = arithmetic.multiply(ranges.range(0, rows), width)
    where = arithmetic.add(shaping.reshape(starts, [-1, 1]), shaping.reshape(places, joining.PACK([rows, chosen])))
    flat = segment_reductions.UNSORTED_SEGMENT_SUM(shaping.reshape(g, [-1]), shaping.reshape(where, [-1]), count)
    return shaping.reshape(flat, sizes)


@TOP_K.grad
def top_k_grad(op: Operation, g: Tensor, _: Any) -> Any:
    return _top_k_grad(op, g)


@TOP_K_V2.grad
def top_k_v2_grad(op: Operation, g: Tensor, _: Any) -> Any:
    return _top_k_grad(op, g), None


@export("math.top_k", "nn.top_k")
def top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """The `k` largest elements of the last dimension, largest first, and their indices: (values, indices)."""
    return TOP_K_V2(input, k, sorted=sorted, index_type=as_dtype(index_type), name=name)


# ---- sort, argsort ----------------------------------------------------------------------------------------------


def _turned(x: Tensor, axis: Any) -> tuple[Tensor, Callable[[Tensor], Tensor] | None]:
    """`x` with `axis` moved last, and the permutation that undoes it (None if `axis` is last already)."""
    place = constant_value(convert_to_tensor(axis, name="axis"))
    if place is None or np.ndim(place):
        raise ValueError("axis must be a constant scalar")
    at, rank = int(place), x.static_shape.rank
    if rank is None and at != -1:
        sizes = shaping.shape(x)
        middle, following = sizes[at], sizes[at + 1 :]
        form = joining.stack([-1, middle, reductions.reduce_prod(following)])
        turned = shaping.transpose(shaping.reshape(x, form), [0, 2, 1])
        return turned, lambda result: shaping.reshape(shaping.transpose(result, [0, 2, 1]), sizes)
    if rank is None or value_checks.static_axis(x, at) == rank - 1:
        return x, None
    order = list(range(rank))
    order[at], order[-1] = order[-1], order[at]
    return shaping.transpose(x, order), lambda result: shaping.transpose(result, order)


def _width(x: Tensor) -> Any:
    return shaping.shape(x)[-1] if x.static_shape[-1] is None else x.static_shape[-1]


def _sorted(values: Any, axis: Any, direction: str, which: int) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"Argument `direction` should be one of ['ASCENDING', 'DESCENDING']. Received: direction={direction}"
        )
    x = convert_to_tensor(values, name="values")
    turned, back = _turned(x, axis)
    kind = turned.dtype.base_dtype
    mirror = None
    if direction == "ASCENDING":
        # Select the largest of negated values: -x for floats, -1 - x for integers (no overflow), max - x for unsigned ones.
        if kind.is_integer:
            mirror = constants.number(int(kind.max) if kind.is_unsigned else -1, turned)
            turned = arithmetic.SUB(mirror, turned, name="sub")
        else:
            turned = unary_functions.negative(turned)
    result = TOP_K_V2(turned, _width(turned))[which]
    result = result if back is None else back(result)
    if direction == "DESCENDING" or which:
        return result
    return unary_functions.negative(result) if mirror is None else arithmetic.SUB(mirror, result, name="sub_1")


@export("sort")
def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Sorts the elements along `axis`.

    Raises:
        ValueError: `axis` is not a constant, or `direction` is unknown.
    """
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, 0)


@export("argsort")
def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The indices that sort the elements along `axis`. The sort is always stable."""
    del stable
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, 1)


# ---- NthElement -------------------------------------------------------------------------------------------------

NTH_ELEMENT = define("NthElement(input: T, n: scalar host int32) -> (values: T)", reverse=False, T=REAL)


@NTH_ELEMENT.kernel
@ordered
def nth_element_kernel(input: torch.Tensor, n: int, *, reverse: bool) -> torch.Tensor:
    if input.ndim == 0 or n < 0 or input.shape[-1] <= n:
        raise InvalidArgumentError(
            None, None, f"Input must have last dimension > n = {n}, but has shape {list(input.shape)}"
        )
    return torch.sort(input, -1, descending=reverse)[0][..., n].contiguous()


@NTH_ELEMENT.shape(values=["n"])
def nth_element_shape(input: Shape, n: np.ndarray | None) -> Shape:
    input = input.at_least(1)
    last = input[-1] if input.rank else None
    if n is not None and (n < 0 or (last is not None and last <= n)):
        raise InvalidArgumentError(None, None, f"Input must have last dimension > n = {n} but is {input}")
    return input[:-1]


@NTH_ELEMENT.grad
def nth_element_grad(op: Operation, g: Tensor) -> Any:
    """Elements equal to the selected one share the gradient."""
    x, y = op.inputs[0], op.outputs[0]
    column = joining.concat([shaping.shape(y), [1]], 0)
    hits = casting.cast(comparison.equal(shaping.reshape(y, column), x), g.dtype.base_dtype)
    count = reductions.reduce_sum(hits, -1, True)
    return arithmetic.multiply(arithmetic.realdiv(hits, count), shaping.reshape(g, column)), None


@export(v1="contrib.nn.nth_element")
def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Tensor:
    """The element at position `n` of the sorted last dimension."""
    return NTH_ELEMENT(input, n, reverse=reverse, name=name)


# ---- Unique -----------------------------------------------------------------------------------------------------

_PLACES = one_of(*INDEX, default=dtypes.int32)
UNIQUE = define("Unique(x: T) -> (y: T, idx: out_idx)", T=ANY, out_idx=_PLACES)
UNIQUE.small("unique")
UNIQUE_V2 = define(
    "UniqueV2(x: T, axis: vector host Taxis) -> (y: T, idx: out_idx)",
    T=ANY,
    Taxis=one_of(*INDEX, default=dtypes.int64),
    out_idx=_PLACES,
)
UNIQUE_WITH_COUNTS = define("UniqueWithCounts(x: T) -> (y: T, idx: out_idx, count: out_idx)", T=ANY, out_idx=_PLACES)
UNIQUE_WITH_COUNTS.small("unique")
UNIQUE_WITH_COUNTS_V2 = define(
    "UniqueWithCountsV2(x: T, axis: vector host Taxis) -> (y: T, idx: out_idx, count: out_idx)",
    T=ANY,
    Taxis=one_of(*INDEX, default=dtypes.int64),
    out_idx=_PLACES,
)


def _unique_objects(x: np.ndarray, kind: torch.dtype, axis: int) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """For strings and complex numbers. A dictionary keeps the order of first appearance."""
    seen: dict[Any, int] = {}
    first: list[int] = []
    places: list[int] = []
    for i, row in enumerate(np.moveaxis(x, axis, 0)):
        place = seen.setdefault(row if x.ndim == 1 else tuple(row.ravel().tolist()), len(seen))
        if place == len(first):
            first.append(i)
        places.append(place)
    values = np.take(x, first, axis)
    idx = torch.tensor(places, dtype=kind)
    return values, idx, torch.bincount(idx, minlength=len(seen)).to(kind)


def unique_in_order(
    x: Any, kind: torch.dtype, axis: int = 0, *, counted: bool = True
) -> tuple[Any, torch.Tensor, torch.Tensor | None]:
    """Distinct slices along `axis` in order of first appearance, the index of each slice among them, and their counts if wanted."""
    if isinstance(x, np.ndarray):
        return _unique_objects(x, kind, axis)
    if x.is_complex():
        values, idx, count = _unique_objects(x.cpu().numpy(), kind, axis)
        return from_numpy(values).to(x.device), idx.to(x.device), count.to(x.device)
    found = table_rows.unique(x, kind, counted=counted) if x.ndim == 1 else None
    if found is not None:
        return found
    plain = x.to(torch.uint8) if x.dtype == torch.bool else x
    if x.ndim > 1 and not x.numel() and x.shape[axis]:
        # Slices without elements are all equal.
        total = x.shape[axis]
        place, count = (
            torch.full(size, value, dtype=kind, device=x.device) for size, value in (((total,), 0), ((1,), total))
        )
        return x.narrow(axis, 0, 1).clone(), place, count
    if x.ndim == 1:
        values, inverse, counts = torch.unique(plain, return_inverse=True, return_counts=True)
    else:
        values, inverse, counts = torch.unique(plain, return_inverse=True, return_counts=True, dim=axis)
    total = x.shape[axis]
    first = torch.full((counts.numel(),), total, dtype=torch.int64, device=x.device)
    first.scatter_reduce_(0, inverse, torch.arange(total, device=x.device), "amin")
    order = torch.argsort(first)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=x.device)
    chosen = values[order] if x.ndim == 1 else values.index_select(axis, order)
    return chosen.to(x.dtype), rank[inverse].to(kind), counts[order].to(kind)


def _axis(x: Any, axis: list[int]) -> int:
    if not axis:
        _check_vector(x)
        return 0
    _check_single(axis)
    return Shape(x.shape).normalize_axis(axis[0])


def _check_single(axis: list[int]) -> None:
    if len(axis) > 1:
        raise InvalidArgumentError(
            None, None, f"axis does not support input tensors larger than 1 element, got {axis}."
        )


def _check_vector(x: Any) -> None:
    if x.ndim != 1:
        raise InvalidArgumentError(None, None, f"unique expects a 1D vector, got shape {list(x.shape)}.")


UNIQUE.planning.distinct = frozenset((0,))
UNIQUE_WITH_COUNTS.planning.distinct = frozenset((0,))


@UNIQUE.equals
def unique_of_distinct(op: Operation, plan: Any) -> list[Tensor | None] | None:
    """The distinct elements of a vector of distinct elements are its elements."""
    source = plan.made_by(op.inputs[0])
    if source is None or source.value_index not in source.op.definition.planning.distinct:
        return None
    return [op.inputs[0], None]


@UNIQUE.kernel
def unique_kernel(x: Any, *, out_idx: DType) -> Any:
    _check_vector(x)
    return unique_in_order(x, torch_dtype(out_idx), counted=False)[:2]


def unique_padded(x: torch.Tensor, *, out_idx: DType) -> tuple[torch.Tensor, torch.Tensor]:
    """Like `unique_kernel` for integers, with -1 after the distinct elements until there are as many as in x.

    On a GPU, the distinct elements are in ascending order, and the host does not wait for their number.
    """
    if x.is_cuda:
        return ascending_padded(x, torch_dtype(out_idx))
    found, places = unique_kernel(x, out_idx=out_idx)
    padded = x.new_full(x.shape, -1)
    padded[: found.shape[0]] = found
    return padded, places


# One block compares all pairs, so there are few elements. Sorting them with torch takes a dozen kernels.
DISTINCT_SOURCE = r"""
typedef long long i64;

extern "C" __global__ void distinct(const int* narrow, const i64* wide, int* padded, i64* wide_padded, int* places, i64* wide_places, int count,
                                    int is_wide, int wide_result) {
    __shared__ i64 given[512], firsts[512];
    const i64 none = 0x7fffffffffffffffLL;
    for (int i = threadIdx.x; i < count; i += blockDim.x) given[i] = is_wide ? wide[i] : narrow[i];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        int is_first = 1;
        for (int j = 0; j < i; j++) is_first &= given[j] != given[i];
        firsts[i] = is_first ? given[i] : none;
        if (is_wide) wide_padded[i] = -1;
        else padded[i] = -1;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        int place = 0;
        for (int j = 0; j < count; j++) place += firsts[j] < given[i];
        if (is_wide) wide_padded[place] = given[i];
        else padded[place] = (int)given[i];
        if (wide_result) wide_places[i] = place;
        else places[i] = place;
    }
}
"""
_FEW = 512  # elements that a block can compare


def distinct_by_one_block(
    run: Any, x: torch.Tensor, kind: torch.dtype, threads: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """`ascending_padded` of a few elements, by the kernel `run`."""
    padded, places = torch.empty_like(x), torch.empty(x.shape, dtype=kind, device=x.device)
    if x.numel():
        flags = (x.numel(), int(x.dtype is torch.int64), int(kind is torch.int64))
        run((1, 1, 1), (threads, 1, 1), (x, x, padded, padded, places, places, *flags))
    return padded, places


def ascending_padded(x: torch.Tensor, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """The distinct elements of an integer vector in ascending order, padded with -1, and the place of each element among them."""
    both = (torch.int32, torch.int64)
    if x.is_cuda and x.numel() <= _FEW and x.is_contiguous() and x.dtype in both and kind in both:
        run = cuda_kernels.compiled(DISTINCT_SOURCE, "distinct")
        if run is not None:
            return distinct_by_one_block(run, x, kind, _FEW)
    ordered, positions = torch.sort(x, stable=True)
    starts = torch.ones(x.shape, dtype=torch.bool, device=x.device)
    torch.ne(ordered[1:], ordered[:-1], out=starts[1:])
    group = starts.cumsum(0) - 1
    padded = x.new_full(x.shape, -1).scatter_(0, group, ordered)
    return padded, torch.empty_like(group).scatter_(0, positions, group).to(kind)


UNIQUE.planning.pads = unique_padded
UNIQUE.planning.padded = lambda op, padded, shape_of: [True, True]


@UNIQUE_V2.kernel
def unique_v2_kernel(x: Any, axis: list[int], *, out_idx: DType) -> Any:
    return unique_in_order(x, torch_dtype(out_idx), _axis(x, axis), counted=False)[:2]


@UNIQUE_WITH_COUNTS.kernel
def unique_with_counts_kernel(x: Any, *, out_idx: DType) -> Any:
    _check_vector(x)
    return unique_in_order(x, torch_dtype(out_idx))


@UNIQUE_WITH_COUNTS_V2.kernel
def unique_with_counts_v2_kernel(x: Any, axis: list[int], *, out_idx: DType) -> Any:
    return unique_in_order(x, torch_dtype(out_idx), _axis(x, axis))


def unique_shape(x: Shape) -> tuple[Shape, Shape]:
    return Shape((None,)), x.of_rank(1)


UNIQUE.shape(unique_shape)


@UNIQUE_WITH_COUNTS.shape
def unique_with_counts_shape(x: Shape) -> tuple[Shape, Shape, Shape]:
    return Shape((None,)), x if x.rank == 1 else Shape((None,)), Shape((None,))


def _unique_along(x: Shape, axis: np.ndarray | None) -> tuple[Shape, Shape]:
    if axis is None or x.dims is None:
        return UNKNOWN_SHAPE if x.dims is None else Shape((None,) * len(x)), Shape((None,))
    if not np.size(axis):
        return unique_shape(x)
    _check_single(axis.tolist())
    at = x.normalize_axis(int(np.ravel(axis)[0]))
    return Shape(x.dims[:at] + (None,) + x.dims[at + 1 :]), Shape((x.dims[at],))


@UNIQUE_V2.shape(values=["axis"])
def unique_v2_shape(x: Shape, axis: np.ndarray | None) -> tuple[Shape, Shape]:
    return _unique_along(x, axis)


@UNIQUE_WITH_COUNTS_V2.shape(values=["axis"])
def unique_with_counts_v2_shape(x: Shape, axis: np.ndarray | None) -> tuple[Shape, Shape, Shape]:
    return (*_unique_along(x, axis), Shape((None,)))


@export("unique")
def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """The distinct elements of a vector in order of appearance, and the index of each element among them: (y, idx)."""
    return UNIQUE(x, out_idx=out_idx, name=name)


@export("unique_with_counts")
def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """Like `unique`, with the count of each distinct element: (y, idx, count)."""
    return UNIQUE_WITH_COUNTS(x, out_idx=out_idx, name=name)


# ---- InTopK -----------------------------------------------------------------------------------------------------

IN_TOP_K = define(
    "InTopK(predictions: float32, targets: T) -> (precision: bool)", k=INT32, T=one_of(*INDEX, default=dtypes.int32)
)
IN_TOP_K_V2 = define(
    "InTopKV2(predictions: float32, targets: T, k: host T) -> (precision: bool)", T=one_of(*INDEX, default=dtypes.int32)
)


def _in_top_k(predictions: torch.Tensor, targets: torch.Tensor, k: int) -> torch.Tensor:
    """Whether fewer than k predictions of the row are larger. False if the target's prediction is not finite."""
    if predictions.ndim != 2 or targets.ndim != 1 or predictions.shape[0] != targets.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"predictions must be a matrix with a row for each target, but shapes are {list(predictions.shape)} "
            f"and {list(targets.shape)}.",
        )
    classes = predictions.shape[1]
    places = targets.to(torch.int64)
    valid = (places >= 0) & (places < classes)
    if classes == 0:
        return valid
    chosen = torch.gather(predictions, 1, places.clamp(0, classes - 1).unsqueeze(1))
    larger = predictions > chosen
    among = larger.sum(1, dtype=torch.int32) < k
    if predictions.is_cpu and torch.isfinite(predictions.sum()):  # so are all of them
        return valid & among
    others = torch.where(larger, 0, predictions)
    return valid & torch.isfinite(chosen.squeeze(1)) & torch.isfinite(others).all(1) & among


@IN_TOP_K.kernel
def in_top_k_kernel(predictions: torch.Tensor, targets: torch.Tensor, *, k: int) -> torch.Tensor:
    return _in_top_k(predictions, targets, k)


@IN_TOP_K_V2.kernel
def in_top_k_v2_kernel(predictions: torch.Tensor, targets: torch.Tensor, k: int) -> torch.Tensor:
    return _in_top_k(predictions, targets, k)


def in_top_k_shape(predictions: Shape, targets: Shape, *_: Any) -> Shape:
    return Shape((predictions.of_rank(2)[0],)).merge(targets.of_rank(1))


IN_TOP_K.shape(in_top_k_shape)
IN_TOP_K_V2.shape(in_top_k_shape)


@export(v1=("nn.in_top_k", "math.in_top_k"))
def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether each target is among the `k` largest predictions of its row. Ties at the boundary count as in the top k."""
    with name_scope(name, "in_top_k"):
        return IN_TOP_K_V2(predictions, targets, k, name=name)


@export(v2=("nn.in_top_k", "math.in_top_k"))
def in_top_k_v2(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether each target is among the `k` largest predictions of its row."""
    return in_top_k(predictions, targets, k, name)


# ---- LowerBound, UpperBound -------------------------------------------------------------------------------------


def _search(sorted_inputs: torch.Tensor, values: torch.Tensor, right: bool, kind: torch.dtype) -> torch.Tensor:
    if sorted_inputs.ndim != 2 or values.ndim != 2:
        raise InvalidArgumentError(
            None,
            None,
            f"sorted input and values must be matrices, got shapes {list(sorted_inputs.shape)} and {list(values.shape)}.",
        )
    if sorted_inputs.shape[0] != values.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"Leading dim_size of both tensors must match, but are {sorted_inputs.shape[0]} and {values.shape[0]}.",
        )

    @ordered
    def find(rows: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        found = torch.searchsorted(rows.contiguous(), wanted.contiguous(), right=right, out_int32=True)
        if (
            not right and wanted.dtype.is_floating_point
        ):  # torch treats NaN as the largest number; no element compares less than it
            found = found.masked_fill(wanted.isnan(), 0)
        return found.to(torch.float64)

    # Uses a dtype that differs from all unsigned operands, so that `ordered` does not convert the positions.
    return find(sorted_inputs, values).to(kind)


LOWER_BOUND = define("LowerBound(sorted_inputs: matrix T, values: T) -> (output: out_type)", T=ANY, out_type=_PLACES)
UPPER_BOUND = define("UpperBound(sorted_inputs: matrix T, values: T) -> (output: out_type)", T=ANY, out_type=_PLACES)


@LOWER_BOUND.kernel
def lower_bound_kernel(sorted_inputs: torch.Tensor, values: torch.Tensor, *, out_type: DType) -> torch.Tensor:
    return _search(sorted_inputs, values, False, torch_dtype(out_type))


@UPPER_BOUND.kernel
def upper_bound_kernel(sorted_inputs: torch.Tensor, values: torch.Tensor, *, out_type: DType) -> torch.Tensor:
    return _search(sorted_inputs, values, True, torch_dtype(out_type))


for _definition in (LOWER_BOUND, UPPER_BOUND):
    _definition.shape(lambda sorted_inputs, values: values.of_rank(2)).__name__ = "search_shape"


def _row_count(sizes: Tensor) -> int:
    """The number of rows if they are empty (`reshape` could not infer it), else -1."""
    known = constant_value(sizes)
    return -1 if known is None or not known.size or known[-1] else int(np.prod(known[:-1]))


@export("searchsorted")
def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """The position in each sorted row at which a value can be inserted so that the row stays sorted.

    Raises:
        ValueError: `side` is neither 'left' nor 'right'.
    """
    if side not in ("left", "right"):
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    given = (sorted_sequence, values)
    sizes = [[_row_count(size), size[-1]] for size in map(shaping.shape, given)]
    rows, flat = map(shaping.reshape, given, sizes)
    found = (LOWER_BOUND if side == "left" else UPPER_BOUND)(rows, flat, out_type=as_dtype(out_type), name=name)
    return shaping.reshape(found, shaping.shape(values))
