"""One op, one definition: its type, and beside it the functions that say what it does.

    MATMUL = define("MatMul(a: T, b: T) -> (product: T)", T=NUMERIC, transpose_a=False, transpose_b=False)

    @MATMUL.kernel    values in, values out
    @MATMUL.shape     static shapes in, static shapes out
    @MATMUL.grad      the gradient, built from other ops

The signature string is the node's type. Inputs and outputs are `name: type`, where a type is

    T            the dtype that attribute T holds
    float32      a fixed dtype
    N * T        N tensors of dtype T (N is an int attribute, found by counting)
    [Tlist]      one tensor for each dtype in the list attribute Tlist
    Ref(T)       a reference (1.x variables); the kernel receives the variable object
    vector T     an input of that rank; also scalar, matrix, rank=4, rank<2, rank>0: checked wherever the rank is known;
                 vector=2 is a vector of two elements.
                 Where TensorFlow's shape function and kernel differ, what each takes, as in `scalar/single`: behind the slash
                 may also stand any, one (a single element of any rank), single (the same of rank 0 or 1) and flat (elements of
                 any rank, seen as a vector)
    vector* T    short for vector/any
    host T       an index-like input: the kernel receives plain Python numbers (`tensor.tolist()`), computed once
                 when the input is a constant

Keyword arguments are the attributes: a tuple of dtypes (what a type attribute allows), a default value, or an
`AttrSpec` where there is no default to tell the kind (`INT`, `SHAPE`, `STRING`, ...). An integer that TensorFlow holds in 32
bits is `INT32`, or `INT32(0)` with a default.

Calling the definition adds the op to the current graph, or runs it at once in eager mode.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph import guards
from stoker._src.graph.attributes import (  # noqa: F401  (what definitions are spelled with)
    ANY,
    BOOL,
    BOOLS,
    FLOAT,
    FLOATS_LIST,
    FUNC,
    FUNCS,
    INT,
    INT32,
    INT32S,
    INTS,
    SHAPE,
    SHAPES,
    STRING,
    STRINGS,
    TENSOR,
    TYPE,
    TYPES,
    ValueNotAllowedError,
    one_of,
    too_wide,
)
from stoker._src.graph.planning import (  # noqa: F401  (the same)
    BLOCKING,
    OF_SHAPES,
    PASSES,
    READS,
    RETAINS,
    SOURCE,
    STATEFUL,
    VIEW,
    WRITES,
    Kernel,
    Planning,
    Trait,
)
from stoker._src.graph.runtime_hooks import hooks
from stoker._src.graph.shape_rules import all_merged, broadcasting, merged, scalar, unchanged  # noqa: F401  (the same)
from stoker._src.graph.signature import Arg, Signature, read_signature

_MOST_TENSORS = 2**20
Gradient = Callable[..., Any]


@dataclass
class ShapeRule:
    """How an op's static shapes follow from its inputs. Filled in by `OpDefinition.shape` and `late`."""

    function: Callable[..., Any] | None = None
    attrs: tuple[str, ...] = ()  # passed by keyword; `op` is the operation itself
    values: frozenset[str] = frozenset()  # inputs that arrive as values
    as_shapes: frozenset[str] = frozenset()  # inputs that arrive as the shapes they spell
    enforced: bool = False  # also run on the real shapes
    late: bool = False  # shapes that do not fit are an error when the op runs, not when a graph is built


