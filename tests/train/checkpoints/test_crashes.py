"""No checkpoint is lost: whatever happens while one is saved, the old or the new one is there afterwards. `scripts/crashes.py` tries all."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))

from crashes import build, sweep

COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="the shim needs a C compiler and Linux"
)
def test_a_crash_or_a_failing_disk_loses_nothing(tmp_path):
    """The saving process is killed at a file call, or the call fails, or the disk is full from there on.

    The latest checkpoint is then the old or the new one, bit for bit, and the next save leaves no temporary file.
    """
    assert COMPILER is not None
    scenarios = ["saver", "saver overwrites", "saver V1", "manager", "saved_model"]
    results = sweep(str(tmp_path), build(str(tmp_path), COMPILER), 17, scenarios, timeout=400)
    assert list(results) == scenarios
    for counts in results.values():
        assert counts["failures"] == []
        assert counts["killed"] > 0
        assert counts["raised"] > 0
        assert counts["old"] > 0
