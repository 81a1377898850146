"""Programs of Python control flow, random ones too: tensors do what numbers do."""

from __future__ import annotations

import _pydecimal
import argparse
import ast
import configparser
import difflib
import fractions
import inspect
import json
import linecache
import pprint
import random
import statistics
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker as tf
from stoker._src.runtime.autograph import convert

pytestmark = pytest.mark.usefixtures("eager", "equality")


# ---- programs of numbers ----------------------------------------------------------------------------------------
# Each is run by Python with numbers, by Python with eager tensors, and as a tf.function with tensors.

OFFSET = 5


def branches(x, y):
    if x > y:
        z = x * 2
    elif x == y:
        z = 7
    else:
        z = -y
    return z


def one_branch(x, y):
    if x > 0:
        y = y + x
        unused = y
        y = unused * 2
    return y


def early_returns(x, y):
    if x > 5:
        return x
    if y > 5:
        if x < 0:
            return y
        x += 1
    x *= 2
    return x + y


def return_from_loop(x, y):
    while x < 10:
        x += 3
        if x == y:
            return x * 100
    return x


def return_from_nested_loops(x, y):
    for i in tf.range(4):
        for j in tf.range(4):
            if i * j == x:
                return i * 10 + j
        if i == y:
            return -i
    return 99


def break_and_continue(x, y):
    total = 0
    while x > 0:
        x -= 1
        if x == y:
            break
        if x % 2 == 0:
            continue
        total += x
    return total * 100 + x


def loop_else(x, y):
    for _ in tf.range(3):
        x -= 1
        if x < y:
            break
    else:
        x = x * 10
    while y < 3:
        y += 1
    else:
        y = -y
    return x + y


def python_loop(x, y):
    for i in range(4):
        if x > i:
            continue
        y += i
    for k in [1, 2, 3]:
        x = x * k
        if k == 2:
            break
    return x + y


def defined_by_the_loop(x, y):
    for i in tf.range(abs(x) + 1):
        last = i * y
    return last + i


def countdown(x, y):
    total = 0
    for i in tf.range(x, x - y * y, -2):
        total = total * 10 + i
    return total


def conditions(x, y):
    a = 1 if x > 0 and y > 0 else 2
    b = 10 if x > 0 or y > 0 else 20
    c = 100 if not x > y else 200
    d = 1000 if -2 < x <= y < 9 else 2000
    return a + b + c + d


def short_circuit(x, y):
    if x != 0 and 12 // x > y:
        return 1
    return 0


def helpers(x, y):
    def clipped(v, limit=3):
        if v > limit:
            return limit
        return v

    return clipped(x) + clipped(y, limit=OFFSET) + outside(x)


def outside(v):
    while v > 2:
        v -= 2
    return v


def closures(x, y):
    k = 1

    def add(v):
        return v + k

    if x > y:
        k = 10
    twice = lambda v: v * k if v > 0 else -v  # noqa: E731
    return add(x) + twice(y)


def shared_variable(x, y):
    total = 0

    def add(v):
        nonlocal total
        if v > 0:
            total = total + v
        else:
            total = total - 1

    add(x)
    add(y)
    return total


def recursion(x, y):
    return power(3, x) + y


def power(n, x):
    if n == 0:
        return 1
    if x > 2:
        return power(n - 1, x) * x
    return power(n - 1, x) + x


def default_and_keywords(x, y):
    return apply(x, y=y) + apply(x)


def apply(x, y=3, *, z=4):
    if x > 0:
        return x + y + z
    return y


def places(x, y):
    class Box:
        value = 0

    box, found, pair = Box(), {"n": 0}, [0, 0]
    box.value = 1
    if x > 0:
        box.value = x
        found["n"] = y
    else:
        pair[1] = x
    while found["n"] < 4:
        found["n"] += 1
    return box.value * 100 + found["n"] * 10 + pair[1]


def assignment_expressions(x, y):
    if (z := x + y) > 3:
        return z
    while (w := x * 2) < 8:
        x += 1
    return w - z


def assignment_expressions_in_loops(x, y):
    for _ in tf.range(3):
        if (v := x + y) > 3:
            x -= v
        y += v - 1
    return x + y


