"""The definition of an op: its type, and the functions that implement it.

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
                 If TensorFlow's shape function and kernel differ, both are given, as in `scalar/single`. The part
                 after the slash may also be any, one (a single element of any rank), single (the same of rank 0 or 1) or flat
                 (elements of any rank, as a vector)
    vector* T    short for vector/any
    host T       an index-like input: the kernel receives plain Python numbers (`tensor.tolist()`), computed once
                 when the input is a constant

Keyword arguments are the attributes: a tuple of dtypes (the ones that a type attribute allows), a default value, or an
`AttrSpec` if there is no default (`INT`, `SHAPE`, `STRING`, ...). An integer that TensorFlow stores in 32
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
    """How an op's static output shapes follow from its inputs. Filled in by `OpDefinition.shape` and `late`."""

    function: Callable[..., Any] | None = None
    attrs: tuple[str, ...] = ()  # passed by keyword; `op` is the operation itself
    values: frozenset[str] = frozenset()  # inputs that are passed as values
    as_shapes: frozenset[str] = frozenset()  # size vectors that are passed as shapes
    enforced: bool = False  # also checked on the actual shapes
    late: bool = False  # incompatible shapes are an error at run time, not at graph construction


@dataclass(eq=False)
class OpDefinition(Signature):
    """An op's type and the functions registered for it. Created by `define`."""

    traits: Trait = Trait.NONE
    kernel_fn: Kernel | None = None
    kernel_attrs: tuple[str, ...] = ()
    needs_context: bool = False
    shape_rule: ShapeRule = field(default_factory=ShapeRule)
    one_shape: str = ""  # "alike" or "count": the kernel refuses inputs whose shapes, or element counts, differ
    gradient_fn: Gradient | None = None
    differentiable: bool = True
    static_value_fn: Callable[[Any], Any] | None = None
    spelled_shape_fn: Callable[[Any, int, Any], Shape] | None = None
    planning: Planning = field(default_factory=Planning)
    spelling: str = ""  # the signature as it was given to `define`
    # File and line of the `define`, then of its callers, out to the statement of a module that led there.
    places: tuple[tuple[str, int], ...] = ()
    known_calls: dict[Any, Any] = field(init=False, default_factory=dict)  # eager calls that were checked before

    # -- what the op is ------------------------------------------------------------------------------------------

    def kernel(self, function: Kernel) -> Kernel:
        """Registers the kernel, which computes values.

        Inputs arrive in order: torch tensors, NumPy object arrays for strings, Python numbers for `host` inputs, the
        resource object for references and handles, and a list for list inputs. Keyword-only parameters are attributes of
        those names. One named `ctx` receives the node's `NodeContext` (its session's resources and its own state).
        The kernel returns one value, or a tuple with one entry for each output (a list for a list output).
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
        """Registers the static shape rule. It takes the input `Shape`s in order, and attributes by keyword.

        Inputs named in `values` arrive as a NumPy array if their value is statically known, else as None. Those in
        `as_shapes` (size vectors) arrive as a `Shape` with the known sizes. A keyword named `op`
        receives the operation itself, for the rare rule that must inspect the producers of its inputs (variable handles).
        An `enforced` rule also runs on the actual shapes before the kernel, in eager mode and if they were not statically known.
        It is for kernels that would accept incompatible shapes or fail with an unclear error.
        The rule returns a Shape, or a tuple with one for each output (a list for a list output).
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
        """Declares that incompatible input shapes are reported at run time and not at graph construction, as in TensorFlow."""
        self.shape_rule.late = True
        return self

    def alike(self, *, by_count: bool = False) -> OpDefinition:
        """Declares that all inputs must have the same shape. The shape rule, and kernels registered later, check it.

        Otherwise a kernel with broadcasting would accept inputs that TensorFlow refuses. With `by_count`, only the number
        of elements is compared, at run time, and the result has the shape of the first input.
        """
        self.one_shape = "count" if by_count else "alike"
        self.shape(unchanged if by_count else merged)
        return self

    def grad(self, function: Gradient) -> Gradient:
        """Registers the gradient: (op, gradient of each output...) -> gradient (or None) of each input."""
        self.gradient_fn = function
        return function

    def not_differentiable(self) -> OpDefinition:
        """Declares that the op has no gradient. (An op with neither facet raises LookupError.)"""
        self.differentiable = False
        return self

    def same_as(self, other: OpDefinition) -> OpDefinition:
        """Registers the kernel and the shape rule of another op, of which this op is an older name."""
        assert other.kernel_fn is not None
        self.kernel(other.kernel_fn)
        self.shape_rule = replace(other.shape_rule)
        return self

    def static_value(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Registers the static value of a node, if it cannot be found by running the kernel on static inputs.

        `function(op)` returns an array or None; for an op with several outputs, a list of them.
        """
        self.static_value_fn = function
        return function

    def spelled_shape(self, function: Callable[[Any, int, Any], Shape]) -> Callable[[Any, int, Any], Shape]:
        """Registers the shape denoted by an output that is a size vector: `function(op, index of the output, sight)`.

        The `Sight` (graph/static_values.py) says what is known of the inputs.
        """
        self.spelled_shape_fn = function
        return function

    # -- what a planner may do with it ---------------------------------------------------------------------------

    def calling(self, how: str) -> OpDefinition:
        """Declares that the op calls the functions among its attributes with its last input, "once" or as a "loop".

        The kernel receives each function as `f(holding, *values) -> tuple of values`, and `holding` by keyword.
        """
        self.planning.calls = how
        return self

    def choosing(self, function: Callable[[Any, Any], Any]) -> OpDefinition:
        """Registers which of its functions the op calls: `function(op, first input) -> the attribute's FunctionRef`."""
        self.planning.chooses = function
        return self

    def switching(self) -> OpDefinition:
        """Declares that only one output has a value. The kernel gives DEAD for the others, and no op that depends on those runs."""
        self.planning.switches = True
        return self

    def keeping(self) -> OpDefinition:
        """Declares that the op's result calls the functions among its attributes, after the run and from any thread.

        The kernel receives each as a `KeptFunction`: `f.bind(captured)` returns `call(*values) -> tuple of values`. The
        function's inputs are the values, followed by the captures.
        """
        self.planning.keeps = True
        return self

    def specialize(self, function: Callable[[Any], Kernel | None]) -> Callable[[Any], Kernel | None]:
        """Registers a function that chooses a faster kernel for a node at planning time, or returns None.

        The returned kernel takes only the inputs, because `function(op)` has already used the attributes.
        """
        self.planning.specialize = function
        return function

    def in_place(self, position: int, kernel: Kernel) -> OpDefinition:
        """Registers a kernel that may write its result over input `position`.

        The planner uses it if that input is a fresh value with no other use, and passes only the inputs. For a list input,
        the first element may be overwritten; the planner may swap it with the second.
        """
        self.planning.in_place = position, self._guarded(kernel)
        return self

    def taking_over(self, position: int, kernel: Kernel) -> OpDefinition:
        """Registers a kernel that may keep the memory of input `position` as a variable's value instead of a copy.

        The planner uses it if that input is a large fresh value with no other use.
        """
        self.planning.takes_over = position, self._guarded(kernel)
        return self

    def of_numbers(self, predicate: Callable[[Any], bool]) -> OpDefinition:
        """Registers for which nodes the output is just the vector of the inputs. Consumers of plain numbers then skip the tensor."""
        self.planning.of_numbers = predicate
        return self

    def lower(self, function: Callable[..., Any]) -> OpDefinition:
        """Registers how the op runs in fused loops (runtime/plan/fused_loops.py): `function(build, op, inputs...)` adds loops to `build`.

        Inputs of float32, booleans (as 1 and 0) and integers of 32 and 64 bits arrive as buffers. `host` inputs are constants and arrive as
        plain numbers. The function returns the buffer of the result, a list of buffers, or None if this node cannot be fused.
        """
        self.planning.lower = function
        return self

    def small(self, name: str, numbers: Callable[[Any], list[int] | None] = lambda op: []) -> OpDefinition:
        """Registers how the op runs among small ops (runtime/native/small_ops.c): its name there.

        `numbers(op)` returns what the loop has to know of a node's attributes, or None if this node has no such loop.
        """
        self.planning.small = name, numbers
        return self

    def storing(self, how: str = "") -> OpDefinition:
        """States that the op replaces the elements of the variable that it takes by those of its second input, or changes them by a native loop."""
        self.planning.stores = how
        return self

    def vanishing(self, *inputs: int) -> OpDefinition:
        """States that the output is all zeros if one of these inputs is; without inputs, that it always is.

        Plans leave such ops out where the zeros are known when planning, as in second derivatives. An infinity or NaN that would have
        been multiplied by zero has no effect then.
        """
        self.planning.vanishes = inputs
        return self

    def elements(self, function: Callable[..., list[Any]]) -> OpDefinition:
        """Registers what is known of the lists and tensors that an op on lists returns: `function(op, plan)`.

        It returns `Elements` for an output that is a list, and a shape for one that is a tensor. `plan.shape_of(tensor)` returns the shape of an
        input, `plan.elements_of(tensor)` the `Elements` of a list, and `plan.known_value(tensor)` the value of a constant (else None).
        """
        self.planning.elements = function
        return self

    def exchange(self, maker: OpDefinition) -> Callable[[Kernel], Kernel]:
        """Registers when this op may run before `maker`, which produces its first input, instead of after it.

        `rule(op, made_by)` returns which inputs of the maker this op then takes instead of its own. Its result replaces the
        first of them. The rule returns None if the result would differ.
        """

        def register(rule: Kernel) -> Kernel:
            self.planning.exchanges[maker] = rule
            return rule

        return register

    def sums_over_steps(self, rule: Callable[[Any], Kernel | None]) -> Callable[[Any], Kernel | None]:
        """Registers how the sum of this op's results over the iterations of a loop is computed at once, after the loop.

        `rule(op)` returns a kernel, or None if there is none for this node. The kernel takes one list for each input, with the
        input's value of every iteration.
        """
        self.planning.sums_over_steps = rule
        return rule

    def equals(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Registers which outputs of a node equal other tensors, so that the node need not run for them.

        `rule(op, plan)` returns a list with a tensor or None for each output, or None if no output equals another tensor.
        `plan.made_by(tensor)` is the tensor that an op computes, where identities are skipped, or None if the tensor is fed.
        `plan.known_value(tensor)` is the value of a tensor that is constant in this plan, or None.
        """
        self.planning.equals = rule
        return rule

    def absorbs(
        self, rule: Callable[[Any, int, Any, list[Any]], Any], make: Callable[[Any, list[Any]], Kernel]
    ) -> OpDefinition:
        """Registers which consumers of its outputs this op can stand in for.

        `rule(op, index, consumer, numbers)` returns a description of what the consumer computes from output `index` (equal descriptions mean
        equal results), or None. `numbers` are the consumer's other inputs. `make(op, wanted)` returns a kernel with the op's inputs and
        attributes, which returns a list with what is wanted: the index of an output, or a description.
        """
        self.planning.absorbs = rule, make
        return self

    def together(self, key: Callable[[Any], Any]) -> Callable[[Kernel], Kernel]:
        """Registers a kernel for many independent nodes of this pure op at once, such as the lookups of many columns.

        Nodes with equal `key(op)` can be one call; a key of None keeps a node alone. The kernel `function(rows, attributes)` receives the
        inputs and the attributes of each node, and returns a list of the outputs of all, or None if the nodes must run one by one.
        """

        def register(function: Kernel) -> Kernel:
            self.planning.together = key, function
            return function

        return register

    def batch(self, key: Callable[[Any], Any]) -> Callable[[Kernel], Kernel]:
        """Registers a kernel for many nodes of this op at once, such as optimizer updates.

        Independent nodes of one run with equal `key(op)` become one call. The kernel receives a list for each input.
        `host` inputs and attributes, which the key must make equal, arrive as in the plain kernel. An error that the kernel raises may have
        an attribute `member`: the position of the node that failed.
        """

        def register(function: Kernel) -> Kernel:
            self.planning.batch = key, function
            return function

        return register

    def background(self, key: Callable[[Any], Any], begin: Kernel, finish: Kernel) -> OpDefinition:
        """Registers the two halves of a kernel that waits for other processes, so that a step can go on in between.

        `begin(inputs, **attributes)` starts several nodes of equal `key(op)` and returns at once; `inputs` are their first inputs.
        `finish(started)` waits, and returns a tuple with the output of each node.
        """
        self.planning.background = key, begin, finish
        return self

    def rows(self, rule: Callable[[Any, list[Any]], Any]) -> Callable[[Any, list[Any]], Any]:
        """Registers how the op is batched (ops/support/rows.py): `rule(op, inputs)` returns the outputs.

        Only ops that are not elementwise need it; for elementwise ops it follows from the shape rule.
        """
        self.planning.rows = rule
        return rule

    def ragged_rows(self, rule: Callable[[Any, list[Any]], Any]) -> Callable[[Any, list[Any]], Any]:
        """Registers how the op is batched if rows of an input differ in length; `rule(op, inputs)` is as for `rows`."""
        self.planning.ragged_rows = rule
        return rule

    def deals(self, kernel: Kernel) -> Kernel:
        """Registers a kernel that performs several runs of a blocking op that produces values (a read, a dequeue).

        It takes the op's inputs and the maximum number of runs. It waits like one run, then performs as many as possible
        without waiting again. It returns the op's outputs with a leading dimension for the runs.
        """
        self.planning.deals = kernel
        return kernel

    def collects(
        self, room: Callable[[Any], int], fitted: Callable[[Any, Sequence[Any]], Sequence[Any]]
    ) -> Callable[[Kernel], Kernel]:
        """Registers a kernel that performs several runs of a blocking op that consumes values (an enqueue).

        It takes the op's first input and a list of the others, each with a leading dimension for the runs. `room`, a function of
        the first input, returns how many runs are possible without waiting. `fitted` takes the first input and what the kernel is to get,
        where some of the others may be rows of different lengths, and returns it in the form that the kernel takes, or raises an error.
        """

        def register(kernel: Kernel) -> Kernel:
            self.planning.collects = room, fitted, kernel
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
        """The kernel for nodes whose input ranks are not statically known."""
        assert self.kernel_fn is not None
        return guards.checking_ranks(self.inputs, self.kernel_fn)

    def check_attr(self, name: str, value: Any) -> Any:
        """Converts `value` to the canonical value of attribute `name`.

        Raises:
            TypeError: the value is of the wrong kind.
            ValueError: the value is not allowed.
        """
        spec = self.attrs[name]
        checked = spec.check(self.name, name, value)
        # Attributes that the shape rule uses are checked at graph construction, the others by the kernel.
        seen = spec.int32 and not spec.wide_in_shape and name in self.shape_rule.attrs
        if seen and (number := too_wide(checked)) is not None:
            raise ValueNotAllowedError(f"Attr {name} has value {number} out of range for an int32 ({self.name} Op)")
        if spec.kind == "int" and checked > _MOST_TENSORS and any(arg.number_attr == name for arg in self.outputs):
            raise ValueError(f"Number of outputs is too big: {checked} ({self.name} Op, attr '{name}')")
        return checked

    def check_narrow(self, attrs: dict[str, Any]) -> None:
        """Raises InvalidArgumentError if an attribute is too large for the kernel."""
        for name in self.narrow:
            if (number := too_wide(attrs[name])) is not None:
                raise InvalidArgumentError(
                    None, None, f"Attr {name} has value {number} out of range for an int32 ({self.name} Op)"
                )

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def _keyword_only(function: Callable[..., Any]) -> tuple[str, ...]:
    """The keyword-only parameters of a Python function; of the innermost one if it is wrapped."""
    innermost = inspect.unwrap(function, stop=lambda each: hasattr(each, "__signature__"))
    if hasattr(innermost, "__signature__"):  # created by a factory, which declares its parameters
        parameters = inspect.signature(innermost).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)
    code = getattr(innermost, "__code__", None)
    if code is None:  # a torch builtin, which has no attributes
        return ()
    return code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]


