"""Plans divided for a GPU: what the host does before and after, and a device's part that can be replayed.

There is no GPU here. Variables of floats count as being on the device, and its part is recorded as a list of torch's operations that is
repeated on the same memory, as a CUDA graph is.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import stoker.compat.v1 as tf
from stoker._src.base.shapes import Shape
from stoker._src.ops.random.bits import cuda
from stoker._src.ops.support import blas, device_checks
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime import devices
from stoker._src.runtime.functions.bodies import step_failure
from stoker._src.runtime.plan.gpu import fused_kernels
from stoker._src.runtime.plan.gpu.division import Division, Obstacle
from stoker._src.runtime.plan.gpu.padding import KNOWN
from stoker._src.runtime.plan.known_shapes import Known
from stoker._src.runtime.session import public


@pytest.fixture(autouse=True)
def no_device_kernels(monkeypatch):
    """The device is the CPU, also where there is a GPU; all of its operations are torch's."""
    monkeypatch.setattr(blas, "is_own", False)
    monkeypatch.setattr(cuda, "can_fill", lambda dtype: False)
    monkeypatch.setattr(devices, "usable_gpus", lambda: 0)
    monkeypatch.setattr(fused_kernels, "is_available", lambda: False)
    for name, module in list(sys.modules.items()):
        if name.startswith("stoker._src.ops."):
            for attribute, value in list(vars(module).items()):
                if getattr(value, "__name__", "").startswith("stoker._src.ops.native."):
                    monkeypatch.setattr(module, attribute, None)


class _OnCpu(Division):
    def _is_here(self, state):
        return isinstance(state, VariableState) and state.dtype.is_floating


class _Recording(TorchDispatchMode):
    """The operations of one run, which `replay` repeats. Results go to the memory that they had."""

    def __init__(self, function, inputs, numbers):
        super().__init__()
        self._function, self._numbers = function, numbers
        self.inputs, self._operations = [value.clone() for value in inputs], []
        with self:
            self.outputs = function(None, *self.inputs, *numbers)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self._operations.append((func, args, kwargs or {}, result))
        return result

    def replay(self, inputs):
        for own, value in zip(self.inputs, inputs):
            own.copy_(value)
        for func, args, kwargs, result in self._operations:
            again = func(*args, **kwargs)
            for old, new in zip(_flat(result), _flat(again)):
                if old is not new and old.data_ptr() != new.data_ptr():
                    old.copy_(new)
        return self.outputs


def _flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [each for item in result for each in _flat(item)] if isinstance(result, (list, tuple)) else []


class _NoHold:
    """A run that holds no lock."""

    state = None

    def pause(self):
        pass

    resume = pause


class _Divided:
    """Runs fetches of a session in parts."""

    def __init__(self, session, fetches, feeds, pads="", replaces=False):
        self._plan = session._plan(fetches, feeds, None)
        values = self._values(feeds)
        placement = session._runner._worker.placement
        placement.gpu = torch.device("cpu")  # numbers that change with every step are passed as tensors
        try:
            self.division = _OnCpu(placement.gpu)
            known = [Known(Shape(value.shape)) for value in values]
            planner = self._plan._planner(
                known=known, arrange=self.division, with_fused_loops=replaces, pads=pads
            ).build()
            self.emitted = self.division.emit(planner)
            self._steps = [step.function for step in self.emitted]
            self.device = self._steps[1]
        finally:
            placement.gpu = None
        self.recordings = {}

    def _values(self, feeds):
        return [convert(value) for convert, value in zip(self._plan.converters, feeds.values())]

    def run(self, feeds):
        results = self._run(self.division, self._steps, self.recordings, self._values(feeds))
        return self._plan.fetch.build([public(each) for each in results])

    def _run(self, division, steps, recordings, values):
        given = (*values, *steps[0](_NoHold(), *values))
        places = {value: i for i, value in enumerate([*division.given, *division.made])}
        inputs = [given[places[value]] for value in division.inputs]
        numbers = [given[places[value]] for value in division.numbers]
        key = tuple(tuple(number.reshape(-1).tolist()) for number in numbers)
        if key in recordings:
            outputs = recordings[key].replay(inputs)
        else:
            recordings[key] = _Recording(steps[1], inputs, numbers)
            outputs = recordings[key].outputs
        given = (*given, *[output.clone() for output in outputs])
        if division.rest is None:
            return steps[2](_NoHold(), *given)
        return self._run(division.rest, steps[2:], recordings.setdefault("rest", {}), given)


