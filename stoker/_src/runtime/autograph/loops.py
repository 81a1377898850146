"""Traces loops of converted functions into the graph. The variables that an iteration changes become the loop's variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import nest
from stoker._src.base.dtypes import DType
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import FuncGraph
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.control_flow import assertions, branches_and_loops, functional_loops
from stoker._src.ops.math import arithmetic, comparison
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.runtime.autograph.exits import RETURN_VALUE
from stoker._src.runtime.autograph.state import UNDEFINED, State
from stoker._src.runtime.autograph.user_errors import unbound
from stoker._src.runtime.autograph.values import as_condition, as_tensors, length, made_up


def loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> dict[str, Any]:
    """Returns the arguments of `set_loop_options` that were given."""
    given = {
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "maximum_iterations": maximum_iterations,
        "shape_invariants": shape_invariants,
    }
    return {name: value for name, value in given.items() if value is not None}


class _Widen(Exception):
    """A shape became less specific than before the loop, so the loop is traced again with the wider shape."""


class _Loop:
    """One loop being traced.

    Args:
        state: the variables that an iteration changes.
        step: runs the body, given the values of the loop's own leading variables.
        own: the loop's own leading variables (a counter), which are invisible to the program.
        options: the arguments of `set_loop_options`.
    """

    def __init__(self, state: State, step: Callable[..., list[Any]], own: list[Any], options: dict[str, Any]) -> None:
        self._state = state
        self._step = step
        self._own = own
        self._options = dict(options)
        invariants = self._options.pop("shape_invariants", ())
        self.initial = state.get()
        self.missing: list[str] = []  # variables that are defined only inside the loop
        if any(value is UNDEFINED or value is None for value in self.initial):
            self._define()
        self._taking_part = [value is not UNDEFINED and value is not None for value in self.initial]
        asked = [(value, shape) for value, shape in invariants]
        # TensorFlow identifies the variable of an invariant by the identity of its value.
        self._asked = [next((shape for value, shape in asked if value is each), None) for each in self.initial]
        self.initial = [as_tensors(value) for value in self.initial]
        self._shapes = [self._first_shapes(i) for i in range(len(self.initial))]

    def _first_shapes(self, i: int) -> Any:
        """Returns the invariant shapes of variable `i`, one per tensor."""
        value, asked = self.initial[i], self._asked[i]
        if not self._taking_part[i] or asked is None or not isinstance(value, Tensor):
            shapes = nest.map_structure(_shape_of, value)
            return shapes if asked is None or not self._taking_part[i] else nest.map_structure(TensorShape, asked)
        shape = as_shape(asked)
        if not branches_and_loops.holds(shape, value.static_shape):
            raise ValueError(
                f"'{self._state.names[i]}' has shape {value.shape} before the loop, which does not conform with the shape "
                f"invariant {TensorShape(shape)}."
            )
        return TensorShape(shape)

    def _define(self) -> None:
        """Gives variables that are undefined before the loop an initial value of the type that an iteration assigns.

        Raises:
            ValueError: an iteration reads them before it assigns them.
        """
        names = self._state.names
        missing = [value is UNDEFINED or value is None for value in self.initial]
        graph = FuncGraph("iteration")
        try:
            with graph.as_default():
                self._state.set([as_tensors(value) for value in self.initial])
                own = [graph.add_input(each.dtype, each.static_shape) for each in self._own]
                self._step(*own)
                ends = [as_tensors(value) for value in self._state.get()]
        except Exception as error:
            error = unbound(error)
            nones = [name for name, value in zip(names, self.initial) if value is None]
            if nones:
                raise ValueError(f"'{nones[0]}' is not allowed to be None before the loop") from error
            listed = ", ".join(f"'{name}'" for name, each in zip(names, missing) if each)
            raise ValueError(
                f"{listed} must be defined before the loop\nNote: AutoGraph tried to define it automatically, but ran into "
                f"a {type(error).__name__}: {error}"
            ) from error
        finally:
            self._state.set(self.initial)
        for i, end in enumerate(ends):
            if missing[i] and end is not UNDEFINED and end is not None:
                self.initial[i] = made_up(end)
                self.missing.append(names[i])

    def run(self, test: Callable[..., Any]) -> None:
        """Traces the loop and sets the variables to their values after it."""
        before = self._state.get()
        try:
            results = self._traced(test)
        except BaseException:
            self._state.set(before)
            raise
        self._state.set(self._all(results[len(self._own) :]))

    def _traced(self, test: Callable[..., Any]) -> list[Any]:
        while True:
            shapes = [shape for shape, part in zip(self._shapes, self._taking_part) if part]
            try:
                return branches_and_loops.while_loop_v2(
                    lambda *values: self._test(test, values),
                    lambda *values: self._iteration(values),
                    [*self._own, *self._parts(self.initial)],
                    shape_invariants=[*(each.shape for each in self._own), *shapes],
                    **self._options,
                )
            except _Widen:
                continue

    def _parts(self, values: list[Any]) -> list[Any]:
        return [value for value, part in zip(values, self._taking_part) if part]

    def _all(self, parts: Any) -> list[Any]:
        given = iter(parts)
        return [next(given) if part else value for value, part in zip(self.initial, self._taking_part)]

    def _test(self, test: Callable[..., Any], values: Any) -> Any:
        own, rest = values[: len(self._own)], values[len(self._own) :]
        self._state.set(self._all(rest))
        return test(*own)

    def _iteration(self, values: Any) -> list[Any]:
        own, rest = values[: len(self._own)], values[len(self._own) :]
        starts = self._all(rest)
        self._state.set(starts)
        following = self._step(*own)
        ends = [as_tensors(value) for value in self._state.get()]
        for i, name in enumerate(self._state.names):
            if self._taking_part[i]:
                self._check(i, name, starts[i], ends[i])
        return [*following, *self._parts(ends)]

    def _check(self, i: int, name: str, start: Any, end: Any) -> None:
        """Raises an error if an iteration changes a variable's type. Widens its shape if necessary."""
        if end is UNDEFINED:
            raise ValueError(f"'{name}' is undefined at the end of the iteration.")
        if end is None:
            raise ValueError(f"'{name}' is None at the end of the iteration.")
        try:
            nest.assert_same_structure(start, end, expand_composites=True)
        except (ValueError, TypeError) as error:
            raise TypeError(
                f"'{name}' does not have the same nested structure after one iteration.\n\n{error}"
            ) from None
        flat = nest.flatten(self._shapes[i])
        leaves = zip(nest.flatten(start), nest.flatten(end))
        for position, (a, b) in enumerate(leaves):
            if not isinstance(a, Tensor) or not isinstance(b, Tensor):
                continue
            _check_dtype(name, a.dtype.base_dtype, b.dtype.base_dtype)
            kept, found = flat[position], b.static_shape
            if branches_and_loops.holds(as_shape(kept), found):
                continue
            if not as_shape(kept).compatible(found):
                raise ValueError(
                    f"'{name}' has shape {a.shape} before the loop, but shape {b.shape} after one iteration. Use "
                    "tf.autograph.experimental.set_loop_options to set shape invariants."
                )
            flat[position] = TensorShape(_wider(as_shape(kept), found))
            self._shapes[i] = nest.pack_sequence_as(self._shapes[i], flat)
            raise _Widen


