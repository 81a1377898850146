"""Unmodified TensorFlow 1 programs under `python -m stoker run` print what they print under TensorFlow 1.15."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts.compare import difference
from tests.scripts.events import described

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = ROOT / "tests" / "scripts"


@pytest.mark.parametrize("path", sorted((SCRIPTS / "programs").glob("*.py")), ids=lambda path: path.stem)
def test_a_program_prints_what_it_prints_under_tensorflow(path):
    """Losses, accuracies and names of variables, line by line."""
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "run", str(path)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert difference((SCRIPTS / "expected" / f"{path.stem}.txt").read_text(), done.stdout) == ""


def test_training_programs_print_and_write_what_they_do_under_tensorflow(tmp_path):
    """Supervisors, monitored sessions, hooks, queues and summaries: losses and names line by line, event files record by record."""
    paths = sorted((SCRIPTS / "training").glob("*.py"))
    for path in paths:
        (tmp_path / path.stem).mkdir()
    command = [sys.executable, str(SCRIPTS / "run_training.py"), str(tmp_path), *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=600)
    for path in paths:
        log = (tmp_path / f"{path.stem}.err").read_text()
        expected = SCRIPTS / "expected" / f"{path.stem}.txt"
        assert difference(expected.read_text(), (tmp_path / f"{path.stem}.out").read_text()) == "", (path.stem, log)
        events = described(tmp_path / path.stem)
        assert difference(expected.with_suffix(".events.txt").read_text(), events) == "", (path.stem, log)
    assert done.returncode == 0


def test_the_comparison_sees_differences():
    """Words, numbers and missing lines are all told apart."""
    assert difference("loss 1.0000\n", "loss 1.0001\n") == ""
    assert "1.1000 instead of 1.0000" in difference("loss 1.0000\n", "loss 1.1000\n")
    assert "instead of" in difference("loss 1.0000\n", "cost 1.0000\n")
    assert "lines" in difference("a\nb\n", "a\n")
