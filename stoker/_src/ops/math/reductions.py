"""Reductions over dimensions: sums, means, products, extremes, norms, logical reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, NUMERIC, REAL, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export, named
from stoker._src.base.shapes import UNKNOWN_SHAPE, Dim, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, define, one_of, scalar
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, ranges, selection, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.math import arithmetic, comparison, scans, unary_functions
from stoker._src.ops.support import rows
from stoker._src.ops.support.dispatching import dispatched
from stoker._src.ops.support.unsigned import modular, ordered

AXES = one_of(*INDEX, default=dtypes.int32)


def _keeps(op: Operation) -> list[int]:
    return [int(op.attrs["keep_dims"])]


def _reduction(name: str, allowed: Any) -> OpDefinition:
    if allowed is dtypes.bool_:
        signature = f"{name}(input: bool, reduction_indices: rank<2* host Tidx) -> (output: bool)"
        definition = define(signature, keep_dims=False, Tidx=AXES)
    else:
        signature = f"{name}(input: T, reduction_indices: rank<2* host Tidx) -> (output: T)"
        definition = define(signature, keep_dims=False, T=allowed, Tidx=AXES)
    definition.shape(reduced_shape, values=["reduction_indices"])
    definition.rows(reduced_rows)
    definition.planning.padded = _reduces_padding
    return definition


def _reduces_padding(op: Operation, padded: list[bool], shape_of: Any) -> list[bool] | None:
    """Reductions within each row leave padded rows."""
    rank, axes = shape_of(op._inputs[0]).rank, constant_value(op._inputs[1])
    if padded[1] or axes is None or not rank or any(int(axis) % rank == 0 for axis in np.ravel(axes)):
        return None
    return [True]


def reduced_over_nothing(op: Operation, plan: Any) -> list[Tensor | None] | None:
    """Without axes the result is the input, as in the gradients of terms that turn out not to be broadcast."""
    axes = plan.known_value(op.inputs[1])
    return [op.inputs[0]] if axes is not None and not axes.size else None


def reduced_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    """The same dimensions of each row, which are one further behind."""
    rank, axes = inputs[0].rank, rows.numbers(inputs[1])
    if rank is None or axes is None or not inputs[0].stacked:
        return None
    behind = axes % rank + 1 if rank else axes
    return rows.again(op, [inputs[0].tensor, convert_to_tensor(behind, inputs[1].tensor.dtype)])


def reduced_shape(input: Shape, reduction_indices: np.ndarray | None, *, keep_dims: bool) -> Shape:
    if input.dims is None:
        return UNKNOWN_SHAPE
    if reduction_indices is None:
        return Shape((None,) * len(input)) if keep_dims else UNKNOWN_SHAPE
    axes = {input.normalize_axis(int(axis)) for axis in np.ravel(reduction_indices)}
    dims: list[Dim] = []
    for i, size in enumerate(input.dims):
        if i not in axes:
            dims.append(size)
        elif keep_dims:
            dims.append(1)
    return Shape(dims)


def _axes(input: torch.Tensor, reduction_indices: Any) -> list[int]:
    """The axes to reduce over, as non-negative numbers.

    Raises:
        InvalidArgumentError: an axis is out of range or repeated.
    """
    axes = reduction_indices if isinstance(reduction_indices, list) else [reduction_indices]
    if axes and isinstance(axes[0], list):
        axes = np.ravel(axes).tolist()
    rank = input.ndim
    for axis in axes:
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                None, None, f"Invalid reduction dimension ({axis} for input with {rank} dimension(s))"
            )
    if len(axes) > 1 and len({axis % rank for axis in axes}) < len(axes):
        raise InvalidArgumentError(
            None, None, f"Invalid reduction arguments: Axes contains duplicate dimension: {axes}"
        )
    return axes


# ---- Sum --------------------------------------------------------------------------------------------------------

SUM = _reduction("Sum", NUMERIC)
SUM.small("sum", _keeps)


@SUM.kernel
@modular
def sum_kernel(input: torch.Tensor, reduction_indices: Any, *, keep_dims: bool) -> torch.Tensor:
    axes = _axes(input, reduction_indices)
    if not axes:  # torch would sum over everything
        return input.clone()
    if len(axes) == input.ndim and _is_shared(input):
        return _total(input).reshape([1] * input.ndim if keep_dims else [])
    return torch.sum(input, axes, keep_dims, dtype=input.dtype)


_SHARED = 1 << 15  # elements from which torch splits a total among threads
_ROW = 1 << 12


def _is_shared(input: torch.Tensor) -> bool:
    """Whether torch's total would depend on the number of threads."""
    return input.numel() > _SHARED and input.dtype in (torch.float32, torch.float64) and input.is_cpu


