"""Samples of the ops that make Summary messages."""

from __future__ import annotations

import numpy as np

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, f32, samples


def text(data: bytes) -> np.ndarray:
    return np.array(data, dtype=object)


def summary(*values) -> np.ndarray:
    return text(tf.Summary(value=values).SerializeToString())


def numbers(tags, values):
    return summary(*(tf.Summary.Value(tag=t.decode(), simple_value=v) for t, v in zip(tags.ravel(), values.ravel())))


ONE = summary(tf.Summary.Value(tag="a", simple_value=1.0))

SAMPLES = [
    Sample("ScalarSummary", [text(b"a"), np.float32(2)], reference=numbers, gradient=False),
    Sample("ScalarSummary", [np.array([b"a", b"b"], object), np.array([2, 3])], reference=numbers, gradient=False),
    Sample("ScalarSummary", [text(b"a"), f32(2)], raises=(InvalidArgumentError, "not the same shape")),
    Sample("HistogramSummary", [text(b"h"), f32(3, 4)], gradient=False),
    Sample("HistogramSummary", [text(b"h"), np.array([np.nan])], raises=(InvalidArgumentError, "Nan in summary histogram")),
    Sample("ImageSummary", [text(b"i"), f32(2, 3, 4, 3)], gradient=False),
    Sample("ImageSummary", [text(b"i"), f32(2, 3)], raises=(InvalidArgumentError, "must be 4-D")),
    Sample("AudioSummaryV2", [text(b"s"), f32(2, 5), np.float32(8000)], {"max_outputs": 1}, gradient=False),
    Sample("AudioSummary", [text(b"s"), f32(2, 5)], {"sample_rate": 8000.0}, gradient=False),
    Sample("TensorSummaryV2", [text(b"t"), f32(2), text(b"")], gradient=False),
    Sample("TensorSummary", [f32(2)], gradient=False),
    Sample("MergeSummary", [[ONE]], reference=lambda inputs: ONE, gradient=False),
    Sample("MergeSummary", [[ONE, ONE]], raises=(InvalidArgumentError, "Duplicate tag a")),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample) -> None:
    """The op's value, shape, eager form and GraphDef agree with each other and with the message built by hand."""
    check_sample(sample)