def _divided(build, runs=6, **options):
    """Runs a program in parts and as a whole, compares the results, and returns the divided plan."""
    found = []
    for in_parts in (True, False):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(3)
            fetches, feeds = build()
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            if in_parts:
                divided = _Divided(session, fetches, feeds(0), **options)
                found.append([divided.run(feeds(i)) for i in range(runs)])
            else:
                found.append([session.run(fetches, feeds(i)) for i in range(runs)])
    for ours, theirs in zip(*found):
        for one, other in zip(ours, theirs):
            if isinstance(one, bytes):
                assert len(one) == len(other)
            elif one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    return divided


def _rows(seed, *shape):
    return np.random.RandomState(seed).randn(*shape).astype("f")


def test_counters_random_numbers_and_rates_of_the_host():
    """The host counts and draws before; the device's part takes the counter and the numbers as tensors, and is recorded once."""

    def build():
        x = tf.placeholder(tf.float32, [8, 16])
        w = tf.get_variable("w", [16, 4], initializer=tf.random_normal_initializer(seed=1))
        count = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.dropout(x, 0.7, seed=5), w)))
        train = tf.train.MomentumOptimizer(tf.train.exponential_decay(0.1, count, 3, 0.9), 0.9).minimize(loss, count)
        return [loss, train, count], lambda i: {x: _rows(i, 8, 16)}

    divided = _divided(build)
    assert len(divided.recordings) == 1 and not divided.division.numbers


@pytest.mark.parametrize("optimizer", ["GradientDescent", "Adam", "Adagrad"])
def test_rates_that_change_with_every_step_are_tensors(optimizer):
    """A decayed learning rate, and Adam's powers, are computed on the device."""

    def build():
        x = tf.placeholder(tf.float32, [4, 3])
        w = tf.get_variable("w", [3, 2], initializer=tf.random_normal_initializer(seed=1))
        count = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
        rate = tf.train.polynomial_decay(0.1, count, 5)
        made = getattr(tf.train, f"{optimizer}Optimizer")(rate)
        return [loss, made.minimize(loss, count)], lambda i: {x: _rows(i, 4, 3)}

    assert len(_divided(build).recordings) == 1


def test_the_number_of_iterations_is_computed_before():
    """A loop runs as often as the longest sequence needs; the lengths themselves are data."""

    def build():
        x, lengths = tf.placeholder(tf.float32, [None, 6, 4]), tf.placeholder(tf.int32, [None])
        with tf.variable_scope("rnn", initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=4)):
            outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), x, lengths, dtype=tf.float32)
        loss = tf.reduce_mean(outputs**2)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return [loss, train], lambda i: {
            x: _rows(i, 3, 6, 4),
            lengths: [6, 1 + i % 3, 2] if i % 2 else [4, 3, 1 + i % 4],
        }

    divided = _divided(build)
    assert set(divided.recordings) == {((6,),), ((4,),)}


def test_a_fed_boolean_decides_between_branches():
    """Each branch has a recording."""

    def build():
        x, chosen = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.bool, [])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        y = tf.cond(chosen, lambda: tf.reduce_sum(tf.tanh(x * v)), lambda: tf.reduce_sum(tf.exp(x * v)))
        return [y, tf.train.GradientDescentOptimizer(0.01).minimize(y)], lambda i: {
            x: _rows(i, 4, 3),
            chosen: i % 3 > 0,
        }

    assert set(_divided(build).recordings) == {((True,),), ((False,),)}