def _total(input: torch.Tensor) -> torch.Tensor:
    """The sum of all elements, which does not depend on the number of threads: each sums whole rows of a fixed length."""
    flat = input.reshape(-1)
    whole = flat.numel() // _ROW * _ROW
    total = flat[:whole].view(-1, _ROW).sum(1).sum()
    return total if whole == flat.numel() else total + flat[whole:].sum()


@SUM.grad
def sum_grad(op: Operation, g: Tensor) -> Any:
    x, axes = op.inputs
    return _spread(g, x, axes, op.attr("keep_dims")), None


SUM.vanishing(0)


@SUM.lower
def sum_lower(build: Any, op: Operation, x: Any, axis: int | list[int]) -> Any:
    return build.sum(x, axis if isinstance(axis, list) else [axis], keep_dims=op.attr("keep_dims"))


# ---- Mean -------------------------------------------------------------------------------------------------------

MEAN = _reduction("Mean", NUMERIC)
MEAN.small("mean", _keeps)
MEAN.vanishing(0)


@MEAN.lower
def mean_lower(build: Any, op: Operation, x: Any, axis: int | list[int]) -> Any:
    return build.sum(x, axis if isinstance(axis, list) else [axis], keep_dims=op.attr("keep_dims"), mean=True)


@MEAN.kernel
def mean_kernel(input: torch.Tensor, reduction_indices: Any, *, keep_dims: bool) -> torch.Tensor:
    axes = _axes(input, reduction_indices)
    if not axes:
        return input.clone()
    if input.dtype.is_floating_point or input.dtype.is_complex:
        if len(axes) == input.ndim and _is_shared(input):
            return (_total(input) / input.numel()).reshape([1] * input.ndim if keep_dims else [])
        return torch.mean(input, axes, keep_dims)
    count = int(np.prod([input.shape[axis] for axis in axes]))
    # Sums use 64 bits: the mean of small integers fits their dtype, but the sum may not.
    wide = input if input.dtype is torch.uint64 else input.long()
    total = sum_kernel(wide, reduction_indices, keep_dims=keep_dims)
    if count:
        total = arithmetic.TRUNCATE_DIV.kernel_fn(total, torch.tensor(count, device=input.device).to(wide.dtype))  # type: ignore[misc]
    return total.to(input.dtype)