@dataclass(eq=False)
class OpDefinition(Signature):
    """An op's type and the functions registered for it. Made by `define`."""

    traits: Trait = Trait.NONE
    kernel_fn: Kernel | None = None
    kernel_attrs: tuple[str, ...] = ()
    needs_context: bool = False
    shape_rule: ShapeRule = field(default_factory=ShapeRule)
    one_shape: str = ""  # "alike" or "count": the kernel refuses inputs whose shapes, or numbers of elements, differ
    gradient_fn: Gradient | None = None
    differentiable: bool = True
    static_value_fn: Callable[[Any], Any] | None = None
    spelled_shape_fn: Callable[[Any, int], Shape] | None = None
    planning: Planning = field(default_factory=Planning)
    spelling: str = ""  # the signature as it was given to `define`
    # File and line of the `define`, then of its callers, out to the statement of a module that led there.
    places: tuple[tuple[str, int], ...] = ()

    # -- what the op is ------------------------------------------------------------------------------------------

    def kernel(self, function: Kernel) -> Kernel:
        """Registers what the op does with values.

        Inputs arrive in order: torch tensors, NumPy object arrays for strings, plain numbers for `host` inputs, the
        resource object for references and handles, a list for list inputs. Keyword-only parameters are attributes of
        those names; one named `ctx` receives the node's `NodeContext` (its session's resources and its own state).
        Returns one value, or a tuple with one entry for each output (a list for a list output).
        """
        if _accepts_attrs(function):
            names = _keyword_only(function)
            self.needs_context = "ctx" in names
            self.kernel_attrs = tuple(name for name in names if name not in ("ctx", "holding"))
        unknown = [name for name in self.kernel_attrs if name not in self.attrs]
        if unknown:
            raise TypeError(f"{self.name}: the kernel takes {unknown}, which are not attributes of the op")
        self.kernel_fn = self._guarded(function)
        self.planning.specialize = getattr(function, "specialize", self.planning.specialize)
        return function

    def shape(
        self,
        function: Callable[..., Any] | None = None,
        *,
        values: Sequence[str] = (),
        as_shapes: Sequence[str] = (),
        enforced: bool = False,
    ):
        """Registers the static shape rule: input `Shape`s in order, attributes by keyword as the rule names them.

        Inputs named in `values` arrive as a NumPy array when their value is known at construction, else as None;
        those in `as_shapes` (vectors of sizes) as the `Shape` they spell, with what is known of it. A keyword named `op`
        receives the operation itself, for the rare rule that must look at what made its inputs (variable handles).
        An `enforced` rule is also run on the real shapes before the kernel, in eager mode and where they were not known when
        the graph was built: for kernels that would take, or fail in their own way on, shapes that do not fit.
        Returns a Shape, or a tuple with one for each output (a list for a list output).
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for name in (*values, *as_shapes):
                if all(arg.name != name for arg in self.inputs):
                    raise TypeError(f"{self.name} has no input {name!r}")
            self.shape_rule = ShapeRule(
                function,
                _keyword_only(function),
                frozenset(values),
                frozenset(as_shapes),
                enforced=enforced,
                late=self.shape_rule.late,
            )
            return function

        return register if function is None else register(function)

    def late(self) -> OpDefinition:
        """States that a graph in which the inputs' shapes do not fit can be built: as in TensorFlow, running it fails."""
        self.shape_rule.late = True
        return self

    def alike(self, *, by_count: bool = False) -> OpDefinition:
        """States that the inputs have one shape: the shape rule, and kernels registered later, refuse others.

        Without it a kernel written with broadcasting functions would take what TensorFlow does not. With `by_count` the number
        of elements alone matters, when the op runs; the result has the shape of the first input.
        """
        self.one_shape = "count" if by_count else "alike"
        self.shape(unchanged if by_count else merged)
        return self

    def grad(self, function: Gradient) -> Gradient:
        """Registers the gradient: (op, gradient of each output...) -> gradient (or None) of each input."""
        self.gradient_fn = function
        return function

    def not_differentiable(self) -> OpDefinition:
        """States that no gradient flows through the op. (An op with neither facet raises LookupError.)"""
        self.differentiable = False
        return self

    def same_as(self, other: OpDefinition) -> OpDefinition:
        """Registers the kernel and the shape rule of another op: of the one that bears today's name of this op."""
        assert other.kernel_fn is not None
        self.kernel(other.kernel_fn)
        self.shape_rule = replace(other.shape_rule)
        return self

    def static_value(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Registers what is known of a node's result before anything runs, where the kernel on known inputs does not tell.

        `function(op)` returns an array (or None), or for an op of several outputs a list of them.
        """
        self.static_value_fn = function
        return function

    def spelled_shape(self, function: Callable[[Any, int], Shape]) -> Callable[[Any, int], Shape]:
        """Registers the shape that a vector of sizes spells: `function(op, index of the output)`, with what is known of it."""
        self.spelled_shape_fn = function
        return function

    # -- what a planner may do with it ---------------------------------------------------------------------------

    def calling(self, how: str) -> OpDefinition:
        """States that the op calls the functions among its attributes with its last input, "once" or as a "loop".

        The kernel receives each function as `f(holding, *values) -> tuple of values`, and `holding` by keyword.
        """
        self.planning.calls = how
        return self

    def keeping(self) -> OpDefinition:
        """States that what the op makes calls the functions among its attributes, after the run and from any thread.

        The kernel receives each as a `KeptFunction`: `f.bind(captured)` gives `call(*values) -> tuple of values`, where the
        function's inputs are the values and then what it captured.
        """
        self.planning.keeps = True
        return self

    def specialize(self, function: Callable[[Any], Kernel | None]) -> Callable[[Any], Kernel | None]:
        """Registers a choice made once for each node, when planning: a quicker kernel for what is known of it, or None.

        The kernel it returns takes the inputs alone: attributes are known to `function(op)`, which has chosen by them.
        """
        self.planning.specialize = function
        return function

    def in_place(self, position: int, kernel: Kernel) -> OpDefinition:
        """Registers a kernel that may write its result over input `position`.

        The planner uses it where that input is a fresh value nobody else needs, and passes the inputs alone. Of a list of inputs
        it is the first that may be written over; the planner may exchange it with the second.
        """
        self.planning.in_place = position, self._guarded(kernel)
        return self

    def of_numbers(self, predicate: Callable[[Any], bool]) -> OpDefinition:
        """Registers for which nodes the output is the vector of the inputs: who wants plain numbers is given theirs, without a tensor."""
        self.planning.of_numbers = predicate
        return self

    def lower(self, function: Callable[..., Any]) -> OpDefinition:
        """Registers how the op runs in fused loops (runtime/plan/fused_loops.py): `function(build, op, inputs...)` adds loops to `build`.

        Float32 and boolean inputs arrive as buffers (of 1 and 0 for booleans). Other inputs are constants and arrive as plain numbers. The function returns the buffer
        of the result, a list of buffers for several results, or None if this node cannot be fused.
        """
        self.planning.lower = function
        return self

    def elements(self, function: Callable[..., list[Any]]) -> OpDefinition:
        """Registers what an op on lists says of the shapes of elements: `function(op, shape_of, elements_of)`.

        Returns a shape for each output: that of all elements of a list that the op makes (None for an empty list), or that of a tensor.
        `elements_of(tensor)` tells the same of the lists among the inputs.
        """
        self.planning.elements = function
        return self

    def exchange(self, maker: OpDefinition) -> Callable[[Kernel], Kernel]:
        """Registers when this op may come before `maker`, whose result is its first input, instead of after it.

        `rule(op, made_by)` returns which inputs of the maker this op takes then, instead of its own: its result replaces the
        first of them. None where the result would not be the same.
        """

        def register(rule: Kernel) -> Kernel:
            self.planning.exchanges[maker] = rule
            return rule

        return register

    def batch(self, key: Callable[[Any], Any]) -> Callable[[Kernel], Kernel]:
        """Registers a kernel for many nodes of this op at once, as optimizer updates are.

        Nodes of one run with an equal `key(op)` that do not depend on each other become one call; the kernel receives
        a list in place of each input, and `host` inputs and attributes (which the key must make equal) as the plain
        kernel does.
        """

        def register(function: Kernel) -> Kernel:
            self.planning.batch = key, function
            return function

        return register

    def rows(self, rule: Callable[[Any, list[Any]], Any]) -> Callable[[Any, list[Any]], Any]:
        """Registers how the op is done for many rows at once (ops/support/rows.py): `rule(op, inputs)` gives the outputs.

        Needed for ops that are not elementwise; what an elementwise op does with rows follows from its shape rule.
        """
        self.planning.rows = rule
        return rule

    def deals(self, kernel: Kernel) -> Kernel:
        """Registers a kernel that does several runs of a blocking op that gives something (a read, a dequeue).

        It takes the op's inputs and how many runs at most. It waits as one run does, then does as many as it can without
        waiting again, and returns the op's outputs, each with a dimension for the runs in front.
        """
        self.planning.deals = kernel
        return kernel

    def collects(self, room: Callable[[Any], int]) -> Callable[[Kernel], Kernel]:
        """Registers a kernel that does several runs of a blocking op that takes something (an enqueue).

        It takes the op's first input and a list of the others, each with a dimension for the runs in front. `room`, of the
        first input alone, tells how many runs it could do without waiting.
        """

        def register(kernel: Kernel) -> Kernel:
            self.planning.collects = room, kernel
            return kernel

        return register

    # -- using it ------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> Any:
        return hooks.apply(self, args, kwargs, name)

    def _guarded(self, kernel: Kernel) -> Kernel:
        if any(arg.reform for arg in self.inputs):
            return guards.reforming(self.inputs, kernel)
        if self.one_shape:
            return guards.same_shapes(self.name, kernel, by_count=self.one_shape == "count")
        return kernel

    @functools.cached_property
    def rank_checking_kernel(self) -> Kernel:
        """The kernel for nodes whose inputs' ranks are not known before they run."""
        assert self.kernel_fn is not None
        return guards.checking_ranks(self.inputs, self.kernel_fn)

    def check_attr(self, name: str, value: Any) -> Any:
        """`value` as the canonical value of attribute `name`.

        Raises:
            TypeError: a value of the wrong kind.
            ValueError: a value outside what the definition allows.
        """
        spec = self.attrs[name]
        checked = spec.check(self.name, name, value)
        # What the shape rule looks at is found too large while a graph is built, the rest by the kernel.
        seen = spec.int32 and not spec.wide_in_shape and name in self.shape_rule.attrs
        if seen and (number := too_wide(checked)) is not None:
            raise ValueNotAllowedError(f"Attr {name} has value {number} out of range for an int32 ({self.name} Op)")
        if spec.kind == "int" and checked > _MOST_TENSORS and any(arg.number_attr == name for arg in self.outputs):
            raise ValueError(f"Number of outputs is too big: {checked} ({self.name} Op, attr '{name}')")
        return checked

    def check_narrow(self, attrs: dict[str, Any]) -> None:
        """Raises InvalidArgumentError for attributes that are too large for the kernel."""
        for name in self.narrow:
            if (number := too_wide(attrs[name])) is not None:
                raise InvalidArgumentError(
                    None, None, f"Attr {name} has value {number} out of range for an int32 ({self.name} Op)"
                )

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def _keyword_only(function: Callable[..., Any]) -> tuple[str, ...]:
    """The keyword-only parameters of a Python function, of the innermost one where it is wrapped."""
    innermost = inspect.unwrap(function, stop=lambda each: hasattr(each, "__signature__"))
    if hasattr(innermost, "__signature__"):  # made by a factory, which states what it takes
        parameters = inspect.signature(innermost).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)
    code = getattr(innermost, "__code__", None)
    if code is None:  # a torch builtin, which takes no attributes
        return ()
    return code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]