def test_summaries_come_after():
    """They wait for the device's results, which they may change no more."""

    def build():
        x = tf.placeholder(tf.float32, [4, 3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        y = tf.reduce_mean(tf.tanh(x * v) - tf.square(x))
        tf.summary.scalar("y", y)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(y)
        return [y, tf.summary.merge_all(), train], lambda i: {x: _rows(i, 4, 3)}

    assert _divided(build).division.counts[2] >= 2


def test_what_takes_a_printed_tensor_does_not_wait_for_the_text(capsys):
    """tf.Print in the middle of a network prints after the device's work, with the values of each step."""

    def build():
        x = tf.placeholder(tf.float32, [2])
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        h = tf.tanh(x * v)
        y = tf.reduce_sum(tf.square(tf.Print(h, [h, tf.shape(h)], message="h: ")))
        return [y, tf.train.GradientDescentOptimizer(0.1).minimize(y)], lambda i: {x: _rows(i, 2)}

    divided = _divided(build, replaces=True)
    assert len(divided.recordings) == 1 and divided.division.counts[2] == 1
    printed = [line[:9] for line in capsys.readouterr().err.splitlines()]  # the last digits may differ
    assert len(printed) == 12 and printed[:6] == printed[6:] and len(set(printed)) == 6


@pytest.mark.parametrize("kind", ["assert", "numerics", "inverse", "crops"])
def test_refusals_of_data_are_part_of_the_devices_work(kind):
    """Data that the device computes is checked there, before variables change."""

    def build():
        x = tf.placeholder(tf.float32, [4, 4])
        v = tf.get_variable("v", [4], initializer=tf.ones_initializer())
        y = tf.tanh(x * v)
        if kind == "assert":
            with tf.control_dependencies([tf.Assert(tf.reduce_all(y < 100.0), ["too large:", y])]):
                z = y + 1.0
        elif kind == "numerics":
            z = tf.check_numerics(y, "bad y")
        elif kind == "crops":
            z = tf.image.crop_and_resize(tf.reshape(y, [1, 4, 4, 1]), tf.sigmoid(y), [0, 0, 0, 0], [2, 2])
        else:
            z = tf.matrix_inverse(y + 5.0 * tf.eye(4))
        loss = tf.reduce_sum(tf.square(z))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        return [loss, train], lambda i: {x: _rows(i, 4, 4)}

    divided = _divided(build)
    assert divided.division.counts[0] == divided.division.counts[2] == 0 and len(divided.recordings) == 1


def test_refusals_are_settled_before_a_variable_changes():
    """A step that finds bad data late leaves the variable as it was, and names the node that refused the data."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        update = v.assign_add(tf.check_numerics(tf.log(x * v), "bad", name="checked"))
        session.run(tf.global_variables_initializer())
        divided = _Divided(session, update, {x: np.ones(3, "f")})

        def look(asked):
            for answer in asked:
                if not bool(answer.good):
                    answer.raise_refusal()

        with device_checks.collected(look, "cpu"):
            divided.run({x: np.ones(3, "f")})
        divided.recordings.clear()
        bad = divided._values({x: -np.ones(3, "f")})
        refused = pytest.raises(tf.errors.InvalidArgumentError, match="bad : Tensor had NaN values")
        with refused as caught, device_checks.collected(look, "cpu"):
            divided.device(None, *bad)
        assert step_failure(caught.value, *divided.emitted).op.name == "checked"
        np.testing.assert_array_equal(session.run(v), [1, 1, 1])


def test_a_refused_step_does_not_count():
    """The counter of steps is on the host; it is increased after the device has found the data good."""

    def build():
        x = tf.placeholder(tf.float32, [3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        count = tf.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.square(tf.check_numerics(x * v, "bad")))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, count)
        return [loss, train, count], lambda i: {x: _rows(i, 3)}

    divided = _divided(build)
    assert divided.division.counts[2] >= 1 and len(divided.recordings) == 1


def test_what_is_fed_and_only_the_host_can_compute_comes_before():
    """Boxes that are fed are suppressed by the host; the device crops what is left."""

    def build():
        image = tf.placeholder(tf.float32, [1, 8, 8, 3])
        boxes, scores = tf.placeholder(tf.float32, [6, 4]), tf.placeholder(tf.float32, [6])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        kept = tf.image.non_max_suppression(boxes, scores, 3, 0.9)
        kept = tf.pad(kept, [[0, 3 - tf.shape(kept)[0]]])
        crops = tf.image.crop_and_resize(image * v, tf.gather(boxes, kept), tf.zeros([3], tf.int32), [2, 2])
        loss = tf.reduce_sum(tf.square(crops))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)

        def feeds(i):
            corners = np.random.RandomState(i).rand(6, 2).astype("f") * 0.5
            return {
                image: _rows(i, 1, 8, 8, 3),
                boxes: np.concatenate([corners, corners + 0.4], 1),
                scores: np.arange(6),
            }

        return [loss, train], feeds

    divided = _divided(build)
    assert divided.division.counts[0] and len(divided.recordings) == 1


def test_results_of_unknown_size_that_nothing_on_the_device_needs_come_after():
    """The rows above a limit are selected on the host, which would otherwise wait for their number in the middle of the step."""

    def build():
        x = tf.placeholder(tf.float32, [8, 3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        y = tf.reduce_sum(tf.tanh(x * v), 1)
        found = tf.reshape(tf.where(y > 0.0), [-1])
        train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(y))
        return [found, tf.size(found), train], lambda i: {x: _rows(i, 8, 3)}

    divided = _divided(build)
    assert divided.division.counts[2] >= 2 and len(divided.recordings) == 1


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_lookups_of_sparse_identifiers(combiner):
    """The host looks at segments and distinct identifiers. With padded rows, their number does not matter."""

    def build():
        ids = tf.sparse_placeholder(tf.int64)
        table = tf.get_variable("table", [30, 3], initializer=tf.random_normal_initializer(seed=1))
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup_sparse(table, ids, None, combiner=combiner)))
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        places = np.array([[i // 2, i % 2] for i in range(12)])

        def feeds(i):
            values = np.random.RandomState(i // 2).randint(0, 30, 12)
            return {ids.indices: places, ids.values: values, ids.dense_shape: [6, 2]}

        return [loss, train], feeds

    assert len(_divided(build).recordings) == 2  # with 9 and with 10 distinct identifiers
    with tf.Graph().as_default(), tf.Session() as session:
        fetches, feeds = build()
        session.run(tf.global_variables_initializer())
        assert not _Divided(session, fetches, feeds(0), pads=KNOWN).division.numbers


def test_sizes_of_fed_data_are_known():
    """The shape of a fed tensor of floats is fixed in a recording, whatever its numbers are."""

    def build():
        x, weights = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        weighted = tf.reshape(weights * 2.0, [-1, 1]) * tf.boolean_mask(x, tf.ones_like(weights, tf.bool)) * v
        loss = tf.reduce_sum(tf.square(weighted))
        return [loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss)], lambda i: {
            x: _rows(i, 4, 3),
            weights: _rows(i, 4),
        }

    assert len(_divided(build).recordings) == 1


def test_products_with_sparse_matrices_of_fed_positions():
    """The host checks the positions; another number of elements would be another recording, another matrix of the same size is not."""

    def build():
        places, values = tf.placeholder(tf.int64, [5, 2]), tf.placeholder(tf.float32, [5])
        w = tf.get_variable("w", [4, 2], initializer=tf.random_normal_initializer(seed=1))
        product = tf.sparse_tensor_dense_matmul(tf.SparseTensor(places, values, [3, 4]), w)
        loss = tf.reduce_sum(tf.square(product))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

        def feeds(i):
            flat = np.sort(np.random.RandomState(i).choice(12, 5, replace=False))
            return {places: np.stack([flat // 4, flat % 4], 1), values: _rows(i, 5)}

        return [product, loss, train], feeds

    divided = _divided(build)
    assert not divided.division.numbers and len(divided.recordings) == 1


@pytest.mark.parametrize("how", ["mean", "max", "min", "sum"])
def test_segments_of_fed_numbers(how):
    """The number of segments is known before."""

    def build():
        x, ids = tf.placeholder(tf.float32, [6, 2]), tf.placeholder(tf.int32, [6])
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        loss = tf.reduce_sum(tf.square(getattr(tf, f"segment_{how}")(x * w, ids)))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return [loss, train], lambda i: {x: _rows(i, 6, 2), ids: [[0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 1, 2]][i % 2]}

    assert len(_divided(build).recordings) == 1


def test_what_the_device_computes_cannot_decide():
    """A loop whose end depends on the device's results is refused, with its name."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        y = tf.reduce_sum(tf.tanh(x)) + 0.5
        z = tf.while_loop(lambda y: y < 10.0, lambda y: y * 2.0, [y], name="choice")
        with pytest.raises(Obstacle, match="choice"):
            _Divided(session, z, {x: np.ones(3, "f")})


@pytest.mark.parametrize("resource", [False, True])
def test_rows_that_are_assigned_are_checked_before(resource):
    """A table of which fed rows are replaced is one recording, whatever rows are fed. A row that is not there is refused."""

    def build():
        x, place = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [2])
        table = tf.get_variable("table", [5, 3], initializer=tf.ones_initializer(), use_resource=resource)
        with tf.control_dependencies([tf.scatter_update(table, place, tf.tanh(x))]):
            return table.read_value(), lambda i: {x: _rows(i, 2, 3), place: [i % 5, (i + 2) % 5]}

    divided = _divided(build)
    assert len(divided.recordings) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 5 is not in \[0, 5\)"):
        divided.run({divided._plan.feeds[i]: value for i, value in enumerate([np.ones([2, 3]), [0, 5]])})


def _baseline(found, wanted):
    return (found.sum(1) - wanted.sum(1)).astype("f")


@pytest.mark.parametrize("resource", [False, True])
def test_the_device_goes_on_with_what_the_host_makes_of_its_results(resource):
    """Python functions in the middle of a training step end one part of the device's work, and begin another."""

    def build():
        x, wanted = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.int32, [4, 2])
        w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer(), use_resource=resource)
        running = tf.Variable(0.5, trainable=False, use_resource=resource)
        h = tf.tanh(tf.matmul(x, w))
        reward = tf.py_func(_baseline, [tf.cast(h * 5.0, tf.int32), wanted], tf.float32)
        reward.set_shape([4])
        again = tf.py_func(lambda r: np.sin(r).astype("f"), [reward * running], tf.float32)
        again.set_shape([4])
        loss = tf.reduce_mean(tf.log(tf.reduce_sum(tf.square(h), 1) + 1.0) * (reward - running + again))
        train = tf.train.AdamOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([train]):
            update = running.assign(0.9 * running + 0.1 * tf.reduce_mean(reward))
        summary = tf.summary.scalar("loss", loss)
        return [loss, reward, update, summary], lambda i: {x: _rows(i, 4, 3), wanted: np.full([4, 2], i)}

    divided = _divided(build)
    first, second = divided.division, divided.division.rest
    assert second is not None and (second.rest is None) is resource  # the host multiplies by a value that was handed on
    assert first.counts[1] and second.counts[1] and (resource or second.rest.counts[1])
    assert len(divided.recordings) == 2 and first.staying  # the device keeps what its second part takes