@MEAN.grad
def mean_grad(op: Operation, g: Tensor) -> Any:
    x, axes = op.inputs
    before, after = x.static_shape.size, op.outputs[0].static_shape.size
    if before is not None and after:
        factor = constant(before // after, dtypes.int32)
    elif after == 1:
        factor = ranges.SIZE(x)
    else:
        factor = arithmetic.FLOOR_DIV(ranges.SIZE(x), arithmetic.maximum(ranges.SIZE(op.outputs[0]), 1))
    # Divide before broadcasting: that is one division per output instead of one per input (unless there are no outputs).
    if before == 0:
        return arithmetic.realdiv(
            _spread(g, x, axes, op.attr("keep_dims")), casting.cast(factor, g.dtype.base_dtype)
        ), None
    return _spread(arithmetic.realdiv(g, casting.cast(factor, g.dtype.base_dtype)), x, axes, op.attr("keep_dims")), None


def kept_sizes(x: Tensor, axes: Tensor) -> Any:
    """The sizes of `x` with ones at `axes`: the shape of the reduction with keepdims.

    A list with at most one -1 if static shapes allow it, else a tensor.
    """
    known, values = x.static_shape, constant_value(axes)
    if values is not None and known.rank is not None:
        reduced = {known.normalize_axis(int(axis)) for axis in np.ravel(values)}
        sizes = [1 if i in reduced else (-1 if size is None else size) for i, size in enumerate(known)]
        if sizes.count(-1) <= 1:  # reshape infers one unknown size
            return sizes
    # 1 at each axis, 0 elsewhere, as a sum of one-hot rows; then sizes * (1 - mask) + mask.
    sizes = shaping.SHAPE_OP(x)
    count = ranges.rank(x)
    wrapped = arithmetic.FLOOR_MOD(casting.cast(shaping.reshape(axes, [-1, 1]), dtypes.int32), count)
    hits = casting.cast(comparison.equal(wrapped, ranges.range(0, count)), dtypes.int32)
    mask = MAX(joining.concat([shaping.zeros_like(shaping.reshape(sizes, [1, -1])), hits], 0), 0)
    return arithmetic.add(arithmetic.multiply(sizes, arithmetic.subtract(1, mask)), mask)


def _spread(g: Tensor, x: Tensor, axes: Tensor, keep_dims: bool) -> Tensor:
    """The gradient of a sum: `g` broadcast along the reduced dimensions of `x`."""
    if not keep_dims:
        g = shaping.reshape(g, kept_sizes(x, axes))
    return ranges.broadcast_to(g, shaping.shape(x))


# ---- Prod -------------------------------------------------------------------------------------------------------

PROD = _reduction("Prod", NUMERIC)
PROD.small("prod", _keeps)


@PROD.kernel
@modular
def prod_kernel(input: torch.Tensor, reduction_indices: Any, *, keep_dims: bool) -> torch.Tensor:
    result = input
    rank = input.ndim
    for axis in sorted({axis % rank for axis in _axes(input, reduction_indices)}, reverse=True):
        result = torch.prod(result, axis, keep_dims, dtype=input.dtype)
    return result.clone() if result is input else result


@PROD.grad
def prod_grad(op: Operation, g: Tensor) -> Any:
    """The derivative for an element is the product of all other elements: the product of those before it times those after it.

    Dividing the whole product by the element would fail for zeros.
    """
    x, axes = op.inputs
    if not op.attr("keep_dims"):
        g = shaping.reshape(g, kept_sizes(x, axes))
    g = ranges.broadcast_to(g, shaping.shape(x))
    rank = x.static_shape.rank
    values = constant_value(axes)
    if rank is not None and values is not None:
        reduced = sorted({x.static_shape.normalize_axis(int(axis)) for axis in np.ravel(values)})
        kept = [axis for axis in builtin_range(rank) if axis not in reduced]
        order = reduced + kept
        moved = shaping.transpose(x, order) if order != list(builtin_range(rank)) else x
        sizes = shaping.shape(moved)
        known = moved.static_shape
        first = known[: len(reduced)].size
        flat_sizes: Any = [first if first is not None else -1, -1 if first is not None else known[len(reduced) :].size]
        if None in flat_sizes or 0 in flat_sizes:
            flat_sizes = joining.PACK([reduce_prod(sizes[: len(reduced)]), reduce_prod(sizes[len(reduced) :])])
        inverse: Any = np.argsort(order).tolist()
    else:
        count = ranges.rank(x)
        wrapped = arithmetic.FLOOR_MOD(casting.cast(shaping.reshape(axes, [-1]), dtypes.int32), count)
        every = ranges.range(0, count)
        is_reduced = reduce_any(comparison.equal(shaping.reshape(wrapped, [-1, 1]), every), 0)
        # Sorting by (kept, position) moves the reduced dimensions to the front.
        order = ops.argsort(
            arithmetic.add(
                arithmetic.multiply(casting.cast(comparison.logical_not(is_reduced), dtypes.int32), count), every
            )
        )
        moved = shaping.transpose(x, order)
        sizes = shaping.shape(moved)
        number = reduce_sum(casting.cast(is_reduced, dtypes.int32))
        flat_sizes = joining.PACK([reduce_prod(sizes[:number]), reduce_prod(sizes[number:])])
        inverse = shaping.invert_permutation(order)
    flat = shaping.reshape(moved, flat_sizes)
    before = scans.cumprod(flat, axis=0, exclusive=True)
    after = scans.cumprod(flat, axis=0, exclusive=True, reverse=True)
    others = shaping.reshape(arithmetic.multiply(unary_functions.conj(before), unary_functions.conj(after)), sizes)
    if not (isinstance(inverse, list) and inverse == list(builtin_range(len(inverse)))):
        others = shaping.transpose(others, inverse)
    return shaping.reshape(arithmetic.multiply(g, others), shaping.shape(x)), None


builtin_range = range

# ---- Max, Min ---------------------------------------------------------------------------------------------------

MAX = _reduction("Max", REAL)
MAX.small("reduce_max", _keeps)
MIN = _reduction("Min", REAL)
MIN.small("reduce_min", _keeps)


def _extreme(name: str, function: Callable[..., torch.Tensor], least: bool) -> Callable[..., Any]:
    def kernel(input: torch.Tensor, reduction_indices: Any, *, keep_dims: bool) -> torch.Tensor:
        axes = _axes(input, reduction_indices)
        if not axes:
            return input.clone()
        if input.numel() == 0 and any(input.shape[axis] == 0 for axis in axes):
            # The extreme of no elements is the identity of the reduction.
            info: Any = torch.finfo(input.dtype) if input.is_floating_point() else torch.iinfo(input.dtype)
            worst = (
                (float("inf") if least else float("-inf"))
                if input.is_floating_point()
                else (info.max if least else info.min)
            )
            sizes = reduced_shape(Shape(input.shape), np.array(axes), keep_dims=keep_dims)
            return torch.full(list(sizes), worst, dtype=input.dtype, device=input.device)  # type: ignore[arg-type]
        return function(input, axes, keep_dims)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


MAX.kernel(ordered(_extreme("max_kernel", torch.amax, False)))


@MAX.lower
def max_lower(build: Any, op: Operation, x: Any, axis: int | list[int]) -> Any:
    return build.max(x, axis if isinstance(axis, list) else [axis], keep_dims=op.attr("keep_dims"))


MIN.kernel(ordered(_extreme("min_kernel", torch.amin, True)))


@MIN.lower
def min_lower(build: Any, op: Operation, x: Any, axis: int | list[int]) -> Any:
    largest = build.max(
        build.unary("neg", x), axis if isinstance(axis, list) else [axis], keep_dims=op.attr("keep_dims")
    )
    return None if largest is None else build.unary("neg", largest)


@MAX.grad
@MIN.grad
def extreme_grad(op: Operation, g: Tensor) -> Any:
    """Elements that tie share the gradient equally."""
    x, axes = op.inputs
    y = op.outputs[0]
    if not op.attr("keep_dims"):
        sizes = kept_sizes(x, axes)
        y, g = shaping.reshape(y, sizes), shaping.reshape(g, sizes)
    hits = casting.cast(comparison.equal(y, x), g.dtype.base_dtype)
    count = SUM(hits, axes, keep_dims=True)
    return arithmetic.multiply(arithmetic.realdiv(hits, count), g), None


# ---- All, Any ---------------------------------------------------------------------------------------------------

ALL = _reduction("All", dtypes.bool_)
ALL.small("all", _keeps)
ANY_OP = _reduction("Any", dtypes.bool_)
ANY_OP.small("any", _keeps)


@ALL.kernel
def all_kernel(input: torch.Tensor, reduction_indices: Any, *, keep_dims: bool) -> torch.Tensor:
    axes = _axes(input, reduction_indices)
    if not axes:
        return input.clone()
    if input.is_cpu and input.numel():  # minima of bytes take a fraction of the time of torch.all
        return input.view(torch.uint8).amin(axes, keep_dims).view(torch.bool)
    return torch.all(input, axes, keep_dims)


@ANY_OP.kernel
def any_kernel(input: torch.Tensor, reduction_indices: Any, *, keep_dims: bool) -> torch.Tensor:
    axes = _axes(input, reduction_indices)
    if not axes:
        return input.clone()
    if input.is_cpu and input.numel():
        return input.view(torch.uint8).amax(axes, keep_dims).view(torch.bool)
    return torch.any(input, axes, keep_dims)


# ---- EuclideanNorm ----------------------------------------------------------------------------------------------
for _each in (SUM, MEAN, PROD, MAX, MIN, ALL, ANY_OP):
    _each.equals(reduced_over_nothing)

EUCLIDEAN_NORM = _reduction("EuclideanNorm", NUMERIC)


@EUCLIDEAN_NORM.kernel
def euclidean_norm_kernel(input: torch.Tensor, reduction_indices: Any, *, keep_dims: bool) -> torch.Tensor:
    axes = _axes(input, reduction_indices)
    if not (input.is_floating_point() or input.is_complex()):
        # The squares and their sum wrap around. The root of a negative sum is the smallest number.
        wide = input.to(torch.int64)
        total = (torch.sum(wide * wide, axes, keep_dims) if axes else wide * wide).to(input.dtype).to(torch.float64)
        if input.dtype.is_signed:
            root = torch.sqrt(total).nan_to_num(nan=float(torch.iinfo(input.dtype).min))
            return root.to(torch.int64).to(input.dtype)
        return torch.sqrt(total).to(torch.int64).to(input.dtype)
    if not axes:
        return torch.abs(input).to(input.dtype)
    norm = torch.sqrt(torch.sum((input * input.conj()).real if input.is_complex() else input * input, axes, keep_dims))
    return norm.to(input.dtype)


@EUCLIDEAN_NORM.grad
def euclidean_norm_grad(op: Operation, g: Tensor) -> Any:
    x, axes = op.inputs
    y = op.outputs[0]
    if not op.attr("keep_dims"):
        sizes = kept_sizes(x, axes)
        y, g = shaping.reshape(y, sizes), shaping.reshape(g, sizes)
    return arithmetic.truediv(x, arithmetic.realdiv(y, g)), None


# ---- the functions ----------------------------------------------------------------------------------------------


def reduction_axes(x: Tensor, axis: Any) -> Any:
    """The axes of a reduction; all axes for None."""
    if axis is not None:
        return axis
    rank = x.static_shape.rank
    if rank is not None:
        return constant(np.arange(rank, dtype=np.int32))
    return ranges.range(0, ranges.rank(x))


def older_arguments(axis: Any, keepdims: Any, reduction_indices: Any, keep_dims: Any) -> tuple[Any, bool]:
    """`axis` and `keepdims`, which may also be given under their names of TensorFlow 0.12 and 1.0.

    Raises:
        ValueError: an argument is given under both of its names.
    """
    if reduction_indices is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'reduction_indices'.")
        axis = reduction_indices
    if keep_dims is not None:
        if keepdims is not None:
            raise ValueError("Cannot specify both 'keepdims' and 'keep_dims'.")
        keepdims = keep_dims
    return axis, bool(keepdims)


def _reduce(definition: OpDefinition, python_name: str, doc: str) -> Any:
    """Makes `tf.reduce_x` in its 1.x form, which accepts the 2.x arguments as well."""
    doc = f"{doc} over `axis` (all dimensions for None).\n\n`reduction_indices` and `keep_dims` are deprecated aliases."

    @export(python_name, f"math.{python_name}")
    @dispatched
    @named(python_name, doc)
    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: Any = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: Any = None,
    ) -> Tensor:
        axis, keep = older_arguments(axis, keepdims, reduction_indices, keep_dims)
        wanted = dtypes.bool_ if definition in (ALL, ANY_OP) and not isinstance(input_tensor, Tensor) else None
        x = convert_to_tensor(input_tensor, wanted)
        result = definition(x, reduction_axes(x, axis), keep_dims=keep, name=name)
        if axis is None and not keep:
            result.set_shape([])
        return result

    return reduce


