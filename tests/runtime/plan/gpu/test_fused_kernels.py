"""Fused kernels of a GPU, run without one: a C++ compiler takes the place of NVRTC (emulated_gpu.py).

Elements are computed by the same formulas as single ops, so they agree to the last digits. Sums add in another order.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.base.shapes import Shape
from stoker._src.ops.random.bits import cuda
from stoker._src.runtime import devices
from stoker._src.runtime.plan.emit import emit
from stoker._src.runtime.plan.gpu import fused_kernels
from stoker._src.runtime.plan.gpu.fused_kernels import FusedKernels
from stoker._src.runtime.plan.gpu.kernel_nodes import BINARY, UNARY, KernelBuilder
from stoker._src.runtime.plan.gpu.kernel_sections import Sections
from stoker._src.runtime.plan.gpu.kernel_source import Layout, launches
from stoker._src.runtime.plan.known_shapes import Known
from stoker._src.runtime.session import public
from tests.runtime.plan.gpu import emulated_gpu

compiles = pytest.mark.skipif(emulated_gpu.COMPILER is None, reason="no C++ compiler")
R = np.random.RandomState


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    written = FusedKernels.written
    monkeypatch.setattr(devices, "usable_gpus", lambda: 0)
    monkeypatch.setattr(fused_kernels, "compiled", emulated_gpu.compiled)
    monkeypatch.setattr(fused_kernels, "is_available", lambda: True)
    monkeypatch.setattr(FusedKernels, "written", lambda self, strides: written(self, strides, emulated=True))


def _formed(planner):
    return fused_kernels.form(
        planner.instructions, planner.results, planner.shape_of, planner.compile_function.placement
    )


def _fused(build):
    """Runs a program with fused kernels and as usual. Returns both results, and the calls of fused kernels."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        fetches, feeds = build()
        session.run(tf.global_variables_initializer())
        plan = session._plan(fetches, feeds, None)
        values = [convert(value) for convert, value in zip(plan.converters, feeds.values())]
        placement = session._runner._worker.placement
        placement.gpu = torch.device("cpu")
        try:
            known = [Known(Shape(value.shape)) for value in values]
            step = emit(plan._planner(known=known, arrange=_formed).build())
            found = plan.fetch.build([public(each) for each in step.function(None, *values)])
        finally:
            placement.gpu = None
        calls = [each for part in step.with_functions() for each in part.planner.instructions]
        return found, session.run(fetches, feeds), [each for each in calls if each.kind == "fused_loops"]


def _check(build, rtol=2e-5):
    found, expected, calls = _fused(build)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max())
    assert calls and all(each.kernel.obstacle is None for each in calls)
    return calls