def called_functions_assign(x, y):
    total = 1

    def add():
        nonlocal total
        total = total + x

    def add_twice():
        add()
        add()

    while x > 0:
        add_twice()
        x -= 1
    if total > y:
        add()
    return total


def exceptions(x, y):
    try:
        if x > y:
            z = x
        else:
            z = y
        int("7")
    except ValueError:
        z = 0
    finally:
        w = 1
    try:
        raise KeyError("k")
    except KeyError:
        w += 1
    return z + w


def contexts(x, y):
    with tf.name_scope("a"):
        if x > 0:
            return x
        while y > 0:
            with tf.name_scope("b"):
                y -= 2
                if y == 1:
                    break
    return y


def structures(x, y):
    pair, state = (x, y), {"a": x, "b": [y, 1]}
    while state["a"] < 5:
        state = {"a": state["a"] + 1, "b": [state["b"][0] + 1, state["b"][1]]}
    if x > y:
        pair = (y, x)
    first, second = pair
    return first * 10 + second + state["b"][0]


def matching(x, y):
    match (1, OFFSET):
        case (1, n) if n > 3:
            z = x + n
        case _:
            z = y
    if x > y:
        return z
    return z + 1


def deleted(x, y):
    z = 1
    if x > 0:
        w = 2
    else:
        w = 3
    del z
    return w + y


def not_hoisted(x, y):
    """A variable that both branches use for themselves keeps its value before for both."""
    t = x
    if x > y:
        t = t + 1
        r = t
    else:
        r = t * 2
    t = 5
    return r + t


def comprehension(x, y):
    return sum([v if x > 0 else -v for v in [x, y, 3] if OFFSET > 3])


def nested_loops(x, y):
    total = 0
    i = x - x
    while i < 4:
        i += 1
        j = x - x
        while True if OFFSET < 0 else j < 10:
            j += 1
            if j > i + y:
                break
            total += j
        if total > 20:
            break
    return total + i


PROGRAMS = [
    branches,
    one_branch,
    early_returns,
    return_from_loop,
    return_from_nested_loops,
    break_and_continue,
    loop_else,
    python_loop,
    defined_by_the_loop,
    countdown,
    conditions,
    short_circuit,
    helpers,
    closures,
    shared_variable,
    recursion,
    default_and_keywords,
    places,
    assignment_expressions,
    assignment_expressions_in_loops,
    called_functions_assign,
    exceptions,
    contexts,
    structures,
    matching,
    deleted,
    not_hoisted,
    comprehension,
    nested_loops,
]
ARGUMENTS = [(3, 1), (1, 3), (-2, 4), (6, 6), (0, 0), (-4, -4), (4, 7), (9, -1)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_of_tensors_are_programs_of_numbers(program):
    """A program gives the same with numbers, with eager tensors and as a tf.function of tensors."""
    function = tf.function(program)
    converted = tf.autograph.to_graph(program)
    for x, y in ARGUMENTS:
        want = int(program(x, y))
        assert int(program(tf.constant(x), tf.constant(y))) == want
        assert int(converted(x, y)) == want
        assert int(function(tf.constant(x), tf.constant(y))) == want, (x, y)
    assert function.experimental_get_tracing_count() == 1


# ---- random programs --------------------------------------------------------------------------------------------

NAMES = ["a", "b", "c"]
HELPER = "def helper(z):\n    while z > 3:\n        z -= 2\n    if z < -2:\n        return z + 3\n    return z\n"
names = st.sampled_from(NAMES)
numbers = st.integers(-3, 5).map(str)
comparisons = st.builds("{} {} {}".format, names, st.sampled_from(["<", ">", "==", "!="]), names | numbers)
tests = st.recursive(
    comparisons | st.builds("{} < {} <= {}".format, numbers, names, names),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner) | st.builds("not {}".format, inner)
    ),
    max_leaves=3,
)
expressions = st.recursive(
    names | numbers,
    lambda inner: (
        st.builds("({} - {})".format, inner, inner)
        | st.builds("({} if {} else {})".format, inner, tests, inner)
        | st.builds("helper({})".format, inner)
    ),
    max_leaves=3,
)


