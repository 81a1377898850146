"""Text and bytes as tf.compat converts them."""

import pathlib

import pytest

import stoker.compat.v1 as tf


def test_conversions():
    """Both ways, and what needs none stays."""
    assert tf.compat.as_bytes("é") == b"\xc3\xa9"
    assert tf.compat.as_bytes(bytearray(b"x")) == b"x"
    assert tf.compat.as_text(b"\xc3\xa9") == "é"
    assert tf.compat.as_str("x") == "x"
    assert tf.compat.as_str_any(3) == "3"
    assert tf.compat.as_str_any(b"x") == "x"
    assert tf.compat.path_to_str(pathlib.PurePosixPath("/a/b")) == "/a/b"
    assert tf.compat.path_to_str(7) == 7


def test_other_values_are_refused():
    """Neither text nor bytes, and encodings that there are not."""
    for convert in (tf.compat.as_bytes, tf.compat.as_text, tf.compat.as_str):
        with pytest.raises(TypeError, match="Expected binary or unicode string"):
            convert(3)
        with pytest.raises(LookupError):
            convert("x", "no-such-encoding")


def test_forward_compatibility():
    """The horizon can be moved for a block."""
    assert tf.compat.forward_compatible(2019, 1, 1)
    assert not tf.compat.forward_compatible(2099, 1, 1)
    with tf.compat.forward_compatibility_horizon(2100, 1, 1):
        assert tf.compat.forward_compatible(2099, 1, 1)
    assert not tf.compat.forward_compatible(2099, 1, 1)
