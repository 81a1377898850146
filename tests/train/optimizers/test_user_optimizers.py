"""Optimizers that users wrote for TensorFlow train here as they do there."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[2] / "golden" / "train"
_spec = importlib.util.spec_from_file_location("user_optimizers", GOLDEN / "user_optimizers.py")
assert _spec is not None and _spec.loader is not None
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)

EXPECTED = {version: json.loads((GOLDEN / f"user_optimizers_{version}.json").read_text()) for version in ("115", "221")}


@pytest.mark.parametrize("version", EXPECTED)
@pytest.mark.parametrize("kind", programs.KINDS)
@pytest.mark.parametrize("name", programs.NAMES)
def test_users_optimizer_follows_tensorflow(name, kind, version, request):
    """Variables, slots and other state have TensorFlow's names and, after some steps, its values."""
    if kind == "eager":
        request.getfixturevalue("eager")
    found = programs.run(tf, name, kind)
    expected = EXPECTED[version][f"{name}|{kind}"]
    assert found["slots"] == expected["slots"]
    assert sorted(found["values"]) == sorted(expected["values"])
    for variable, value in expected["values"].items():
        np.testing.assert_allclose(found["values"][variable], value, rtol=1e-5, atol=1e-6, err_msg=variable)
