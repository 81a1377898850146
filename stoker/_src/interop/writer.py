"""Writes the forward method of a module: one line of Python for each op, with the node's name behind it.

The forms in `forms_*.py` say how an op is written. Ops without a form call the kernel of the Session. Sizes and other integers that follow from
shapes and constants are plain Python numbers (`Value.kind` is HOST), so that loops over them are Python loops and torch sees static or
symbolic sizes. Calls of functions are written inline; branches and loops become Python's where they can (`control_flow.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.graph.definition import Trait
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.interop.kernels import kernel_call
from stoker._src.interop.source_check import comment, identifier
from stoker._src.interop.values import (
    CONSTANT,
    HOST,
    LIST,
    TENSOR,
    VARIABLE,
    Value,
    dtype_code,
    is_simple,
    literal,
)
from stoker._src.ops.support.values import from_numpy, host_value, to_numpy
from stoker._src.runtime.plan.pruning import in_order, prune

_FOLD_LIMIT = 1 << 20  # most elements of a folded constant
_WIDTH = 78  # column of the comments
# Ops whose value is their first input. Assertions on it are left out.
_PASSED = frozenset((
    "Identity", "RefIdentity", "Snapshot", "PreventGradient", "CheckNumerics", "CheckNumericsV2", "EnsureShape", "PlaceholderWithDefault",
    "GuaranteeConst", "DebugIdentity", "DeepCopy",
))  # fmt: skip
_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)
_OF_UNSIGNED = (
    "Cast",
    "Reshape",
    "Shape",
    "ReadVariableOp",
    "If",
    "While",
    "PartitionedCall",
    "StatefulPartitionedCall",
)
VARIABLE_OPS = ("VariableV2", "Variable", "VarHandleOp")
Environment = dict[Tensor, Value]
Form = Callable[..., Any]
FORMS: dict[str, Form] = {}


def form(*names: str) -> Callable[[Form], Form]:
    """Registers how ops are written: `function(writer, op, inputs...)`, with the inputs as `Value`s or lists of them.

    It returns the code of the result, a Value, a list of Values (one for each output), `Several(code)` for code that makes a tuple of all
    outputs, or None if the op's kernel shall be called.
    """

    def register(function: Form) -> Form:
        for name in names:
            FORMS[name] = function
        return function

    return register


class Several(str):
    """The code of a tuple with one entry for each output."""

    __slots__ = ()


class Unsupported(Exception):
    """An op that cannot be written, with the reason."""


class Writer:
    """Collects the lines of one forward method, and the names that it uses."""

    def __init__(self, module: Any) -> None:
        self.module = (
            module  # registers variables and constants: `variable(op)`, `constant(array, name)` give their code
        )
        self.lines: list[str] = []
        self.names: set[str] = {"self", "torch", "ops", "F", "forward"}
        self.globals: dict[str, Any] = {}
        self.problems: dict[str, str] = {}  # node -> why it cannot be written
        self.depth = 1
        self.scope = ""  # the calls that the current op is in
        self.writes_variables = False  # whether a value that was read must be kept from later writes
        self._kernels: dict[Any, str] = {}
        self._used: set[Operation] = set()  # the ops that are written in the current body
        self._fetched: set[Tensor] = set()

    # -- lines and names -----------------------------------------------------------------------------------------

    def line(self, code: str, node: str = "") -> None:
        text = "    " * self.depth + code
        self.lines.append(f"{text:<{_WIDTH}}  # {comment(self.scope + node)}" if node else text)

    def unique(self, wanted: str) -> str:
        base = identifier(wanted)
        name, count = base, 1
        while name in self.names:
            name, count = f"{base}_{count}", count + 1
        self.names.add(name)
        return name

    def local(self, node: str) -> str:
        """A local name for the value of a node: the end of its path."""
        short = node if len(node) <= 28 else "/".join(node.split("/")[-2:])
        return self.unique((short if len(short) <= 40 else short.split("/")[-1]).lower())

    @contextlib.contextmanager
    def indented(self) -> Iterator[None]:
        self.depth += 1
        before = len(self.lines)
        try:
            yield
        finally:
            if len(self.lines) == before:
                self.line("pass")
            self.depth -= 1

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        """Writes lines that are thrown away afterwards."""
        saved = self.lines, set(self.names), self.depth, self.scope, dict(self.problems)
        self.lines = []
        try:
            yield
        finally:
            self.lines, self.names, self.depth, self.scope, self.problems = saved

    def globally(self, name: str, item: Any) -> str:
        """A name of the code for an object that is not a literal."""
        for known, value in self.globals.items():
            if value is item:
                return known
        found = self.unique(name)
        self.globals[found] = item
        return found

    # -- values --------------------------------------------------------------------------------------------------

    def tensor(self, value: Value) -> str:
        """The code of a value as a tensor."""
        if value.kind == CONSTANT:
            if value.array.dtype == object:
                raise Unsupported("holds strings, which torch has not")
            return self.module.constant(value)
        if value.kind == HOST:
            return f"ops.tensor({value.host()}, {dtype_code(value.dtype)}, self.device)"
        return value.code

    def operand(self, value: Value) -> str:
        """The code of a value in an elementwise expression, where a number can stand for a tensor."""
        if value.kind == CONSTANT and value.array.ndim == 0 and value.array.dtype != object:
            return literal(value.array)
        if value.kind == HOST and value.items is None:
            return value.code if is_simple(value.code) else f"({value.code})"
        return self.tensor(value)

    def named_host(self, op: Operation, code: str) -> Value:
        """A host scalar; a longer expression gets a line and a name."""
        dtype = op.outputs[0].dtype
        if not is_simple(code):
            name = self.local(op.name)
            self.line(f"{name} = {code}", op.name)
            code = name
        return Value(HOST, dtype, code)

    def constant(self, array: Any, dtype: DType) -> Value:
        return Value(CONSTANT, dtype, array=np.asarray(array))

    # -- ops -----------------------------------------------------------------------------------------------------

    def body(self, fetches: list[Tensor], targets: list[Operation], env: Environment) -> None:
        """Writes all ops that the fetches and targets need. `env` has the values of tensors that are given."""
        saved = self._used, self._fetched
        ordered = self.ordered(fetches, targets, set(env))
        self._used, self._fetched = set(ordered), set(fetches)
        for op in ordered:
            self.op(op, env)
        self._used, self._fetched = saved

    def is_used(self, tensor: Tensor) -> bool:
        """Whether the current body needs a tensor."""
        return tensor in self._fetched or any(user in self._used for user in tensor._consumers)

    def ordered(self, fetches: list[Tensor], targets: list[Operation], given: set[Tensor]) -> list[Operation]:
        """The ops to write, in order: those whose values are used, and those that write variables."""
        needed, passed = prune(fetches, targets, given)
        writing = [op for op in needed if writes(op)]
        used: set[Operation] = set()
        stack = [*(t.op for t in fetches if t not in given), *writing]
        while stack:
            op = stack.pop()
            if op not in used:
                used.add(op)
                stack.extend(t.op for t in op._inputs if t not in given)
        return [op for op in in_order(needed | passed | used, given) if op in used]

    def op(self, op: Operation, env: Environment) -> None:
        try:
            results = self._results(op, env)
        except Unsupported as problem:
            self.problems[self.scope + op.name] = f"{op.type} {problem}"
            results = [Value(TENSOR, t.dtype, "None") for t in op.outputs]
        for tensor, value in zip(op.outputs, results):
            env.setdefault(tensor, value)

    def _results(self, op: Operation, env: Environment) -> list[Value]:
        definition = op.definition
        if op.type == "Const":
            return [Value(CONSTANT, op.outputs[0].dtype, array=np.asarray(op.attrs["value"]), name=op.name)]
        if op.type in VARIABLE_OPS:
            return [Value(VARIABLE, op.outputs[0].dtype, self.module.variable(op))]
        if op.type in ("Placeholder", "PlaceholderV2"):
            raise Unsupported("is neither among the inputs nor has a value")
        flat = [env[tensor] for tensor in op._inputs]
        grouped = definition.group(flat, op.attrs)
        written = FORMS.get(op.type)
        if op.type in _PASSED:
            first = flat[0]
            return [Value(first.kind, op.outputs[0].dtype, first.code, first.items, first.array, first.name)]
        folded = self._folded(op, flat)
        if folded is not None:
            return folded
        # torch computes little with these dtypes. The kernels do.
        unsigned = any(tensor.dtype.base_dtype in _UNSIGNED for tensor in op._inputs) and op.type not in _OF_UNSIGNED
        result = written(self, op, *grouped) if written is not None and not unsigned else None
        if result is None:
            result = self._kernel(op, grouped)
        if isinstance(result, Value):
            return [result]
        if isinstance(result, list):
            return result
        return self.assigned(op, result)

    def assigned(self, op: Operation, code: str) -> list[Value]:
        """Writes the line of an op that makes tensors."""
        if not op.outputs:
            self.line(code, op.name)
            return []
        kinds = [LIST if tensor.dtype.base_dtype is dtypes.variant else TENSOR for tensor in op.outputs]
        name = self.local(op.name)
        if len(op.outputs) == 1 and not isinstance(code, Several):
            self.line(f"{name} = {code}", op.name)
            return [Value(kinds[0], op.outputs[0].dtype, name)]
        names = [self.unique(f"{name}_{i}") if i else name for i in range(len(op.outputs))]
        self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {code}", op.name)
        return [Value(kind, tensor.dtype, each) for kind, tensor, each in zip(kinds, op.outputs, names)]

    def _folded(self, op: Operation, flat: list[Value]) -> list[Value] | None:
        """The values of a pure op on constants."""
        definition = op.definition
        effects = Trait.STATEFUL | Trait.READS | Trait.WRITES | Trait.BLOCKING | Trait.SOURCE
        if not flat or definition.traits & effects or definition.needs_context or definition.planning.calls:
            return None
        if not all(value.kind == CONSTANT for value in flat):
            return None
        if any(tensor.dtype.base_dtype in (dtypes.variant, dtypes.resource) for tensor in op.outputs):
            return None
        given = [from_numpy(value.array) for value in flat]
        arguments = [
            (list(map(host_value, item)) if arg.is_list else host_value(item)) if arg.host else item
            for arg, item in zip(definition.inputs, definition.group(given, op.attrs))
        ]
        assert definition.kernel_fn is not None
        try:
            made = definition.kernel_fn(*arguments, **{name: op.attrs[name] for name in definition.kernel_attrs})
        except Exception:
            return None  # the module raises the error when it runs
        results = definition.flatten_results(made)
        if any(getattr(each, "numel", lambda: 0)() > _FOLD_LIMIT for each in results):
            return None
        return [
            Value(CONSTANT, tensor.dtype, array=to_numpy(each), name=op.name)
            for tensor, each in zip(op.outputs, results, strict=True)
        ]

    def _kernel(self, op: Operation, grouped: list[Any]) -> str:
        """A call of the op's own kernel."""
        definition = op.definition
        if definition.needs_context or definition.planning.calls or definition.planning.keeps:
            raise Unsupported("has no torch form")
        if definition.traits & (Trait.WRITES | Trait.BLOCKING | Trait.RETAINS):
            raise Unsupported("changes something other than a parameter or buffer")
        if any(tensor.dtype.base_dtype is dtypes.string for tensor in (*op._inputs, *op.outputs)):
            raise Unsupported("works on strings, which torch has not: give its result as an input")
        if any(tensor.dtype.base_dtype in (dtypes.variant, dtypes.resource) for tensor in (*op._inputs, *op.outputs)):
            raise Unsupported("has no torch form")
        arguments = []
        for arg, item in zip(definition.inputs, grouped):
            write = Value.host if arg.host else self.tensor
            arguments.append("[" + ", ".join(map(write, item)) + "]" if arg.is_list else write(item))
        values = ", ".join(f"{name}={op.attrs[name]}" for name in definition.kernel_attrs)
        key = (op.type, values)
        if key not in self._kernels:
            name = self._kernels[key] = self.unique(f"{op.type}_kernel")
            self.globals[name] = kernel_call(definition, op.attrs)
        code = f"{self._kernels[key]}({', '.join(arguments)})"
        return code if definition.single else Several(code)

    def attribute(self, name: str, value: Any) -> str:
        """An attribute as a literal, or as a name for it."""
        if value is None or isinstance(value, (bool, int)):
            return repr(value)
        if isinstance(value, float):
            return literal(np.asarray(value))
        if isinstance(value, (list, tuple)) and all(isinstance(each, int) for each in value):
            return repr(tuple(value))
        return self.globally(f"{name}_value", value)

    # -- calls ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def inside(self, name: str) -> Iterator[None]:
        saved, self.scope = self.scope, f"{self.scope}{name}/"
        try:
            yield
        finally:
            self.scope = saved

    def function(self, function: Any, arguments: list[Value], name: str) -> list[Value]:
        """Writes the body of a function inline, and returns its outputs."""
        env: Environment = dict(zip(function.inputs, arguments))
        with self.inside(name):
            self.body(list(function.outputs), list(function.control_outputs), env)
        return [env[tensor] for tensor in function.outputs]


def writes(op: Operation) -> bool:
    """Whether an op, or a function that it calls, writes a variable."""
    pending, seen = [op], set()
    while pending:
        each = pending.pop()
        if each.definition.traits & Trait.WRITES:
            return True
        for ref in function_refs(each) if each.definition.planning.calls else ():
            if ref.target is not None and ref.target not in seen:
                seen.add(ref.target)
                pending += ref.target.needed_ops()
    return False
