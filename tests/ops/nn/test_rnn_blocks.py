"""The recurrent block ops against TensorFlow's recorded results, and their gradients against finite differences."""

import pathlib

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.graph import context
from stoker._src.graph.definition import find_definition
from tests.golden.nn import rnn_cases


def call(op, inputs, attrs):
    definition = find_definition(op)
    assert definition is not None
    with context.enter_eager():
        values = definition(**{name: tf.constant(value) for name, value in inputs.items()}, **attrs)
        return type(values)(*(value.numpy() for value in values))


def test_against_tensorflow() -> None:
    """Every output of every block op and of its gradient op agrees with TensorFlow's."""
    found = rnn_cases.results(call)
    with np.load(pathlib.Path(rnn_cases.__file__).with_name("rnn_tf2.npz")) as recorded:
        assert set(found) == set(recorded)
        for name, value in found.items():
            np.testing.assert_allclose(value, recorded[name], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("op", ["BlockLSTM", "BlockLSTMV2"])
def test_gradients(op) -> None:
    """Gradients of the output with respect to every input, against differences in float32."""
    given = rnn_cases.inputs()
    definition = find_definition(op)
    assert definition is not None
    names = [arg.name for arg in definition.inputs if arg.name != "seq_len_max"]
    values = [given["sequence" if name == "x" else name] for name in names]
    with tf.Session() as session:
        places = [tf.placeholder(tf.float32, value.shape) for value in values]
        total = tf.reduce_sum(tf.square(definition(2, *places, use_peephole=True, cell_clip=0.0).h))
        feeds = dict(zip(places, values))
        gradients = session.run(tf.gradients(total, places), feeds)
        for place, value, gradient in zip(places, values, gradients):
            assert gradient.shape == value.shape
            direction = np.random.RandomState(1).randn(*value.shape).astype(np.float32)
            up = session.run(total, {**feeds, place: value + 1e-2 * direction})
            down = session.run(total, {**feeds, place: value - 1e-2 * direction})
            np.testing.assert_allclose((gradient * direction).sum(), (up - down) / 2e-2, rtol=2e-2, atol=2e-3)
