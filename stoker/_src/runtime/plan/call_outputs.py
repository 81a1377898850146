"""Which outputs of the ops that call functions a plan needs."""

from __future__ import annotations

from collections.abc import Callable

from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.tensor import Operation, Tensor

UsedInputs = Callable[[Operation, list[bool]], set[int]]


class CallOutputs:
    """The needed outputs of calls, branches and loops. A loop that passes a value through without using it does not need it."""

    def __init__(
        self, ops: list[Operation], needed: set[Operation], fetched: set[Tensor], used_inputs: UsedInputs
    ) -> None:
        """Prepares the answers for the calls among `ops`.

        Args:
            ops: the ops of the plan, in order.
            needed: those that run.
            fetched: the tensors that the plan returns.
            used_inputs: returns which inputs of a call's functions affect the given outputs.
        """
        self._needed, self._fetched, self._used_inputs = set(needed), set(fetched), used_inputs
        self._wanted: dict[Operation, list[bool]] = {}
        self._used: dict[Operation, set[Tensor]] = {}
        self._prepare(ops)

    def add(self, ops: list[Operation], needed: set[Operation], returned: list[Tensor]) -> None:
        """Adds the ops of a function that becomes a part of the plan."""
        self._needed |= needed
        self._fetched |= set(returned)
        self._prepare(ops)

    def _prepare(self, ops: list[Operation]) -> None:
        # What a call needs depends on the calls behind it. From the last one on, a long chain of them takes no recursion.
        for op in reversed(ops):
            if op in self._needed and op.definition.planning.calls:
                self.wanted(op)

    def wanted(self, op: Operation) -> list[bool]:
        """Which outputs of `op` are needed."""
        known = self._wanted.get(op)
        if known is None:
            known = self._wanted[op] = [
                tensor in self._fetched or any(self._uses(user, tensor) for user in tensor._consumers)
                for tensor in op.outputs
            ]
        return known

    def _uses(self, user: Operation, tensor: Tensor) -> bool:
        if user not in self._needed:
            return False
        if not user.definition.planning.calls:
            return True
        used = self._used.get(user)
        if used is None:
            used = self._used[user] = self._used_by(user)
        return tensor in used

    def _used_by(self, user: Operation) -> set[Tensor]:
        function = function_refs(user)[0].target
        if function is None:
            return set(user._inputs)  # compiling the call reports it
        first = len(user._inputs) - len(function.inputs)
        used = self._used_inputs(user, self.wanted(user))
        return {tensor for i, tensor in enumerate(user._inputs) if i < first or i - first in used}
