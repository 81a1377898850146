"""Each builtin: a small graph becomes a model with it, which LiteRT computes to the session's values."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model
from tests.lite.cases import CASES, COMPOSED, VARIANTS, Case
from tests.lite.running import run_model


def converted(case: Case) -> tuple[bytes, list[np.ndarray]]:
    """The model, and the values that the session computes."""
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        inputs = [tf.placeholder(tf.string if a.dtype == object else a.dtype, a.shape) for a in case.inputs]
        outputs = tf.nest.flatten(case.build(tf, *inputs))
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        expected = session.run(outputs, dict(zip(inputs, case.inputs, strict=True)))
        return tf.lite.TFLiteConverter.from_session(session, inputs, outputs).convert(), expected


@pytest.mark.parametrize("case", [*CASES, *COMPOSED, *VARIANTS], ids=lambda case: case.label)
def test_a_graph_becomes_a_model_with_equal_results(case: Case):
    """The model has the builtin, and LiteRT's results are the session's to 1e-5."""
    model, expected = converted(case)
    assert case.code in read_model(model).operator_counts()
    found = run_model(model, case.inputs)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == np.shape(theirs)
        if not case.random:
            if ours.dtype.kind in "fc":
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(ours, theirs)


def test_there_are_over_120_builtins():
    """The table covers the builtins that graphs are converted to."""
    assert len({case.code for case in CASES}) >= 120
