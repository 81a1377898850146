"""The operators that converted statements and expressions call.

Each behaves like Python unless a tensor is the condition while a graph is built. Both branches, or the body of the loop, are then
traced into the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import nest
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.control_flow import assertions, branches_and_loops
from stoker._src.ops.math import comparison
from stoker._src.runtime.autograph import loops, state
from stoker._src.runtime.autograph.exits import RETURN_VALUE
from stoker._src.runtime.autograph.stand_ins import stand_in
from stoker._src.runtime.autograph.state import UNDEFINED, State
from stoker._src.runtime.autograph.values import as_condition, as_tensors, in_graph, made_up

_FLAGS = ("do_return", "break_", "continue_")


# ---- branches ---------------------------------------------------------------------------------------------------


class _Branches:
    """Two branches traced into one `cond`.

    Args:
        main, other: the branches; each runs and returns the final values of the variables.
        names: the names of the variables.
    """

    def __init__(self, main: Callable[[], list[Any]], other: Callable[[], list[Any]], names: list[str]) -> None:
        self._main, self._other = main, other
        self._names = names
        self._ends: list[list[Any]] = []
        self._unlooked: dict[int, Any] = {}  # return values that one branch lacks, taken from the other

    def values(self, condition: Tensor) -> list[Any]:
        """Returns the variables after the branch that `condition` selects."""
        while True:
            self._ends = []
            try:
                results = branches_and_loops.cond_v2(
                    condition, lambda: self._traced(self._main), lambda: self._traced(self._other)
                )
            except _OnceMore:
                continue
            return [self._after(*each) for each in zip(self._names, *self._ends, results)]

    @staticmethod
    def _after(name: str, main: Any, other: Any, result: Any) -> Any:
        if main is UNDEFINED:
            return main
        # Flags that are equal in both branches stay Python values, so that the code they guard also runs in Python.
        return main if name.startswith(_FLAGS) and isinstance(main, bool) and main is other else result

    def _traced(self, branch: Callable[[], list[Any]]) -> list[Any]:
        end = [value if name.startswith(_FLAGS) else as_tensors(value) for name, value in zip(self._names, branch())]
        for i, value in self._unlooked.items():
            end[i] = made_up(value) if end[i] is UNDEFINED else end[i]
        self._ends.append(end)
        if len(self._ends) == 2:
            self._compare(*self._ends)
        return [None if value is UNDEFINED else value for value in end]

    def _compare(self, main: list[Any], other: list[Any]) -> None:
        for i, name in enumerate(self._names):
            if name.startswith(RETURN_VALUE) and (main[i] is UNDEFINED) != (other[i] is UNDEFINED):
                # Only one branch returns. The value is read only after the flag is checked, so the other branch may return a dummy.
                self._unlooked[i] = other[i] if main[i] is UNDEFINED else main[i]
        if any(main[i] is UNDEFINED or other[i] is UNDEFINED for i in self._unlooked):
            raise _OnceMore
        for name, a, b in zip(self._names, main, other):
            _check_branches(name, a, b)


class _OnceMore(Exception):
    """Traces the branches again, because one must create dummies for values that only the other has."""


def _check_branches(name: str, main: Any, other: Any) -> None:
    """Raises an error if a variable has different types after the two branches."""
    for value, otherwise, label in ((main, other, "main"), (other, main, "else")):
        if value is UNDEFINED and otherwise is not UNDEFINED:
            raise ValueError(f"'{name}' must also be initialized in the {label} branch")
        if value is None and otherwise is not None:
            if name.startswith(RETURN_VALUE):
                raise ValueError(f"the {label} branch must also have a return statement.")
            raise ValueError(f"'{name}' is None at the end of the {label} branch.")
    try:
        nest.assert_same_structure(main, other, expand_composites=True)
    except (ValueError, TypeError) as error:
        raise TypeError(
            f"'{name}' must have the same nested structure in the main and else branches:\n\n{error}"
        ) from None
    for a, b in zip(nest.flatten(main, expand_composites=True), nest.flatten(other, expand_composites=True)):
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype.base_dtype is not b.dtype.base_dtype:
            raise TypeError(
                f"'{name}' has dtype {a.dtype.base_dtype.name} in the main branch, but dtype "
                f"{b.dtype.base_dtype.name} in the else branch"
            )


# ---- the operators ----------------------------------------------------------------------------------------------


class Operators:
    """The operators that converted code uses, with the options of the conversion.

    Args:
        convert: converts a function.
    """

    Attribute = state.Attribute
    Item = state.Item

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self._convert = convert

    def if_(
        self, condition: Any, main: Callable[[], None], other: Callable[[], None], symbols: Any, passing: Any
    ) -> None:
        """Implements `if condition: main() else: other()`.

        Args:
            condition: the condition.
            main, other: the branches.
            symbols: the variables that the branches change and that are read later.
            passing: the variables that the branches change but that are not read later.
        """
        if not in_graph(condition):
            main() if condition else other()
            return
        shared, own = State(symbols, main, other), State(passing, main, other)
        before, own_before = shared.get(), own.get()

        def ending(piece: Callable[[], None]) -> Callable[[], list[Any]]:
            def run() -> list[Any]:
                piece()
                ended = shared.get()
                shared.set(before)
                own.set(own_before)
                return ended

            return run

        try:
            decided = as_condition(condition, "condition of if statement")
            after = _Branches(ending(main), ending(other), shared.names).values(decided)
        finally:
            shared.set(before)
            own.set(own_before)
        shared.set(after)

    def choose(self, condition: Any, main: Callable[[], Any], other: Callable[[], Any], text: str) -> Any:
        """Implements `main() if condition else other()`."""
        if not in_graph(condition):
            return main() if condition else other()
        decided = as_condition(condition, "condition of if statement")
        return _Branches(lambda: [main()], lambda: [other()], [text]).values(decided)[0]

    def while_(self, test: Callable[[], Any], body: Callable[[], None], symbols: Any, options: Any) -> None:
        going_on = test()
        if in_graph(going_on):
            shared = State(symbols, test, body)
            loops.while_loop(going_on, test, body, shared, options() if options is not None else {})
            return
        while going_on:
            body()
            going_on = test()
            if in_graph(going_on):
                raise NotImplementedError(
                    "The condition of while loop started as non-Tensor, then changed to Tensor. This may happen either because "
                    "variables changed type, or when a break or return statement inside the loop depends on a Tensor "
                    "condition. In both cases, changing to a TF loop should remove the error."
                )

    def for_(self, iterated: Any, body: Callable[[Any], None], going_on: Any, symbols: Any, options: Any) -> None:
        if in_graph(iterated):
            shared = State(symbols, body, going_on)
            loops.for_loop(iterated, body, going_on, shared, options() if options is not None else {})
            return
        if hasattr(iterated, "_optionals_in_graph") and not context.executing_eagerly():
            shared = State(symbols, body, going_on)
            following = iterated._optionals_in_graph()
            loops.element_loop(following, body, going_on, shared, options() if options is not None else {})
            return
        for item in iterated:
            body(item)
            more = True if going_on is None else going_on()
            if in_graph(more):
                raise NotImplementedError(
                    "break and return statements which depend on a TF condition are not supported in Python for loops. Did you "
                    "intend to make it a TF loop?"
                )
            if not more:
                break

    loop_options = staticmethod(loops.loop_options)

    def and_(self, value: Any, *others: Callable[[], Any]) -> Any:
        if not others:
            return value

        def go_on() -> Any:
            return self.and_(others[0](), *others[1:])

        if not in_graph(value):
            return go_on() if value else value
        decided = convert_to_tensor(value)
        return branches_and_loops.cond_v2(decided, go_on, lambda: decided)

    def or_(self, value: Any, *others: Callable[[], Any]) -> Any:
        if not others:
            return value

        def go_on() -> Any:
            return self.or_(others[0](), *others[1:])

        if not in_graph(value):
            return value if value else go_on()
        decided = convert_to_tensor(value)
        return branches_and_loops.cond_v2(decided, lambda: decided, go_on)

    def not_(self, value: Any) -> Any:
        return comparison.logical_not(convert_to_tensor(value)) if in_graph(value) else not value

    def equal(self, a: Any, b: Any) -> Any:
        return comparison.equal(a, b) if in_graph(a) or in_graph(b) else a == b

    def not_equal(self, a: Any, b: Any) -> Any:
        return comparison.not_equal(a, b) if in_graph(a) or in_graph(b) else a != b

    def assert_(self, condition: Any, message: Callable[[], Any] | None) -> None:
        if in_graph(condition) and getattr(context.target(), "automatic", False):  # otherwise the op would never run
            said = "Assertion error" if message is None else message()
            assertions.assert_op(as_condition(condition, "condition of assert statement"), [said])
        elif not condition:
            raise AssertionError if message is None else AssertionError(message())

    def call(self, function: Any) -> Any:
        """Returns the function to call instead of `function`."""
        found = stand_in(function)
        return self._convert(function) if found is None else found

    @staticmethod
    def scope(name: str) -> Any:
        return name_scope(name)