def _check_dtype(name: str, before: DType, after: DType) -> None:
    if before is not after:
        raise TypeError(f"'{name}' has dtype {before.name} before the loop, but dtype {after.name} after one iteration")


def _shape_of(leaf: Any) -> Any:
    return leaf.shape if isinstance(leaf, Tensor) else TensorShape(None)


def _wider(a: Shape, b: Shape) -> Shape:
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return Shape(None)
    return Shape(x if x == y else None for x, y in zip(a.dims, b.dims))


def _must_run(loop: _Loop, first: Tensor) -> None:
    """Asserts that the loop runs at least once if variables are defined only in its body."""
    needed = [name for name in loop.missing if not name.startswith(RETURN_VALUE)]
    if needed:
        assertions.assert_op(first, [f"loop must iterate at least once to initialize {', '.join(needed)}"])


# ---- the two loops ----------------------------------------------------------------------------------------------


def while_loop(first: Any, test: Callable[[], Any], body: Callable[[], None], state: State, options: Any) -> None:
    """Implements `while test(): body()`. `first` is the result of the test before the first iteration."""

    def step() -> list[Any]:
        body()
        return []

    loop = _Loop(state, step, [], options)
    _must_run(loop, as_condition(first, "condition of while loop"))
    loop.run(lambda: as_condition(test(), "condition of while loop"))


def for_loop(iterated: Any, body: Callable[[Any], None], going_on: Any, state: State, options: Any) -> None:
    """Implements `for item in iterated: body(item)`, which continues while `going_on()` is true (`going_on` may be None)."""
    if isinstance(iterated, Tensor) and not getattr(iterated, "is_eager", False) and iterated.op.type == "Range":
        counter, limit, delta = iterated.op.inputs
        _counted(counter, limit, delta, lambda i: i, body, going_on, state, options)
        return
    count = length(iterated)
    rows: Any = iterated if isinstance(iterated, RaggedTensor) else functional_loops.Rows(convert_to_tensor(iterated))
    _counted(constant(0), count, constant(1), lambda i: rows[i], body, going_on, state, options)


def _counted(
    start: Tensor, limit: Tensor, delta: Tensor, item: Any, body: Any, going_on: Any, state: State, options: Any
) -> None:
    sign = constant_value(delta)

    def inside(counter: Tensor) -> Any:
        if sign is not None:
            return comparison.less(counter, limit) if sign > 0 else comparison.greater(counter, limit)
        rising = comparison.greater(delta, shaping.zeros_like(delta))
        falling = comparison.logical_and(comparison.logical_not(rising), comparison.greater(counter, limit))
        return comparison.logical_or(comparison.logical_and(rising, comparison.less(counter, limit)), falling)

    def test(counter: Tensor) -> Any:
        return inside(counter) if going_on is None else comparison.logical_and(going_on(), inside(counter))

    def step(counter: Tensor) -> list[Any]:
        body(item(counter))
        return [arithmetic.add(counter, delta)]

    loop = _Loop(state, step, [start], options)
    _must_run(loop, inside(start))
    loop.run(test)


def element_loop(following: Callable[[], Any], body: Any, going_on: Any, state: State, options: Any) -> None:
    """Implements `for item in dataset: body(item)`. `following()` returns the next element as an Optional, empty after the last."""
    first = following()

    def test(variant: Tensor) -> Any:
        there_is_one = first.of(variant).has_value()
        return there_is_one if going_on is None else comparison.logical_and(going_on(), there_is_one)

    def step(variant: Tensor) -> list[Any]:
        body(first.of(variant).get_value())
        return [following()._variant_tensor]

    loop = _Loop(state, step, [first._variant_tensor], options)
    _must_run(loop, first.has_value())
    loop.run(test)
