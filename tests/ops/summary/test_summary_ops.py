"""Summary ops of 1.x: names, tags and bytes as TensorFlow's, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.ops.summary import messages
from tests.golden.summaries import summaries

GOLDEN = json.loads((Path(summaries.__file__).parent / "summaries.json").read_text())


@pytest.fixture(scope="module")
def found():
    with tf.Graph().as_default():
        cases = summaries.build(tf)
        with tf.Session() as session:
            return {name: [tensor.name, session.run(tensor).hex()] for name, tensor in cases.items()}


@pytest.mark.parametrize("case", GOLDEN)
def test_summaries_are_tensorflows_byte_for_byte(found, case):
    """Node names and serialized messages equal those that TensorFlow 1.15 wrote."""
    assert found[case] == GOLDEN[case]


def test_summaries_join_the_collection():
    """Each function stores its tensor in SUMMARIES, or in the collections that are named instead."""
    with tf.Graph().as_default() as graph:
        first = tf.summary.scalar("a", 1.0)
        second = tf.summary.histogram("b", [1.0], collections=["mine", "others"])
        assert graph.get_collection(tf.GraphKeys.SUMMARIES) == [first]
        assert graph.get_collection("mine") == graph.get_collection("others") == [second]
        assert tf.summary.merge_all("nobody's") is None


RUN_ERRORS = {
    "duplicate": (
        lambda: tf.summary.merge([tf.summary.scalar("a", 1.0)] * 2),
        "Duplicate tag a found in summary inputs",
    ),
    "nan": (lambda: tf.summary.histogram("bad", [1.0, np.nan]), "Nan in summary histogram for: bad"),
    "infinity": (lambda: tf.summary.histogram("bad", [1.0, np.inf]), "Infinity in summary histogram for: bad"),
    "vector": (
        lambda: tf.summary.scalar("v", [1.0, 2.0]),
        r"tags and values not the same shape: \[\] != \[2\] \(tag 'v'\)",
    ),
    "rank": (lambda: tf.summary.image("i", [1.0]), r"Tensor must be 4-D with last dim 1, 3, or 4, not \[1\]"),
    "channels": (lambda: tf.summary.image("i", tf.zeros([1, 2, 2, 2])), r"not \[1,2,2,2\]"),
    "sound": (
        lambda: tf.summary.audio("a", tf.zeros([1, 2, 2, 2]), 1.0),
        r"Tensor must be 3-D or 2-D, got: \[1,2,2,2\]",
    ),
    "rate": (lambda: tf.summary.audio("a", tf.zeros([1, 2]), -1.0), "sample_rate must be > 0"),
    "no message": (lambda: tf.summary.merge([tf.constant(b"\xff\xff")]), "Could not parse one of the summary inputs"),
}


@pytest.mark.parametrize("case", RUN_ERRORS)
def test_bad_values_are_errors_when_the_graph_runs(case):
    """What a summary op does not take is an InvalidArgumentError with TensorFlow's words."""
    make, words = RUN_ERRORS[case]
    with tf.Graph().as_default():
        summary = make()
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(summary)


def test_bad_arguments_are_errors_when_the_graph_is_built():
    """Names, dtypes and counts are looked at before anything runs."""
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="At least one of name"):
            tf.summary.scalar(None, 1.0)
        with pytest.raises(TypeError, match="DataType bool not in list of allowed values"):
            tf.summary.scalar("a", True)
        with pytest.raises(ValueError, match="max_images"):
            tf.summary.image("a", tf.zeros([1, 2, 2, 1]), max_outputs=0)
        with pytest.raises(ValueError, match="to have dtype string"):
            tf.summary.text("a", tf.constant(1.0))
        with pytest.raises(TypeError, match="Expected list for 'inputs'"):
            tf.summary.merge("s")
        with pytest.raises(ValueError, match="Can't get_summary_description on Const"):
            tf.summary.get_summary_description(tf.constant(1).op.node_def)


def test_the_oldest_names():
    """0.12's functions take tags as they are, and several at once."""
    with tf.Graph().as_default():
        several = tf.scalar_summary(["a", "b c"], [1.0, 2.0])
        picture = tf.image_summary("t", tf.zeros([2, 1, 1, 1]), max_images=2)
        sound = tf.audio_summary("s", tf.zeros([1, 2]), 8000.0, max_outputs=1)
        numbers = tf.histogram_summary("h", [1.0])
        everything = tf.merge_all_summaries()
        assert several.op.name == "ScalarSummary"
        with tf.Session() as session:
            message = tf.Summary.FromString(session.run(everything))
            assert [value.tag for value in message.value] == ["a", "b c", "t/image/0", "t/image/1", "s/audio", "h"]
            assert tf.Summary.FromString(session.run(tf.merge_summary([numbers, sound]))).value[0].tag == "h"
        assert picture.dtype == tf.string


@pytest.mark.usefixtures("eager")
def test_summaries_in_eager_mode():
    """In eager mode the functions give the message at once; merging is refused."""
    serialized = tf.summary.scalar("a", tf.constant(2.0))
    assert tf.Summary.FromString(serialized.numpy()).value[0].simple_value == 2.0
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        tf.summary.merge_all()


def test_the_bucket_of_every_number():
    """Numbers of all sizes, and those at and beside the ends of buckets, are counted where a search finds them."""
    limits, random = messages._bucket_limits(), np.random.RandomState(0)
    sizes = random.randn(20000) * 10.0 ** random.randint(-320, 300, 20000)
    beside = [np.nextafter(limits[1:-1], -np.inf), np.nextafter(limits[1:-1], np.inf)]
    x = np.concatenate([sizes, limits, *beside, [0.0, -0.0, 5e-324, -5e-324, np.inf, -np.inf]])
    expected = np.minimum(np.searchsorted(limits, x, side="right"), limits.size - 1)
    np.testing.assert_array_equal(messages._buckets_of(x), expected)
    np.testing.assert_array_equal(messages._buckets_of(x[::-1]), expected[::-1])
