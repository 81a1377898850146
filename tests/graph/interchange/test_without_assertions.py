"""What guards against hostile files also does so where Python ignores assertions (`python -O`)."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILES = ["tests/runtime/plan/test_emit.py", "tests/graph/interchange/test_hostile_graph_defs.py"]
CHOSEN = "foreign_source or step_is_compiled or never_becomes_code or cannot_be_guessed or makes_no_sense"


def test_hostile_graphs_are_refused_without_assertions():
    """The tests of generated code and of hostile graphs pass under `python -O`."""
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestConfigWarning", "-k", CHOSEN]
    ended = subprocess.run(
        [sys.executable, "-O", "-m", "pytest", *options, *FILES],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
