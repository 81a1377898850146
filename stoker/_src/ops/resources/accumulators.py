"""Conditional accumulators: they average the gradients of many workers once enough fresh ones have arrived."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes, forking
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape, TensorShape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import BLOCKING, BOOL, RETAINS, SHAPE, SOURCE, STATEFUL, STRING, define, scalar
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting
from stoker._src.ops.support.waiting import wait_until

_DTYPES = (*dtypes.NUMERIC, dtypes.qint8, dtypes.quint8, dtypes.qint16, dtypes.quint16, dtypes.qint32)

# -- the resource ------------------------------------------------------------------------------------------------


def _mismatch(expected: Any, found: Any) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"Shape mismatch: expected {expected}, got {found}")


class Accumulator:
    """The sum of the gradients since the last take. Gradients of an older step than the accumulator's are dropped."""

    def __init__(self, name: str, dtype: DType, shape: Shape, reduction_type: str) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.mean = reduction_type == "MEAN"
        self.global_step = 0
        self.count = 0
        self._sum: Any = None
        self._changed = forking.condition()

    def set_global_step(self, step: int) -> None:
        with self._changed:
            self.global_step = step

    def apply(self, local_step: int, gradient: Any) -> None:
        """Adds a gradient unless it is stale."""
        with self._changed:
            if local_step < self.global_step:
                return
            self._check(gradient)
            self._sum = self._first(gradient) if self.count == 0 else self._added(gradient)
            self.count += 1
            self._changed.notify_all()

    def take(self, required: int) -> Any:
        """Returns the aggregate of at least `required` gradients, resets the accumulator and advances its step."""
        if required <= 0:
            raise InvalidArgumentError(None, None, f"Argument num_required must be positive, but was {required}")
        with self._changed:
            what, where = "TakeGrad operation", f"accumulator '{self.name}'"
            wait_until(self._changed, lambda: self.count >= required, what, where)
            result, self._sum = self._result(), None
            self.count = 0
            self.global_step += 1
            return result

    # How gradients are stored. Only this differs between the kinds of accumulator.

    def _check(self, gradient: torch.Tensor) -> None:
        expected = self.shape if self._sum is None else Shape(self._sum.shape)
        if not expected.compatible(Shape(gradient.shape)):
            raise _mismatch(expected, Shape(gradient.shape))

    def _first(self, gradient: torch.Tensor) -> Any:
        return gradient.clone()

    def _added(self, gradient: torch.Tensor) -> Any:
        return self._sum + gradient.to(self._sum.device)

    def _result(self) -> Any:
        if not self.mean:
            return self._sum
        if self._sum.is_floating_point() or self._sum.is_complex():
            return self._sum / self.count
        return torch.div(self._sum, self.count, rounding_mode="trunc")


class SparseAccumulator(Accumulator):
    """Gradients given as rows. The mean of a row is over the gradients that contained it."""

    def __init__(self, name: str, dtype: DType, shape: Shape, reduction_type: str) -> None:
        # As in TensorFlow, a scalar shape is not checked: `SyncReplicasOptimizer` passes it for gradients of any shape.
        super().__init__(name, dtype, UNKNOWN_SHAPE if shape.dims == () else shape, reduction_type)

    def _check(self, gradient: tuple[torch.Tensor, torch.Tensor, list[int] | None]) -> None:
        indices, values, sizes = gradient
        if values.ndim == 0:
            raise InvalidArgumentError(None, None, "Values cannot be 0-dimensional.")
        if len(indices) != len(values):
            raise InvalidArgumentError(None, None, f"Expected {len(indices)} non-empty input values, got {len(values)}")
        expected = self.shape.dims
        rows = sizes[0] if sizes else expected[0] if expected else None
        for position, index in enumerate(indices.tolist()):
            if index < 0 or (rows is not None and index >= rows):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Shape mismatch: index of slice {position} exceeded limits of shape; index is {index} exceeded {rows}",
                )
        for what, found in (("shape", sizes), ("values", list(values.shape))):
            if found is None or expected is None:
                continue
            if len(found) != len(expected):
                least = "at least " if len(found) < len(expected) else ""
                raise _mismatch(f"{what} rank {least}{len(expected)}", len(found))
            for position, (wanted, size) in enumerate(zip(expected, found)):
                if wanted is not None and wanted != size and (position or what == "shape"):
                    raise _mismatch(f"{what} dim {position} to be {wanted}", size)

    def _first(self, gradient: tuple[torch.Tensor, torch.Tensor, Any]) -> Any:
        indices, values, _ = gradient
        return indices.tolist(), values.clone(), [1] * len(indices)

    def _added(self, gradient: tuple[torch.Tensor, torch.Tensor, Any]) -> Any:
        """Merges two sorted sets of rows. Rows that appear in both are added."""
        mine, sums, counts = self._sum
        indices, values, _ = gradient
        if sums.ndim != values.ndim:
            raise _mismatch(f"values rank {sums.ndim}", values.ndim)
        for position in range(1, sums.ndim):
            if sums.shape[position] != values.shape[position]:
                raise _mismatch(f"values dim {position} to be {sums.shape[position]}", values.shape[position])
        theirs, values = indices.tolist(), values.to(sums.device)  # workers may hand in tensors of different devices
        rows, totals, seen = [], [], []
        i = j = 0
        while i < len(mine) or j < len(theirs):
            ahead = j >= len(theirs) or (i < len(mine) and mine[i] < theirs[j])
            behind = i >= len(mine) or (j < len(theirs) and theirs[j] < mine[i])
            rows.append(theirs[j] if behind else mine[i])
            totals.append(sums[i] if ahead else values[j] if behind else sums[i] + values[j])
            seen.append(1 if behind else counts[i] if ahead else counts[i] + 1)
            i, j = i + (not behind), j + (not ahead)
        return rows, torch.stack(totals) if totals else sums, seen

    def _result(self) -> Any:
        rows, sums, counts = self._sum
        if self.mean:
            divisor = torch.tensor(counts, dtype=torch.int64).reshape([-1] + [1] * (sums.ndim - 1)).to(sums.device)
            exact = sums.is_floating_point() or sums.is_complex()
            sums = (sums / divisor if exact else torch.div(sums, divisor, rounding_mode="trunc")).to(sums.dtype)
        dims = self.shape.dims
        sizes = [-1, *sums.shape[1:]] if dims is None else [-1 if size is None else size for size in dims]
        return torch.tensor(rows, dtype=torch.int64), sums, torch.tensor(sizes, dtype=torch.int64)