reduce_sum = _reduce(SUM, "reduce_sum", "The sum")
reduce_mean = _reduce(MEAN, "reduce_mean", "The mean")
reduce_prod = _reduce(PROD, "reduce_prod", "The product")
reduce_max = _reduce(MAX, "reduce_max", "The maximum")
reduce_min = _reduce(MIN, "reduce_min", "The minimum")
reduce_all = _reduce(ALL, "reduce_all", "Whether all elements are true")
reduce_any = _reduce(ANY_OP, "reduce_any", "Whether any element is true")


@export("math.reduce_euclidean_norm")
def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares over `axis` (all dimensions for None)."""
    x = convert_to_tensor(input_tensor)
    norm = EUCLIDEAN_NORM(x, reduction_axes(x, axis), keep_dims=bool(keepdims), name=name)
    if axis is None and not keepdims:
        norm.set_shape(())
    return norm


@export("reduce_logsumexp", "math.reduce_logsumexp")
def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: Any = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:
    """log(sum(exp(x))) over `axis`. The largest element is factored out first, so that nothing overflows."""
    axis, keep = older_arguments(axis, keepdims, reduction_indices, keep_dims)
    with name_scope(name, "ReduceLogSumExp", [input_tensor]) as scope:
        x = convert_to_tensor(input_tensor)
        largest = reduce_max(x, axis, True)
        finite = selection.SELECT_V2(unary_functions.is_finite(largest), largest, 0)
        largest = shaping.stop_gradient(finite)
        result = unary_functions.log(reduce_sum(unary_functions.exp(arithmetic.subtract(x, largest)), axis, keep))
        if not keep:
            largest = shaping.reshape(largest, shaping.SHAPE_OP(result))
        return arithmetic.ADD_V2(result, largest, name=scope)


@export("math.reduce_variance")
def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The variance over `axis`: the mean squared distance from the mean.

    Raises:
        TypeError: the tensor holds integers.
    """
    with name_scope(name, "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        if x.dtype.is_integer:
            raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype!r}.")
        distance = x - reduce_mean(x, axis, True)
        if distance.dtype.is_complex:
            squares = casting.cast(
                unary_functions.real(arithmetic.multiply(unary_functions.conj(distance), distance)), _real(distance)
            )
        else:
            squares = unary_functions.square(distance)
        return reduce_mean(squares, axis, keepdims)


