"""Strings into values: raw bytes, base64, compressed bytes, JSON, CSV."""

import base64
import gzip
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph import context


def run(build):
    """What `build` gives in graph mode and, the same, in eager mode."""
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(build())
    with context.enter_eager():
        eager = build()
        eager = [each.numpy() for each in eager] if isinstance(eager, list) else eager.numpy()
    np.testing.assert_equal(found, eager)
    return found


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "complex64"]
)
@pytest.mark.parametrize("little_endian", [True, False])
def test_decode_raw_reads_what_numpy_wrote(dtype, little_endian):
    """The bytes of an array give the array back, in either byte order."""
    array = np.arange(6).reshape(2, 3).astype(dtype)
    rows = [row.astype(array.dtype.newbyteorder("<" if little_endian else ">")).tobytes() for row in array]
    found = run(lambda: tf.decode_raw(rows, dtype, little_endian))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, array)


def test_decode_raw_reads_any_byte_but_zero_as_true():
    """A bool is one byte; any but zero is true."""
    assert run(lambda: tf.decode_raw(b"\0\1\2", tf.bool)).tolist() == [False, True, True]


def test_decode_raw_of_no_strings():
    """No strings have no width."""
    assert run(lambda: tf.decode_raw(np.zeros([0, 2], object), tf.int16)).shape == (0, 2, 0)


@pytest.mark.parametrize(
    ("strings", "message"),
    [([b"abcd", b"ab"], "element 1 has size 4 != 2"), ([b"abc"], "length 3 that is not a multiple of 2")],
)
def test_decode_raw_refuses_uneven_strings(strings, message):
    """Strings of different lengths, or that end inside a number, are refused."""
    with context.enter_eager(), pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.decode_raw(strings, tf.int16)


def test_decode_raw_takes_either_name_of_its_input():
    """`bytes` is the old name of `input_bytes`; one of them must be given, and only one."""
    assert run(lambda: tf.decode_raw(bytes=[b"ab"], out_type=tf.int8)).tolist() == [[97, 98]]
    with pytest.raises(ValueError, match="both"):
        tf.decode_raw([b""], tf.int8, bytes=[b""])
    with pytest.raises(ValueError, match="input_bytes"):
        tf.decode_raw(out_type=tf.int8)
    with pytest.raises(ValueError, match="out_type"):
        tf.decode_raw([b"a"])


def test_fixed_length_pads_and_cuts():
    """Shorter strings are filled up with zeros, longer ones cut."""
    found = run(lambda: tf2.io.decode_raw([b"abcd", b"ab", b"abcdefgh"], tf2.int16, fixed_length=4))
    assert found.tolist() == [[25185, 25699], [25185, 0], [25185, 25699]]


@pytest.mark.parametrize(("length", "message"), [(3, "multiple of the size"), (0, "greater than zero")])
def test_fixed_length_must_hold_whole_numbers(length, message):
    """It is a positive multiple of the size of a number."""
    with context.enter_eager(), pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf2.io.decode_raw([b"abcd"], tf2.int16, fixed_length=length)


def test_static_shapes_of_raw_bytes():
    """The new dimension is known where the length is."""
    strings = tf.placeholder(tf.string, [3])
    assert tf.decode_raw(strings, tf.int16).shape.as_list() == [3, None]
    assert tf2.io.decode_raw(strings, tf.int16, fixed_length=8).shape.as_list() == [3, 4]
    with pytest.raises(ValueError, match="divisible by 2 but is 5"):
        tf2.io.decode_raw(strings, tf.int16, fixed_length=5)


@given(st.binary(max_size=40), st.booleans())
def test_base64_round_trip(data, pad):
    """The alphabet is the URL-safe one, and padding may be left out."""
    with context.enter_eager():
        text = tf.encode_base64(data, pad).numpy()
        expected = base64.urlsafe_b64encode(data)
        assert text == (expected if pad else expected.rstrip(b"="))
        assert tf.decode_base64(text).numpy() == data


@pytest.mark.parametrize("text", ["Y", "YQ=", "Y+", "YQ\n", "Y===", "=YQ="])
def test_bad_base64_is_refused(text):
    """Other characters, wrong padding and impossible lengths are refused."""
    with context.enter_eager(), pytest.raises(tf.errors.InvalidArgumentError, match=r"[Bb]ase64"):
        tf.decode_base64(text)


