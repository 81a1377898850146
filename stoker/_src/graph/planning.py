"""What a planner may do with an op, beside calling its kernel: stated at the op's definition, read by `runtime/plan`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Kernel = Callable[..., Any]


class Trait(enum.Flag):
    """What the planner must know of an op beyond its type."""

    NONE = 0
    VIEW = enum.auto()  # an output may share memory with an input
    STATEFUL = enum.auto()  # not a function of its inputs alone: never folded, never merged with its like
    READS = enum.auto()  # reads the variables among its inputs
    WRITES = enum.auto()  # changes the variables among its inputs, in place
    BLOCKING = enum.auto()  # may wait for another run (queues, Python code)
    RETAINS = enum.auto()  # keeps an input beyond the run (queues, tables): gets values nobody will change
    PASSES = enum.auto()  # returns its first input as it is: dropped from plans
    SOURCE = enum.auto()  # makes a resource handle (variable, queue, table): evaluated once, when planning
    OF_SHAPES = enum.auto()  # the result depends on the shapes of the inputs alone


VIEW, STATEFUL, READS, WRITES = Trait.VIEW, Trait.STATEFUL, Trait.READS, Trait.WRITES
BLOCKING, RETAINS, SOURCE, OF_SHAPES = Trait.BLOCKING, Trait.RETAINS, Trait.SOURCE, Trait.OF_SHAPES
PASSES = Trait.PASSES | Trait.VIEW


@dataclass
class Planning:
    """The choices a planner has for an op. The methods of `OpDefinition` that fill them in say what each function takes."""

    calls: str = ""  # "once" or "loop": the op's functions are called with its last input (a list)
    keeps: bool = False  # the op's functions are called after it has run, by what it made
    specialize: Callable[[Any], Kernel | None] | None = None  # a quicker kernel for what is known of a node
    in_place: tuple[int, Kernel] | None = None  # the input that is written over, and the kernel that does it
    lower: Callable[..., Any] | None = None  # the op as fused loops
    exchanges: dict[Any, Callable[..., Any]] = field(default_factory=dict)  # by the op that it may come before
    of_numbers: Callable[[Any], bool] | None = None  # whether a node only puts scalars side by side
    device_numbers: frozenset[str] = frozenset()  # `host` inputs that the kernel also takes as tensors of a GPU
    elements: Callable[..., list[Any]] | None = (
        None  # the shapes of the elements of lists, and of what is taken out of them
    )
    batch: tuple[Callable[[Any], Any], Kernel] | None = None  # which nodes can be one call, and the kernel for many
    rows: Callable[[Any, list[Any]], Any] | None = None  # the op over many rows at once, where it is not elementwise
    deals: Kernel | None = None  # several runs of a blocking op that gives something, in one call
    collects: tuple[Callable[[Any], int], Kernel] | None = None  # the same for one that takes something
