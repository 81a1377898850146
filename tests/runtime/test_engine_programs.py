"""Small programs print what TensorFlow prints: names of ops and variables, values, classes of errors."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stoker.compat.v1 as tf

FOLDER = Path(__file__).parents[1] / "golden" / "engine"
ROOT = Path(__file__).parents[2]


def _maker():
    spec = importlib.util.spec_from_file_location("engine_programs", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = _maker()
GRAPH = dict(MAKER.programs((FOLDER / "graph.txt").read_text()))
EAGER = dict(MAKER.programs((FOLDER / "eager.txt").read_text()))


def _agrees(line: str, found: str) -> bool:
    if line.startswith("raises ") and found.startswith("raises "):
        return line.split()[1] in found.split()  # our class, or one it inherits from
    return line == found


def _compare(name: str, found: list[str], recorded: list[dict]) -> None:
    tables = [table[name] for table in recorded]
    for i, line in enumerate(found):
        expected = [table[i] for table in tables if i < len(table)]
        assert any(_agrees(each, line) for each in expected), f"{name}, line {i}: {line!r}, but TensorFlow: {expected}"
    assert len(found) in map(len, tables)


@pytest.mark.parametrize("name", GRAPH)
def test_programs_of_1x(name):
    """Each line is TensorFlow 1.15's or 2.21's."""
    recorded = [json.loads((FOLDER / f"{peer}.json").read_text()) for peer in ("tf1", "tf2")]
    _compare(name, MAKER.lines_of(tf, GRAPH[name], True), recorded)


def test_programs_of_2x():
    """In a process of 2.x behaviour, each line is TensorFlow 2.21's."""
    code = (
        "import importlib.util, json, sys; import stoker as tf\n"
        "spec = importlib.util.spec_from_file_location('engine_programs', sys.argv[1] + '/make.py')\n"
        "make = importlib.util.module_from_spec(spec); spec.loader.exec_module(make)\n"
        "text = open(sys.argv[1] + '/eager.txt').read()\n"
        "print(json.dumps({name: make.lines_of(tf, source, False) for name, source in make.programs(text)}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(FOLDER)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    recorded = json.loads((FOLDER / "eager.json").read_text())
    for name, lines in json.loads(done.stdout).items():
        _compare(name, lines, [recorded])
