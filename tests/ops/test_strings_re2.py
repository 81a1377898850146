"""Regular expressions are read and matched as RE2 does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import stoker as tf

GOLDEN = Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))

import regular_expressions  # noqa: E402


def test_patterns_match_and_are_refused_as_in_tensorflow(eager):
    """Each pattern matches what TensorFlow's matches, or both refuse it."""
    expected = json.loads((GOLDEN / "regular_expressions.json").read_text())
    found = regular_expressions.outcomes(tf)
    assert {key: value for key, value in found.items() if value != expected[key]} == {}
