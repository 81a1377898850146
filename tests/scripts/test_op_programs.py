"""Ops with state: the programs that compare them with TensorFlow, against what TensorFlow found in them."""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import stoker.compat.v1 as tf
from stoker._src.graph import context

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "op_programs" / "values"


def _part(name: str) -> Any:
    """A module of scripts/."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return importlib.import_module(f"op_comparison.{name}")
    finally:
        sys.path.remove(str(ROOT / "scripts"))


programs, compare, exchange = _part("programs"), _part("compare"), _part("exchange")
RUNS = [f"{name}{mode}" for name, each in programs.PROGRAMS.items() for mode in ("", ", eager")[: 1 + each.eager]]


@pytest.fixture(scope="module")
def golden() -> Any:
    return exchange.Reader(GOLDEN, tf)


@pytest.mark.filterwarnings("ignore")  # some programs call deprecated functions
@pytest.mark.parametrize("run", RUNS)
def test_program_finds_what_tensorflow_finds(run: str, golden: Any) -> None:
    """A program's values, dtypes and errors are TensorFlow's; floating point numbers to a few units."""
    name, eager = run.removesuffix(", eager"), run.endswith(", eager")
    with context.enter_eager() if eager else contextlib.nullcontext():
        found = programs.run_program(tf, name, eager=eager)
    expected = golden.unpack(golden.structure[run])
    assert len(found) == len(expected)
    for number, (one, other) in enumerate(zip(found, expected)):
        difference = compare.compare_values(one, other, elementwise=False)
        assert not difference.text, f"output {number}: {difference.text}"
        assert difference.units <= 64, f"output {number}: {difference.units:.3g} units"


def test_no_reason_stands_for_an_op_that_is_compared() -> None:
    """The ops that the table says are not compared have no program."""
    covered = {op for each in programs.PROGRAMS.values() for op in each.ops}
    assert not covered & set(_part("reasons").NOT_COMPARED)
