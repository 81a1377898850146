"""The calls of a functional model: which tensors and values each layer was called with, in the forms that different versions of Keras write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

_CONSTANT = "_CONSTANT_VALUE"


@dataclass(frozen=True)
class Reference:
    """An output of an earlier call: the name of the layer, the number of the call, and the position among its outputs."""

    layer: str
    call: int
    output: int


@dataclass
class Call:
    """The arguments of one call of a layer. Tensors are `Reference`s, anywhere in lists and dictionaries."""

    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)

    def references(self) -> list[Reference]:
        return list(_references([self.args, self.kwargs]))

    def resolved(self, value: Callable[[Reference], Any]) -> Call:
        """The call with the values of its references."""
        return Call(_replaced(self.args, value), _replaced(self.kwargs, value))

    @property
    def is_single(self) -> bool:
        """Whether the only positional argument is one tensor, not a list."""
        return len(self.args) == 1 and not isinstance(self.args[0], (list, tuple, dict))


def _references(value: Any) -> Iterator[Reference]:
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _references(each)
    elif isinstance(value, slice):
        yield from _references([value.start, value.stop, value.step])


def _replaced(value: Any, by: Callable[[Reference], Any]) -> Any:
    if isinstance(value, Reference):
        return by(value)
    if isinstance(value, dict):
        return {key: _replaced(each, by) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(each, by) for each in value]
    if isinstance(value, slice):
        return slice(*(_replaced(each, by) for each in (value.start, value.stop, value.step)))
    return value


def flat(value: Any) -> list[Any]:
    """The elements of nested lists and dictionaries, in order."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in flat(each)]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in flat(each)]
    return [value]


def parse_call(node: Any) -> Call:
    """A call as a configuration describes it.

    Keras 3 writes {"args": [...], "kwargs": {...}} with dictionaries for tensors. Keras 2 writes a list of [name, call, output, kwargs]
    for the tensors of the first argument; tensors among the kwargs are [name, call, output].
    """
    if isinstance(node, dict):
        return Call([_modern(each) for each in node.get("args", [])], _modern(node.get("kwargs", {})))
    if not node:
        return Call()
    entries = [node] if isinstance(node[0], str) else list(node)
    tensors = [_entry(each) for each in entries]
    kwargs = entries[0][3] if len(entries[0]) > 3 and isinstance(entries[0][3], dict) else {}
    return Call([tensors if len(tensors) > 1 else tensors[0]], {key: _older(each) for key, each in kwargs.items()})


def _entry(entry: Any) -> Any:
    if not isinstance(entry, (list, tuple)) or len(entry) < 3:
        raise ValueError(f"The configuration has a call with the input {str(entry)[:80]}, which is no tensor.")
    name, call, output, *_ = entry
    return output if name == _CONSTANT else Reference(str(name), int(call), int(output))


def _older(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"start", "stop", "step"}:
            return slice(*(_older(value[key]) for key in ("start", "stop", "step")))
        return {key: _older(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) >= 3 and isinstance(value[0], str) and isinstance(value[1], int):
        return _entry(value)
    return [_older(each) for each in value]


def _modern(value: Any) -> Any:
    if isinstance(value, dict):
        kind = value.get("class_name")
        if kind == "__keras_tensor__":
            name, call, output = value["config"]["keras_history"]
            return Reference(str(name), int(call), int(output))
        if kind == "__tuple__":
            return [_modern(each) for each in value.get("items", [])]
        if kind == "__ellipsis__":
            return Ellipsis
        if kind == "__slice__":
            return slice(*(_modern(value["config"].get(key)) for key in ("start", "stop", "step")))
        if kind == "__numpy__":
            return value["config"]["value"]
        return {key: _modern(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_modern(each) for each in value]
    return value


def ends(value: Any) -> list[Reference]:
    """The inputs or outputs of a functional model: one [name, call, output], or lists or dictionaries of them."""
    if isinstance(value, dict):
        return [each for entry in value.values() for each in ends(entry)]
    if value and isinstance(value[0], str):
        return [Reference(str(value[0]), int(value[1]), int(value[2]))]
    return [each for entry in value for each in ends(entry)]
