"""`tf.gradients`: walks the graph backwards and adds the ops that compute derivatives."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.faults import own_fault
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.gradient_registry import gradient_function
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.type_spec import composite_spec
from stoker._src.ops.array import casting, joining, ranges, shaping
from stoker._src.ops.control_flow import branches_and_loops, grouping, tensor_array
from stoker._src.ops.math import arithmetic, comparison

Gradient = Tensor | IndexedSlices | None

_TRAINABLE = frozenset((*dtypes.FLOATS, *dtypes.COMPLEX, dtypes.resource, dtypes.variant))


@export("AggregationMethod")
class AggregationMethod:
    """How gradients of one tensor are summed: all at once, or (the two experimental methods) pairwise."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


@export("UnconnectedGradients")
class UnconnectedGradients:
    """What `gradients` returns for an x that no y depends on."""

    NONE = "none"
    ZERO = "zero"


def is_trainable(tensor: Any) -> bool:
    return tensor.dtype.base_dtype in _TRAINABLE


@export(v1="gradients")
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Gradient]:
    """Computes the derivatives of the sum of `ys` with respect to each of `xs`.

    Args:
        ys: a tensor or list of tensors to differentiate.
        xs: a tensor, variable or list of them to differentiate with respect to.
        grad_ys: initial gradients, one for each of `ys` (None for ones).
        name: the name scope of the new ops.
        colocate_gradients_with_ops: whether to place the gradient of each op on the op's device.
        gate_gradients: whether to compute all gradients of an op before any is used.
        aggregation_method: an `AggregationMethod`.
        stop_gradients: tensors to treat as constants.
        unconnected_gradients: "none" or "zero", for xs that no y depends on.

    Returns:
        For each x, a Tensor, an IndexedSlices (for lookups) or None.

    Raises:
        LookupError: an op between ys and xs has no gradient.
        ValueError: the arguments do not match.
        RuntimeError: in eager mode; use `tf.GradientTape`.
    """
    if context.executing_eagerly():
        raise RuntimeError(
            "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."
        )
    if aggregation_method not in (None, 0, 1, 2):
        raise ValueError(f"Invalid `aggregation_method` specified: {aggregation_method}.")
    if unconnected_gradients not in ("none", "zero"):
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected_gradients!r}")
    targets = _as_list(ys)
    given = _as_list(xs)
    starts = [None] * len(targets) if grad_ys is None else _as_list(grad_ys)
    if len(starts) != len(targets):
        raise ValueError(f"Length mismatch. Passed {len(starts)} grad_ys for {len(targets)} ys")
    stops = [] if stop_gradients is None else _as_list(stop_gradients)
    with name_scope(name, "gradients", [*targets, *given, *stops, *starts]) as scope:
        targets, starts = opened(targets, starts)
        targets = [convert_to_tensor(y, name=f"y_{i}") for i, y in enumerate(targets)]
        sources = [[_differentiated(part, f"x_{i}") for part in gradient_parts(x)] for i, x in enumerate(given)]
        stops = [_differentiated(part, "x") for x in stops for part in gradient_parts(x)]
        flat = [part for parts in sources for part in parts]
        in_turn = aggregation_method in (1, 2)
        walk = _Walk(targets, flat, stops, scope, colocate_gradients_with_ops, gate_gradients, in_turn)
        walk.start(starts)
        walk.run()
        found = [walk.aggregate(x) for x in flat]
    if unconnected_gradients == UnconnectedGradients.ZERO:
        found = [shaping.zeros_like(x) if g is None else g for x, g in zip(flat, found)]
    rest = iter(found)
    return [gradient_of(x, [next(rest) for _ in parts]) for x, parts in zip(given, sources)]


@export(v2="gradients")
def gradients_v2(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Gradient]:
    """Computes the derivatives of the sum of `ys` with respect to each of `xs`. Each gradient is placed on its op's device."""
    return gradients(
        ys, xs, grad_ys, name, True, gate_gradients, aggregation_method, stop_gradients, unconnected_gradients
    )


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def gradient_parts(x: Any) -> Sequence[Any]:
    """The differentiable tensors of a composite; other values in a list of their own."""
    spec = composite_spec(x)
    return (x,) if spec is None else spec._differentiated(x)


