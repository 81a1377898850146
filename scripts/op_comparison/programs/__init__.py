"""Ops that are more than functions of arrays, compared by little programs: set up, call, read back.

A program is written once, against `tf` of 1.x, and run by either library; both interpreters read this package. It names the ops
that it speaks for; what it records must be equal on both sides, and its graph must hold those ops.

    @program("StackV2", "StackPushV2", "StackPopV2")
    def stack(run):
        handle = run.raw.StackV2(max_size=3, elem_type=run.tf.float32)
        run.do(run.raw.StackPushV2(handle=handle, elem=1.0))
        run.get(run.raw.StackPopV2(handle=handle, elem_type=run.tf.float32))
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import text_format


@dataclass(frozen=True)
class Program:
    """A program, the ops it speaks for, and the modes it runs in."""

    name: str
    ops: tuple[str, ...]
    body: Callable[[Run], None]
    eager: bool
    producer: int | None
    gradients: tuple[str, ...]


PROGRAMS: dict[str, Program] = {}


def program(
    *ops: str, eager: bool = False, producer: int | None = None, gradients: tuple[str, ...] = ()
) -> Callable[[Callable[[Run], None]], Callable[[Run], None]]:
    """Registers a program for `ops`.

    `eager`: it also runs without a graph. `producer`: the version its graph claims, for ops that later ones removed. `gradients`:
    the ops whose derivatives it compares (by the functions that make them: which of several forms a library chooses is its own).
    """

    def register(body: Callable[[Run], None]) -> Callable[[Run], None]:
        PROGRAMS[body.__name__] = Program(body.__name__, ops, body, eager, producer, gradients)
        return body

    return register


class Run:
    """One run of a program: builds ops of `tf`, executes them, and gathers what it reads.

    `tf` is the 1.x module, `raw` its raw ops, `folder` an empty folder for files.
    """

    def __init__(self, tf: Any, folder: Path, *, eager: bool) -> None:
        self.tf, self.raw, self.folder, self.eager = tf, tf.raw_ops, folder, eager
        self.session = None if eager else tf.Session()
        self.found: list[np.ndarray] = []

    def do(self, made: Any, feeds: dict[Any, Any] | None = None) -> Any:
        """Executes what was made (eagerly it has been) and returns the values."""
        if self.session is not None:
            return self.session.run(made, feeds)
        return [self.do(item) for item in made] if isinstance(made, (list, tuple)) else _plain(made)

    def get(self, made: Any, feeds: dict[Any, Any] | None = None) -> Any:
        """As `do`, and the values (one, or a structure of them) are compared."""
        values = self.do(made, feeds)
        for value in _flatten(values):
            self.note(value)
        return values

    def note(self, value: Any) -> None:
        """Compares a value that the program has."""
        self.found.append(_as_array(value))

    def fails(self, make: Callable[[], Any]) -> None:
        """Compares the class of the error that making and executing something raises."""
        try:
            made = make()
            self.do([] if made is None else made)
        except Exception as error:
            kind = type(error).__name__
            self.note("argument" if kind in ("InvalidArgumentError", "ValueError", "TypeError") else kind)
        else:
            self.note("no error")

    def file(self, name: str, contents: bytes | None = None) -> str:
        """The path of a file, written if there are `contents`."""
        path = self.folder / name
        if contents is not None:
            path.write_bytes(contents)
        return str(path)

    def load(self, text: str, names: list[str], inputs: dict[str, Any] | None = None) -> list[Any]:
        """The tensors of a GraphDef in text form."""
        graph_def = text_format.Parse(text, self.tf.GraphDef())
        return self.tf.import_graph_def(graph_def, input_map=inputs, return_elements=names)


def run_program(tf: Any, name: str, *, eager: bool) -> list[np.ndarray]:
    """What the program found; then, of a graph, the ops that it speaks for and does not hold: none, on either side."""
    chosen = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as folder:
        if eager:
            run = Run(tf, Path(folder), eager=True)
            chosen.body(run)
            return run.found
        with tf.Graph().as_default() as graph:
            run = Run(tf, Path(folder), eager=False)
            if chosen.producer is not None:
                age_graph(tf, chosen.producer)
            with run.session:  # type: ignore[union-attr]
                chosen.body(run)
            run.note(" ".join(sorted(set(chosen.ops) - _ops_in(graph))))
    return run.found


def age_graph(tf: Any, producer: int) -> None:
    """Makes the current graph one of an older producer: a graph is as old as the oldest of what it imports."""
    graph_def = tf.GraphDef()
    graph_def.versions.producer = producer
    graph_def.node.add(name="age", op="NoOp")
    tf.import_graph_def(graph_def)


def _ops_in(graph: Any) -> set[str]:
    library = graph.as_graph_def().library.function
    return {op.type for op in graph.get_operations()}.union(node.op for each in library for node in each.node_def)


def _plain(made: Any) -> Any:
    return made.numpy() if hasattr(made, "numpy") else None


def _flatten(values: Any) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return [leaf for item in values for leaf in _flatten(item)]
    if isinstance(values, dict):
        return [leaf for key in sorted(values) for leaf in _flatten(values[key])]
    return [] if values is None else [values]


def _as_array(value: Any) -> np.ndarray:
    value = value.encode() if isinstance(value, str) else value
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


from . import functions, lists, older, quantized, queues, remaining, slopes, state, tables  # noqa: E402, F401 (they register programs)
