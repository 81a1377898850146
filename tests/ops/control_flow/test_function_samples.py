"""Samples of ops that call functions, and of those that take nothing."""

import numpy as np

import stoker.compat.v1 as tf
from stoker._src.graph.function_graph import FuncGraph, Function
from tests.ops.samples import Sample, check_sample, f64, samples


def function(name, body):
    """A reference to a function of one float64 number."""
    with tf.Graph().as_default() as outer:
        graph = FuncGraph(name, outer)
        with graph.as_default():
            x = tf.placeholder(tf.float64, [])
            y = tf.convert_to_tensor(body(x))
    return Function(name, graph, [x], [y]).ref


SQUARED, GROWN = function("squared", lambda x: x * x), function("grown", tf.exp)
TWICE, IS_SMALL = function("twice", lambda x: x + x), function("is_small", lambda x: x < 9)
X = np.array(1.5)
ONE = {"Tout": [tf.float64]}
BRANCHES = {"then_branch": SQUARED, "else_branch": GROWN, **ONE}
TABLE = f64(2, 3)

SAMPLES = [
    Sample("PartitionedCall", [[X]], {"f": SQUARED, **ONE}, reference=lambda v: v[0] ** 2),
    Sample(
        "SymbolicGradient", [[X, np.array(3.0)]], {"f": SQUARED, **ONE}, reference=lambda v: 6 * v[0], gradient=False
    ),
    Sample("StatelessIf", [np.array(True), [X]], BRANCHES, reference=lambda c, v: v[0] ** 2),
    Sample("StatelessIf", [np.array(0, np.int32), [X]], BRANCHES, reference=lambda c, v: np.exp(v[0])),
    Sample("StatelessCase", [1, [X]], {"branches": [SQUARED, GROWN], **ONE}, reference=lambda c, v: np.exp(v[0])),
    Sample("StatelessCase", [-1, [X]], {"branches": [SQUARED, GROWN], **ONE}, reference=lambda c, v: np.exp(v[0])),
    Sample("StatelessWhile", [[X]], {"cond": IS_SMALL, "body": TWICE}, reference=lambda v: v[0] * 8, static=False),
    Sample("Const", [], {"value": TABLE, "dtype": tf.float64}, reference=lambda: TABLE),
    Sample("FakeParam", [], {"dtype": tf.float64, "shape": [2]}),
    Sample("Fact", [], reference=lambda: np.array(b"0! == 1", object)),
]


@samples(SAMPLES)
def test_samples(sample):
    """Every op of the table: value, static shape, gradient, eager mode, round trip."""
    check_sample(sample)
