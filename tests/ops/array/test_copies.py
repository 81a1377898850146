"""ToBool, DeepCopy and GuaranteeConst."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, f64, samples

SAMPLES = [
    Sample("ToBool", [np.float64(0.0)], reference=lambda x: np.array(False), gradient=False),
    Sample("ToBool", [np.array([0, 0])], reference=lambda x: np.array(True), gradient=False),
    Sample("ToBool", [np.zeros((2, 0))], reference=lambda x: np.array(False), gradient=False),
    Sample("ToBool", [np.array(b"", object)], reference=lambda x: np.array(False), gradient=False),
    Sample("ToBool", [np.float16(1)], raises=(InvalidArgumentError, "cannot be converted to a boolean")),
    Sample("DeepCopy", [f64(2, 3)], reference=lambda x: x, gradient=False),
]  # fmt: skip


def test_guarantee_const_has_no_gradient():
    """As in TensorFlow, a promise of constancy is an op without a gradient."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        promised = tf.guarantee_const(x)
        assert promised.op.type == "GuaranteeConst"
        with pytest.raises(LookupError, match="GuaranteeConst"):
            tf.gradients(promised, x)


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