def _accepts_attrs(function: Kernel) -> bool:
    """Python functions declare attributes as keyword-only parameters; torch builtins' keywords are not ours."""
    return inspect.isfunction(function) and not (function.__module__ or "").startswith("torch")


# -- registry ----------------------------------------------------------------------------------------------------

_REGISTRY: dict[str, OpDefinition] = {}


def define(signature: str, traits: Trait = Trait.NONE, /, **attrs: Any) -> OpDefinition:
    """Defines an op (see the module's description) and registers it under its name."""
    definition = _registered(OpDefinition(*read_signature(signature, attrs), traits))
    definition.spelling, definition.places = " ".join(signature.split()), _places()
    return definition


def _places() -> tuple[tuple[str, int], ...]:
    """File and line of who called the function that asks, out to the module whose statement led there."""
    frame, found = sys._getframe(2), []
    while frame is not None:
        found.append((frame.f_code.co_filename, frame.f_lineno))
        if frame.f_code.co_name == "<module>":
            break
        frame = frame.f_back
    return tuple(found)


def with_references(definition: OpDefinition, name: str) -> OpDefinition:
    """Defines the oldest form of an op on resources, `name`, whose handles are references of strings."""

    def older(arg: Arg) -> Arg:
        return replace(arg, dtype=dtypes.string, is_ref=True) if arg.dtype is dtypes.resource else arg

    inputs, outputs = (tuple(map(older, args)) for args in (definition.inputs, definition.outputs))
    _, parenthesis, arguments = definition.spelling.partition("(")
    older_form = _registered(
        replace(definition, name=name, inputs=inputs, outputs=outputs, planning=replace(definition.planning))
    )
    older_form.spelling = name + parenthesis + re.sub(r"\bresource\b", "Ref(string)", arguments)
    older_form.places = _places()
    return older_form


def _registered(definition: OpDefinition) -> OpDefinition:
    if definition.name in _REGISTRY:
        raise ValueError(f"{definition.name} is defined twice")
    _REGISTRY[definition.name] = definition
    return definition


def find_definition(name: str) -> OpDefinition | None:
    return _REGISTRY.get(name)


def all_definitions() -> dict[str, OpDefinition]:
    """Every op, by name."""
    return dict(_REGISTRY)