def test_updates_keep_their_order_when_one_waits_for_the_host():
    """A read of a variable sees the update before it, also if that update is in a later part, and not the update after it."""

    def build():
        x = tf.placeholder(tf.float32, [3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer(), use_resource=True)
        u = tf.get_variable("u", [3], initializer=tf.ones_initializer(), use_resource=True)
        before = v.read_value() * 2.0
        made = tf.py_func(lambda a: np.cos(a), [tf.tanh(x * v)], tf.float32)
        made.set_shape([3])
        with tf.control_dependencies([before]):
            late = v.assign(made)
        with tf.control_dependencies([late]):
            after = v.read_value() + 1.0
        with tf.control_dependencies([after]):
            last = v.assign_add(x)
        with tf.control_dependencies([last]):
            other = u.assign_add(v.read_value())
        return [before, after, other], lambda i: {x: _rows(i, 3)}

    assert _divided(build).division.rest is not None


@pytest.mark.parametrize("resource", [False, True])
def test_updates_under_a_condition_of_the_devices_data(resource):
    """An update that depends on whether all gradients are finite is a part of its own: the host looks at the answer before it."""

    def build():
        x = tf.placeholder(tf.float32, [4, 3])
        w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer(), use_resource=resource)
        scale = tf.get_variable("scale", [], initializer=tf.constant_initializer(1e38), use_resource=resource)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        grads = [(g / scale, v) for g, v in optimizer.compute_gradients(loss * scale, [w])]
        finite = tf.reduce_all(tf.is_finite(grads[0][0]))
        update = tf.cond(finite, lambda: optimizer.apply_gradients(grads), tf.no_op)
        with tf.control_dependencies([update]):
            changed = tf.cond(finite, lambda: scale.assign(scale * 2.0), lambda: scale.assign(scale / 4.0))
        return [loss, finite, changed], lambda i: {x: _rows(i, 4, 3)}

    divided = _divided(build, runs=10)
    rest = divided.recordings["rest"]
    assert {key[0] for key in rest if key != "rest"} == {(True,), (False,)}