@compiles
def test_a_normalization_and_its_gradient():
    """Means of rows stay in registers; sums of columns, parts that are joined, padded, sliced and selected are computed where they are used."""

    def build():
        x = tf.placeholder(tf.float32, [3, 6, 40])
        scale = tf.get_variable("scale", [40], initializer=tf.ones_initializer())
        shift = tf.get_variable("shift", [40], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        y = (x - mean) * tf.rsqrt(variance + 1e-6) * scale + shift
        z = tf.pad(tf.concat([y * 2.0, tf.tanh(y)], 1), [[0, 0], [1, 2], [0, 0]])
        loss = tf.reduce_sum(tf.square(z) * tf.sigmoid(z))
        others = [
            tf.transpose(y, [0, 2, 1]) * 3.0,
            y[:, 2] * 4.0 - 1.0,
            tf.where(y > 0.2, y, -y),
            tf.greater(y * 2.0, 1.0),
        ]
        return [loss, *tf.gradients(loss, [x, scale, shift]), *others], {x: R(0).randn(3, 6, 40).astype("f")}

    calls = _check(build)
    assert sum(each.kernel.kernels for each in calls) <= 4


@compiles
def test_a_softmax_classifier():
    """A softmax with its gradient takes one kernel between two products."""

    def build():
        x, y = tf.placeholder(tf.float32, [16, 8]), tf.placeholder(tf.float32, [16, 5])
        w = tf.get_variable("w", [8, 5], initializer=tf.random_normal_initializer(seed=1))
        b = tf.get_variable("b", [5], initializer=tf.zeros_initializer())
        p = tf.nn.softmax(tf.nn.leaky_relu(tf.matmul(x, w) + b))
        loss = -tf.reduce_mean(tf.reduce_sum(y * tf.log(p + 1e-6), 1))
        return [loss, p, *tf.gradients(loss, [w, b])], {
            x: R(0).randn(16, 8).astype("f"),
            y: R(1).rand(16, 5).astype("f"),
        }

    _check(build)


@compiles
def test_cells_over_sequences_with_lengths():
    """The body of a loop is one kernel beside its product, forward and backward. The time step is passed by value."""

    def build():
        x, n = tf.placeholder(tf.float32, [None, 7, 5]), tf.placeholder(tf.int32, [None])
        cell = tf.nn.rnn_cell.LSTMCell(6, initializer=tf.random_normal_initializer(seed=1))
        out, last = tf.nn.dynamic_rnn(cell, x, sequence_length=n, dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(out)) + tf.reduce_sum(last.h)
        return [loss, *tf.gradients(loss, tf.trainable_variables())], {
            x: R(0).randn(3, 7, 5).astype("f"),
            n: np.array([7, 3, 5], "i"),
        }

    calls = _check(build, rtol=1e-4)
    assert max(len(each.members) for each in calls) > 15


@compiles
def test_sums_of_many_elements_have_two_stages():
    """Totals, sums of rows and of columns of a tall matrix."""

    def build():
        x = tf.placeholder(tf.float32, [3000, 6])
        return [
            tf.reduce_sum(x * 2.0 + 1.0),
            tf.reduce_sum(tf.square(x) - 1.0, 0),
            tf.reduce_mean(tf.abs(x) + 1.0, [0, 1]),
            tf.reduce_sum(tf.exp(x) * x, 1),
        ], {x: R(0).randn(3000, 6).astype("f")}

    _check(build, rtol=1e-4)


def test_other_shapes_and_devices_run_the_ops_themselves():
    """What the kernels were not written for is computed by the ops' own kernels."""

    def build():
        x = tf.placeholder(tf.float32, [4])
        return [tf.exp(x) * 2.0 + 1.0], {x: np.arange(4, dtype="f")}

    with tf.Graph().as_default(), tf.Session() as session:
        fetches, feeds = build()
        plan = session._plan(fetches, feeds, None)
        placement = session._runner._worker.placement
        placement.gpu = torch.device("cpu")
        try:
            (call,) = plan._planner(arrange=_formed).build().instructions
            assert len(call.members) == 3
            (found,) = call.kernel(torch.arange(6.0))
        finally:
            placement.gpu = None
        np.testing.assert_allclose(found.numpy(), np.exp(np.arange(6.0)) * 2 + 1, rtol=1e-6)


def test_a_kernel_that_cannot_be_compiled_is_not_used(monkeypatch):
    """The ops' own kernels run, and the reason is kept for `session.explain`."""

    def refuse(source):
        raise RuntimeError("no compiler")

    def build():
        x = tf.placeholder(tf.float32, [4])
        return [tf.exp(x) * 2.0 + 1.0], {x: np.arange(4, dtype="f")}

    monkeypatch.setattr(fused_kernels, "compiled", refuse)
    (found,), (expected,), (call,) = _fused(build)
    np.testing.assert_array_equal(found, expected)
    assert fused_kernels.summary([call]) == [
        "fused kernels: 1 run 3 ops",
        "fused kernels that cannot be compiled: no compiler",
    ]


def test_kernels_know_the_loops_of_the_cpu():
    """What an op's `lower` function names for floats on the CPU, kernels can compute, except for functions that CUDA does not have."""
    native = pytest.importorskip("stoker._src.runtime.native.program")
    names = {name for name in [*native.UNARY, *native.BINARY] if "int" not in name.split("_")}
    assert names - {"digamma", "trigamma"} <= set(UNARY) | set(BINARY)


SHAPES = st.lists(st.integers(1, 70), min_size=1, max_size=3).map(tuple)


def _numpy(node, inputs):
    """The value of a node."""
    if node.kind == "input":
        return inputs[node.data[0]]
    if node.kind == "number":
        return np.float32(node.data)
    x = [_numpy(each, inputs) for each in node.inputs]
    if node.kind == "reshape":
        return x[0].reshape(node.shape)
    if node.kind == "copy":
        flat = np.ascontiguousarray(x[0]).reshape(-1)[node.data[1] :]
        return np.lib.stride_tricks.as_strided(flat, node.shape, [flat.itemsize * step for step in node.data[0]])
    if node.is_reduction:
        outer, middle, inner, divisor = node.data
        over = np.sum if node.kind == "sum" else np.max
        return over(x[0].reshape(outer, middle, inner).astype("d"), 1).reshape(-1) / divisor
    return {"add": np.add, "mul": np.multiply, "max": np.maximum, "square": np.square}[node.name](*x)


@st.composite
def _graphs(draw):
    """Some nodes that use each other, over inputs of shapes that broadcast."""
    build = KernelBuilder(None)
    shape = draw(SHAPES)
    smaller = [shape, tuple(1 if i else size for i, size in enumerate(shape)), (*[1] * (len(shape) - 1), shape[-1])]
    nodes = [build.input(each, "float", i) for i, each in enumerate(smaller)]
    made = []
    for _ in range(draw(st.integers(1, 7))):
        x = draw(st.sampled_from(nodes))
        kind = draw(st.sampled_from(["unary", "binary", "sum", "max", "broadcast"]))
        if kind == "unary":
            made.append(build.unary("square", x))
        elif kind == "binary":
            y = draw(st.sampled_from(nodes))
            made.append(build.binary(draw(st.sampled_from(["add", "mul", "max"])), x, y))
        elif kind == "broadcast":
            made.append(build.broadcast(x, shape))
        else:
            axis = draw(st.integers(0, len(shape) - 1))
            made.append(getattr(build, kind)(x, [axis], keep_dims=True))
        nodes.append(made[-1])
    return smaller, made


@given(_graphs())
@settings(max_examples=60, deadline=None)
def test_sections_pass_on_only_what_is_there(graph):
    """What a section reads from memory was stored by one of a lower level, whatever is computed."""
    _, wanted = graph
    sections = Sections(wanted)
    for section in sections.all:
        for node in section.members:
            for each, how in sections._depends(section, node):
                place = sections.place[id(each)]
                assert (place.level < section.level and id(each) in sections.stored) or (place is section and how)


@compiles
@given(_graphs())
@settings(max_examples=5, deadline=None, phases=[Phase.generate])
def test_kernels_equal_numpy(graph):
    """Whatever is combined, broadcast and summed, the kernels give NumPy's values."""
    shapes, wanted = graph
    random = R(0)
    inputs = [random.uniform(-1, 1, shape).astype("f") for shape in shapes]
    layouts = [Layout(torch.empty(shape).stride()) for shape in shapes]
    buffers = {}
    for launch in launches(wanted, layouts, set(), emulated=True):
        given = [torch.from_numpy(inputs[i]) for i in launch.inputs]
        for node in launch.nodes:
            given.append(buffers.setdefault(id(node), torch.empty(node.size)))
        emulated_gpu.compiled(launch.source)((launch.blocks, 1, 1), (launch.threads, 1, 1), given)
    for node in wanted:
        expected = np.broadcast_to(_numpy(node, inputs), node.shape)
        np.testing.assert_allclose(buffers[id(node)].numpy().reshape(node.shape), expected, rtol=1e-3, atol=1e-4)


def test_random_numbers_have_kernels_for_a_gpu(monkeypatch):
    """Uniform and normal float32 numbers are made on the device, so that a recorded step draws new ones."""
    monkeypatch.setattr(cuda, "can_fill", lambda dtype: dtype is torch.float32)
    for made, expected in (
        (tf.random_uniform([2]), True),
        (tf.random_normal([2]), True),
        (tf.random_normal([2], dtype=tf.float64), False),
    ):
        op = next(
            op
            for op in made.graph.get_operations()
            if op.type.startswith("Random") and op.outputs[0].dtype == made.dtype
        )
        assert (op.definition.planning.on_gpu(op) is not None) is expected