def _accepts_attrs(function: Kernel) -> bool:
    """Whether a function declares attributes as keyword-only parameters. The keywords of torch builtins do not count."""
    return inspect.isfunction(function) and not (function.__module__ or "").startswith("torch")


# -- registry ----------------------------------------------------------------------------------------------------

_REGISTRY: dict[str, OpDefinition] = {}


def define(signature: str, traits: Trait = Trait.NONE, /, **attrs: Any) -> OpDefinition:
    """Defines an op (see the module's docstring) and registers it under its name."""
    definition = _registered(OpDefinition(*read_signature(signature, attrs), traits))
    definition.spelling, definition.places = " ".join(signature.split()), _places()
    return definition


def unregistered(signature: str, traits: Trait = Trait.NONE, /, **attrs: Any) -> OpDefinition:
    """Defines an op that only rewritten graphs contain. It cannot be found by its name, so no file and no program mentions it."""
    definition = OpDefinition(*read_signature(signature, attrs), traits)
    definition.spelling, definition.places = " ".join(signature.split()), _places()
    return definition


def _places() -> tuple[tuple[str, int], ...]:
    """File and line of the callers, from the innermost to the module statement."""
    frame, found = sys._getframe(2), []
    while frame is not None:
        found.append((frame.f_code.co_filename, frame.f_lineno))
        if frame.f_code.co_name == "<module>":
            break
        frame = frame.f_back
    return tuple(found)


def with_references(definition: OpDefinition, name: str) -> OpDefinition:
    """Defines the oldest form of an op on resources, `name`, whose handles are references to strings."""

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
