"""`tf.GradientTape`: records ops as they run, and walks the record backwards with the ops' gradient functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.faults import own_fault
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.gradient_registry import gradient_function
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tapes import tapes
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, joining, ranges, shaping
from stoker._src.ops.control_flow import branches_and_loops, tensor_array
from stoker._src.ops.control_flow.gradients import (
    UnconnectedGradients,
    aggregate,
    fill_with_zeros,
    gradient_of,
    gradient_parts,
    is_trainable,
    opened,
)
from stoker._src.ops.math import comparison
from stoker._src.ops.variables import variables
from stoker._src.runtime.eager import repeated_walks

_HANDLES = (dtypes.resource, dtypes.variant)


@export("GradientTape")
class GradientTape:
    """Records computations on watched tensors inside `with tape:`, so that `gradient` can differentiate them.

    Trainable variables are watched when they are read; other tensors must be passed to `watch`.

    Args:
        persistent: whether `gradient` may be called more than once.
        watch_accessed_variables: whether to watch trainable variables automatically.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed_variables = watch_accessed_variables
        self._recording = False
        self._used = True  # there is no record until the tape is opened
        self._clear()

    def _clear(self) -> None:
        self._records: list[Any] = []
        self._tracked: dict[int, Any] = {}  # id -> tensor: watched, or computed from a watched tensor
        self._variables: dict[int, Any] = {}

    def _spend(self) -> None:
        """Releases the record after its single use. The watched variables remain available."""
        self._used, watched = True, self._variables
        self._clear()
        self._variables = watched

    def _check_unused(self) -> None:
        if self._used:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
            )

    # -- recording -----------------------------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        self._push()
        return self

    def __exit__(self, *exc: Any) -> None:
        if self._recording:
            self._pop()

    def _push(self) -> None:
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        if self._used:
            self._clear()
            self._used = False
        tapes.active.append(self)
        self._recording = True

    def _pop(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")
        tapes.active.remove(self)
        self._recording = False

    def record(self, op: Any) -> None:
        """Records an op. It is called for every op that runs while the tape is open."""
        tracked = self._tracked
        wanted = False
        for tensor in op._inputs:
            if id(tensor) in tracked:
                wanted = True
            elif tensor.dtype is dtypes.resource and self._watch_accessed_variables:
                variable = getattr(tensor, "variable", None)
                variable = None if variable is None else variable()
                if variable is not None and variable.trainable:
                    self._watch_variable(variable, tensor)
                    wanted = True
        if not wanted:
            return
        for tensor in op.outputs:
            if is_trainable(tensor):
                tracked[id(tensor)] = tensor
        self._records.append(op)

    def _watch_variable(self, variable: Any, handle: Tensor) -> None:
        self._tracked[id(handle)] = handle
        self._variables[id(variable)] = variable

    def is_tracked(self, tensor: Any) -> bool:
        if id(tensor) in self._tracked:
            return True
        variable = getattr(tensor, "variable", None) if tensor.dtype is dtypes.resource else None
        return (
            variable is not None and self._watch_accessed_variables and variable() is not None and variable().trainable
        )

    def watch(self, tensor: Any) -> None:
        """Watches `tensor`, or each tensor and variable of a structure.

        Raises:
            ValueError: an element is neither a tensor nor a variable, or the tape was never opened.
        """
        if self._used:
            raise ValueError("Tape is not recording.")
        for leaf in nest.flatten(tensor, expand_composites=True):
            if isinstance(leaf, variables.Variable):
                self._watch_variable(leaf, _source(leaf))
            elif isinstance(leaf, Tensor):
                self._tracked[id(leaf)] = leaf
            else:
                raise ValueError(
                    f"Passed in object {leaf} of type {type(leaf).__name__!r}, not tf.Tensor or tf.Variable or ExtensionType."
                )

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Suspends recording inside the context.

        Raises:
            RuntimeError: the tape is not open.
        """
        if not self._recording:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        self._pop()
        try:
            yield
        finally:
            self._push()

    def reset(self) -> None:
        """Forgets everything recorded and watched.

        Raises:
            ValueError: the tape is not open.
        """
        self._pop()
        self._used = True
        self._push()

    def watched_variables(self) -> tuple[Any, ...]:
        """Returns the watched variables, in the order of their first use."""
        return tuple(self._variables.values())

    # -- gradients -----------------------------------------------------------------------------------------------

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """Returns the derivative of the sum of `target` with respect to each of `sources`, in their structure.

        Args:
            target: a tensor or structure of tensors.
            sources: a tensor, a variable, or a structure of them.
            output_gradients: initial gradients for `target`, one per tensor.
            unconnected_gradients: whether to return None or zeros for a source that the target does not depend on.

        Raises:
            RuntimeError: the tape is not persistent and has been used.
            LookupError: an op between them has no gradient.
        """
        self._check_unused()
        if unconnected_gradients not in ("none", "zero"):
            raise ValueError(f"Unknown value for unconnected_gradients: {unconnected_gradients!r}")
        if target is None:
            raise TypeError(
                "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be differentiated, but received None."
            )
        if self._recording and not self._persistent:
            self._pop()
        flat_sources = nest.flatten(sources)
        parts = [gradient_parts(source) for source in flat_sources]
        flat = [part for each in parts for part in each]
        targets = nest.flatten(target)
        starts = [None] * len(targets) if output_gradients is None else nest.flatten(output_gradients)
        targets, starts = opened(targets, starts)
        resolved = [self._recorded(_source(part)) for part in flat]
        found = None
        if not tapes.active and context.executing_eagerly():
            found = repeated_walks.run(self._records, self._tracked, targets, resolved, starts, _traced_walk)
        if found is None:
            found = self._walk(targets, resolved, starts)
        if unconnected_gradients == UnconnectedGradients.ZERO:
            found = [shaping.zeros_like(part) if g is None else g for part, g in zip(flat, found)]
        if not self._persistent:
            self._spend()
        rest = iter(found)
        results = [gradient_of(source, [next(rest) for _ in each]) for source, each in zip(flat_sources, parts)]
        return nest.pack_sequence_as(sources, results)

    def _walk(self, targets: list[Any], sources: list[Tensor], starts: list[Any]) -> list[Any]:
        terms: dict[int, list[Any]] = {}
        wanted = {id(source) for source in sources}
        for i, target in enumerate(targets):
            tensor = _source(target)
            if id(tensor) not in self._tracked or not is_trainable(tensor):
                continue
            start = starts[i]
            if start is None:
                shaped = convert_to_tensor(target) if tensor.dtype in _HANDLES else tensor
                start = shaping.ones_like(shaped)
            elif not isinstance(start, IndexedSlices):
                start = convert_to_tensor(start)
                if tensor.dtype not in _HANDLES and not start.static_shape.compatible(tensor.static_shape):
                    raise InvalidArgumentError(
                        None,
                        None,
                        f"An output gradient of shape {start.shape} is for a target of shape {tensor.shape}.",
                    )
            terms.setdefault(id(tensor), []).append(start)
        for record in reversed(self._records):
            incoming = [_sum(terms, id(tensor), keep=id(tensor) in wanted) for tensor in record.outputs]
            if any(g is not None for g in incoming):
                self._through(record, incoming, terms)
        return [_sum(terms, id(source), keep=True) if id(source) in self._tracked else None for source in sources]

    def _recorded(self, source: Any) -> Any:
        """Returns the tensor that was recorded for a source.

        In a branch or loop body, a variable's handle differs from the one in the enclosing function, where it was recorded.
        """
        variable = getattr(source, "variable", None)
        if variable is None or id(source) in self._tracked or not context.target().building_function:
            return source
        for tensor in self._tracked.values():
            other = getattr(tensor, "variable", None) if tensor.dtype is dtypes.resource else None
            if other is not None and other() is variable():
                return tensor
        return source

    def _through(self, record: Any, incoming: list[Any], terms: dict[int, list[Any]]) -> None:
        results = record_gradient(record, incoming)
        for tensor, g in zip(record._inputs, results):
            if g is not None and id(tensor) in self._tracked:
                terms.setdefault(id(tensor), []).append(g)

    # -- jacobians -----------------------------------------------------------------------------------------------

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Returns the derivative of every element of `target` with respect to each of `sources`, of shape `target.shape + source.shape`.

        Args:
            target: a tensor.
            sources: a tensor, a variable, or a structure of them.
            unconnected_gradients: whether to return None or zeros for a source that the target does not depend on.
            parallel_iterations, experimental_use_pfor: accepted but unused; elements are differentiated one after the other.
        """
        del parallel_iterations, experimental_use_pfor
        with self._keeping():
            flat_sources = nest.flatten(sources)
            resolved = [_source(source) for source in flat_sources]
            tensor = convert_to_tensor(target)
            size = ranges.size(tensor)

            def row(i: Any) -> list[Any]:
                start = shaping.reshape(_unit(i, size, tensor), shaping.shape(tensor))
                return self._row(target, resolved, flat_sources, start, unconnected_gradients)

            rows = _stacked_rows(row, size, flat_sources)
            results = [
                None
                if stacked is None
                else shaping.reshape(stacked, joining.concat([shaping.shape(tensor), shaping.shape(stacked)[1:]], 0))
                for stacked in rows
            ]
        for result, source in zip(results, flat_sources):
            if result is not None and not getattr(result, "is_eager", False):
                result.set_shape(tensor.shape.concatenate(source.shape))
        return nest.pack_sequence_as(sources, results)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Returns, for each row b, the derivative of `target[b]` with respect to `source[b]`. Rows must be independent of each other.

        Raises:
            ValueError: the numbers of rows differ, or a tensor has fewer than two dimensions.
        """
        del parallel_iterations, experimental_use_pfor
        for tensor in (target, source):
            if tensor.static_shape.rank in (0, 1):
                raise ValueError(f"Shape {tensor.shape} must have rank at least 2")
        rows_of = [None if tensor.static_shape.rank is None else tensor.static_shape[0] for tensor in (target, source)]
        if None not in rows_of and rows_of[0] != rows_of[1]:
            raise ValueError(
                f"Need first dimension of target shape ({target.shape}) and source shape ({source.shape}) to match."
            )
        with self._keeping():
            resolved = [_source(source)]
            batch = shaping.shape(target)[:1]
            flat_shape = joining.concat([batch, [-1]], 0)
            size = shaping.shape(shaping.reshape(target, flat_shape))[1]

            def row(i: Any) -> list[Any]:
                unit = ranges.broadcast_to(_unit(i, size, target), joining.stack([batch[0], size]))
                start = shaping.reshape(unit, shaping.shape(target))
                return self._row(target, resolved, [source], start, unconnected_gradients)

            stacked = _stacked_rows(row, size, [source])[0]
            shape = joining.concat([shaping.shape(target), shaping.shape(source)[1:]], 0)
            if stacked is None:
                result = shaping.zeros(shape, target.dtype.base_dtype)
            else:
                order = joining.concat([[1, 0], ranges.range(2, ranges.rank(stacked))], 0)
                result = shaping.reshape(shaping.transpose(stacked, order), shape)
        if not getattr(result, "is_eager", False):
            result.set_shape(target.shape.concatenate(source.shape[1:]))
        return result

    def _row(self, target: Any, resolved: list[Any], sources: list[Any], start: Any, unconnected: str) -> list[Any]:
        found = self._walk([target], resolved, [start])
        if unconnected == UnconnectedGradients.ZERO:
            found = [shaping.zeros_like(source) if g is None else g for source, g in zip(sources, found)]
        return found

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Makes several gradients count as one use of the tape, and keeps the tape from recording them."""
        self._check_unused()
        was, self._persistent = self._persistent, True
        if self._recording and not was:
            self._pop()
        try:
            yield
        finally:
            self._persistent = was
            if not was:
                self._spend()


def _unit(i: Any, size: Any, like: Any) -> Any:
    """Returns the i-th unit vector of length `size`."""
    return casting.cast(comparison.equal(ranges.range(size), i), like.dtype.base_dtype)


def _stacked_rows(row: Any, size: Any, sources: list[Any]) -> list[Any]:
    """Stacks `row(i)` for each i below `size`; None for a source whose rows are None."""
    example = _probe(row)
    connected = [i for i, g in enumerate(example) if g is not None]
    arrays = [tensor_array.TensorArray(example[i].dtype, size=size, element_shape=sources[i].shape) for i in connected]

    def step(i: Any, *arrays: Any) -> Any:
        found = row(i)
        return i + 1, *[ta.write(i, convert_to_tensor(found[n])) for n, ta in zip(connected, arrays)]

    done = branches_and_loops.while_loop_v2(
        lambda i, *_: comparison.less(i, size), step, (convert_to_tensor(0), *arrays)
    )
    results: list[Any] = [None] * len(sources)
    for n, ta in zip(connected, done[1:]):
        results[n] = ta.stack()
    return results


def _probe(row: Any) -> list[Any]:
    """Computes one row, to see which sources are connected."""
    return row(convert_to_tensor(0))


def _traced_walk(
    records: list[Any], tracked: list[Any], targets: list[Any], sources: list[Any], starts: list[Any]
) -> list[Any]:
    """Walks backwards over records that hold tensors of the current graph."""
    tape = GradientTape()
    tape._records, tape._tracked = records, {id(tensor): tensor for tensor in tracked}
    return tape._walk(targets, sources, starts)


def _source(x: Any) -> Any:
    """Returns the tensor for a source. For a variable this is its handle in the current graph."""
    if isinstance(x, variables.Variable):
        handle = x._gradient_source()
        target = context.target()
        return target.capture(handle) if target.building_function else handle
    if not isinstance(x, Tensor):
        parts = gradient_parts(x)
        x = parts[0] if len(parts) == 1 else x
    if not isinstance(x, Tensor):
        raise AttributeError(
            f"{type(x).__name__!r} object has no attribute 'dtype': what is differentiated is a tensor or a variable, not {x!r}"
        )
    return x


def _sum(terms: dict[int, list[Any]], key: int, *, keep: bool) -> Any:
    found = terms.get(key) if keep else terms.pop(key, None)
    if not found:
        return None
    if len(found) > 1:
        found[:] = [aggregate(found)]
    return found[0]


def record_gradient(record: Any, incoming: list[Any]) -> list[Any]:
    """Computes the gradients of an op's inputs from the gradients of its outputs.

    Raises:
        LookupError: the op has no gradient.
    """
    backward = getattr(record, "backward", None)
    if backward is not None:
        return list(backward(*incoming))
    try:
        function = gradient_function(record)
    except LookupError:
        raise LookupError(f"No gradient defined for operation '{record.name}' (op type: {record.type})") from None
    if function is None:
        return [None] * len(record._inputs)
    fill_with_zeros(record, incoming)
    try:
        with nullcontext() if context.executing_eagerly() else name_scope(f"gradient_tape/{record.name}/"):
            results = function(record, *incoming)
    except Exception as error:
        fault = own_fault(error, record)
        if fault is None:
            raise
        raise fault from error
    return list(results) if isinstance(results, (list, tuple)) else [results]


def differentiate(f: Any, args: Any, kwargs: Any, used: list[Any], starts: list[Any]) -> list[Any]:
    """Returns the gradients of `f(*args)` with respect to its arguments and the variables it uses."""
    with GradientTape() as tape:
        flat = [shaping.identity(convert_to_tensor(leaf)) for leaf in nest.flatten(args)]
        tape.watch(flat)
        result = f(*nest.pack_sequence_as(args, flat), **kwargs)
    return tape.gradient(nest.flatten(result), [*flat, *used], starts)
