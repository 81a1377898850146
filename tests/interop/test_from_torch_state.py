"""Weights of torch modules into variables."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import stoker
import stoker.compat.v1 as tf
from stoker._src.graph import context


def _variables() -> list:
    return [
        tf.get_variable("dense/kernel", [3, 2], initializer=tf.zeros_initializer()),
        tf.get_variable("dense/bias", [2], initializer=tf.zeros_initializer(), use_resource=True),
    ]


def test_a_trained_module_goes_back_into_the_session():
    """What torch trained is what the session computes with; the module knows which variable is which."""
    with tf.Graph().as_default(), tf.Session() as session:
        kernel, bias = _variables()
        x = tf.placeholder(tf.float32, [None, 3], "x")
        y = tf.matmul(x, kernel) + bias
        session.run(tf.global_variables_initializer())
        module = stoker.to_torch(session, x, y)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.uniform_()
        assert stoker.from_torch_state(module, session) == []
        given = np.ones([1, 3], np.float32)
        np.testing.assert_allclose(
            session.run(y, {x: given}), module(torch.tensor(given)).detach(), rtol=1e-6, atol=1e-6
        )
        assert len(session.graph.get_operations()) == len(set(session.graph.get_operations()))


def test_a_map_names_and_converts():
    """A map gives keys, keys with a conversion, and None for what stays; keys that nothing took are returned."""
    layer = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    with tf.Graph().as_default(), tf.Session() as session:
        kernel, bias = _variables()
        session.run(tf.global_variables_initializer())
        names = {"dense/kernel": ("0.weight", torch.t), "dense/bias": None}
        assert stoker.from_torch_state(layer, [kernel, bias], names) == ["0.bias", "1.weight", "1.bias"]
        np.testing.assert_array_equal(session.run(kernel), layer[0].weight.detach().numpy().T)
        assert not session.run(bias).any()
        rest = stoker.from_torch_state(layer.state_dict(), {"b": bias}, lambda name: "0.bias", session=session)
        assert rest == ["0.weight", "1.weight", "1.bias"]


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (
            {"dense.kernel": torch.zeros(2, 3)},
            ValueError,
            r"dense/kernel has shape \[3,2\].*dense.kernel.*\[2,3\].*torch.t",
        ),
        (
            {"dense.kernel": torch.zeros(4)},
            ValueError,
            r"dense/kernel has shape \[3,2\], but dense.kernel .* shape \[4\]\.$",
        ),
        (
            {"dense.kernel": torch.zeros(3, 2).double()},
            TypeError,
            "dense/kernel is float32, but dense.kernel .* is float64",
        ),
        (
            {"other": torch.zeros(1)},
            KeyError,
            "dense/kernel has no value: the state has no 'dense.kernel'. It has dense.bias, other",
        ),
        (3, TypeError, "Expected a torch.nn.Module or a state_dict, got int"),
    ],
)
def test_both_sides_are_named(state, error, text):
    """A value that does not fit raises before any variable has changed, and the error names both sides."""
    with tf.Graph().as_default(), tf.Session() as session:
        kernel, bias = _variables()
        session.run(tf.global_variables_initializer())
        state = {"dense.bias": torch.ones(2), **state} if isinstance(state, dict) else state
        with pytest.raises(error, match=text):
            stoker.from_torch_state(state, [bias, kernel])
        assert not session.run(bias).any()
        if error is KeyError:
            assert stoker.from_torch_state(state, [bias, kernel], strict=False) == ["other"]


def test_eager_variables_need_no_session():
    """Variables of eager mode, and an object that has variables, take the values at once; bfloat16 stays bfloat16."""
    with context.enter_eager():
        module = tf.Module()
        module.v = tf.Variable(np.zeros(2, tf.bfloat16.as_numpy_dtype), name="v")
        stoker.from_torch_state({"v": torch.tensor([1.5, 2.5], dtype=torch.bfloat16)}, module)
        assert module.v.numpy().astype(float).tolist() == [1.5, 2.5]
