"""Fifty steps of every training op and optimizer end where TensorFlow's do."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.graph.definition import find_definition

GOLDEN = Path(__file__).parents[2] / "golden" / "train"


def _script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, GOLDEN / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trajectories, update_edges = _script("trajectories"), _script("update_edges")
EDGES = np.load(GOLDEN / "update_edges.npz")
OPS = np.load(GOLDEN / "ops.npz")
OPTIMIZERS = {version: np.load(GOLDEN / f"optimizers_{version}.npz") for version in ("115", "221")}

# Relative to the largest number of a trajectory.
TOLERANCE = {"float64": 1e-12, "float32": 1e-6, "complex64": 2e-6, "float16": 4e-3, "bfloat16": 2e-2}
ON_GPU = os.environ.get("STOKER_TEST_DEVICE") == "gpu"
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

    In 16 bits every operation is rounded where TensorFlow's CPU kernels round it, to the bit.
    """
    key, name, variables, others, dtype, setting = case
    found = trajectories.run_op(tf, _raw, name, variables, others, dtype, setting)
    if dtype in ("float16", "bfloat16") and name.removeprefix("Resource") not in BY_VECTORS and not ON_GPU:
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


@pytest.mark.parametrize("case", list(update_edges.cases()), ids=lambda case: case[0])
def test_op_at_the_edges(case):
    """With zero, negative, infinite and NaN numbers a training op leaves, or refuses, what TensorFlow's does."""
    for step, found in enumerate(update_edges.run(tf, _raw, *case)):
        expected = EDGES[f"{case[0]}-{step}"]
        if isinstance(found, str) or expected.dtype.kind == "U":
            assert found == str(expected), f"step {step}"
            continue
        finite = np.abs(expected[np.isfinite(expected)])
        np.testing.assert_allclose(
            found, expected, rtol=4e-6, atol=1e-6 * finite.max(initial=1.0), err_msg=f"step {step}"
        )
