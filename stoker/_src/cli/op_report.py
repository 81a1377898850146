"""The report of `python -m stoker inspect --op NAME`: an op's signature, and the source location of each of its functions.

Many ops are created by factories, from a rule or from a row of a table. The report then shows the statement that requested the op, the
`define` call inside the factory, and the functions that the factory's functions call.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import stoker._src.ops
from stoker._src.base.dtypes import DType
from stoker._src.graph.attributes import MISSING, AttrSpec
from stoker._src.graph.definition import OpDefinition, all_definitions

_ROOT = Path(stoker._src.ops.__file__).parents[3]
_SHOWN_SAMPLES = 8


def run(names: list[str], as_json: bool) -> int:
    """Prints the report for each op. Returns 1 if one is not defined."""
    known = all_definitions()
    unknown = [name for name in names if name not in known]
    reports = [described(known[name]) for name in names if name in known]
    if as_json:
        print(json.dumps(reports, indent=2))
    else:
        print("\n\n".join("\n".join(_lines(report)) for report in reports), end="\n" if reports else "")
    for name in unknown:
        print(f"stoker inspect: there is no op {name!r}.{_suggestion(name, list(known))}", file=sys.stderr)
    return 1 if unknown else 0


def _suggestion(name: str, known: list[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    plain = name.lower().replace("_", "")
    near = difflib.get_close_matches(plain, by_lower, n=5, cutoff=0.6)
    return f" Did you mean {', '.join(by_lower[each] for each in near)}?" if near else ""


def described(definition: OpDefinition) -> dict[str, Any]:
    """Describes an op in plain values. Locations are "file:line", relative to the checkout or the installation folder."""
    *factory, (file, line) = definition.places
    report: dict[str, Any] = {
        "op": definition.name,
        "signature": definition.spelling,
        "attrs": {name: _attr(spec) for name, spec in definition.attrs.items()},
        "defined": _place(file, _line_naming(definition.name, file, line)),
        "factory": [_place(*each) for each in factory],
        "kernel": _function(definition.kernel_fn),
        "shape": _function(definition.shape_rule.function),
        "gradient": _gradient(definition),
        "planner": _planner(definition),
        "samples": _samples(definition.name),
    }
    return report


def _attr(spec: AttrSpec) -> str:
    text = spec.kind
    if spec.allowed:
        text += " of " + ", ".join(each.name if isinstance(each, DType) else repr(each) for each in spec.allowed)
    if spec.minimum is not None:
        text += f", at least {spec.minimum}"
    if spec.default is not MISSING:
        text += f" = {spec.default.name if isinstance(spec.default, DType) else repr(spec.default)}"
    return text


def _place(file: str, line: int) -> str:
    path = Path(file)
    return f"{path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path}:{line}"


@functools.cache
def _source(file: str) -> tuple[str, ...]:
    path = Path(file)
    return tuple(path.read_text().splitlines()) if path.exists() else ()


def _line_naming(name: str, file: str, line: int) -> int:
    """Returns the line that contains the op's name as a string: the statement's line, else the first one in the file, else the statement."""
    spelled = re.compile(rf"""["']{name}\b""")
    lines = _source(file)
    if lines and not spelled.search(lines[line - 1]):
        return next((i for i, text in enumerate(lines, 1) if spelled.search(text)), line)
    return line


def _function(function: Callable[..., Any] | None) -> dict[str, Any] | None:
    """Describes a function: its name, its location, and the functions that it closes over."""
    if function is None:
        return None
    innermost = _innermost(function)
    return {**_named_place(innermost), "calls": [_named_place(each) for each in _held(innermost)]}


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function)


def _named_place(function: Any) -> dict[str, Any]:
    code = getattr(function, "__code__", None)
    if code is None:  # a built-in function of torch
        owner = getattr(function, "__module__", None) or "torch"
        return {"name": f"{owner}.{getattr(function, '__name__', repr(function))}", "at": None}
    return {"name": function.__qualname__, "at": _place(code.co_filename, code.co_firstlineno)}


