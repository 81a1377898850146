"""Whole networks: converted, they have no more builtins than they need and compute what the session does."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model
from tests.lite.models import NETWORKS


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_runs_on_litert(name):
    """LiteRT's results are the session's to 1e-5, in the first call and in the second; batch norm, bias and activations are folded."""
    network = NETWORKS[name]
    arrays = network.inputs()
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        inputs = [tf.placeholder(array.dtype, array.shape) for array in arrays]
        outputs = tf.nest.flatten(network.build(tf, *inputs))
        session.run(tf.global_variables_initializer())
        expected = session.run(outputs, dict(zip(inputs, arrays, strict=True)))
        model = tf.lite.TFLiteConverter.from_session(session, inputs, outputs).convert()
    assert set(read_model(model).operator_counts()) - network.builtins == set()
    interpreter = tf.lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for _ in range(2):
        for detail, value in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        for detail, value in zip(interpreter.get_output_details(), expected, strict=True):
            np.testing.assert_allclose(interpreter.get_tensor(detail["index"]), value, rtol=1e-5, atol=1e-5)
