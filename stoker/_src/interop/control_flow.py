"""How calls, branches and loops are written.

A call is written inline. A branch on plain numbers is Python's `if`; one on a tensor calls `ops.cond` with two local functions. A loop is
Python's `while` if its condition follows from plain numbers, so that tracing unrolls it. If only a bound does (`maximum_iterations`, as
`dynamic_rnn` has it), it is Python's `while` up to the bound, with a test of the tensor in it. Otherwise `ops.while_loop` is called.
"""

from __future__ import annotations

from typing import Any

from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.interop.values import CONSTANT, HOST, LIST, TENSOR, Value, is_countable
from stoker._src.interop.writer import Environment, Writer, form
from stoker._src.runtime.plan.pruning import passed_through


@form("PartitionedCall", "StatefulPartitionedCall")
def _call(w: Writer, op: Operation, inputs: list[Value]) -> list[Value]:
    return w.function(op.attrs["f"].target, inputs, op.name)


# ---- branches ---------------------------------------------------------------------------------------------------


@form("If", "StatelessIf")
def _if(w: Writer, op: Operation, condition: Value, inputs: list[Value]) -> Any:
    then, otherwise = op.attrs["then_branch"].target, op.attrs["else_branch"].target
    if condition.kind == CONSTANT:
        return w.function(then if condition.array.item() else otherwise, inputs, op.name)
    if condition.kind == HOST:
        return _python_if(w, op, condition, [then, otherwise], inputs)
    names = [_branch(w, op, function, inputs, part) for function, part in ((then, "then"), (otherwise, "else"))]
    return _branched(w, op, f"ops.cond({condition.name or condition.code}, {names[0]}, {names[1]})")


@form("Case", "StatelessCase")
def _case(w: Writer, op: Operation, index: Value, inputs: list[Value]) -> Any:
    branches = [ref.target for ref in op.attrs["branches"]]
    if index.kind == CONSTANT:
        number = int(index.array)
        return w.function(branches[number if 0 <= number < len(branches) else -1], inputs, op.name)
    names = [_branch(w, op, function, inputs, f"case_{i}") for i, function in enumerate(branches)]
    code = index.code if index.kind != HOST else index.host()
    return _branched(w, op, f"ops.switch_case({code}, [{', '.join(names)}])")


def _branch(w: Writer, op: Operation, function: Any, inputs: list[Value], part: str) -> str:
    name = w.local(f"{op.name}_{part}")
    w.line(f"def {name}():", op.name)
    with w.indented():
        results = w.function(function, inputs, op.name)
        codes = [each.code if each.kind == LIST else w.tensor(each) for each in results]
        w.line(f"return ({', '.join(codes)}{',' if len(codes) == 1 else ''})")
    return name


def _branched(w: Writer, op: Operation, code: str) -> list[Value]:
    if not op.outputs:
        w.line(code, op.name)
        return []
    base = w.local(op.name)
    names = [base if i == 0 else w.unique(f"{base}_{i}") for i in range(len(op.outputs))]
    w.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {code}", op.name)
    return [
        Value(LIST if tensor.dtype.name == "variant" else TENSOR, tensor.dtype, name)
        for tensor, name in zip(op.outputs, names)
    ]


def _python_if(w: Writer, op: Operation, condition: Value, functions: list[Any], inputs: list[Value]) -> list[Value]:
    made = []
    for function in functions:
        with w.trial():
            made.append(w.function(function, inputs, op.name))
    kinds = [
        HOST if all(each.is_host and each.is_scalar for each in both) else LIST if both[0].kind == LIST else TENSOR
        for both in zip(*made)
    ]
    base = w.local(op.name)
    names = [base if i == 0 else w.unique(f"{base}_{i}") for i in range(len(op.outputs))]
    for head, function in (f"if {condition.host()}:", functions[0]), ("else:", functions[1]):
        w.line(head, op.name)
        with w.indented():
            results = w.function(function, inputs, op.name)
            for name, kind, each in zip(names, kinds, results):
                w.line(f"{name} = {_as(w, each, kind)}")
    return [Value(kind, tensor.dtype, name) for kind, tensor, name in zip(kinds, op.outputs, names)]


def _as(w: Writer, value: Value, kind: str) -> str:
    return value.host() if kind == HOST else value.code if kind == LIST else w.tensor(value)


# ---- loops ------------------------------------------------------------------------------------------------------

_PYTHON, _BOUNDED, _OF_DATA = "python", "bounded", "of data"


