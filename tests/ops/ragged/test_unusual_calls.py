"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

import pytest

import stoker as tf2
import stoker.compat.v1 as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_ragged_ids_are_looked_up(session):
    """embedding_lookup_sparse takes ragged ids."""
    table = tf.constant([[1.0], [2.0], [4.0]])
    found = tf2.nn.embedding_lookup_sparse(table, tf2.ragged.constant([[0, 1], [2]]), None, combiner="sum")
    assert session.run(found).tolist() == [[3.0], [4.0]]


def test_ragged_conditions_and_texts(eager):
    """where gives the coordinates of what is true in rows; join goes element by element."""
    ragged = tf2.ragged.constant([[1, -1], [], [2]])
    assert tf2.where(ragged > 0).numpy().tolist() == [[0, 0], [2, 0]]
    assert tf2.where(ragged > 0, ragged, 0).to_list() == [[1, 0], [], [2]]
    words = tf2.ragged.constant([["a"], ["b", "c"]])
    assert tf2.strings.join([words, "x", words], "-").to_list() == [[b"a-x-a"], [b"b-x-b", b"c-x-c"]]
