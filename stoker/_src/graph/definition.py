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
`AttrSpec` where there is no default to tell the kind (`INT`, `SHAPE`, `STRING`, ...).

Calling the definition adds the op to the current graph, or runs it at once in eager mode.
"""

from __future__ import annotations

import enum
import functools
import inspect
import math
import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, DTypeSet, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape, as_shape
from stoker._src.base.shapes import broadcast as broadcast_shapes
from stoker._src.graph.op_arguments import Arg, host_rank, read_arguments, reformed

MISSING: Any = object()


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


VIEW, STATEFUL, READS, WRITES = Trait.VIEW, Trait.STATEFUL, Trait.READS, Trait.WRITES
BLOCKING, RETAINS, SOURCE = Trait.BLOCKING, Trait.RETAINS, Trait.SOURCE
PASSES = Trait.PASSES | Trait.VIEW


@dataclass(frozen=True)
class AttrSpec:
    """The kind of an attribute, what it may be, and its default (MISSING when it must be given).

    Kinds are GraphDef's: int, float, bool, string, type, shape, tensor, func and list(...) of them.
    """

    kind: str
    default: Any = MISSING
    allowed: tuple[Any, ...] = ()
    minimum: int | None = None

    def __call__(self, default: Any = MISSING, *, allowed: Sequence[Any] = (), minimum: int | None = None) -> AttrSpec:
        return replace(self, default=default, allowed=tuple(allowed), minimum=minimum)


INT, FLOAT, BOOL, STRING = AttrSpec("int"), AttrSpec("float"), AttrSpec("bool"), AttrSpec("string")
TYPE, SHAPE, TENSOR, FUNC = AttrSpec("type"), AttrSpec("shape"), AttrSpec("tensor"), AttrSpec("func")
INTS, FLOATS_LIST, BOOLS, STRINGS = (AttrSpec(f"list({kind})") for kind in ("int", "float", "bool", "string"))
TYPES, SHAPES, FUNCS = (AttrSpec(f"list({kind})") for kind in ("type", "shape", "func"))
ANY: tuple[DType, ...] = ()


def one_of(*dtypes: DType, default: DType | None = None) -> DTypeSet:
    """A type attribute that allows `dtypes`, with a default."""
    return DTypeSet(dtypes, default)


def _attr_spec(value: Any) -> AttrSpec:
    if isinstance(value, AttrSpec):
        return value
    if isinstance(value, DTypeSet):
        return AttrSpec("type", MISSING if value.default is None else value.default, tuple(value))
    if isinstance(value, tuple):
        return AttrSpec("type", MISSING, value)
    if isinstance(value, DType):
        return AttrSpec("type", value)
    for kind, types in (("bool", bool), ("int", int), ("float", float), ("string", (str, bytes)), ("shape", Shape)):
        if isinstance(value, types):
            return AttrSpec(kind, value)
    raise TypeError(f"{value!r} does not tell the kind of an attribute; use INT, SHAPE, INTS, ...")


class _OutOfRangeError(ValueError):
    """An integer that 64 bits do not hold."""


def _as_int(value: Any) -> int:
    """Any number: what follows the point is dropped, as TensorFlow does."""
    if isinstance(value, (str, bytes)) or getattr(value, "ndim", 0):
        raise TypeError
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise _OutOfRangeError(f"Value out of range: {number}")
    return number


def _as_float(value: Any) -> float:
    """Float attributes are single precision, in files and in TensorFlow's kernels of every dtype."""
    if not isinstance(value, (int, float, np.generic)):
        raise TypeError
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _as_bool(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _as_text(value: Any) -> str | bytes:
    """Attribute strings are text inside the program; bytes that are not UTF-8 stay bytes."""
    if isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        raise TypeError
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


_SIMPLE_KINDS: dict[str, Callable[[Any], Any]] = {
    "int": _as_int,
    "float": _as_float,
    "bool": _as_bool,
    "string": _as_text,
}
_OTHER_KINDS: dict[str, Callable[[Any], Any]] = {"type": as_dtype, "shape": as_shape}


_MOST_TENSORS = 2**20
# Integer attributes that TensorFlow's kernels hold in 32 bits.
_INT32_ATTRS = frozenset(
    (
        "axis", "beam_width", "begin_mask", "blank_index", "block_size", "channels", "dct_coefficient_count", "depth_radius",
        "desired_channels", "desired_samples", "dilations", "ellipsis_mask", "end_mask", "filterbank_channel_count", "k",
        "ksize", "ksizes", "maxsplit", "new_axis_mask", "num_elements", "num_sampled", "num_true", "pad_width", "precision", "quality", "rates", "ratio",
        "shrink_axis_mask", "skip_header_lines", "stride", "strides", "summarize", "width", "window_size", "x_density", "y_density",
    )
)  # fmt: skip
# Of these, the ones that its shape functions take in full.
_WIDE_IN_SHAPES = frozenset(("num_sampled", "num_true"))
_SIGNATURE = re.compile(r"\s*(\w+)\s*\((.*)\)\s*->\s*\((.*)\)\s*", re.DOTALL)
Kernel = Callable[..., Any]
ShapeRule = Callable[..., Any]
Gradient = Callable[..., Any]


class DTypeNotAllowedError(TypeError):
    """A dtype that an op does not take: in eager mode an InvalidArgumentError."""


class ValueNotAllowedError(ValueError):
    """A value that an attribute does not take: in eager mode an InvalidArgumentError."""


@dataclass(eq=False)
class OpDefinition:
    """An op's type and the functions registered for it. Made by `define`."""

    name: str
    inputs: tuple[Arg, ...]
    outputs: tuple[Arg, ...]
    attrs: dict[str, AttrSpec]
    traits: Trait = Trait.NONE
    kernel_fn: Kernel | None = None
    kernel_attrs: tuple[str, ...] = ()
    needs_context: bool = False
    calls: str = ""  # "once" or "loop": the op's functions are called with its last input (a list)
    keeps: bool = False  # the op's functions are called after it has run, by what it made
    derives: Callable[[Any], Any] | None = None  # what is called, from the function that the attribute names
    shape_fn: ShapeRule | None = None
    shape_attrs: tuple[str, ...] = ()
    value_inputs: frozenset[str] = frozenset()
    shape_inputs: frozenset[str] = frozenset()
    gradient_fn: Gradient | None = None
    differentiable: bool = True
    specialize_fn: Callable[[Any], Kernel | None] | None = None
    in_place_fn: Kernel | None = None
    in_place_position: int = 0
    lower_fn: Callable[..., Any] | None = None
    exchanges: dict[OpDefinition, Callable[..., Any]] = field(default_factory=dict)
    numbers_fn: Callable[[Any], Sequence[Any] | None] | None = None
    of_shapes: bool = False  # the result depends on the shapes of the inputs alone
    device_numbers: frozenset[str] = frozenset()  # `host` inputs that the kernel also takes as tensors of a GPU
    batch_fn: Kernel | None = None
    batch_key: Callable[..., Any] | None = None
    plain: bool = field(default=False)  # every input is a single tensor: no grouping needed
    single: bool = field(default=False)  # exactly one output tensor
    by_reference: bool = field(default=False)  # some input is a reference to a variable
    ranked: bool = field(default=False)  # some input must have a certain rank
    enforced: bool = False  # the shape rule is run on the real shapes, too
    is_late: bool = False  # shapes that do not fit are an error when the op runs, not when a graph is built
    one_shape: bool = field(default=False)  # all inputs have the same shape
    one_count: bool = False  # or at least as many elements

    def __post_init__(self) -> None:
        self.plain = not any(arg.is_list for arg in self.inputs)
        self.single = len(self.outputs) == 1 and not self.outputs[0].is_list
        self.by_reference = any(arg.is_ref for arg in self.inputs)
        self.measured = any(arg.length is not None for arg in self.inputs)
        self.ranked = any(arg.ranks is not None or arg.run_ranks is not None for arg in self.inputs)
        # Attributes that inputs determine are never passed by name.
        self.inferred = frozenset(
            attr for arg in self.inputs for attr in (arg.type_attr, arg.number_attr, arg.list_attr) if attr is not None
        )

    @functools.cached_property
    def result_type(self) -> Any:
        """The named tuple of an op with several outputs, made when it is first called."""
        return namedtuple(self.name, [arg.name for arg in self.outputs])

    # -- facets --------------------------------------------------------------------------------------------------

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
        self.specialize_fn = getattr(function, "specialize", self.specialize_fn)
        return function

    def shape(
        self,
        function: ShapeRule | None = None,
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

        def register(function: ShapeRule) -> ShapeRule:
            self.shape_attrs = _keyword_only(function)
            for name in (*values, *as_shapes):
                if all(arg.name != name for arg in self.inputs):
                    raise TypeError(f"{self.name} has no input {name!r}")
            self.value_inputs, self.shape_inputs = frozenset(values), frozenset(as_shapes)
            self.shape_fn, self.enforced = function, enforced
            return function

        return register if function is None else register(function)

    def grad(self, function: Gradient) -> Gradient:
        """Registers the gradient: (op, gradient of each output...) -> gradient (or None) of each input."""
        self.gradient_fn = function
        return function

    def not_differentiable(self) -> OpDefinition:
        """States that no gradient flows through the op. (An op with neither facet raises LookupError.)"""
        self.differentiable = False
        return self

    def calling(self, how: str, derives: Callable[[Any], Any] | None = None) -> OpDefinition:
        """States that the op calls the functions among its attributes with its last input, "once" or as a "loop".

        The kernel receives each function as `f(holding, *values) -> tuple of values`, and `holding` by keyword. With
        `derives`, not the function that a GraphDef names is called, but what that makes of it.
        """
        self.calls, self.derives = how, derives
        return self

    def keeping(self) -> OpDefinition:
        """States that what the op makes calls the functions among its attributes, after the run and from any thread.

        The kernel receives each as a `KeptFunction`: `f.bind(captured)` gives `call(*values) -> tuple of values`, where the
        function's inputs are the values and then what it captured.
        """
        self.keeps = True
        return self

    def specialize(self, function: Callable[[Any], Kernel | None]) -> Callable[[Any], Kernel | None]:
        """Registers a choice made once for each node, when planning: a quicker kernel for what is known of it, or None.

        The kernel it returns takes the inputs alone: attributes are known to `function(op)`, which has chosen by them.
        """
        self.specialize_fn = function
        return function

    def in_place(self, position: int, kernel: Kernel) -> OpDefinition:
        """Registers a kernel that may write its result over input `position`.

        The planner uses it where that input is a fresh value nobody else needs, and passes the inputs alone. Of a list of inputs
        it is the first that may be written over; the planner may exchange it with the second.
        """
        self.in_place_position, self.in_place_fn = position, self._guarded(kernel)
        return self

    def of_numbers(self, function: Callable[[Any], Sequence[Any] | None]) -> OpDefinition:
        """Registers which scalars the output is a vector of, or None: who wants plain numbers is given theirs, without a tensor."""
        self.numbers_fn = function
        return self

    def alike(self, *, by_count: bool = False) -> OpDefinition:
        """States that the inputs have one shape: the shape rule, and kernels registered later, refuse others.

        Without it a kernel written with broadcasting functions would take what TensorFlow does not. With `by_count` the number
        of elements alone matters, when the op runs; the result has the shape of the first input.
        """
        self.one_shape, self.one_count = True, by_count
        self.shape(unchanged if by_count else _merged)
        return self

    def late(self) -> OpDefinition:
        """States that a graph in which the inputs' shapes do not fit can be built: as in TensorFlow, running it fails."""
        self.is_late = True
        return self

    def _guarded(self, kernel: Kernel) -> Kernel:
        if any(arg.reform for arg in self.inputs):
            return self._reforming(kernel)
        if not self.one_shape:
            return kernel

        @functools.wraps(kernel)
        def guarded(first: Any, *others: Any, **attrs: Any) -> Any:
            for i, other in enumerate(others):
                if other.shape != first.shape:
                    if self.one_count and other.numel() == first.numel():
                        others = (*others[:i], other.reshape(first.shape), *others[i + 1 :])
                        continue
                    raise InvalidArgumentError(
                        None,
                        None,
                        f"Inputs to operation of type {self.name} must have the same size and shape: {list(first.shape)} != {list(other.shape)}",
                    )
            return kernel(first, *others, **attrs)

        return guarded

    def _reforming(self, kernel: Kernel) -> Kernel:
        reforms = [(i, arg) for i, arg in enumerate(self.inputs) if arg.reform]

        @functools.wraps(kernel)
        def reforming(*arguments: Any, **attrs: Any) -> Any:
            changed = list(arguments)
            for i, arg in reforms:
                changed[i] = [reformed(arg, x) for x in changed[i]] if arg.is_list else reformed(arg, changed[i])
            return kernel(*changed, **attrs)

        return reforming

    @functools.cached_property
    def rank_checking_kernel(self) -> Kernel:
        """The kernel for nodes whose inputs' ranks are not known before they run."""
        kernel = self.kernel_fn
        assert kernel is not None

        @functools.wraps(kernel)
        def ranked(*arguments: Any, **attrs: Any) -> Any:
            for arg, value in zip(self.inputs, arguments):
                if arg.run_ranks is not None:
                    for each in value if arg.is_list else (value,):
                        arg.check_rank(host_rank(each) if arg.host else each.ndim)
            return kernel(*arguments, **attrs)

        return ranked

    def lower(self, function: Callable[..., Any]) -> OpDefinition:
        """Registers how a program (runtime/plan/fused_loops.py) does the op: `function(build, op, inputs...)` calls loops of `build`.

        Inputs that are float32 arrive as buffers, others (constants all) as plain numbers. Returns the buffer of the result,
        a list of them for several, or None where this node cannot be done so.
        """
        self.lower_fn = function
        return self

    def exchange(self, maker: OpDefinition) -> Callable[[Kernel], Kernel]:
        """Registers when this op may come before `maker`, whose result is its first input, instead of after it.

        `rule(op, made_by)` returns which inputs of the maker this op takes then, instead of its own: its result replaces the
        first of them. None where the result would not be the same.
        """

        def register(rule: Kernel) -> Kernel:
            self.exchanges[maker] = rule
            return rule

        return register

    def batch(self, key: Callable[..., Any]) -> Callable[[Kernel], Kernel]:
        """Registers a kernel for many nodes of this op at once, as optimizer updates are.

        Nodes of one run with an equal `key(op)` that do not depend on each other become one call; the kernel receives
        a list in place of each input, and `host` inputs and attributes (which the key must make equal) as the plain
        kernel does.
        """

        def register(function: Kernel) -> Kernel:
            self.batch_fn, self.batch_key = function, key
            return function

        return register

    # -- using the type ------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> Any:
        return _apply(self, args, kwargs, name)

    def group(self, flat: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        """A node's flat inputs as its arguments: list inputs gathered into lists."""
        if self.plain:
            return list(flat)
        return _group(self.inputs, flat, attrs)

    def group_outputs(self, flat: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        return _group(self.outputs, flat, attrs)

    def output_dtypes(self, attrs: dict[str, Any]) -> list[DType]:
        if self.single:
            return self.outputs[0].dtypes(attrs)
        return [dtype for arg in self.outputs for dtype in arg.dtypes(attrs)]

    def flatten_results(self, results: Any) -> list[Any]:
        """What a kernel or shape rule returned, as a flat list with one entry for each output tensor."""
        if self.single:
            return [results]
        if not self.outputs:
            return []
        if len(self.outputs) == 1:
            return list(results)
        flat: list[Any] = []
        for arg, result in zip(self.outputs, results):
            flat.extend(result) if arg.is_list else flat.append(result)
        return flat

    def pack_outputs(self, flat: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """The output tensors of a node as the caller of the op wants them."""
        if self.single:
            return flat[0]
        groups = _group(self.outputs, flat, attrs)
        return groups[0] if len(groups) == 1 else self.result_type(*groups)

    def check_ranks(self, ranks: list[int | None], attrs: dict[str, Any], *, running: bool = True) -> None:
        """Raises InvalidArgumentError when a flat input's rank, as far as it is known, is not what the op takes."""
        for arg, found in zip(self.inputs, self.group(ranks, attrs)):
            if (arg.run_ranks if running else arg.ranks) is not None:
                for rank in found if arg.is_list else (found,):
                    if rank is not None:
                        arg.check_rank(rank, running=running)

    def check_lengths(self, shapes: list[Shape], attrs: dict[str, Any]) -> None:
        """Raises InvalidArgumentError when a vector has another number of elements than the op takes."""
        for arg, found in zip(self.inputs, self.group(shapes, attrs)):
            if arg.length is not None:
                found.merge(Shape((arg.length,)))

    def check_attr(self, name: str, value: Any) -> Any:
        """`value` as the canonical value of attribute `name`.

        Raises:
            TypeError: a value of the wrong kind.
            ValueError: a value outside what the definition allows.
        """
        spec = self.attrs[name]
        if spec.kind.startswith("list("):
            if not isinstance(value, (list, tuple)):
                raise TypeError(f"Expected list for '{name}' argument to '{self.name}' Op, not {value!r}.")
            checked = tuple(self._check_one(name, spec.kind[5:-1], item) for item in value)
            for item in checked:
                self._check_allowed(spec, name, item)
            if spec.minimum is not None and len(checked) < spec.minimum:
                raise ValueNotAllowedError(
                    f"Attr '{name}' of '{self.name}' Op passed list of length {len(checked)} less than minimum {spec.minimum}."
                )
            self._check_seen(name, checked)
            return checked
        checked = self._check_one(name, spec.kind, value)
        self._check_allowed(spec, name, checked)
        if spec.minimum is not None and checked < spec.minimum:
            raise ValueNotAllowedError(
                f"Attr '{name}' of '{self.name}' Op passed {checked} less than minimum {spec.minimum}."
            )
        self._check_seen(name, checked)
        if spec.kind == "int" and checked > _MOST_TENSORS and any(arg.number_attr == name for arg in self.outputs):
            raise ValueError(f"Number of outputs is too big: {checked} ({self.name} Op, attr '{name}')")
        return checked

    def _check_seen(self, name: str, value: Any) -> None:
        """What the shape rule looks at is found too large while a graph is built, the rest by the kernel."""
        seen = name in _INT32_ATTRS and name in self.shape_attrs and name not in _WIDE_IN_SHAPES
        if seen and (number := _too_wide(value)) is not None:
            raise ValueNotAllowedError(f"Attr {name} has value {number} out of range for an int32 ({self.name} Op)")

    @functools.cached_property
    def narrow(self) -> tuple[str, ...]:
        """Attributes that the kernel holds in 32 bits."""
        return tuple(name for name in self.attrs if name in _INT32_ATTRS)

    def check_narrow(self, attrs: dict[str, Any]) -> None:
        """Raises InvalidArgumentError for attributes that are too large for the kernel."""
        for name in self.narrow:
            if (number := _too_wide(attrs[name])) is not None:
                raise InvalidArgumentError(
                    None, None, f"Attr {name} has value {number} out of range for an int32 ({self.name} Op)"
                )

    def _check_one(self, name: str, kind: str, value: Any) -> Any:
        if kind in _SIMPLE_KINDS:
            try:
                return _SIMPLE_KINDS[kind](value)
            except (TypeError, ValueError, OverflowError) as error:
                if isinstance(error, _OutOfRangeError):
                    raise ValueError(f"{error} for argument '{name}' of '{self.name}'.") from None
                raise TypeError(f"Expected {kind} for argument '{name}' of '{self.name}' not {value!r}.") from None
        if kind == "func":
            ref = getattr(value, "function_ref", value)
            if not hasattr(ref, "target"):
                raise TypeError(
                    f"Don't know how to convert {value!r} to a func for argument '{name}' of '{self.name}'."
                )
            return ref if self.derives is None else replace(ref, target=self.derives(ref.target))
        convert = _OTHER_KINDS.get(kind)
        if convert is None:
            return value
        try:
            converted = convert(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Attr '{name}' of '{self.name}': {error}") from None
        if kind == "shape" and converted.known and math.prod(converted.dims) >= 2**63:
            raise ValueNotAllowedError(
                f"Shape {converted} is too large (more than 2**63 - 1 entries) for attr '{name}' of '{self.name}'"
            )
        return converted

    def _check_allowed(self, spec: AttrSpec, name: str, value: Any) -> None:
        if spec.allowed and value not in spec.allowed:
            if isinstance(value, DType):
                allowed = ", ".join(dtype.name for dtype in spec.allowed)
                raise DTypeNotAllowedError(
                    f"Value passed to parameter '{name}' of '{self.name}' has DataType {value.name} "
                    f"not in list of allowed values: {allowed}"
                )
            allowed = ", ".join(repr(item) for item in spec.allowed)
            raise ValueNotAllowedError(
                f"Value for attr '{name}' of {value!r} is not in the list of allowed values: {allowed} ({self.name})"
            )

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def _too_wide(value: Any) -> int | None:
    """The first number of an integer attribute (or list of them) that 32 bits do not hold."""
    numbers = value if isinstance(value, tuple) else (value,)
    return next((number for number in numbers if type(number) is int and not -(2**31) <= number < 2**31), None)


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


def _group(args: tuple[Arg, ...], flat: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
    groups: list[Any] = []
    position = 0
    for arg in args:
        if not arg.is_list:
            groups.append(flat[position])
            position += 1
            continue
        count = attrs[arg.number_attr] if arg.number_attr is not None else len(attrs[arg.list_attr or ""])
        groups.append(list(flat[position : position + count]))
        position += count
    return groups


# -- registry ----------------------------------------------------------------------------------------------------

_REGISTRY: dict[str, OpDefinition] = {}


def define(signature: str, traits: Trait = Trait.NONE, /, **attrs: Any) -> OpDefinition:
    """Defines an op (see the module's description) and registers it under its name."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(f"cannot read the op signature {signature!r}")
    name = match[1]
    if name in _REGISTRY:
        raise ValueError(f"{name} is defined twice")
    specs = {key: _attr_spec(value) for key, value in attrs.items()}
    inputs, outputs = read_arguments(match[2], specs), read_arguments(match[3], specs)
    for arg in (*inputs, *outputs):
        if arg.number_attr is not None and arg.number_attr not in specs:
            specs[arg.number_attr] = AttrSpec("int", minimum=0)
        if arg.list_attr is not None and arg.list_attr not in specs:
            specs[arg.list_attr] = AttrSpec("list(type)")
    definition = _REGISTRY[name] = OpDefinition(name, inputs, outputs, specs, traits)
    return definition


def with_references(definition: OpDefinition) -> OpDefinition:
    """Defines the oldest form of an op on resources: without "V2" in its name, with handles that are references of strings."""

    def older(arg: Arg) -> Arg:
        return replace(arg, dtype=dtypes.string, is_ref=True) if arg.dtype is dtypes.resource else arg

    name = definition.name.removesuffix("V2")
    if name in _REGISTRY:
        raise ValueError(f"{name} is defined twice")
    inputs, outputs = (tuple(map(older, args)) for args in (definition.inputs, definition.outputs))
    older_form = _REGISTRY[name] = replace(definition, name=name, inputs=inputs, outputs=outputs)
    return older_form


def find_definition(name: str) -> OpDefinition | None:
    return _REGISTRY.get(name)


def all_definitions() -> dict[str, OpDefinition]:
    """Every op, by name."""
    return dict(_REGISTRY)


# Set by graph/apply.py, which needs the Graph; definitions are read before there is one.
_apply: Callable[..., Any] = lambda *_: None  # noqa: E731


def set_apply(function: Callable[..., Any]) -> None:
    global _apply
    _apply = function


# -- shape rules many ops share ----------------------------------------------------------------------------------


def unchanged(x: Shape, *_: Shape) -> Shape:
    """The shape of the first input."""
    return x


def _merged(*shapes: Shape) -> Shape:
    return functools.reduce(lambda found, shape: found.merge(shape), shapes)


def broadcasting(x: Shape, y: Shape) -> Shape:
    return broadcast_shapes(x, y)


def scalar(*_: Shape) -> Shape:
    return SCALAR


def unknown(*_: Any) -> Shape:
    return UNKNOWN_SHAPE


def all_merged(inputs: Sequence[Shape]) -> Shape:
    """One list input whose shapes must all agree."""
    merged = UNKNOWN_SHAPE
    for shape in inputs:
        merged = merged.merge(shape)
    return merged