def gradient_of(x: Any, found: Sequence[Any]) -> Any:
    """The gradient of x, assembled from the gradients of its `gradient_parts`."""
    spec = composite_spec(x)
    return found[0] if spec is None else spec._gradient(x, found)


def opened(targets: Sequence[Any], starts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The tensors of the targets and their initial gradients. IndexedSlices are kept, because gradients may be sparse."""

    def parts(value: Any) -> Sequence[Any]:
        return (value,) if isinstance(value, IndexedSlices) else gradient_parts(value)

    pairs: list[tuple[Any, Any]] = []
    for i, y in enumerate(targets):
        tensors = parts(y)
        pairs += zip(tensors, [None] * len(tensors) if starts[i] is None else parts(starts[i]))
    return [y for y, _ in pairs], [start for _, start in pairs]


def _differentiated(x: Any, name: str) -> Any:
    """The tensor that represents x in the graph: a variable's handle or reference."""
    as_source = getattr(x, "_gradient_source", None)
    if as_source is not None:
        x = as_source()
    else:
        x = convert_to_tensor(x, name=name)
    return context.target().capture(x) if getattr(x, "is_eager", False) else x


def _captures(target: Any) -> tuple[dict[Operation, Tensor], dict[Tensor, list[Operation]]]:
    """Maps between outer tensors and the inputs that represent them in the function bodies being traced."""
    stands_for: dict[Operation, Tensor] = {}
    captured: dict[Tensor, list[Operation]] = {}
    while target.building_function:
        for passed, inner in target.captures:
            if not getattr(passed, "is_eager", False):
                stands_for[inner.op] = passed
                captured.setdefault(passed, []).append(inner.op)
        target = target.outer
    return stands_for, captured


class _Walk:
    """One backward pass. `pending[op]` counts the consumers whose gradients are not known yet."""

    def __init__(
        self,
        ys: list[Tensor],
        xs: list[Tensor],
        stops: list[Tensor],
        scope: str,
        colocate: bool,
        gate: bool,
        in_turn: bool,
    ) -> None:
        self.ys, self.xs, self.scope = ys, xs, scope
        self.colocate, self.gate, self.in_turn = colocate, gate, in_turn
        self.stands_for, self.captured = _captures(context.target())
        self.stop_ops = self._stop_ops(stops)
        self.between = self._between()
        self.pending: dict[Operation, int] = {}
        for op in self.between:
            if op in self.stop_ops:
                continue
            for tensor in self._inputs(op):
                if tensor.op in self.between:
                    self.pending[tensor.op] = self.pending.get(tensor.op, 0) + 1
        self.gradients: dict[Tensor, list[Any]] = {}

    def _inputs(self, op: Operation) -> Sequence[Tensor]:
        """The inputs of an op. A walk that starts in a function's body continues outside of it."""
        outer = self.stands_for.get(op)
        return op._inputs if outer is None else (outer,)

    def _stop_ops(self, stops: list[Tensor]) -> set[Operation]:
        """The ops at which to stop: those of `stops`, and sources that do not depend on another source."""
        found = {tensor.op for tensor in stops}
        source_ops = {x.op for x in self.xs}
        if source_ops <= found:
            return found
        # Everything that sources depend on, then what depends on a source among that.
        users: dict[Operation, list[Operation]] = {op: [] for op in source_ops}
        stack = list(source_ops)
        while stack:
            op = stack.pop()
            for tensor in self._inputs(op):
                if tensor.op not in users:
                    users[tensor.op] = []
                    stack.append(tensor.op)
                users[tensor.op].append(op)
        below: set[Operation] = set()
        stack = list(source_ops)
        while stack:
            for op in users[stack.pop()]:
                if op not in below:
                    below.add(op)
                    stack.append(op)
        return found | (source_ops - below)

    def _between(self) -> set[Operation]:
        """The ops on a differentiable path from some x to some y that does not pass through a stop."""
        reached: set[Operation] = set()
        queue = deque(x.op for x in self.xs)
        while queue:
            op = queue.popleft()
            if op in reached:
                continue
            reached.add(op)
            for tensor in op.outputs:
                if is_trainable(tensor):
                    queue.extend(tensor._consumers)
                    queue.extend(self.captured.get(tensor, ()))
        between: set[Operation] = set()
        queue = deque(y.op for y in self.ys)
        while queue:
            op = queue.popleft()
            if op in reached and op not in between:
                between.add(op)
                if op not in self.stop_ops:
                    queue.extend(tensor.op for tensor in self._inputs(op))
        return between

    def start(self, grad_ys: Sequence[Any]) -> None:
        for i, (y, given) in enumerate(zip(self.ys, grad_ys)):
            if given is None:
                if y.dtype.is_complex:
                    raise TypeError(f"Gradients of complex tensors ({y}) must set grad_ys (y.dtype = {y.dtype!r})")
                if y.dtype.base_dtype is dtypes.string:
                    raise TypeError(f"Expected string, but got 1: strings have no gradient ({y}).")
                if y.dtype.base_dtype in (dtypes.resource, dtypes.variant):
                    continue
                sizes = shaping.shape(y)
                one = convert_to_tensor(
                    True if y.dtype.base_dtype is dtypes.bool_ else 1, y.dtype.base_dtype, name=f"grad_ys_{i}"
                )
                given = shaping.fill(sizes, one)
            elif isinstance(given, IndexedSlices):
                pass
            else:
                given = convert_to_tensor(given, name=f"grad_y_{i}")
                if given.dtype.base_dtype is not y.dtype.base_dtype:
                    raise TypeError(
                        f"Gradient type {given.dtype.name} generated for tensor {y} with type {y.dtype.name} must match."
                    )
                if not given.static_shape.compatible(y.static_shape):
                    raise ValueError(f"grad_ys {given.shape} does not fit the shape {y.shape} of {y}.")
                given = shaping.identity(given, name=f"grad_ys_{i}")
            self.gradients.setdefault(y, []).append(given)

    def run(self) -> None:
        ready = deque(
            op for op in dict.fromkeys(y.op for y in self.ys) if op in self.between and not self.pending.get(op, 0)
        )
        while ready:
            op = ready.popleft()
            if op not in self.stop_ops:
                self._through(op)
            for tensor in self._inputs(op):
                source = tensor.op
                if op in self.stop_ops or source not in self.between:
                    continue
                self.pending[source] -= 1
                if self.pending[source] == 0:
                    ready.append(source)

    def _through(self, op: Operation) -> None:
        """Computes the gradients of an op's inputs from those of its outputs."""
        incoming = [self.aggregate(tensor) for tensor in op.outputs]
        if all(g is None for g in incoming):
            return
        if op in self.stands_for:
            self.gradients.setdefault(self.stands_for[op], []).extend(incoming)
            return
        try:
            function = gradient_function(op)
        except LookupError:
            raise LookupError(
                f"No gradient defined for operation '{op.name}' (op type: {op.type}), made at {op.user_line}."
            ) from None
        if function is None:
            return
        with self._placed(op):
            fill_with_zeros(op, incoming)
            with name_scope(op.name + "_grad"):
                try:
                    results = function(op, *incoming)
                except Exception as error:
                    fault = own_fault(error, op)
                    if fault is None:
                        raise
                    raise fault from error
                results = list(results) if isinstance(results, (list, tuple)) else [results]
                if len(results) != len(op._inputs):
                    raise ValueError(
                        f"Num gradients {len(results)} generated for op {op.name} (type {op.type}) do not match num inputs {len(op._inputs)}"
                    )
                if self.gate and sum(g is not None for g in results) > 1:
                    results = grouping.tuple_v1(results)
        for tensor, g in zip(op._inputs, results):
            if g is not None and is_trainable(tensor):
                self._check(tensor, g, op)
                self.gradients.setdefault(tensor, []).append(g)

    def _placed(self, op: Operation) -> Any:
        return op.graph.colocate_with(op, ignore_existing=True) if self.colocate else nullcontext()

    def _check(self, tensor: Tensor, g: Any, op: Operation) -> None:
        if tensor.dtype.base_dtype in (dtypes.resource, dtypes.variant):
            return
        if isinstance(g, Tensor):
            if g.dtype.base_dtype is not tensor.dtype.base_dtype:
                raise ValueError(
                    f"Gradient type {g.dtype.name} generated for op {op.name} does not match the type {tensor.dtype.base_dtype.name} of its input {tensor.name}."
                )
            if not g.static_shape.compatible(tensor.static_shape):
                raise ValueError(
                    f"Incompatible shapes between op input and calculated input gradient. Forward operation: {op.name}. Input: {tensor.name} of shape {tensor.shape}, gradient of shape {g.shape}."
                )
            if g.static_shape.rank is None or not g.static_shape.known:
                g.set_shape(tensor.static_shape)

    def aggregate(self, tensor: Tensor) -> Any:
        """The sum of all gradients of `tensor`, as one tensor. IndexedSlices stay sparse."""
        terms = self.gradients.get(tensor)
        if not terms:
            return None
        if len(terms) > 1:
            first = terms[0] if isinstance(terms[0], Tensor) else terms[0].values
            with first.op.graph.colocate_with(first.op, ignore_existing=True):
                if self.in_turn and len(terms) > 2 and all(isinstance(term, Tensor) for term in terms):
                    with name_scope(tensor.op.name + "_gradient_sum"):
                        terms[:] = [functools.reduce(lambda total, term: arithmetic.ADD_N([total, term]), terms)]
                else:
                    terms[:] = [aggregate(terms)]
        return terms[0]


def fill_with_zeros(op: Any, incoming: list[Any]) -> None:
    """Replaces missing output gradients by zeros. The gradient functions of ops that call functions receive None."""
    if op.definition.planning.calls:
        return
    for i, tensor in enumerate(op.outputs):
        if incoming[i] is None and has_zeros(tensor):
            incoming[i] = shaping.zeros_like(tensor)


def has_zeros(tensor: Any) -> bool:
    return is_trainable(tensor) and tensor.dtype.base_dtype not in (dtypes.resource, dtypes.variant)


def aggregate(terms: list[Any]) -> Any:
    """The sum of gradients: AddN for tensors, a concatenation if all are IndexedSlices."""
    if len(terms) == 1:
        return terms[0]
    if all(isinstance(term, IndexedSlices) for term in terms):
        values = joining.concat([term.values for term in terms], 0)
        indices = joining.concat([casting.cast(term.indices, _index_dtype(terms)) for term in terms], 0)
        return IndexedSlices(values, indices, terms[0].dense_shape)
    return arithmetic.ADD_N([convert_to_tensor(term) for term in terms])


def _index_dtype(terms: list[IndexedSlices]) -> Any:
    return dtypes.int64 if any(term.indices.dtype is dtypes.int64 for term in terms) else dtypes.int32


@export(v1="hessians")
def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Any]:
    """Computes the Hessian for each x: the second derivatives of the sum of `ys`, of shape `x.shape + x.shape`.

    Args:
        name: has no effect, as in TensorFlow; the nodes are named like those of `gradients`.
        others: as for `gradients`.
    """
    sources = _as_list(xs)
    firsts = gradients(ys, sources, None, "gradients", colocate_gradients_with_ops, gate_gradients, aggregation_method)
    for x, g in zip(sources, firsts):
        if g is None:
            raise ValueError(f"None values not supported: {x} has no gradient to differentiate again.")
    return [_hessian(g, x) for g, x in zip(firsts, sources)]


