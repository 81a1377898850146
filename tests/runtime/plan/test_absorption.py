"""A parser does the first steps of feature columns itself: it hashes strings, and gives the rows of sparse features."""

import numpy as np

import stoker.compat.v1 as tf


def rows(count=5):
    feature = tf.train.Feature
    return np.array(
        [
            tf.train.Example(
                features=tf.train.Features(
                    feature={
                        "s": feature(bytes_list=tf.train.BytesList(value=[b"w%d" % k for k in range(i % 3)])),
                        "n": feature(int64_list=tf.train.Int64List(value=range(i, 2 * i))),
                        "f": feature(float_list=tf.train.FloatList(value=[i / 2] * (i % 2))),
                        "d": feature(float_list=tf.train.FloatList(value=[i, i + 1])),
                    }
                )
            ).SerializeToString()
            for i in range(count)
        ],
        object,
    )


SPEC = {
    "s": tf.io.VarLenFeature(tf.string),
    "n": tf.io.VarLenFeature(tf.int64),
    "f": tf.io.VarLenFeature(tf.float32),
    "d": tf.io.FixedLenFeature([2], tf.float32),
}


def test_strings_are_hashed_while_they_are_parsed():
    """Hashes, rows and batch sizes that the parser computes equal what the ops compute from its outputs."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.placeholder(tf.string, [None])
        parsed = tf.io.parse_example(batch, SPEC)
        text, number = parsed["s"], parsed["n"]
        fine, coarse = (tf.strings.to_hash_bucket_fast(text.values, size) for size in (1000, 7))
        fetches = [
            fine * 1, coarse * 1, text.indices[:, 0] * 1, number.dense_shape[0] * 1, number, parsed["f"].values, parsed["d"],
            number.indices[:, 0] + number.values,
        ]  # fmt: skip
        feed = {batch: rows()}
        found = session.run(fetches, feed)
        plan = session.explain(fetches, feed)
        strings = session.run(text, feed)
        expected = [session.run(tf.strings.to_hash_bucket_fast(strings.values, size)) for size in (1000, 7)]
        again = session.run(fetches, {batch: rows(0)})
    assert "ParseExampleV2_many" in plan and "= StringToHashBucketFast(" not in plan
    for one, other in zip(found, [*expected, strings.indices[:, 0], 5]):
        np.testing.assert_array_equal(one, other)
    assert found[4].values.tolist() == [1, 2, 3, 3, 4, 5, 4, 5, 6, 7]
    assert found[4].dense_shape.tolist() == [5, 4]
    assert found[5].tolist() == [0.5, 1.5]
    assert found[6].tolist() == [[i, i + 1] for i in range(5)]
    np.testing.assert_array_equal(found[7], found[4].indices[:, 0] + found[4].values)
    assert again[3] == 0 and again[0].shape == (0,) and again[4].indices.shape == (0, 2)


def test_strings_that_are_also_needed_are_returned():
    """A feature that is hashed and fetched as text has both."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.placeholder(tf.string, [None])
        text = tf.io.parse_example(batch, SPEC)["s"]
        hashed = tf.strings.to_hash_bucket_fast(text.values, 10)
        fetches = [text, hashed + 0, tf.strings.length(text.values)]
        found = session.run(fetches, {batch: rows()})
    assert found[0].values.tolist() == [b"w0", b"w0", b"w1", b"w0"]
    assert found[1].shape == (4,) and found[1][0] == found[1][1]
    assert found[2].tolist() == [2] * 4
