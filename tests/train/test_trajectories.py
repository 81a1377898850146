"""Fifty steps of every training op and optimizer end where TensorFlow's do."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.graph.definition import find_definition

GOLDEN = Path(__file__).parent.parent / "golden" / "train"
_spec = importlib.util.spec_from_file_location("trajectories", GOLDEN / "trajectories.py")
assert _spec is not None and _spec.loader is not None
trajectories = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(trajectories)

OPS = np.load(GOLDEN / "ops.npz")
OPTIMIZERS = {version: np.load(GOLDEN / f"optimizers_{version}.npz") for version in ("115", "221")}

# Relative to the largest number of a trajectory.
TOLERANCE = {"float64": 1e-12, "float32": 1e-6, "complex64": 2e-6, "float16": 4e-3, "bfloat16": 2e-2}
# Of the ops on 16-bit numbers, TensorFlow rounds these differently at the end of an array, where its vectors do not fit.
BY_VECTORS = ("ApplyAdagrad", "ApplyAdadelta")


def _assert_close(found: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    allowed = TOLERANCE[dtype]
    np.testing.assert_allclose(found, expected, rtol=allowed, atol=allowed * max(1.0, np.abs(expected).max()))


def _raw(name: str, **inputs: Any) -> Any:
    definition = find_definition(name)
    assert definition is not None, f"{name} is not defined"
    return definition(**inputs)


@pytest.mark.parametrize("case", list(trajectories.op_cases()), ids=lambda case: case[0])
def test_op_follows_tensorflow(case):
    """A training op applied to random gradients (sparse ones with repeated rows) leaves what TensorFlow leaves.

    In 16 bits every operation is rounded where TensorFlow rounds it, to the bit.
    """
    key, name, variables, others, dtype, setting = case
    found = trajectories.run_op(tf, _raw, name, variables, others, dtype, setting)
    if dtype in ("float16", "bfloat16") and name.removeprefix("Resource") not in BY_VECTORS:
        np.testing.assert_array_equal(found, OPS[key])
    else:
        _assert_close(found, OPS[key], dtype)


@pytest.mark.parametrize("case", list(trajectories.optimizer_cases()), ids=lambda case: case[0])
def test_optimizer_follows_tensorflow(case):
    """An optimizer's variables, their names and values, are TensorFlow's after fifty steps."""
    key, name, dtype, sparse, resource = case
    values, names = trajectories.run_optimizer(tf, name, dtype, sparse, resource)
    for version, golden in OPTIMIZERS.items():
        assert names == str(golden[f"{key}-names"])
        # 1.15 multiplies rows of resource variables by the learning rate in their own dtype, later versions by its float32.
        coarse = version == "115" and name == "gradient_descent" and sparse and resource
        _assert_close(values, golden[key], "float32" if coarse and dtype == "float64" else dtype)
