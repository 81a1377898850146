"""The parts of a plan: instructions and the values they pass on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Operation, Tensor

FEED, CONSTANT, EVERYTHING = "feed", "constant", "everything"
LONG = 200
"""Instructions after which a plan looks whether its run was cancelled."""
# An op with one of these traits is not a pure function of its inputs. It keeps its position and runs every time.
EFFECTS = Trait.STATEFUL | Trait.READS | Trait.WRITES | Trait.BLOCKING | Trait.RETAINS


class Value:
    """A value in a plan: produced by an instruction, fed, or constant. It gets a Python name only when it is emitted."""

    __slots__ = ("constant", "handle", "is_constant", "label", "last_use", "position", "roots")

    def __init__(self, label: str, position: int, *, handle: bool = False) -> None:
        self.label = label
        self.handle = handle  # a variable or another resource, not data
        self.position = position  # index of the instruction that produces it; -1 for feeds and constants
        self.last_use = position
        self.is_constant = False
        self.constant: Any = None
        # The possible owners of its memory: variable states, or the marks FEED and CONSTANT.
        self.roots: frozenset[Any] = frozenset()


@dataclass
class Instruction:
    """One line of a plan.

    `arguments` are Values, Host (a Value that the kernel takes as plain numbers), or lists of those. `results` mirrors the
    definition's outputs (lists for list outputs). A `read` fetches a variable's value; `copies` makes the value safe to keep.
    """

    op: Operation | None
    kind: str  # "kernel", "read", "batch", "many", "copy", "fused_loops", "begin", "finish", "guarded", "fetched"
    kernel: Any
    arguments: list[Any]
    keywords: dict[str, Any] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    copies: bool = False
    reads_first: bool = (
        False  # of a write: whether the inputs may share the variable's memory, because they are read before
    )
    copied: set[Value] = field(default_factory=set)  # arguments that are copied for the kernel
    blocking: bool = False
    traits: Trait = Trait.NONE
    written: frozenset[Any] = frozenset()  # variables that the called functions write
    steps: list[Any] = field(default_factory=list)  # the compiled steps of the called functions
    members: list[Operation] = field(default_factory=list)  # for a batch or fused loops: the ops it runs together
    overlays: tuple[tuple[int, int], ...] = ()  # of fused loops: arguments and results that may share memory
    tensors: list[Tensor] | None = None  # of the arguments, if they are not all of the op's inputs

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors of the arguments of a kernel."""
        assert self.op is not None
        return self.op._inputs if self.tensors is None else self.tensors


@dataclass(frozen=True)
class Host:
    value: Value


def with_values(arguments: Any, equal: dict[Value, Value]) -> Any:
    """Returns arguments of an instruction with other values in the place of those in `equal`."""
    if isinstance(arguments, list):
        return [with_values(argument, equal) for argument in arguments]
    if isinstance(arguments, Host):
        return Host(equal.get(arguments.value, arguments.value))
    return equal.get(arguments, arguments)


def values_of(items: Any) -> Iterator[Value]:
    """Returns the values in a list of arguments or results, in order."""
    for item in items:
        if isinstance(item, list):
            yield from values_of(item)
        elif isinstance(item, Host):
            yield item.value
        elif isinstance(item, Value):
            yield item


def renumber(instructions: list[Instruction]) -> None:
    """Updates the positions of values after instructions have been reordered."""
    for position, instruction in enumerate(instructions):
        for value in values_of(instruction.results):
            value.position = value.last_use = position
