"""Planning facets: what a planner may do with an op besides calling its kernel. Declared at definitions, used by `runtime/plan`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, common_shape

Kernel = Callable[..., Any]


class Trait(enum.Flag):
    """Properties of an op that the planner must know."""

    NONE = 0
    VIEW = enum.auto()  # an output may share memory with an input
    STATEFUL = enum.auto()  # not a pure function of its inputs: never folded or merged
    READS = enum.auto()  # reads the variables among its inputs
    WRITES = enum.auto()  # changes the variables among its inputs, in place
    BLOCKING = enum.auto()  # may wait for another run (queues, Python code)
    RETAINS = enum.auto()  # keeps an input beyond the run (queues, tables), so the input must not change
    PASSES = enum.auto()  # returns its first input unchanged: dropped from plans
    SOURCE = enum.auto()  # creates a resource handle (variable, queue, table): evaluated once, when planning
    OF_SHAPES = enum.auto()  # the result depends only on the shapes of the inputs


VIEW, STATEFUL, READS, WRITES = Trait.VIEW, Trait.STATEFUL, Trait.READS, Trait.WRITES
BLOCKING, RETAINS, SOURCE, OF_SHAPES = Trait.BLOCKING, Trait.RETAINS, Trait.SOURCE, Trait.OF_SHAPES
PASSES = Trait.PASSES | Trait.VIEW


@dataclass(frozen=True)
class Prepared:
    """How a step that is recorded on a GPU runs an op whose kernel looks at numbers: the host looks at them before, and the device does the rest.

    `prepare(*inputs named in takes)` checks the numbers and returns `count` tensors. `kernel(*inputs named in keeps, *those
    tensors, **attributes)` must not wait for the device.
    """

    takes: tuple[str, ...]
    prepare: Kernel
    count: int
    keeps: tuple[str, ...]
    kernel: Kernel


class RowsOfProduct(NamedTuple):
    """How a product is computed in parts: `kernel(*factors, begin, end)` returns some of its rows."""

    kernel: Kernel
    rows: int  # of the whole product
    at_once: int  # rows of a part


class Elements(NamedTuple):
    """What a plan knows of the elements of a list: their common shape, and how many there are.

    `shape` is None while nothing was put into the list; the first element determines it.
    """

    shape: Shape | None = UNKNOWN_SHAPE
    count: int | None = None

    def agreed(self, other: Elements) -> Elements:
        """Returns what is true of both lists, and of lists that hold elements of both."""
        if self.shape is None or other.shape is None:
            shape = other.shape if self.shape is None else self.shape
        else:
            shape = common_shape(self.shape, other.shape)
        return Elements(shape, self.count if self.count == other.count else None)


@dataclass
class Planning:
    """The choices a planner has for an op. The methods of `OpDefinition` that fill them in say what each function takes."""

    calls: str = ""  # "once" or "loop": the op's functions are called with its last input (a list)
    chooses: Callable[[Any, Any], Any] | None = None  # the function that is called for a known first input
    switches: bool = False  # only one output has a value; what depends on the others does not run
    keeps: bool = False  # the op's functions are called after it has run, by its result
    specialize: Callable[[Any], Kernel | None] | None = None  # a faster kernel for a specific node
    in_place: tuple[int, Kernel] | None = None  # the input that is overwritten, and the in-place kernel
    takes_over: tuple[int, Kernel] | None = None  # the input whose memory may be kept, and the kernel that keeps it
    lower: Callable[..., Any] | None = None  # the op as fused loops
    small: tuple[str, Callable[[Any], list[int] | None]] | None = None  # the op among small ops, and its numbers
    reads_value: bool = False  # whether the output is the value of the variable that it takes
    stores: str | None = None  # how an update changes each element of its variable: "" (it is replaced), "add" or "sub"
    lowers_large_inputs: bool = False  # whether it fuses with small tensors if only its result is small
    exchanges: dict[Any, Callable[..., Any]] = field(default_factory=dict)  # by the op that it may precede
    is_sum: bool = False  # whether the output is the sum of all inputs
    # Of a specific node whose output is zeros but for one input: the position of that input, and its place in the output. (`known_value` and
    # `shape_of` of the plan say what is known.)
    part: Callable[[Any, Any], tuple[int, Any] | None] | None = None
    vanishes: tuple[int, ...] | None = (
        None  # inputs of which one that is all zeros makes the output zeros; (): it always is
    )
    sums_over_steps: Callable[[Any], Kernel | None] | None = None  # the sum of the results of many iterations of a loop
    equals: Callable[..., Any] | None = None  # other tensors that an output of a specific node equals
    distinct: frozenset[int] = frozenset()  # outputs whose elements are distinct
    of_numbers: Callable[[Any], bool] | None = None  # whether a node only packs scalars
    device_numbers: frozenset[str] = frozenset()  # `host` inputs that the kernel also accepts as GPU tensors
    elements: Callable[..., list[Any]] | None = None  # what is known of lists and their elements
    list_role: str = (
        ""  # what the op does with its first input, a list: "get", "set", "push", "pop", "length"; "reserve" makes one
    )
    adds: int = 0  # 1: the output is x + y; -1: it is x - y
    symmetric: bool = False  # the two inputs may change places
    repeats: Kernel | None = (
        None  # the results of many executions of an op that draws random numbers; only their effect if not `wanted`
    )
    repeated: Any = None  # the definition of `repeats` as an op: its first input is the number of executions
    batch: tuple[Callable[[Any], Any], Kernel] | None = (
        None  # the key of nodes that can be one call, and the kernel for many
    )
    # For a specific node: what computes the rows of its matrix from one number to another, given these after the inputs; None if nothing does.
    rows_of_product: Callable[[Any], Kernel | None] | None = None
    # The gradient of an update that may be the factors of a product, and the kernels for one node and for many, which are then given a
    # RowsOfProduct, or some by the positions of nodes, and apply some rows at a time.
    takes_parts: tuple[int, Kernel, Kernel] | None = None
    together: tuple[Callable[[Any], Any], Kernel] | None = None  # the same for pure ops, which return results
    absorbs: tuple[Callable[..., Any], Callable[..., Kernel]] | None = None  # consumers whose work the op can do
    rows: Callable[[Any, list[Any]], Any] | None = None  # the batched op, if it is not elementwise
    ragged_rows: Callable[[Any, list[Any]], Any] | None = None  # the same for rows of different lengths
    deals: Kernel | None = None  # several runs of a blocking op that produces values, in one call
    collects: tuple[Callable[[Any], int], Callable[[Any, Sequence[Any]], Sequence[Any]], Kernel] | None = (
        None  # the same for a blocking op that consumes values
    )
    reads_variable: bool = False  # the result is the value of a variable
    of_variable_shapes: bool = False  # the result depends only on the shapes of variables
    of_list_sizes: bool = False  # the result depends only on how many elements a list has, and on their shapes
    pads: Kernel | None = None  # the kernel with a first output as long as the input, padded with -1
    padded: Callable[..., list[bool] | None] | None = None  # which outputs are padded if some inputs are
    # A sparse update whose rows are distinct or, to be skipped, out of range: the kernel for one op, and for several at once.
    on_distinct: tuple[Kernel, Kernel] | None = None
    sized_by: tuple[int, ...] | None = None  # inputs whose values alone decide about the sizes that no shapes tell
    # The input that the size of the output depends on, a kernel for that size, and one that takes the size as last input.
    sized: tuple[int, Kernel, Kernel] | None = None
    prepares: Callable[[Any, Callable[[Any], Any]], Prepared | None] | None = (
        None  # for a specific node, and what knows the shapes of its tensors
    )
    # A node's kernel for a GPU (it also takes the `device`). Its state is there, so that a recorded step repeats it.
    on_gpu: Callable[[Any], Kernel | None] | None = None
    on_host: bool = False  # the kernel computes on the host, wherever its inputs are
    # The kernel refuses some data through `device_checks.require`. It may be part of a recorded step.
    refuses: bool = False
    background: tuple[Callable[[Any], Any], Kernel, Kernel] | None = None  # the key, and the two halves of the kernel
