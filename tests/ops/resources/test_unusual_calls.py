"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

import pytest

import stoker.compat.v1 as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_vocabulary_table_of_buckets_alone(session):
    """Without a vocabulary, keys are strings unless stated."""
    found = tf.lookup.StaticVocabularyTable(None, 5).lookup(tf.constant(["a", "z"]))
    assert all(0 <= bucket < 5 for bucket in session.run(found))
