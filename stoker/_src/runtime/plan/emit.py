"""Emits instructions as straight-line Python: one function whose lines call kernels.

The source holds only names and literals that this module generates. Values are named after their op's type (a name in the registry)
and a number, keywords come from kernel signatures, and everything else is a plain number or an entry of the constants table
(`c0`, `c1`, ...). `check_source` rejects anything else, so nothing read from a file can become code.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NoReturn

import numpy as np
import torch

from stoker._src.base import forking
from stoker._src.base.depth import allow_running
from stoker._src.base.errors import InternalError
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support.values import host_value
from stoker._src.runtime.locks import started
from stoker._src.runtime.plan.instructions import LONG, Host, Instruction, Value, values_of
from stoker._src.runtime.plan.one_sided import guarded
from stoker._src.runtime.plan.planner import Planner

_counter = itertools.count()
_LITERALS = (bool, int, float)
# All that a step may be made of, and the methods it may call.
# Python 3.11 counts the depth of syntax trees in one place for all threads: two that build one at a time fail.
_PARSING = forking.lock()
_ALLOWED = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.Expr, ast.Return, ast.Delete, ast.Call, ast.keyword,
    ast.Name, ast.Load, ast.Store, ast.Del, ast.Tuple, ast.List, ast.Constant, ast.Attribute, ast.UnaryOp, ast.USub,
)  # fmt: skip
_WORD = re.compile(r"\w+")
_METHODS = frozenset(("read", "clone", "copy", "tolist", "pause", "resume", "result"))


@dataclass
class Step:
    """A compiled plan: `function(holding, *feeds)` returns the fetched values as a tuple."""

    function: Any
    source: str
    filename: str
    lines: dict[int, Instruction]  # line number -> instruction
    constants: dict[str, Any]
    planner: Planner
    levels: int = 1  # nesting depth of the functions it calls
    timed_lines: dict[int, Instruction] = field(default_factory=dict)

    def with_functions(self) -> Iterator[Step]:
        """Returns this step and the steps of all functions it calls, directly or indirectly, each once."""
        pending, seen = [self], {id(self)}
        while pending:
            step = pending.pop()
            yield step
            for instruction in step.planner.instructions:
                for inner in instruction.steps:
                    if id(inner) not in seen:
                        seen.add(id(inner))
                        pending.append(inner)

    def timed(self) -> tuple[Any, list[Instruction]]:
        """Returns the same step with a call of `tick(i, outputs)` after the i-th instruction, and the list of those instructions."""
        return _compile_timed(self)


def emit(planner: Planner) -> Step:
    """Compiles a plan."""
    writer = _Writer(planner)
    source = writer.write()
    filename = f"<stoker step {next(_counter)}>"
    code = check_source(source, filename, set(writer.globals))
    namespace = dict(writer.globals)
    exec(code, namespace)
    inner = max((step.levels for instruction in planner.instructions for step in instruction.steps), default=0)
    allow_running(inner + 1)
    return Step(namespace["step"], source, filename, writer.lines, writer.globals, planner, inner + 1)


def _compile_timed(step: Step) -> tuple[Any, list[Instruction]]:
    lines, instructions = [], []
    for number, line in enumerate(step.source.splitlines(), start=1):
        line, _, deleted = line.partition("; del ")
        lines.append(line)
        if number in step.lines:
            step.timed_lines[len(lines)] = step.lines[number]
            stored = set(_WORD.findall(line.partition(" = ")[0]))
            made = [value.label for value in _results(step.lines[number]) if value.label in stored]
            lines.append(f"    tick({len(instructions)}, [{', '.join(made)}])")
            instructions.append(step.lines[number])
        if deleted:
            lines.append(f"    del {deleted}")
    lines[0] = lines[0].replace("def step(holding", "def step(tick, holding")
    source = "\n".join(lines) + "\n"
    code = check_source(source, step.filename + " timed", set(step.constants))
    namespace = dict(step.constants)
    exec(code, namespace)
    return namespace["step"], instructions


def check_source(source: str, filename: str, known: set[str]) -> CodeType:
    """Compiles generated source after checking that it contains only what `_Writer` can write.

    Raises:
        InternalError: the source contains something else, which means a bug in the planner.
    """
    with _PARSING:
        tree = ast.parse(source, filename)
    only = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(only, ast.FunctionDef) or only.name != "step":
        _refuse("is not one function")
    stored, loaded = {"holding", "tick"}, set()
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            _refuse(f"holds {ast.dump(node)}")
        if isinstance(node, ast.Name):
            (stored if isinstance(node.ctx, ast.Store) else loaded).add(node.id)
        elif isinstance(node, ast.Attribute):
            if node.attr not in _METHODS:
                _refuse(f"uses the attribute {node.attr}")
        elif isinstance(node, ast.Constant):
            if node.value is not None and not isinstance(node.value, _LITERALS):
                _refuse(f"holds {node.value!r}")
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
    foreign = loaded - stored - known
    if foreign:
        _refuse(f"uses the names {sorted(foreign)}")
    with _PARSING:
        return compile(tree, filename, "exec")


def _refuse(problem: str) -> NoReturn:
    # This is not an assertion because the check must also run under `python -O`.
    raise InternalError(None, None, f"Generated code {problem}.")


class _Writer:
    """Writes the source of one step and collects its globals: kernels by name, constants by number."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self._placement = planner.compile_function.placement
        self.globals: dict[str, Any] = {}
        self.lines: dict[int, Instruction] = {}
        self._names: dict[int, str] = {}  # id of a kernel or constant -> its global name
        self._kernels: dict[str, Any] = {}  # by their global names: those that are made for single nodes

    def write(self) -> str:
        planner = self.planner
        out = ["def step(holding" + "".join(f", {value.label}" for value in planner.feed_values) + "):"]
        concurrent = self._concurrent()
        # `dead[i]` are the values whose last use is instruction i. They are deleted there to free memory.
        dead: dict[int, list[str]] = {}
        for position, instruction in enumerate(planner.instructions):
            if position not in concurrent:
                for value in _results(instruction):
                    dead.setdefault(max(value.last_use, position), []).append(value.label)
        pending: list[tuple[Instruction, str, set[Operation]]] = []
        for position, instruction in enumerate(planner.instructions):
            if position and position % LONG == 0:
                out.append(f"    {self._global('look_at_run', look_at_run)}(holding)")
            for waiting in [entry for entry in pending if _waits_for(instruction, *entry)]:
                pending.remove(waiting)
                self._blocking(out, waiting[0], self._awaited(waiting[0], waiting[1]))
            if position in concurrent:
                task = f"task_{position}"
                out.append("    " + self._start(instruction, task))
                self.lines[len(out)] = instruction
                pending.append((instruction, task, planner.dependents(instruction.op)))  # type: ignore[arg-type]
            elif instruction.blocking:
                self._blocking(out, instruction, self._line(instruction))
            else:
                out.append("    " + self._line(instruction))
                self.lines[len(out)] = instruction
            if position in dead:
                out[-1] += "; del " + ", ".join(dead[position])
        for instruction, task, _ in pending:
            self._blocking(out, instruction, self._awaited(instruction, task))
        out.append(
            "    return (" + "".join(self._returned(i, value) + ", " for i, value in enumerate(planner.results)) + ")"
        )
        return "\n".join(out) + "\n"

    def _concurrent(self) -> set[int]:
        """Positions of instructions that may wait while an independent instruction must make progress."""
        waiting = [(i, line.op) for i, line in enumerate(self.planner.instructions) if line.blocking]
        if len(waiting) < 2:
            return set()
        later = {i: self.planner.dependents(op) for i, op in waiting}  # type: ignore[arg-type]
        return {
            i
            for i, op in waiting
            if any(i != j and op not in later[j] and other not in later[i] for j, other in waiting)
        }

    def _blocking(self, out: list[str], instruction: Instruction, line: str) -> None:
        """Writes a line that may wait. The lock on variables is released meanwhile."""
        out.append("    holding.pause()")
        out.append("    " + line)
        self.lines[len(out)] = instruction
        out.append("    holding.resume()")

    def _start(self, instruction: Instruction, task: str) -> str:
        arguments = ["holding", self._kernel(instruction), *self._call_arguments(instruction)]
        return f"{task} = {self._global('started', started)}({', '.join(arguments)})"

    def _awaited(self, instruction: Instruction, task: str) -> str:
        target = self._target(instruction.results, instruction)
        return f"{target} = {task}.result()" if target else f"{task}.result()"

    def _call_arguments(self, instruction: Instruction) -> list[str]:
        arguments = [self._argument(instruction, argument) for argument in self._arguments(instruction)]
        arguments += [f"{name}={self._literal(value)}" for name, value in instruction.keywords.items()]
        if instruction.op is not None and instruction.op.definition.planning.calls and instruction.kind != "fetched":
            arguments.append("holding=holding")
        return arguments

    def _arguments(self, instruction: Instruction) -> list[Any]:
        """Writes the arguments. Numbers are passed as tensors if that saves the host from waiting for a GPU."""
        op = instruction.op
        if self._placement.gpu is None or op is None or instruction.kind in ("guarded", "fetched"):
            return instruction.arguments
        if not op.definition.planning.device_numbers:
            return instruction.arguments
        return [
            given.value
            if isinstance(given, Host)
            and not given.value.is_constant
            and arg.name in op.definition.planning.device_numbers
            else given
            for arg, given in zip(op.definition.inputs, instruction.arguments)
        ]

    def _line(self, instruction: Instruction) -> str:
        if instruction.kind == "read":
            call = f"{self._argument(instruction, instruction.arguments[0])}.read()"
        else:
            call = f"{self._kernel(instruction)}({', '.join(self._call_arguments(instruction))})"
        if instruction.copies:
            call += ".clone()" if not self._is_string(instruction) else ".copy()"
        target = self._target(instruction.results, instruction)
        return f"{target} = {call}" if target else call

    def _is_string(self, instruction: Instruction) -> bool:
        op = instruction.op
        return op is not None and bool(op.outputs) and op.outputs[0].dtype.base_dtype.name == "string"

    def _target(self, results: list[Any], instruction: Instruction) -> str:
        parts = []
        for result in results:
            if isinstance(result, list):
                parts.append("(" + "".join(f"{value.label}, " for value in result) + ")" if result else "_")
            else:
                parts.append(result.label)
        if instruction.kind in ("fused_loops", "finish", "many"):
            return "(" + ", ".join(parts) + ",)" if parts else ""
        if instruction.kind in ("read", "fetched") or (instruction.op is not None and instruction.op.definition.single):
            return parts[0] if parts else ""
        if instruction.op is not None and len(instruction.op.definition.outputs) == 1:
            return parts[0] if parts else ""
        return ", ".join(parts)

    def _argument(self, instruction: Instruction, argument: Any) -> str:
        if isinstance(argument, list):
            return "[" + ", ".join(self._argument(instruction, item) for item in argument) + "]"
        if isinstance(argument, Host):
            value = argument.value
            if value.is_constant:
                return self._literal(host_value(value.constant))
            return f"{value.label}.tolist()"
        name = self._literal(argument.constant) if argument.is_constant else argument.label
        if argument in instruction.copied:
            return f"{self._literal(copied)}({name})"  # a string is an array, so the type is known only at run time
        return name

    def _returned(self, index: int, value: Value | None) -> str:
        """Writes a fetched value, as a copy if its memory may be shared with another owner."""
        if value is None:
            return "None"
        name = self._literal(value.constant) if value.is_constant else value.label
        if self.planner.lends or not value.roots - self.planner.may_share:
            return name
        if value.is_constant and not isinstance(value.constant, torch.Tensor):
            return name
        copy = copied if self.planner.copies is None else self.planner.copies[index]
        return f"{self._global(copy.__name__, copy)}({name})"

    def _kernel(self, instruction: Instruction) -> str:
        op = instruction.op
        assert op is not None
        if instruction.kind == "fused_loops":
            return self._global(f"fused_loops_{len(self.globals)}", instruction.kernel)
        if instruction.kind == "many":
            return self._global(f"{op.type}_many_{len(self.globals)}", instruction.kernel)
        if instruction.kind == "guarded":
            suffix, kernel = self._placement.kernel(op, instruction.kernel)
            return self._global(f"{op.type}_guarded_{len(self.globals)}{suffix}", guarded(op, kernel))
        if instruction.kind == "fetched":
            return self._global(f"alive_{len(self.globals)}", instruction.kernel)
        if instruction.kind in ("begin", "finish"):  # they take what is on any device
            return self._global(f"{op.type}_{instruction.kind}", instruction.kernel)
        suffix, kernel = self._placement.kernel(op, instruction.kernel)
        name = f"{op.type}_batch" if instruction.kind == "batch" else op.type
        if instruction.kind == "kernel" and instruction.kernel is not op.definition.kernel_fn:
            name = f"{op.type}_{instruction.kernel.__name__.strip('<>')}"  # lambdas are named "<lambda>"
        if self._kernels.setdefault(name, instruction.kernel) is not instruction.kernel:
            name = f"{name}_{len(self.globals)}"  # made for another node by the same function, or by a definition of its own
        return self._global(name + suffix, kernel)

    def _global(self, name: str, item: Any) -> str:
        self.globals.setdefault(name, item)
        return name

    def _literal(self, value: Any) -> str:
        if value is None or (type(value) in _LITERALS and value == value and abs(value) != float("inf")):
            return repr(value)
        if type(value) is list and len(value) <= 8 and all(type(item) is int for item in value):
            return repr(value)
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"c{len(self._names)}"
            self.globals[name] = self._placement.data(value)
        return name


def _waits_for(instruction: Instruction, started: Instruction, task: str, dependents: set[Operation]) -> bool:
    """Whether an instruction needs the result of a started instruction, or must run after it.

    One instruction may represent many ops (fused loops, a batch of updates), so the check uses its arguments and not only its op.
    """
    if instruction.op in dependents or not dependents.isdisjoint(instruction.members):
        return True
    made = set(_results(started))
    return any(value in made for value in values_of(instruction.arguments))


def _results(instruction: Instruction) -> list[Value]:
    flat: list[Value] = []
    for result in instruction.results:
        flat.extend(result) if isinstance(result, list) else flat.append(result)
    return flat


def look_at_run(holding: Any) -> None:
    """Ends a long step whose run was cancelled or is out of time. A recorded step holds nothing."""
    if holding is not None and holding.state is not None:
        holding.state.check("The run")


def copied(value: Any) -> Any:
    """Returns a value that shares no memory with other values."""
    if isinstance(value, torch.Tensor):
        return value.clone(memory_format=torch.contiguous_format)
    return value.copy() if isinstance(value, np.ndarray) else value
