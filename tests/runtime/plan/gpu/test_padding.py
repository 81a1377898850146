"""Sizes that depend on data, padded so that a recorded step has fixed shapes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.base import dtypes
from stoker._src.base.shapes import Shape
from stoker._src.ops.math.sorting import ascending_padded, unique_padded
from stoker._src.ops.random.bits.philox import PhiloxState
from stoker._src.ops.training import rules
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime.plan.gpu.padding import ALL, KNOWN, CannotPad
from stoker._src.runtime.plan.known_shapes import Known

IDS = st.lists(st.integers(0, 9), min_size=1, max_size=12)


@settings(max_examples=50, deadline=None)
@given(IDS)
def test_padded_distinct_elements(ids):
    """Both forms have -1 after the distinct elements, and places that lead back to the elements."""
    x = torch.tensor(ids)
    for padded, places in (unique_padded(x, out_idx=dtypes.int32), ascending_padded(x, torch.int32)):
        assert padded.shape == x.shape and places.dtype is torch.int32
        assert torch.equal(padded[places.long()], x)
        count = len(set(ids))
        assert len(set(padded[:count].tolist())) == count and (padded[count:] == -1).all()


# For each rule: how many variables it updates, and its inputs after them. "grad" and "indices" stand for those.
UPDATES = {
    "ADAGRAD": (2, [0.1, "grad", "indices"], {"update_slots": True}),
    "MOMENTUM": (2, [0.1, "grad", "indices", 0.9], {"use_nesterov": False}),
    "FTRL": (3, ["grad", "indices", 0.1, 0.01, 0.02, -0.5], {"multiply_linear_by_lr": False}),
    "RMS_PROP": (3, [0.1, 0.9, 0.8, 1e-7, "grad", "indices"], {}),
}


@pytest.mark.parametrize("rule", UPDATES)
@settings(max_examples=25, deadline=None)
@given(IDS)
def test_padded_rows_are_skipped(rule, ids):
    """An update of padded rows changes what an update of the distinct rows changes."""
    count, others, attributes = UPDATES[rule]
    definition = getattr(rules, rule).sparse
    padded, places = ascending_padded(torch.tensor(ids), torch.int64)
    gradient = torch.zeros(len(ids), 2).index_add_(0, places, torch.arange(2.0 * len(ids)).reshape(-1, 2) + 1)
    distinct = len(set(ids))
    found = []
    for kernel, rows in ((definition.planning.on_distinct[0], len(ids)), (definition.kernel_fn, distinct)):
        states = [VariableState(f"v{i}", dtypes.float32, Shape((10, 2))) for i in range(count)]
        for state in states:
            state.value = torch.full((10, 2), 0.5)
        given_rows = {"grad": gradient[:rows], "indices": padded[:rows]}
        kernel(*states, *[given_rows.get(each, each) for each in others], **attributes)
        found.append([state.value for state in states])
    for one, other in zip(*found):
        torch.testing.assert_close(one, other)


def _planned(build, *shapes, pads=KNOWN):
    with tf.Graph().as_default(), tf.Session() as session:
        fetches, feeds = build()
        plan = session._plan(fetches, dict.fromkeys(feeds), None)
        return plan._planner(known=[Known(Shape(shape)) for shape in shapes], pads=pads).build()


@pytest.mark.parametrize("optimizer", [tf.train.AdagradOptimizer(0.1), tf.train.AdamOptimizer(0.1)])
def test_sparse_gradients_have_fixed_shapes(optimizer):
    """The sums of rows with the same index have as many rows as there are indices."""

    def build():
        ids = tf.placeholder(tf.int64, [None])
        table = tf.get_variable("table", [50, 4])
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 2)
        return [loss, optimizer.minimize(loss)], [ids]

    planner = _planned(build, (20,))
    ops = [op for each in planner.instructions for op in (each.members or [each.op]) if op is not None]
    sums = [op for op in ops if op.type == "UnsortedSegmentSum"]
    assert [planner.shape_of(op.outputs[0]).dims for op in sums] == [(20, 4)]


def _of_lookups_in_a_loop(axis):
    """A loss over rows that a loop has looked up, as many as it happens to, and which rows are distinct."""
    table = tf.get_variable("table", [50, 4])
    start = tf.placeholder(tf.int64, [3])

    def body(i, ids, found):
        rows = tf.nn.embedding_lookup(table, ids)
        return i + 1, tf.argmax(tf.matmul(rows, table, transpose_b=True), 1), found.write(i, rows)

    found = tf.while_loop(lambda i, *_: i < 5, body, [0, start, tf.TensorArray(tf.float32, 5, dynamic_size=True)])[2]
    loss = tf.reduce_sum(tf.square(found.stack()))
    if axis is not None:
        distinct = tf.unique(tf.where(start > 1)[:, 0])[0]
        loss += tf.reduce_sum(tf.reduce_sum(tf.nn.embedding_lookup(table, distinct), axis, keepdims=True))
    return [loss, tf.train.AdamOptimizer(0.1).minimize(loss)], [start]


def test_rows_of_an_unknown_number_are_padded_where_that_can_be():
    """The rows that a loop looks up, whose number no shape tells, have gradients of a fixed size."""
    planner = _planned(lambda: _of_lookups_in_a_loop(None), (3,), pads=ALL)
    kernels = {each.op.type: each.kernel for each in planner.instructions if each.op is not None}
    assert kernels["Unique"] is unique_padded
    planner = _planned(lambda: _of_lookups_in_a_loop(None), (3,))
    kernels = {each.op.type: each.kernel for each in planner.instructions if each.op is not None}
    assert kernels["Unique"] is not unique_padded
    with pytest.raises(CannotPad):
        _planned(lambda: _of_lookups_in_a_loop(0), (3,), pads=ALL)


def test_reductions_within_padded_rows():
    """The norms of distinct rows are those of the rows; the total of them is not padded."""

    def build():
        ids = tf.placeholder(tf.int64, [None])
        table = tf.get_variable("table", [50, 4])
        rows, places = tf.unique(ids)
        norms = tf.sqrt(tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, rows)), 1, keepdims=True) + 1.0)
        return tf.reduce_sum(tf.gather(norms, places)), [ids]

    planner = _planned(build, (20,))
    assert any(each.kernel is unique_padded for each in planner.instructions)


def test_a_mean_over_distinct_rows_is_not_padded():
    """The padding would count."""

    def build():
        ids = tf.placeholder(tf.int64, [None])
        table = tf.get_variable("table", [50, 4])
        return tf.reduce_mean(tf.nn.embedding_lookup(table, tf.unique(ids)[0])), [ids]

    with pytest.raises(CannotPad):
        _planned(build, (20,))


@pytest.mark.parametrize("fetch", [lambda y: y, tf.size, lambda y: tf.cast(tf.shape(y)[0], tf.float32) * 2.0])
def test_distinct_elements_and_their_number_are_not_padded_if_they_are_fetched(fetch):
    """Fetching them, or what depends on their number, shows the padding."""

    def build():
        ids = tf.placeholder(tf.int64, [None])
        return fetch(tf.unique(ids)[0]), [ids]

    with pytest.raises(CannotPad):
        _planned(build, (20,))


def test_a_generator_moves_between_host_and_device():
    """Numbers drawn on the host continue where the device's position is, and the device's position follows before it draws."""
    state, other = PhiloxState(1, 2), PhiloxState(1, 2)
    state.reserve(3)
    words = state.on_device(lambda given: torch.from_numpy(np.array(given, np.uint64).view(np.int64).copy()))
    words[1] += 5  # what the device draws
    other.reserve(8)
    assert state.reserve(2) == other.reserve(2)
    assert words[1] == 8  # the host goes on without the device
    assert state.reserve(1) == other.reserve(1)
    assert state.on_device(lambda given: None) is words and words[1] == 11
    words[1] += 1
    other.reserve(1)
    assert state.reserve(4) == other.reserve(4)
    state.settle()
    assert words[1] == 16