@given(st.lists(st.binary(max_size=60), max_size=3))
def test_decompression_gives_back_what_was_compressed(strings):
    """zlib and gzip streams are read, element by element."""
    for kind, compress in (("ZLIB", zlib.compress), ("GZIP", gzip.compress), ("", bytes)):
        with context.enter_eager():
            found = tf.decode_compressed(np.array([compress(s) for s in strings], dtype=object), kind)
        assert found.numpy().tolist() == strings


def test_streams_after_one_another_are_joined():
    """gzip files may be joined, zlib streams not; what ends early gives what it has, as in TensorFlow."""
    assert run(lambda: tf.decode_compressed(gzip.compress(b"ab") * 2, "GZIP")) == b"abab"
    assert run(lambda: tf.decode_compressed(zlib.compress(b"hello")[:-3], "ZLIB")) == b"hello"
    assert run(lambda: tf.decode_compressed(zlib.compress(b"hello") * 2, "ZLIB")) == b"hello"
    assert run(lambda: tf.decode_compressed(zlib.compress(b"hello") + b"anything", "ZLIB")) == b"hello"
    with pytest.raises(tf.errors.DataLossError, match="incorrect header check"):
        run(lambda: tf.decode_compressed(gzip.compress(b"ab") + b"anything", "GZIP"))


@pytest.mark.parametrize(
    ("kind", "error"),
    [("GZIP", tf.errors.DataLossError), ("ZLIB", tf.errors.DataLossError), ("LZ", tf.errors.InvalidArgumentError)],
)
def test_what_is_not_compressed_so_is_refused(kind, error):
    """Bytes of another format are data loss; an unknown format is an invalid argument."""
    with context.enter_eager(), pytest.raises(error):
        tf.decode_compressed(b"abc", kind)


def test_json_becomes_a_message():
    """The JSON mapping of an Example is its message."""
    text = '{"features": {"feature": {"a": {"int64List": {"value": [1, 2]}}}}}'
    found = run(lambda: tf.decode_json_example([text]))
    assert tf.train.Example.FromString(found[0]).features.feature["a"].int64_list.value == [1, 2]
    with context.enter_eager(), pytest.raises(tf.errors.InvalidArgumentError, match="parsing JSON"):
        tf.decode_json_example("{")


def test_csv_columns_have_the_records_shape():
    """One tensor per column, of the type of its default."""
    numbers, texts = run(lambda: tf.decode_csv([["1,a"], ["2,"]], [[0], ["none"]]))
    assert numbers.tolist() == [[1], [2]]
    assert numbers.dtype == np.int32
    assert texts.tolist() == [[b"a"], [b"none"]]


def test_csv_options():
    """Delimiter, columns picked, and the text that stands for nothing."""
    found = run(lambda: tf.decode_csv("7;NA;x", [[5], ["y"]], field_delim=";", na_value="NA", select_cols=[1, 2]))
    assert found[0] == 5
    assert found[1] == b"x"


def test_csv_defaults_may_be_computed():
    """A default is a tensor: it may come from a run."""
    default = tf.placeholder(tf.float32, [1])
    with tf.Session() as session:
        assert session.run(tf.decode_csv([","], [default, [1.0]]), {default: [4.5]})[0].tolist() == [4.5]


@pytest.mark.parametrize(
    ("records", "defaults", "options", "message"),
    [
        (["1,"], [[1], np.zeros(0, "f4")], {}, "Field 1 is required but missing in record 0"),
        (["x"], [[1]], {}, "not a valid int32: x"),
        (["1"], [[1], [1]], {}, "Expect 2 fields but have 1"),
        (["1"], [[1]], {"field_delim": ",,"}, "only 1 char"),
    ],
)
def test_csv_that_does_not_fit_is_refused(records, defaults, options, message):
    """Missing, malformed and surplus fields are errors with their place."""
    with context.enter_eager(), pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf2.io.decode_csv(records, defaults, **options)


@pytest.mark.parametrize(
    ("columns", "message"), [([1, 0], "strictly increasing"), ([-1, 0], "negative"), ([1], "do not match")]
)
def test_csv_columns_are_checked_at_once(columns, message):
    """`select_cols` is checked when the op is made."""
    with pytest.raises(ValueError, match=message):
        tf.decode_csv(["1,2"], [[1], [1]], select_cols=columns)


def test_csv_default_shapes_are_checked_at_once():
    """A default is a scalar or a vector of at most one element."""
    with pytest.raises(ValueError, match="at most rank 1"):
        tf.decode_csv(["1"], [[[1]]])
    with pytest.raises(ValueError, match="length-0 or length-1"):
        tf.decode_csv(["1"], [[1, 2]])