def test_an_iterator_that_is_fed_as_a_string():
    """Which iterator a batch comes from may be known only when the step runs: the host takes the batch before the device's part."""

    def build():
        datasets = [tf.data.Dataset.from_tensor_slices(_rows(i, 6, 3)).batch(2).repeat() for i in range(2)]
        which = tf.placeholder(tf.string, [])
        batch = tf.data.Iterator.from_string_handle(which, tf.float32, [2, 3]).get_next()
        w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.tanh(tf.matmul(batch, w)))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session = tf.get_default_session()
        handles = [session.run(tf.data.make_one_shot_iterator(each).string_handle()) for each in datasets]
        return [loss, train], lambda i: {which: handles[i % 2]}

    assert len(_divided(build).recordings) == 1


def test_a_list_does_not_wait_for_the_host():
    """What cannot be handed from one part to the next is refused, so that the step runs as it is."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4, 3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        rows = tf.map_fn(lambda row: tf.tanh(row * v), x)
        made = tf.py_func(lambda a: a.sum(dtype="f"), [rows], tf.float32)
        made.set_shape([])
        train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(rows)) * made)
        session.run(tf.global_variables_initializer())
        with pytest.raises(Obstacle, match="list"):
            _Divided(session, train, {x: np.ones([4, 3], "f")})


def test_a_read_of_a_resource_variable_keeps_its_place_among_updates():
    """What is read after an update is the updated value."""

    def build():
        x = tf.placeholder(tf.float32, [3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer(), use_resource=True)
        before = v.read_value() * 2.0
        with tf.control_dependencies([before]):
            update = v.assign_add(tf.tanh(x))
        with tf.control_dependencies([update]):
            after = v.read_value() + 1.0
        return [before, after], lambda i: {x: _rows(i, 3)}

    assert len(_divided(build).recordings) == 1


def test_what_other_runs_see_waits_for_the_updates():
    """A queue is told of an update after it, as the control dependency says; a counter may count before."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        queue = tf.FIFOQueue(10, tf.int64, [[]])
        count = tf.train.get_or_create_global_step()
        with tf.control_dependencies([v.assign_add(tf.tanh(x))]):
            told = queue.enqueue(7)
            counted = tf.assign_add(count, 1)
        session.run(tf.global_variables_initializer())
        divided = _Divided(session, [told, counted], {x: np.ones(3, "f")})
        assert divided.division.counts[2] == 1


