"""Arrays of strings: the compiled functions give what the Python ones give, and plans know what strings have in common."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.array import gathering
from stoker._src.ops.resources import table_ops
from stoker._src.ops.sparse import sparse_ops
from stoker._src.ops.strings import string_ops

TEXTS = st.lists(st.binary(max_size=20) | st.sampled_from([b"", b" ", b"a b  c", b",a,,b", b"\xff\x00 x"]), max_size=8)


def _array(items):
    made = np.empty(len(items), object)
    made[:] = items
    return made


def _both(module, name, call):
    """What a kernel returns with and without the compiled functions."""
    found = call()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, None)
        return found, call()


def _assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
        assert np.asarray(one).dtype == np.asarray(other).dtype and one.shape == other.shape


@given(TEXTS, st.sampled_from([b" ", b", ", b"ab", b"\x00"]), st.booleans())
def test_split(texts, marks, skip_empty):
    """Texts split at any of several bytes, with and without empty parts."""
    given, at = _array(texts), np.array(marks, object)
    _assert_equal(
        *_both(string_ops, "compiled", lambda: string_ops.string_split_kernel(given, at, skip_empty=skip_empty))
    )


@given(TEXTS, st.sampled_from([b"", b" ", b",", b", "]), st.sampled_from([-1, 0, 2]))
def test_split_of_version_2(texts, mark, most):
    """Texts split at runs of white space or at a separator."""
    given, at = _array(texts), np.array(mark, object)
    _assert_equal(*_both(string_ops, "compiled", lambda: string_ops.string_split_v2_kernel(given, at, maxsplit=most)))


@given(st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=200)), max_size=6), st.binary(max_size=3))
def test_joined_strings_and_their_hashes(pairs, glue):
    """Strings are joined row by row, also with one for all rows; their buckets are those of the joined strings."""
    columns = [_array([a for a, _ in pairs]), np.array(b"x", object), _array([b for _, b in pairs])]
    (found,), (expected,) = (
        [each] for each in _both(string_ops, "compiled", lambda: string_ops.string_join_kernel(columns, separator=glue))
    )
    assert found.tolist() == expected.tolist() == [glue.join((a, b"x", b)) for a, b in pairs]
    hasher = string_ops._joining_hasher(tf.strings.join([tf.constant([b""])]).op, [7, 1000])
    _assert_equal(*_both(string_ops, "compiled", lambda: hasher(columns, separator=glue)))
    plain = string_ops.string_to_hash_bucket_fast_kernel(expected, num_buckets=1000)
    np.testing.assert_array_equal(hasher(columns, separator=glue)[1], plain)
    _assert_equal(
        *_both(string_ops, "compiled", lambda: [string_ops.string_to_hash_bucket_fast_kernel(found, num_buckets=9)])
    )


def test_parts_of_arrays():
    """Strings of a transposed or cut array are those that it shows."""
    shown = np.array([[b"a", b"b", b"c"], [b"d", b"e", b"f"]], object).T[:, ::-1]
    joined = string_ops.string_join_kernel([shown, shown], separator="")
    assert joined.tolist() == [[b"dd", b"aa"], [b"ee", b"bb"], [b"ff", b"cc"]]


@given(st.lists(st.binary(max_size=2), max_size=9), st.integers(0, 5))
def test_lookups(keys, count):
    """Words that a table has, and a default for the others."""
    table = table_ops.LookupTable("t", dtypes.string, dtypes.int64, static=True)
    table.initialize(_array([b"%d" % i for i in range(count)]), _numbers(count), dtypes.string)
    default = _numbers(1)[0]
    _assert_equal(*_both(table_ops, "compiled", lambda: [table.find(_array(keys), default, dtypes.string)]))


def _numbers(count):
    return torch.arange(count) + 5


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 4))), st.booleans())
def test_dense_strings(places, in_order):
    """Strings at ascending places of a matrix; places out of order or outside are errors with and without the compiled function."""
    at = sorted(places, reverse=not in_order)
    indices = torch.tensor(at, dtype=torch.int64).reshape(-1, 2)
    values = _array([b"%d%d" % each for each in at])

    def call():
        try:
            return [
                sparse_ops.sparse_to_dense_kernel(
                    indices, [4, 4], values, np.array(b"-", object), validate_indices=True
                )
            ]
        except InvalidArgumentError as error:
            return [np.array(str(error))]

    found, expected = _both(sparse_ops, "strings", call)
    assert found[0].tolist() == expected[0].tolist()


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 2)), max_size=6))
def test_gathered_strings(places):
    """Strings at places of a matrix; a place outside of it is the same error with and without the compiled function."""
    values = _array([b"%d" % i for i in range(6)]).reshape(3, 2)
    indices = torch.tensor(places, dtype=torch.int64).reshape(-1, 2)

    def call():
        try:
            return [gathering.gather_nd_kernel(values, indices, bad_indices_policy="")]
        except InvalidArgumentError as error:
            return [np.array(str(error))]

    found, expected = _both(gathering, "strings", call)
    assert found[0].tolist() == expected[0].tolist()


def test_wrong_objects_are_refused():
    """Something that is not a string does not reach the compiled functions' memory."""
    if string_ops.compiled is None:
        pytest.skip("not compiled")
    with pytest.raises(TypeError):
        string_ops.compiled.split_lengths(np.array([1], object), b" ", 1, 1, np.empty(1, np.int64))
    with pytest.raises(TypeError):
        string_ops.compiled.fingerprints(np.array([1]), np.empty(1, np.uint64))
    with pytest.raises(ValueError):
        string_ops.compiled.split_into(_array([b"a b"]), b" ", 1, 1, np.empty(1, object), np.empty((1, 2), np.int64))
    with pytest.raises(ValueError):
        string_ops.compiled.join([_array([b"a", b"b"])], b"", np.empty(3, object))
    with pytest.raises(ValueError):
        string_ops.compiled.places({}, _array([b"a"]), np.empty(2, np.int64))
    assert not string_ops.compiled.place(np.array([[0, 9]]), 1, 2, _array([b"a"]), b"", np.empty(2, object))


