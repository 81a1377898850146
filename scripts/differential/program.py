"""A generated program: statements that build a graph, and runs of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Statement:
    """A part of the source, the names it defines and the names it uses."""

    names: tuple[str, ...]
    text: str
    uses: tuple[str, ...]
    keep: bool = False


@dataclass(frozen=True)
class Run:
    fetches: tuple[str, ...]
    feeds: tuple[tuple[str, str], ...]
    times: int = 1


@dataclass(frozen=True)
class Program:
    seed: int
    statements: tuple[Statement, ...]
    runs: tuple[Run, ...]
    exact: bool = False  # whether all numbers are small multiples of a power of two, and every sum is exact
    ordered: bool = True  # whether TensorFlow defines the order of all effects
    special: bool = False  # whether there are NaN, infinities and numbers of very different sizes
    limits: tuple[tuple[str, int], ...] = ()
    threads: int = 1

    def needed(self) -> Program:
        """Without the statements that no fetch needs."""
        wanted = {name for run in self.runs for name in run.fetches}
        kept: list[Statement] = []
        for each in reversed(self.statements):
            if each.keep or wanted.intersection(each.names):
                wanted.update(each.uses)
                kept.append(each)
        defined = {name for each in kept for name in each.names}
        runs = tuple(replace(run, feeds=tuple(f for f in run.feeds if f[0] in defined)) for run in self.runs)
        return replace(self, statements=tuple(reversed(kept)), runs=runs)

    def source(self) -> str:
        lines = [each.text for each in self.statements]
        lines += (
            ["session.run([tf.global_variables_initializer(), tf.tables_initializer()])"]
            if any(run.fetches for run in self.runs)
            else []
        )
        for run in self.runs:
            if not run.fetches:
                continue
            fetches = ", ".join(run.fetches)
            feeds = ", ".join(f"{name}: {value}" for name, value in run.feeds)
            lines += [f"run([{fetches}], {{{feeds}}})"] * run.times
        return "\n".join(lines) + "\n"


@dataclass
class Counter:
    """Names."""

    next: int = 0
    made: dict[str, int] = field(default_factory=dict)

    def name(self, prefix: str) -> str:
        self.next += 1
        return f"{prefix}{self.next}"
