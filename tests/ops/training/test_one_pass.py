"""Updates that native loops do in one pass have the values of the same rule computed op by op."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.support import table_rows
from stoker._src.ops.training import rules


def _trained(optimizer, start, gradients):
    with tf.Graph().as_default(), tf.Session() as session:
        variable, gradient = tf.Variable(start), tf.placeholder(tf.float32, start.shape)
        made = optimizer()
        step = made.apply_gradients([(gradient, variable)])
        session.run(tf.global_variables_initializer())
        for each in gradients:
            session.run(step, {gradient: each})
        return [
            session.run(tensor) for tensor in (variable, made.get_slot(variable, "m"), made.get_slot(variable, "v"))
        ]


@pytest.mark.skipif(rules.native is None, reason="built without the C extension")
@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([(1,), (7,), (33, 5), (16_384,), (20_001,)]),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.sampled_from([0.4, 0.9, 0.999]),
    st.integers(0, 100),
)
def test_adam_with_any_decay_is_the_same_in_one_pass(shape, beta1, beta2, seed):
    """Decays of one half and less, as programs for GANs use them, give the same moments, bit by bit, with and without the native loop.

    torch's square root is not always the nearest number, so that the variable may differ in its last bit after each step.
    """
    random = np.random.RandomState(seed)
    start = random.randn(*shape).astype(np.float32)
    gradients = [(random.randn(*shape) * 10.0 ** random.randint(-6, 3)).astype(np.float32) for _ in range(3)]

    def optimizer():
        return tf.train.AdamOptimizer(0.01, beta1, beta2)

    found = _trained(optimizer, start, gradients)
    native, rules.native = rules.native, None
    try:
        expected = _trained(optimizer, start, gradients)
    finally:
        rules.native = native
    np.testing.assert_array_equal(found[1:], expected[1:])
    np.testing.assert_allclose(found[0], expected[0], rtol=3e-7, atol=3e-7)


WHOLE_RULES = {
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.1, l2_regularization_strength=0.2),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.1, 0.8, 0.5, 1e-3),
    "centered": lambda: tf.train.RMSPropOptimizer(0.1, 0.8, 0.5, 1e-3, centered=True),
    "Adadelta": lambda: tf.train.AdadeltaOptimizer(0.5, 0.9, 1e-3),
    "Adam": lambda: tf.train.AdamOptimizer(0.01, 0.3, 0.4),
}


def _variables_trained(optimizer, start, gradients):
    with tf.Graph().as_default(), tf.Session() as session:
        variable, gradient = tf.Variable(start), tf.placeholder(start.dtype, start.shape)
        step = optimizer().apply_gradients([(gradient, variable)])
        session.run(tf.global_variables_initializer())
        for each in gradients:
            session.run(step, {gradient: each})
        return session.run(tf.global_variables())


@pytest.mark.skipif(rules.native is None, reason="built without the C extension")
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(WHOLE_RULES)),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([(), (1,), (7,), (33, 5), (16_384,), (20_001,)]),
    st.integers(0, 100),
)
def test_whole_variables_have_the_values_of_the_rule(rule, kind, shape, seed):
    """Floats and doubles, of any size: the variable and its slots are those of the rule computed op by op."""
    random = np.random.RandomState(seed)
    start = random.randn(*shape).astype(kind) if shape else kind(random.randn())
    gradients = [np.asarray(random.randn(*shape), kind) for _ in range(3)]
    found = _variables_trained(WHOLE_RULES[rule], start, gradients)
    native, rules.native = rules.native, None
    try:
        expected = _variables_trained(WHOLE_RULES[rule], start, gradients)
    finally:
        rules.native = native
    tolerance = 3e-5 if kind is np.float32 else 1e-13
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


ROW_RULES = {
    "Adagrad": (1, {"lr": 0.3}),
    "Momentum": (1, {"lr": 0.3, "momentum": 0.9, "use_nesterov": False}),
    "Nesterov": (1, {"lr": 0.3, "momentum": 0.9, "use_nesterov": True}),
    "RMSProp": (2, {"lr": 0.3, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-6}),
    "Ftrl": (2, {"lr": 0.3, "l1": 0.1, "l2": 0.2, "lr_power": -0.5}),
    "FtrlV2": (2, {"lr": 0.3, "l1": 0.1, "l2": 0.2, "l2_shrinkage": 0.1, "lr_power": -0.5}),
}


def _rows_updated(rule, shape, rows, indices):
    """The variable and its slots after two sparse updates."""
    count, numbers = ROW_RULES[rule]
    name = {"Nesterov": "Momentum"}.get(rule, rule)
    slots = {"Adagrad": ["accum"], "Momentum": ["accum"], "RMSProp": ["ms", "mom"]}.get(name, ["accum", "linear"])
    with tf.Graph().as_default(), tf.Session() as session:
        start = np.linspace(0.5, 1.5, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        variables = [tf.Variable(start + i, use_resource=True) for i in range(1 + count)]
        given, places = tf.placeholder(tf.float32, rows.shape), tf.placeholder(tf.int32, indices.shape)
        states = {key: each.handle for key, each in zip(["var", *slots], variables)}
        op = getattr(tf.raw_ops, f"ResourceSparseApply{name}")
        step = op(**states, **numbers, grad=given, indices=places)
        session.run(tf.global_variables_initializer())
        for factor in (1, -2):
            session.run(step, {given: rows * factor, places: indices})
        return session.run(variables)


@pytest.mark.skipif(table_rows.updates is None, reason="built without the C extension")
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(ROW_RULES)),
    st.sampled_from([(5,), (6, 1), (9, 16), (7, 3, 5), (40, 33)]),
    st.lists(st.integers(0, 1000), min_size=1, max_size=30),
    st.integers(0, 100),
)
def test_rows_updated_in_place_have_the_values_of_the_rule(rule, shape, places, seed):
    """The native loop over rows gives the rule's values, also where a row is named again and again; other rows stay as they are."""
    indices = np.array(places, np.int32) % shape[0]
    rows = np.random.RandomState(seed).randn(len(indices), *shape[1:]).astype(np.float32)
    found = _rows_updated(rule, shape, rows, indices)
    native, table_rows.updates = table_rows.updates, None
    try:
        expected = _rows_updated(rule, shape, rows, indices)
    finally:
        table_rows.updates = native
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.skipif(table_rows.updates is None, reason="built without the C extension")
@pytest.mark.parametrize("bad", [-1, 7])
def test_no_row_is_updated_if_an_index_is_outside(bad):
    """All indices are checked before the first row changes."""
    table, slot, rows = torch.ones(7, 20), torch.ones(7, 20), torch.ones(3, 20)
    assert not table_rows.update(
        rules.native.ADAGRAD, (0.1,), [table, slot], rows, torch.tensor([0, bad, 3], dtype=torch.int32)
    )
    assert torch.equal(table, torch.ones(7, 20)) and torch.equal(slot, torch.ones(7, 20))