def test_texts_of_changing_widths():
    """Hashes, masks and gradients of what the same texts split to, for texts of other numbers of words in every step."""
    text = tf.placeholder(tf.string, [None])
    tokens = tf.string_split(text, " ")
    dense = tf.sparse_tensor_to_dense(tokens, default_value="")
    pairs = tf.strings.to_hash_bucket_fast(tf.strings.join([dense[:, :-1], dense[:, 1:]], "_"), 50)
    present = tf.cast(tf.not_equal(dense[:, 1:], ""), tf.float32)
    table = tf.get_variable("table", initializer=np.arange(100, dtype=np.float32).reshape(50, 2))
    mean = tf.reduce_sum(tf.nn.embedding_lookup(table, pairs) * present[:, :, None], 1) / (
        1.0 + tf.reduce_sum(present, 1, keepdims=True)
    )
    loss = tf.reduce_sum(mean * mean)
    (slices,) = tf.gradients(loss, [table])
    gradient = tf.convert_to_tensor(slices)
    rows = np.arange(100, dtype=np.float32).reshape(50, 2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(12):
            words = [[b"w%d" % (i * k % 7) for k in range(1 + (i + step // 4) % 3)] for i in range(3)]
            widest = max(map(len, words))
            padded = [each + [b""] * (widest - len(each)) for each in words]
            joined = np.array([[a + b"_" + b for a, b in itertools.pairwise(each)] for each in padded], object)
            found = session.run([pairs, mean, gradient], {text: [b" ".join(each) for each in words]})
            if widest == 1:
                assert found[0].shape == (3, 0)
                continue
            expected = string_ops.string_to_hash_bucket_fast_kernel(joined, num_buckets=50).numpy()
            np.testing.assert_array_equal(found[0], expected)
            mask = np.array([[word != b"" for word in each[1:]] for each in padded], np.float32)
            share = mask / (1 + mask.sum(1, keepdims=True))
            means = (rows[expected] * share[:, :, None]).sum(1)
            np.testing.assert_allclose(found[1], means, rtol=1e-5)
            wanted = np.zeros((50, 2), np.float32)
            np.add.at(wanted, expected, 2 * means[:, None, :] * share[:, :, None])
            np.testing.assert_allclose(found[2], wanted, rtol=1e-4, atol=1e-4)