def indented(lines):
    return [f"    {line}" for line in lines]


@st.composite
def statements(draw, depth, in_loop):
    """The lines of a block: assignments, branches, loops (of bounded length) and exits."""
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(
            st.sampled_from(["set", "set", "if", "if", "while", "for", "leave"] if depth < 3 else ["set", "leave"])
        )
        if kind == "set":
            lines.append(f"{draw(names)} {draw(st.sampled_from(['=', '+=', '-=']))} {draw(expressions)}")
        elif kind == "if":
            lines += [f"if {draw(tests)}:", *indented(draw(statements(depth + 1, in_loop)))]
            if draw(st.booleans()):
                lines += ["else:", *indented(draw(statements(depth + 1, in_loop)))]
        elif kind == "while":
            count = f"n{depth}"
            head = [f"{count} = a - a", f"while {count} < {draw(st.integers(1, 4))} and {draw(tests)}:"]
            lines += [*head, f"    {count} += 1", *indented(draw(statements(depth + 1, True)))]
        elif kind == "for":
            item = f"i{depth}"
            lines += [f"for {item} in tf.range({draw(st.integers(0, 4))} + (a - a)):"]
            lines += [*indented(draw(statements(depth + 1, True))), f"    {draw(names)} += {item}"]
        else:
            exits = [f"return {draw(expressions)}", *(["break", "continue"] if in_loop else [])]
            lines.append(draw(st.sampled_from(exits)))
            break
    return lines


@settings(max_examples=20, deadline=None)
@given(statements(0, False), st.lists(st.tuples(*[st.integers(-4, 6)] * 3), min_size=2, max_size=2))
def test_random_programs(lines, inputs):
    """Whatever statements are put together, a tf.function does what Python does."""
    source = HELPER + "\n".join(["def f(a, b, c):", *indented(lines), "    return a - b + 3 * c"]) + "\n"
    linecache.cache["<program>"] = (len(source), None, source.splitlines(True), "<program>")
    namespace = {"tf": tf}
    exec(compile(source, "<program>", "exec"), namespace)
    program = namespace["f"]
    function = tf.function(program)
    for values in inputs:
        want = int(program(*values))
        assert int(function(*map(tf.constant, values))) == want, (source, values)


# ---- programs that were not written for it -----------------------------------------------------------------------


def _configuration():
    parser = configparser.ConfigParser()
    parser.read_string("[a]\nx=1\ny=%(x)s2\n[b]\nz: 3\n")
    return {name: dict(parser[name]) for name in parser.sections()}


def _arguments():
    parser = argparse.ArgumentParser(prog="x")
    parser.add_argument("a", type=int)
    parser.add_argument("--b", nargs="*", default=[])
    return parser.parse_args(["3", "--b", "1", "2"]), parser.format_help()


@pytest.mark.parametrize(
    "program",
    [
        lambda: textwrap.fill("the quick brown fox jumps over the lazy dog " * 5, width=33, initial_indent="* "),
        lambda: difflib.SequenceMatcher(None, "abcdefg" * 9, "abxdefz" * 9).get_opcodes(),
        lambda: ast.unparse(ast.parse(inspect.getsource(textwrap))),
        lambda: (statistics.quantiles([1, 5, 2, 8, 9, 3], n=4), fractions.Fraction("3.14159").limit_denominator(100)),
        lambda: pprint.pformat({"a": list(range(40)), "b": {"c": "x" * 100}}, width=60),
        lambda: str(_pydecimal.Decimal("1.1") ** 5 / _pydecimal.Decimal(7).sqrt()),
        lambda: json.encoder.JSONEncoder(indent=2, sort_keys=True).encode({"b": [1, 2.5, None, "x"], "a": {}}),
        lambda: random.Random(5).sample(range(50), 5),
        _configuration,
        _arguments,
    ],
)
def test_python_stays_python(program, monkeypatch):
    """Code of the standard library, converted with all that it calls, does what it did."""
    monkeypatch.setattr(convert, "_INSTALLED", ())
    assert repr(tf.autograph.to_graph(program)()) == repr(program())