def _held(function: Any) -> list[Any]:
    """Returns the functions that a function closes over and those that a bound method's object holds, inner ones last."""
    found: list[Any] = []
    waiting = [function]
    while waiting:
        current = waiting.pop(0)
        values = [cell.cell_contents for cell in getattr(current, "__closure__", None) or () if _is_bound(cell)]
        if inspect.ismethod(current):
            values += vars(current.__self__).values() if hasattr(current.__self__, "__dict__") else []
        for value in values:
            if inspect.isroutine(value) or isinstance(value, functools.partial):
                held = _innermost(value)
                if held is not function and held not in found:
                    found.append(held)
                    waiting.append(held)
    return found


def _is_bound(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _gradient(definition: OpDefinition) -> dict[str, Any] | str:
    if definition.gradient_fn is not None:
        return _function(definition.gradient_fn) or ""
    if definition.differentiable:
        return "none: asking for it raises LookupError"
    return "none: gradients stop here"


def _planner(definition: OpDefinition) -> dict[str, Any]:
    """Describes the planner's view of an op: its traits, and the functions registered for the planner."""
    planning = definition.planning
    position, in_place = planning.in_place or (0, None)
    key, batch = planning.batch or (None, None)
    functions = {
        "static": definition.static_value_fn,
        "specialize": planning.specialize,
        f"in place {position}": in_place,
        "lower": planning.lower,
        "of numbers": planning.of_numbers,
        "batch": batch,
        "batch key": key,
        **{f"before {maker.name}": rule for maker, rule in planning.exchanges.items()},
    }
    found: dict[str, Any] = {"traits": [trait.name or "" for trait in definition.traits]}
    return found | {label: _function(function) for label, function in functions.items() if function is not None}


def _samples(name: str) -> list[str]:
    """Finds the tests of a checkout that name the op. Rows of the sample tables come first."""
    row = re.compile(rf"""\w\(\s*["']{name}["']\s*,""")
    mention = re.compile(rf"""["']{name}["']|raw_ops\.{name}\b""")
    rows, mentions = [], []
    for path, text in _tests():
        if name not in text:
            continue
        lines = {text.count("\n", 0, each.start()) + 1 for each in row.finditer(text)}
        rows += [_place(path, line) for line in sorted(lines)]
        others = {text.count("\n", 0, each.start()) + 1 for each in mention.finditer(text)} - lines
        mentions += [_place(path, line) for line in sorted(others)]
    return rows or mentions


@functools.cache
def _tests() -> list[tuple[str, str]]:
    folder = _ROOT / "tests"
    paths = [
        path for path in sorted(folder.rglob("test_*.py")) if path.relative_to(folder).parts[0] not in ("golden", "cli")
    ]
    return [(str(path), path.read_text()) for path in paths]


# ---- text --------------------------------------------------------------------------------------------------------


def _lines(report: dict[str, Any]) -> Iterator[str]:
    yield report["signature"]
    for name, text in report["attrs"].items():
        yield f"  {name}: {text}"
    yield f"defined    {report['defined']}"
    for place in report["factory"]:
        yield f"  through  {place}"
    yield from _function_lines("kernel", report["kernel"])
    yield from _function_lines("shape", report["shape"] or "the kernel, run on torch's meta device")
    yield from _function_lines("gradient", report["gradient"])
    planner = dict(report["planner"])
    yield f"traits     {', '.join(planner.pop('traits')) or 'none'}"
    for label, function in planner.items():
        yield from _function_lines(label, function)
    places = report["samples"]
    for label, place in zip(["samples", *[""] * len(places)], places[:_SHOWN_SAMPLES]):
        yield f"{label:<10} {place}"
    if len(places) > _SHOWN_SAMPLES:
        yield f"           and {len(places) - _SHOWN_SAMPLES} more"


def _function_lines(label: str, function: dict[str, Any] | str | None) -> Iterator[str]:
    if function is None or isinstance(function, str):
        yield f"{label:<10} {function or 'none'}"
        return
    yield f"{label:<10} {_named(function)}"
    for called in function["calls"]:
        yield f"  calls    {_named(called)}"


def _named(function: dict[str, Any]) -> str:
    return f"{function['at']}  {function['name']}" if function["at"] else function["name"]
