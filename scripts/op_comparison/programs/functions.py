"""Ops that call functions: branches, loops and calls, from GraphDefs with a library."""

from __future__ import annotations

import numpy as np

from . import Run, program


def _function(name: str, body: str, inputs: str = "x", outputs: str = "y", result: str = "r:z:0") -> str:
    """A function of float32 tensors; `body` holds its nodes."""
    arguments = " ".join(f'input_arg {{ name: "{each}" type: DT_FLOAT }}' for each in inputs.split())
    results = " ".join(
        f'output_arg {{ name: "{each}" type: {"DT_BOOL" if each == "go" else "DT_FLOAT"} }}' for each in outputs.split()
    )
    returned = " ".join(
        f'ret {{ key: "{each}" value: "{value}" }}' for each, value in zip(outputs.split(), result.split())
    )
    return f'function {{ signature {{ name: "{name}" {arguments} {results} }} {body} {returned} }}'


def _node(name: str, op: str, inputs: str, attrs: str = 'attr { key: "T" value { type: DT_FLOAT } }') -> str:
    sources = " ".join(f'input: "{each}"' for each in inputs.split())
    return f'node_def {{ name: "{name}" op: "{op}" {sources} {attrs} }}'


def _constant(name: str, value: float) -> str:
    return (
        f'node_def {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} '
        f'attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: {value} }} }} }} }}'
    )


LIBRARY = "library { " + " ".join([
    _function("twice", _node("r", "AddV2", "x x")),
    _function("squared", _node("r", "Mul", "x x")),
    _function("minus_one", _constant("one", 1) + _node("r", "Sub", "x one:output:0")),
    _function("is_small", _constant("limit", 100) + _node("r", "Less", "x limit:output:0"), outputs="go"),
    _function(
        "absent",
        'node_def { name: "r" op: "FakeParam" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }',
        result="r:output:0",
    ),
]) + " }"  # fmt: skip
FLOATS = 'attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }'


def _placeholder(name: str, dtype: str) -> str:
    return f'node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: {dtype} }} }} }}'


def _called(run: Run, node: str, chosen: str | None, feeds: list[dict[str, object]]) -> None:
    """Runs the node "call" of a graph with a placeholder x (and one for `chosen`), and its gradient where it has one."""
    text = f'{_placeholder("x", "DT_FLOAT")} {_placeholder("c", chosen) if chosen else ""} node {{ name: "call" {node} }} {LIBRARY}'
    names = ["call:0", "x:0", *(["c:0"] if chosen else [])]
    call, *places = run.load(text, names)
    for values in feeds:
        run.get(call, {place: values[key] for place, key in zip(places, "xc")})
    if (chosen in (None, "DT_BOOL", "DT_INT32") and "If" not in node) or chosen == "DT_BOOL":
        # (TensorFlow cannot differentiate an If whose condition is a number.)
        run.get(run.tf.gradients(call, places[0]), {place: feeds[0][key] for place, key in zip(places, "xc")})


def _name(key: str, function: str) -> str:
    return f'attr {{ key: "{key}" value {{ func {{ name: "{function}" }} }} }}'


def _conditional(run: Run, op: str) -> None:
    for dtype, flags in (("DT_BOOL", (True, False)), ("DT_FLOAT", (0.5, 0.0)), ("DT_INT32", (0, -3))):
        node = (
            f'op: "{op}" input: "c" input: "x" attr {{ key: "Tcond" value {{ type: {dtype} }} }} {FLOATS} '
            + _name("then_branch", "twice") + _name("else_branch", "squared")
        )  # fmt: skip
        _called(run, node, dtype, [{"x": np.float32(3), "c": flag} for flag in flags])


@program("If")
def branches(run: Run) -> None:
    _conditional(run, "If")


@program("StatelessIf", "FakeParam")
def stateless_branches(run: Run) -> None:
    _conditional(run, "StatelessIf")
    node = (
        f'op: "StatelessIf" input: "c" input: "x" attr {{ key: "Tcond" value {{ type: DT_BOOL }} }} {FLOATS} '
        + _name("then_branch", "twice") + _name("else_branch", "absent")
    )  # fmt: skip
    text = f'{_placeholder("x", "DT_FLOAT")} {_placeholder("c", "DT_BOOL")} node {{ name: "call" {node} }} {LIBRARY}'
    call, x, c = run.load(text, ["call:0", "x:0", "c:0"])
    run.get(call, {x: 4.0, c: True})


def _switch(run: Run, op: str) -> None:
    functions = " ".join(f'func {{ name: "{name}" }}' for name in ("twice", "squared", "minus_one"))
    node = f'op: "{op}" input: "c" input: "x" {FLOATS} attr {{ key: "branches" value {{ list {{ {functions} }} }} }}'
    _called(run, node, "DT_INT32", [{"x": np.float32(5), "c": index} for index in (0, 1, 2, 3, -1)])


@program("Case")
def cases(run: Run) -> None:
    _switch(run, "Case")


@program("StatelessCase")
def stateless_cases(run: Run) -> None:
    _switch(run, "StatelessCase")


def _loop(run: Run, op: str) -> None:
    node = (
        f'op: "{op}" input: "x" attr {{ key: "T" value {{ list {{ type: DT_FLOAT }} }} }} '
        + _name("cond", "is_small") + _name("body", "twice")
    )  # fmt: skip
    text = f'{_placeholder("x", "DT_FLOAT")} node {{ name: "call" {node} }} {LIBRARY}'
    call, place = run.load(text, ["call:0", "x:0"])
    for value in (3.0, 200.0, np.nan, np.inf):
        run.get(call, {place: value})


@program("While")
def loops(run: Run) -> None:
    _loop(run, "While")


@program("StatelessWhile")
def stateless_loops(run: Run) -> None:
    _loop(run, "StatelessWhile")


@program("PartitionedCall")
def calls(run: Run) -> None:
    _called(run, f'op: "PartitionedCall" input: "x" {FLOATS} {_name("f", "squared")}', None, [{"x": np.float32(3)}])


@program("StatefulPartitionedCall")
def stateful_calls(run: Run) -> None:
    node = f'op: "StatefulPartitionedCall" input: "x" {FLOATS} {_name("f", "squared")}'
    _called(run, node, None, [{"x": np.float32(3)}, {"x": np.float32(np.inf)}])


@program("SymbolicGradient")
def gradients_of_functions(run: Run) -> None:
    kinds = 'attr { key: "Tin" value { list { type: DT_FLOAT type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }'
    for name in ("squared", "twice", "minus_one"):
        node = f'name: "call" op: "SymbolicGradient" input: "x" input: "dy" {kinds} {_name("f", name)}'
        text = f"{_placeholder('x', 'DT_FLOAT')} {_placeholder('dy', 'DT_FLOAT')} node {{ {node} }} {LIBRARY}"
        call, x, dy = run.load(text, ["call:0", "x:0", "dy:0"])
        for value in (np.float32(3), np.array([1, np.inf, -2], np.float32)):
            run.get(call, {x: value, dy: 2 * np.ones_like(value)})