class _Loop:
    """A While op while it is written."""

    def __init__(self, w: Writer, op: Operation, inputs: list[Value]) -> None:
        self.w, self.op, self.inputs = w, op, inputs
        self.condition, self.body = op.attrs["cond"].target, op.attrs["body"].target
        self.carried = [
            i
            for i in range(len(inputs))
            if passed_through(self.body.outputs[i]) is not self.body.inputs[i] and inputs[i].code != "None"
        ]
        self.kinds = {i: _kind(inputs[i]) for i in self.carried}
        self.names: dict[int, str] = {}
        self._settle()

    def _settle(self) -> None:
        """Finds which carried values stay plain numbers, and how the loop can be written."""
        saved = self.w.names.copy()
        self._name()
        while True:
            with self.w.trial():
                self.mode = self._mode()
                made = self._written_body()
            before = dict(self.kinds)
            for i, value in zip(self.carried, made):
                if self.kinds[i] == HOST and not (value.is_host and value.is_scalar):
                    self.kinds[i] = TENSOR
                # A traced loop runs to its bound: a number that counts along is wrong after it.
                if self.kinds[i] == HOST and self.mode == _BOUNDED and self.w.is_used(self.op.outputs[i]):
                    self.kinds[i] = TENSOR
                if self.kinds[i] == HOST and self.mode == _OF_DATA:
                    self.kinds[i] = TENSOR
            if self.kinds == before:
                break
        self.w.names = saved
        self._name()

    def _name(self) -> None:
        base = self.op.name.split("/")[-1]
        for i in self.carried:
            given = self.body.inputs[i].op.name
            self.names[i] = self.w.unique(f"{base}_{i}" if given.startswith("Placeholder") else given.lower())

    def _given(self, function: Any) -> Environment:
        return {
            tensor: Value(self.kinds[i], tensor.dtype, self.names[i]) if i in self.names else self.inputs[i]
            for i, tensor in enumerate(function.inputs)
        }

    def _mode(self) -> str:
        env = self._given(self.condition)
        with self.w.inside(self.op.name):
            self.w.body(list(self.condition.outputs), [], env)
        if env[self.condition.outputs[0]].is_host:
            return _PYTHON
        self.parts = self._split(env)
        return _OF_DATA if self.parts is None else _BOUNDED

    def _split(self, env: Environment) -> tuple[Tensor, Tensor] | None:
        """The part of the condition that follows from plain numbers, and the other one."""
        both = passed_through(self.condition.outputs[0]).op
        if both.type != "LogicalAnd":
            return None
        first, second = both.inputs
        if env[first].is_host:
            return first, second
        return (second, first) if env[second].is_host else None

    def _written_body(self) -> list[Value]:
        env = self._given(self.body)
        with self.w.inside(self.op.name):
            self.w.body(list(self.body.outputs), list(self.body.control_outputs), env)
        return [env[self.body.outputs[i]] for i in self.carried]

    def _written_condition(self, tensors: list[Tensor]) -> list[Value]:
        env = self._given(self.condition)
        with self.w.inside(self.op.name):
            self.w.body(tensors, [], env)
        return [env[tensor] for tensor in tensors]

    def write(self) -> list[Value]:
        (self._write_of_data if self.mode == _OF_DATA else self._write_python)()
        return [
            Value(self.kinds[i], tensor.dtype, self.names[i]) if i in self.names else self.inputs[i]
            for i, tensor in enumerate(self.op.outputs)
        ]

    def _codes(self, values: list[Value]) -> list[str]:
        return [_as(self.w, value, self.kinds[i]) for i, value in zip(self.carried, values)]

    def _assign(self, names: list[str], codes: list[str]) -> None:
        changed = [(name, code) for name, code in zip(names, codes) if name != code]
        if changed:
            self.w.line(f"{', '.join(n for n, _ in changed)} = {', '.join(c for _, c in changed)}", self.op.name)

    def _write_python(self) -> None:
        w, names = self.w, [self.names[i] for i in self.carried]
        self._assign(names, self._codes([self.inputs[i] for i in self.carried]))
        bounded = self.mode == _BOUNDED
        going = w.unique("going") if bounded else ""
        if bounded:
            w.line(f"{going} = True")
        w.line("while True:", self.op.name)
        with w.indented():
            tensors = list(self.parts or ()) if bounded else list(self.condition.outputs)
            first = self._written_condition(tensors[:1])[0]
            w.line(f"if not ({first.host()}):")
            with w.indented():
                w.line("break")
            if bounded:
                w.line(f"{going} = ops.both({going}, {w.tensor(self._written_condition(tensors[1:])[0])})")
                w.line(f"if not ops.goes_on({going}):")
                with w.indented():
                    w.line("break")
            codes = self._codes(self._written_body())
            if not bounded:
                self._assign(names, codes)
                return
            masked = [k for k, i in enumerate(self.carried) if self.kinds[i] != HOST]
            after, before = (", ".join(each[k] for k in masked) for each in (codes, names))
            plain = [k for k in range(len(names)) if k not in masked]
            self._assign([names[k] for k in plain], [codes[k] for k in plain])
            if masked:
                w.line(
                    f"{before}{',' if len(masked) == 1 else ''} = ops.kept({going}, ({after},), ({before},))",
                    self.op.name,
                )

    def _write_of_data(self) -> None:
        w, names = self.w, [self.names[i] for i in self.carried]
        given = ", ".join(self._codes([self.inputs[i] for i in self.carried]))
        made = [w.local(f"{self.op.name}_{part}") for part in ("condition", "body")]
        w.line(f"def {made[0]}({', '.join(names)}):", self.op.name)
        with w.indented():
            w.line(f"return {w.tensor(self._written_condition(list(self.condition.outputs))[0])}")
        w.line(f"def {made[1]}({', '.join(names)}):", self.op.name)
        with w.indented():
            w.line(f"return ({', '.join(self._codes(self._written_body()))},)")
        comma = "," if len(names) == 1 else ""
        w.line(f"{', '.join(names)}{comma} = ops.while_loop({made[0]}, {made[1]}, ({given},))", self.op.name)


def _kind(value: Value) -> str:
    if value.kind == LIST:
        return LIST
    return HOST if value.is_host and value.is_scalar and is_countable(value.dtype) else TENSOR


@form("While", "StatelessWhile")
def _while(w: Writer, op: Operation, inputs: list[Value]) -> Any:
    return _Loop(w, op, inputs).write()