# -- ops ---------------------------------------------------------------------------------------------------------

OPERATIONS: dict[str, Any] = {}
_FORMS = (("", "Ref(string)"), ("Resource", "resource"))


def _make(prefix: str, handle: str, kind: type[Accumulator], middle: str = "") -> None:
    definition = define(
        f"{prefix}{middle}ConditionalAccumulator() -> (handle: {handle})",
        SOURCE | STATEFUL,
        dtype=_DTYPES,
        shape=SHAPE,
        container="",
        shared_name="",
        reduction_type=STRING("MEAN", allowed=("MEAN", "SUM")),
    )

    def kernel(
        *, dtype: DType, shape: Shape, container: str, shared_name: str, reduction_type: str, ctx: Any
    ) -> Accumulator:
        name = shared_name or ctx.name
        return ctx.resources.lookup_or_create(
            container, "accumulator", name, lambda: kind(name, dtype, shape, reduction_type)
        )

    definition.kernel(kernel)
    definition.shape(lambda: SCALAR)
    OPERATIONS[definition.name] = definition


def _check_dtype(handle: Accumulator, dtype: DType) -> None:
    if handle.dtype is not dtype:
        raise InvalidArgumentError(
            None, None, f"Accumulator '{handle.name}' holds {handle.dtype.name}, the op has dtype {dtype.name}."
        )


def apply_gradient_kernel(handle: Accumulator, local_step: int, gradient: torch.Tensor, *, dtype: DType) -> None:
    _check_dtype(handle, dtype)
    handle.apply(local_step, gradient)


def take_gradient_kernel(handle: Accumulator, num_required: int, *, dtype: DType) -> torch.Tensor:
    _check_dtype(handle, dtype)
    return handle.take(num_required)


def _gradient_shape(handle: Shape, num_required: Shape, *, op: Operation) -> Shape:
    made_by = op._inputs[0].op
    return made_by.attrs["shape"] if "ConditionalAccumulator" in made_by.type else UNKNOWN_SHAPE


def _operations(prefix: str, handle: str) -> None:
    name = f"{prefix}Accumulator"
    apply = define(
        f"{name}ApplyGradient(handle: {handle}, local_step: scalar host int64, gradient: dtype) -> ()",
        STATEFUL | RETAINS,
        dtype=_DTYPES,
    )
    apply.kernel(apply_gradient_kernel)
    take = define(
        f"{name}TakeGradient(handle: {handle}, num_required: scalar host int32) -> (average: dtype)",
        STATEFUL | BLOCKING,
        dtype=_DTYPES,
    )
    take.kernel(take_gradient_kernel)
    take.shape(_gradient_shape)
    count = define(f"{name}NumAccumulated(handle: {handle}) -> (num_accumulated: int32)", STATEFUL)
    count.kernel(lambda handle: torch.tensor(handle.count, dtype=torch.int32))
    count.shape(scalar)
    step = define(f"{name}SetGlobalStep(handle: {handle}, new_global_step: scalar host int64) -> ()", STATEFUL)
    step.kernel(lambda handle, new_global_step: handle.set_global_step(new_global_step))
    for definition in (apply, take, count, step):
        OPERATIONS[definition.name] = definition


for _prefix, _handle in _FORMS:
    _make(_prefix, _handle, Accumulator)
    _operations(_prefix, _handle)
_make("", "Ref(string)", SparseAccumulator, "Sparse")

SPARSE_APPLY = define(
    "SparseAccumulatorApplyGradient(handle: Ref(string), local_step: scalar host int64, gradient_indices: vector int64, "
    "gradient_values: dtype, gradient_shape: host int64) -> ()",
    STATEFUL | RETAINS,
    dtype=_DTYPES,
    has_known_shape=BOOL,
)