def test_a_condition_that_only_the_device_knows():
    """Both branches run, and a number of the device selects their results."""

    def build():
        x = tf.placeholder(tf.float32, [4, 3])
        y = tf.reduce_sum(x * 2.0) + 0.5
        chosen = tf.cond(y > 0, lambda: tf.tanh(y) * 2.0, lambda: y - 1.0)
        return [chosen, tf.square(y)], lambda i: {x: _rows(i, 4, 3)}

    divided = _divided(build)
    assert len(divided.recordings) == 1


def test_the_length_of_a_list_decides_without_its_elements():
    """The gradient of reading a list of the device's tensors needs to know how long it is, which no recording changes."""

    def build():
        x = tf.placeholder(tf.float32, [2, 5, 3])
        w = tf.get_variable("w", [3], initializer=tf.random_normal_initializer(seed=1))
        cell = tf.nn.rnn_cell.GRUCell(4, kernel_initializer=tf.random_normal_initializer(seed=2))
        out, _ = tf.nn.dynamic_rnn(cell, x * w, dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(out))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return [loss, train], lambda i: {x: _rows(i, 2, 5, 3)}

    assert len(_divided(build).recordings) == 1


def test_the_host_prepares_the_labels_of_a_ctc_loss(monkeypatch):
    """Labels and lengths are checked before the device's part, which takes them as tensors of few shapes."""

    def build():
        x, lengths = tf.placeholder(tf.float32, [4, 12, 6]), tf.placeholder(tf.int32, [4])
        places, values = tf.placeholder(tf.int64, [None, 2]), tf.placeholder(tf.int32, [None])
        w = tf.get_variable("w", [6, 7], initializer=tf.random_normal_initializer(seed=1))
        logits = tf.transpose(tf.tensordot(x, w, [[2], [0]]), [1, 0, 2])
        loss = tf.reduce_mean(tf.nn.ctc_loss(tf.SparseTensor(places, values, [4, 3]), logits, lengths))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

        def feeds(i):
            random = np.random.RandomState(i)
            given = [[row, column] for row in range(4) for column in range(1 + random.randint(3))]
            feed = {x: _rows(i, 4, 12, 6), lengths: random.randint(6, 13, 4)}
            return {**feed, places: given, values: random.randint(0, 6, len(given))}

        return [loss, train], feeds

    # What stands in for the kernel looks at numbers of the host, so it is not replayed.
    monkeypatch.setattr(_Recording, "replay", lambda self, inputs: self._function(None, *inputs, *self._numbers))
    divided = _divided(build)
    assert not divided.division.numbers and len(divided.recordings) == 1


def test_positions_of_a_dense_tensor_are_checked_before():
    """What sparse values become dense is written by the device; the host computes and checks where."""

    def build():
        values, places = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int64, [3, 2])
        w = tf.get_variable("w", [4, 5], initializer=tf.ones_initializer())
        loss = tf.reduce_sum(tf.sparse_to_dense(places, [4, 5], values * 2.0, 0.5) * w)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

        def feeds(i):
            rows = np.sort(np.random.RandomState(i).choice(20, 3, replace=False))
            return {values: _rows(i, 3), places: np.stack([rows // 5, rows % 5], 1)}

        return [loss, train], feeds

    divided = _divided(build)
    assert len(divided.recordings) == 1 and not divided.division.numbers
