"""Pipelines of `tf.data`: what TensorFlow 2 recorded for each (tests/golden/data)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import stoker as tf2
import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parent.parent / "golden" / "data"
RECORDED = json.loads((GOLDEN / "data.json").read_text())
_spec = importlib.util.spec_from_file_location("dataset_cases", GOLDEN / "cases.py")
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)


@pytest.mark.parametrize("name", sorted(RECORDED["graph"]))
def test_pipelines_in_graphs(name):
    """Elements, their order for given seeds, and the classes of errors are TensorFlow's."""
    tf.set_random_seed(3)
    assert json.loads(json.dumps(cases.outcome(cases.graph_cases(tf)[name]))) == RECORDED["graph"][name]


@pytest.mark.parametrize("name", sorted(RECORDED["eager"]))
def test_pipelines_in_eager_mode(name, eager, tmp_path):
    """The same for datasets that Python iterates over."""
    functions = cases.eager_cases(tf, tf2, str(tmp_path))
    tf2.random.set_seed(5)
    assert json.loads(json.dumps(cases.outcome(functions[name]))) == RECORDED["eager"][name]
