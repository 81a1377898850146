"""The weighted grammar of random programs.

A value has a dtype (F float, D float64, i int32, l int64, b bool), a shape whose dimensions are numbers or names (a name stands for a size
that differs between runs), and a bound of its magnitude as a power of two.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from differential.program import Counter, Statement

Shape = tuple[Any, ...]
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 12, 15, 16, 16, 17, 24, 31, 32, 33, 48, 64, 65)
NAMES = {"F": "F", "D": "tf.float64", "i": "tf.int32", "l": "tf.int64", "b": "tf.bool"}
DATA = {"F": "f", "D": "d", "i": "i", "l": "l", "b": "b"}
HIGHEST = 9.0  # bound of magnitudes, as a power of two


@dataclass(frozen=True)
class Val:
    name: str
    dtype: str
    shape: Shape
    bound: float = 2.0
    differentiable: bool = True


Made = tuple[str, str, Shape, float]
OPS: dict[str, list[tuple[float, Callable[..., Any]]]] = {"smooth": [], "exact": [], "leaf": []}


class Refused(Exception):
    """The op has no suitable operands."""


def op(weight: float = 1.0, *, exact: bool = False) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        OPS["smooth"].append((weight, function))
        if exact:
            OPS["exact"].append((weight, function))
        return function

    return register


class Builder:
    """Appends statements. Bodies of loops and branches have a builder of their own, which shares the names."""

    def __init__(self, r: random.Random, names: Counter, mode: str, sizes: list[dict[str, int]], limit: int) -> None:
        self.r, self.names, self.mode, self.sizes, self.limit = r, names, mode, sizes, limit
        self.values: list[Val] = []
        self.statements: list[Statement] = []
        self.uses: set[str] = set()
        self.parent: Builder | None = None
        self.depth = 0

    # -- values

    def size(self, shape: Shape) -> int:
        """The most elements in any run."""
        most = 0
        for sizes in self.sizes:
            total = 1
            for d in shape:
                total *= d if isinstance(d, int) else sizes.get(d, 4)
            most = max(most, total)
        return most

    def use(self, value: Val) -> str:
        self.uses.add(value.name)
        return value.name

    def pick(self, dtype: str = "F", test: Callable[[Val], bool] | None = None, *, recent: float = 0.75) -> Val:
        found = [v for v in self.values if v.dtype in dtype and (test is None or test(v))]
        if not found:
            raise Refused
        if self.r.random() < recent:
            found = found[-5:]
        value = self.r.choice(found)
        self.uses.add(value.name)
        return value

    def add(self, expression: str, dtype: str, shape: Shape, bound: float = 2.0, *, prefix: str = "x") -> Val:
        if self.size(shape) > self.limit or len(shape) > 5:
            raise Refused
        if dtype in "FD" and bound > HIGHEST:
            shift = 2.0 ** -int(bound - 2)
            expression, bound = f"({expression}) * {shift!r}", 3.0
        name = self.names.name(prefix)
        value = Val(name, dtype, shape, bound)
        self.statement((name,), f"{name} = {expression}")
        self.values.append(value)
        return value

    def add_many(self, expression: str, results: list[tuple[str, Shape, float]]) -> list[Val]:
        for _, shape, bound in results:
            if self.size(shape) > self.limit or bound > HIGHEST + 4:
                raise Refused
        made = [Val(self.names.name("x"), dtype, shape, bound) for dtype, shape, bound in results]
        names = tuple(v.name for v in made)
        self.statement(names, f"{', '.join(names)}{',' if len(names) == 1 else ''} = {expression}")
        self.values += made
        return made

    def statement(self, names: tuple[str, ...], text: str, *, keep: bool = False) -> None:
        own = {n for s in self.statements for n in s.names}
        uses = {n for n in self.uses if n not in names}
        if self.parent is not None:
            self.parent.uses |= {n for n in uses if n not in own}
        self.statements.append(Statement(names, text, tuple(sorted(uses)), keep))
        self.uses = set()

    def constant(self, dtype: str, shape: Shape, bound: float = 2.0, kind: str | None = None) -> str:
        assert all(isinstance(d, int) for d in shape)
        kind = kind or ("grid" if self.mode == "exact" else "normal")
        text = f"data({self.r.randrange(10**6)}, {list(shape)}, {kind!r}, {DATA[dtype]!r})"
        if bound < 2.0 and dtype in "FD":
            text = f"({text} * {2.0 ** int(bound - 2)!r}).astype({'N' if dtype == 'F' else 'np.float64'})"
        return f"tf.constant({text})"

    def fresh(self, dtype: str, shape: Shape, bound: float = 2.0) -> str:
        """An expression of this shape: a constant or a variable."""
        if self.parent is None and dtype == "F" and self.r.random() < 0.5:
            return self.use(self.variable(shape, bound))
        return self.constant(dtype, shape, bound)

    def variable(self, shape: Shape, bound: float = 2.0) -> Val:
        name = self.names.name("v")
        resource = self.r.random() < 0.75
        kind = "grid" if self.mode == "exact" else "normal"
        scale = "" if bound >= 2 else f" * N({2.0 ** int(bound - 2)!r})"
        saved, self.uses = self.uses, set()
        self.statement(
            (name, name + "_ref"),
            f"{name}_ref = tf.get_variable({name!r}, initializer=data({self.r.randrange(10**6)}, {list(shape)}, {kind!r}){scale}, use_resource={resource})\n"
            f"{name} = {name}_ref.read_value()",
        )
        self.uses = saved
        value = Val(name, "F", shape, bound)
        self.values.append(value)
        return value

    def child(self, values: list[Val]) -> Builder:
        child = Builder(self.r, self.names, self.mode, self.sizes, min(self.limit, 20000))
        child.parent, child.depth = self, self.depth + 1
        child.values = [v for v in self.values if self.size(v.shape) <= 4000][-8:] + values
        return child

    def grow(self, count: int) -> None:
        table = OPS["exact" if self.mode == "exact" else "smooth"]
        weights = [w for w, _ in table]
        for _ in range(count):
            for _ in range(30):
                (_, function) = self.r.choices(table, weights)[0]
                before = len(self.values), len(self.statements)
                self.uses = set()
                try:
                    function(self)
                    break
                except (Refused, ValueError, IndexError, ZeroDivisionError):  # no size or value fits
                    del self.values[before[0] :], self.statements[before[1] :]
                    continue

    def function(
        self, arguments: list[Val], wanted: Callable[[Val], bool], results: list[tuple[str, Shape, float]]
    ) -> str:
        """Defines a Python function; its results have these dtypes and shapes."""
        outer, self.uses = self.uses, set()
        child = self.child(arguments)
        child.grow(self.r.randint(1, 6))
        chosen = []
        for dtype, shape, bound in results:
            found = [v for v in child.values if v.dtype == dtype and v.shape == shape]
            value = self.r.choice(found[-4:]) if found else next(a for a in arguments if a.shape == shape)
            text = value.name
            if not any(value.name in s.names for s in child.statements) and value.name not in {
                a.name for a in arguments
            }:
                self.uses.add(value.name)
            if dtype in "FD" and value.bound > bound:
                text = (
                    f"tf.tanh({text})"
                    if self.mode != "exact"
                    else f"tf.clip_by_value({text}, {-(2.0**bound)!r}, {2.0**bound!r})"
                )
            chosen.append(text)
        name = self.names.name("f")
        indented = "".join("    " + line + "\n" for s in child.statements for line in s.text.split("\n"))
        text = f"def {name}({', '.join(a.name for a in arguments)}):\n{indented}    return {', '.join(chosen)}"
        inner = {a.name for a in arguments}
        self.uses = {n for n in self.uses if n not in inner}
        self.statement((name,), text)
        self.uses = outer | {name}
        return name


def argument(b: Builder, dtype: str, shape: Shape, bound: float) -> Val:
    return Val(b.names.name("a"), dtype, shape, bound)


def broadcast(a: Shape, b: Shape) -> Shape | None:
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    out = []
    for x, y in zip(a, b):
        if x == y or y == 1:
            out.append(x)
        elif x == 1:
            out.append(y)
        else:
            return None
    return tuple(out)


def partner(b: Builder, x: Val, dtype: str | None = None) -> Val | None:
    """An operand that broadcasts with `x`; None for a number."""
    dtype = dtype or x.dtype
    found = [v for v in b.values if v.dtype == dtype and broadcast(x.shape, v.shape) is not None]
    if found and b.r.random() < 0.75:
        value = b.r.choice(found[-8:])
        b.uses.add(value.name)
        return value
    shape = tuple(d if b.r.random() < 0.6 and isinstance(d, int) else 1 for d in x.shape)
    shape = shape[b.r.randint(0, len(shape)) :] if b.r.random() < 0.4 else shape
    if b.r.random() < 0.3 or b.size(shape) > 5000:
        return None
    if dtype == "F":
        saved, b.uses = b.uses, set()
        if b.parent is None and b.r.random() < 0.5:
            value = b.variable(shape)
        else:
            value = b.add(b.constant(dtype, shape), dtype, shape, 2.0, prefix="c")
        b.uses = saved | {value.name}
        return value
    return None
