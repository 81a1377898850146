"""Unmodified TensorFlow 1 programs under `python -m stoker run` print what they print under TensorFlow 1.15."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts.compare import difference

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


def test_the_comparison_sees_differences():
    """Words, numbers and missing lines are all told apart."""
    assert difference("loss 1.0000\n", "loss 1.0001\n") == ""
    assert "1.1000 instead of 1.0000" in difference("loss 1.0000\n", "loss 1.1000\n")
    assert "instead of" in difference("loss 1.0000\n", "cost 1.0000\n")
    assert "lines" in difference("a\nb\n", "a\n")
