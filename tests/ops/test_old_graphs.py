"""Ops of older and of rewritten graphs."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, f32, samples

IMAGE, FILTER = f32(1, 5, 6, 2), f32(3, 3, 2, 4)
PADDINGS = [[0, 0], [1, 2], [2, 1], [0, 0]]


def padded_convolution(x, paddings, w, mode):
    """A convolution of stride 2 over an image that is mirrored at its edges."""
    x = np.pad(x, paddings, mode)
    rows, columns = (x.shape[1] - 3) // 2 + 1, (x.shape[2] - 3) // 2 + 1
    result = np.zeros((1, rows, columns, w.shape[3]))
    for i in range(rows):
        for j in range(columns):
            result[0, i, j] = np.einsum("xyc,xyco->o", x[0, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3], w)
    return result


SAMPLES = [
    Sample("FusedPadConv2D", [IMAGE, PADDINGS, FILTER], {"mode": "REFLECT", "strides": [1, 2, 2, 1], "padding": "VALID"},
           reference=lambda x, p, w: padded_convolution(x, p, w, "reflect"), gradient=False, rtol=1e-4, atol=1e-5),
    Sample("FusedPadConv2D", [IMAGE, PADDINGS, FILTER], {"mode": "SYMMETRIC", "strides": [1, 2, 2, 1], "padding": "VALID"},
           reference=lambda x, p, w: padded_convolution(x, p, w, "symmetric"), gradient=False, rtol=1e-4, atol=1e-5),
    Sample("FusedPadConv2D", [IMAGE, [[0, 0], [9, 0], [0, 0], [0, 0]], FILTER], {"mode": "REFLECT", "strides": [1, 1, 1, 1], "padding": "VALID"},
           raises=(InvalidArgumentError, "dimension")),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample) -> None:
    """The op's value, shape, eager form and GraphDef agree with each other and with NumPy."""
    check_sample(sample)


def test_reference_passes():
    """A reference that passes through RefIdentity is still the variable: it can be assigned to, after what it waits for."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(3.0, use_resource=False)
        with tf.control_dependencies([tf.assign_add(variable, 1.0)]):
            passed = tf.raw_ops.RefIdentity(input=variable.op.outputs[0])
        assert passed.dtype.name == "float32_ref"
        added = tf.assign_add(passed, 10.0)
        session.run(variable.initializer)
        assert session.run(added) == 14
        assert session.run(variable) == 14
        assert session.run(passed) == 15


def test_placeholder():
    """The second version of the placeholder is fed like the first, and must be."""
    with tf.Graph().as_default(), tf.Session() as session:
        placeholder = tf.raw_ops.PlaceholderV2(dtype=tf.float32, shape=[2])
        np.testing.assert_array_equal(session.run(placeholder * 2, {placeholder: [1, 2]}), [2, 4])
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed"):
            session.run(placeholder)


def test_abort():
    """Abort ends the run."""
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.AbortedError, match="enough"):
            session.run(tf.raw_ops.Abort(error_msg="enough"))
        session.run(tf.raw_ops.Abort(exit_without_error=True))