def _real(x: Tensor) -> DType:
    return x.dtype.base_dtype.real_dtype


@export("math.reduce_std")
def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The standard deviation over `axis`: the square root of the variance."""
    with name_scope(name, "reduce_std"):
        return unary_functions.sqrt(reduce_variance(convert_to_tensor(input_tensor), axis, keepdims))


L2_LOSS = define("L2Loss(t: T) -> (output: T)", T=FLOATS)
L2_LOSS.small("l2_loss")


L2_LOSS.shape(scalar)


@L2_LOSS.kernel
def l2_loss_kernel(t: torch.Tensor) -> torch.Tensor:
    flat = t.reshape(-1)
    return torch.dot(flat, flat) * 0.5


@L2_LOSS.lower
def l2_loss_lower(build: Any, op: Operation, t: Any) -> Any:
    total = build.sum(build.unary("square", build.reshape(t, (t.size,))), [0], keep_dims=False)
    return None if total is None else build.binary("mul", total, build.scalar(0.5))


@L2_LOSS.grad
def l2_loss_gradient(op: Operation, g: Tensor) -> Tensor:
    return arithmetic.multiply(op.inputs[0], g)


@export("nn.l2_loss")
def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """sum(t ** 2) / 2."""
    return L2_LOSS(t, name=name)