@export(v2="hessians")
def hessians_v2(
    ys: Any, xs: Any, gate_gradients: bool = False, aggregation_method: int | None = None, name: str = "hessians"
) -> list[Any]:
    """Computes the Hessian for each x: the second derivatives of the sum of `ys`, of shape `x.shape + x.shape`."""
    return hessians(ys, xs, name, True, gate_gradients, aggregation_method)


def _hessian(first: Any, x: Any) -> Any:
    """Differentiates the elements of the gradient one by one."""
    first = convert_to_tensor(first)
    flat = shaping.reshape(first, [-1])
    count = ranges.size(first)
    rows = tensor_array.TensorArray(first.dtype.base_dtype, size=count, element_shape=first.static_shape)

    def step(i: Any, rows: Any) -> Any:
        unit = casting.cast(comparison.equal(ranges.range(count), i), first.dtype.base_dtype)
        second = gradients(flat, x, unit)[0]
        row = shaping.zeros_like(first) if second is None else convert_to_tensor(second)
        return i + 1, rows.write(i, row)

    _, rows = branches_and_loops.while_loop_v2(
        lambda i, _: comparison.less(i, count), step, (convert_to_tensor(0), rows)
    )
    shape = shaping.shape(first)
    result = shaping.reshape(rows.stack(), joining.concat([shape, shape], 0))
    result.set_shape(first.shape.concatenate(first.shape))
    return result
