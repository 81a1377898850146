"""An editor of a subgraph that keeps track of the producer and the consumers of each tensor while operators change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import Operator, Subgraph, Tensor

# Operators that do something besides computing their outputs.
EFFECTS = frozenset(("ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE_IMPORT", "CALL"))
NO_ACTIVATION = schema.ActivationFunctionType.NONE


class Editor:
    """The operators of a subgraph in order, with the producer and the consumers of each tensor."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph = subgraph
        self.removed: set[Operator] = set()
        self.producers: dict[Tensor, Operator] = subgraph.producers()
        self.consumers: dict[Tensor, list[Operator]] = subgraph.consumers()
        self.outputs = set(subgraph.outputs)
        self.touched: dict[Operator, None] = {}
        """Operators that changed, or whose neighbours changed, and that rules must visit again."""

    def producer(self, tensor: Tensor | None) -> Operator | None:
        return None if tensor is None else self.producers.get(tensor)

    def made_by(self, tensor: Tensor | None, *codes: str) -> Operator | None:
        """The operator that produces the tensor, if its code is one of these."""
        found = self.producer(tensor)
        return found if found is not None and found.code in codes else None

    def is_private(self, tensor: Tensor, to: Operator) -> bool:
        """Whether a single input of `to` is the only reader of the tensor."""
        return tensor not in self.outputs and self.consumers.get(tensor) == [to]

    def _unread(self, operator: Operator, inputs: Sequence[Tensor | None]) -> list[Operator]:
        """Removes an operator from the consumers of tensors. Returns the producers whose results have no consumers left.

        The remaining consumers of the tensors are marked for another visit, because they may be the only ones now.
        """
        dead = []
        for tensor in inputs:
            if tensor is None:
                continue
            left = self.consumers[tensor]
            left.remove(operator)
            if tensor.data is None:
                self.touched.update(dict.fromkeys(left))
            maker = self.producers.get(tensor)
            if maker is not None and not left and self._is_dead(maker):
                dead.append(maker)
        return dead

    def _is_dead(self, operator: Operator) -> bool:
        return not has_effect(operator) and not any(
            tensor in self.outputs or self.consumers.get(tensor) for tensor in operator.outputs
        )

    def remove(self, operator: Operator) -> None:
        """Removes an operator and everything computed only for it."""
        waiting = [operator]
        while waiting:
            operator = waiting.pop()
            if operator in self.removed:
                continue
            self.removed.add(operator)
            for tensor in operator.outputs:
                if self.producers.get(tensor) is operator:
                    del self.producers[tensor]
            waiting.extend(self._unread(operator, operator.inputs))

    def change(
        self,
        operator: Operator,
        code: str | None = None,
        inputs: Sequence[Tensor | None] | None = None,
        outputs: list[Tensor] | None = None,
        options: Any = None,
    ) -> None:
        """Replaces an operator in place."""
        self.touched[operator] = None
        if code is not None:
            operator.code, operator.options, operator.custom_code = code, options, ""
        if outputs is not None:
            for tensor in operator.outputs:
                if self.producers.get(tensor) is operator:
                    del self.producers[tensor]
            operator.outputs = outputs
            self.producers.update(dict.fromkeys(outputs, operator))
        if inputs is not None:
            before, operator.inputs = operator.inputs, list(inputs)
            for tensor in inputs:
                if tensor is not None:
                    self.consumers.setdefault(tensor, []).append(operator)
            for maker in self._unread(operator, before):
                self.remove(maker)

    def insert(self, after: Operator, operator: Operator) -> None:
        """Adds an operator behind another one."""
        self.subgraph.operators.insert(self.subgraph.operators.index(after) + 1, operator)
        self.touched[operator] = None
        self.producers.update(dict.fromkeys(operator.outputs, operator))
        for tensor in operator.inputs:
            if tensor is not None:
                self.consumers.setdefault(tensor, []).append(operator)

    def absorb(self, operator: Operator, following: Operator) -> None:
        """Removes `following` and lets `operator` produce its result. The former result of `operator` must have no other readers."""
        self.change(operator, outputs=following.outputs)
        self.remove(following)

    def bypass(self, operator: Operator, source: Tensor) -> bool:
        """Removes an operator whose only result equals `source`. Returns False if the result must stay because it is an output of the subgraph."""
        (result,) = operator.outputs
        if result in self.outputs:
            maker = self.producers.get(source)
            if maker is None or source in self.outputs:
                return False
            # Outputs keep their names.
            source.name = result.name
            self.subgraph.outputs = [source if each is result else each for each in self.subgraph.outputs]
            self.outputs = set(self.subgraph.outputs)
        for consumer in self.consumers.pop(result, []):
            self.touched[consumer] = None
            consumer.inputs = [source if each is result else each for each in consumer.inputs]
            self.consumers.setdefault(source, []).append(consumer)
        self.remove(operator)
        return True

    def constant(self, array: np.ndarray, like: Tensor | None, name: str) -> Tensor:
        """A constant that keeps the name of the one it replaces."""
        type_name = "FLOAT32" if like is None else like.type
        return Tensor(name if like is None else like.name, type_name, array.shape, array)

    def finish(self) -> None:
        """Writes the operators back, without removed and unneeded ones."""
        needed = set(self.outputs)
        kept = []
        for operator in reversed(self.subgraph.operators):
            if operator in self.removed:
                continue
            if has_effect(operator) or any(tensor in needed for tensor in operator.outputs):
                kept.append(operator)
                needed.update(tensor for tensor in operator.inputs if tensor is not None)
        self.subgraph.operators = kept[::-1]


def has_effect(operator: Operator) -> bool:
    return operator.code in EFFECTS or any(
        has_effect(inner) for subgraph in operator.subgraphs for inner in subgraph.operators
    )


Rule = Callable[[Editor, Operator], bool]


def apply_rules(subgraph: Subgraph, rules: dict[str, list[Rule]]) -> bool:
    """Applies rules, by the code of the operator that they look at, until none applies. True if any did."""
    editor = Editor(subgraph)
    changed_at_all = False
    waiting = list(subgraph.operators)
    while waiting:
        editor.touched = {}
        for operator in waiting:
            if operator in editor.removed:
                continue
            for rule in rules.get(operator.code, ()):
                if rule(editor, operator):
                    changed_at_all = True
                    editor.touched[operator] = None
                    break
        again = dict(editor.touched)
        for operator in editor.touched:
            for tensor in operator.outputs:
                again.update(dict.fromkeys(editor.consumers.get(tensor, ())))
        waiting = list(again)
    editor.finish()
    return changed_at_all


def sizes(name: str, values: Any) -> Tensor:
    """A constant of shapes or other 32-bit integers."""
    data = np.array(values, np.int32)
    return Tensor(name, "INT32", data.shape, data)


def scalar(tensor: Tensor | None) -> float | None:
    """The value of a constant with one element."""
    if tensor is None or tensor.data is None or tensor.data.size != 1 or tensor.data.dtype == object:
        return None
    return float(tensor.data.reshape(-1)[0])


def is_float(*tensors: Tensor | None) -> bool:
    return all(tensor is None or tensor.type == "FLOAT32" for tensor in tensors)


def plain(operator: Operator) -> bool:
    """Whether no activation is fused into the operator."""
    return getattr(operator.options, "fusedActivationFunction", NO_ACTIVATION) == NO_ACTIVATION