@SPARSE_APPLY.kernel
def sparse_apply_gradient_kernel(
    handle: Accumulator,
    local_step: int,
    gradient_indices: torch.Tensor,
    gradient_values: torch.Tensor,
    gradient_shape: list[int],
    *,
    dtype: DType,
    has_known_shape: bool,
) -> None:
    _check_dtype(handle, dtype)
    handle.apply(local_step, (gradient_indices, gradient_values, gradient_shape if has_known_shape else None))


SPARSE_TAKE = define(
    "SparseAccumulatorTakeGradient(handle: Ref(string), num_required: scalar host int32) -> "
    "(indices: int64, values: dtype, shape: int64)",
    STATEFUL | BLOCKING,
    dtype=_DTYPES,
)
SPARSE_TAKE.kernel(take_gradient_kernel)
SPARSE_TAKE.shape(lambda handle, num_required: (UNKNOWN_SHAPE, UNKNOWN_SHAPE, UNKNOWN_SHAPE))

# -- classes -----------------------------------------------------------------------------------------------------


@export(v1="ConditionalAccumulatorBase")
class ConditionalAccumulatorBase:
    """Base class of the accumulators of dense and of sparse gradients.

    An accumulator has its own step, which counts the takes. A gradient of an older step is silently
    dropped.
    """

    _prefix = "Accumulator"

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = as_dtype(dtype)
        self._shape = UNKNOWN_SHAPE if shape is None else as_shape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.split("/")[-1]

    @property
    def accumulator_ref(self) -> Tensor:
        return self._accumulator_ref

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> DType:
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """Returns the number of gradients that wait to be taken."""
        count = OPERATIONS[f"{self._prefix}NumAccumulated"]
        return count(self._accumulator_ref, name=name or f"{self._name}_NumAccumulated")

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Sets the accumulator's step."""
        step = casting.cast(convert_to_tensor(new_global_step), dtypes.int64)
        return OPERATIONS[f"{self._prefix}SetGlobalStep"](self._accumulator_ref, step, name=name)


def _made(op: str, dtype: Any, shape: Any, shared_name: str | None, name: str, reduction_type: str) -> Tensor:
    return OPERATIONS[op](
        dtype=as_dtype(dtype),
        shape=UNKNOWN_SHAPE if shape is None else as_shape(shape),
        shared_name=shared_name or "",
        reduction_type=reduction_type,
        name=name,
    )


@export(v1="ConditionalAccumulator")
class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Averages (or sums) dense gradients.

    Args:
        dtype: The dtype of the gradients.
        shape: The shape of the gradients, which may be partially known.
        shared_name: Accumulators with the same shared name share their state.
        name: The op's name.
        reduction_type: "MEAN" or "SUM".
    """

    _prefix = "ResourceAccumulator"

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        made = _made("ResourceConditionalAccumulator", dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, made)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Adds a gradient that was computed at step `local_step`.

        Raises:
            ValueError: The gradient's shape is not compatible with the accumulator's.
        """
        grad = convert_to_tensor(grad, self._dtype)
        if not grad.static_shape.compatible(self._shape):
            raise ValueError(f"Shapes {grad.shape} and {TensorShape(self._shape)} are incompatible")
        step = casting.cast(convert_to_tensor(local_step), dtypes.int64)
        return OPERATIONS["ResourceAccumulatorApplyGradient"](self._accumulator_ref, step, grad, name=name)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """Waits for `num_required` gradients and returns their mean (or sum)."""
        take = OPERATIONS["ResourceAccumulatorTakeGradient"]
        result = take(self._accumulator_ref, num_required, dtype=self._dtype, name=name)
        result.set_shape(self._shape)
        return result


@export(v1=("SparseConditionalAccumulator", "sparse.SparseConditionalAccumulator"))
class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Averages (or sums) gradients given as rows. The mean of a row is over the gradients that contained it. For the arguments see `ConditionalAccumulator`."""

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        made = _made("SparseConditionalAccumulator", dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, made)

    def apply_indexed_slices_grad(self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None) -> Operation:
        """Adds IndexedSlices that were computed at step `local_step`."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self, grad_indices: Any, grad_values: Any, grad_shape: Any = None, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """Adds the rows `grad_values` at the ascending positions `grad_indices` of a tensor of shape `grad_shape`."""
        return SPARSE_APPLY(
            self._accumulator_ref,
            casting.cast(convert_to_tensor(local_step), dtypes.int64),
            casting.cast(grad_indices, dtypes.int64),
            grad_values if isinstance(grad_values, Tensor) else np.asarray(grad_values, self._dtype.as_numpy_dtype),
            casting.cast([] if grad_shape is None else grad_shape, dtypes.int64),
            has_known_shape=grad_shape is not None,
            name=name,
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """Waits for `num_required` gradients and returns the aggregate as (indices, values, shape)."""
        return SPARSE_TAKE(self._accumulator_ref, num_required, dtype=self._dtype, name=name)

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """Like `take_grad`, but returns IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
