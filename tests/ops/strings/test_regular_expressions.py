"""Regular expressions are read and matched as RE2 does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker as tf
from stoker._src.ops.strings import regex

GOLDEN = Path(__file__).parents[2] / "golden"
sys.path.insert(0, str(GOLDEN))

import regular_expressions  # noqa: E402

EXPECTED = json.loads((GOLDEN / "regular_expressions.json").read_text())
# RE2 reads `(?<name>` since 2023; the release inside of TensorFlow 2.21 is older.
YOUNGER_SYNTAX = {"(?<n>a)"}


def test_patterns_match_and_are_refused_as_in_tensorflow(eager):
    """Each pattern matches what TensorFlow's matches, or both refuse it."""
    found = regular_expressions.outcomes(tf)
    differing = {key for key, value in found.items() if value != EXPECTED["patterns"][key]}
    assert differing == YOUNGER_SYNTAX


def test_rewrites_are_read_as_in_tensorflow(eager):
    """Groups, backslashes, groups that do not exist and escapes that are none give what TensorFlow gives, in bytes."""
    found = regular_expressions.rewrites(tf)
    assert {key: value for key, value in found.items() if value != EXPECTED["rewrites"][key]} == {}


def test_a_pattern_that_invites_backtracking_ends(eager):
    """RE2's time is linear in the text: nested repetitions do not double the work with every letter."""
    text = "a" * 5000 + "b"
    assert tf.strings.regex_replace(text, "(a+)+$", "x").numpy() == text.encode()
    assert not tf.strings.regex_full_match(text, "(a+)+").numpy()


def test_a_scalar_stays_a_scalar(eager):
    """One string gives one string, and one answer."""
    replaced = tf.strings.regex_replace("stoker", "(.)(.)", r"\2\1")
    matched = tf.strings.regex_full_match("stoker", "s.*")
    assert replaced.shape == matched.shape == ()
    assert replaced.numpy() == b"tsko" + b"re"
    assert matched.numpy()


def test_a_large_array_keeps_its_shape(eager):
    """Every element of a large array is matched, in place, with one compiled pattern."""
    texts = np.array([f"id-{number}" for number in range(30_000)], dtype=object).reshape(100, 300)
    replaced = tf.strings.regex_replace(texts, r"id-(\d+)", r"\1").numpy()
    assert replaced.shape == (100, 300)
    np.testing.assert_array_equal(replaced.astype(int), np.arange(30_000).reshape(100, 300))
    even = tf.strings.regex_full_match(texts, r".*[02468]").numpy()
    np.testing.assert_array_equal(even, np.arange(30_000).reshape(100, 300) % 2 == 0)


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "a{1001}", b"\xff", r"\8"])
def test_a_refused_pattern_is_named(eager, pattern, capfd):
    """What RE2 refuses is an InvalidArgumentError with the pattern and RE2's reason, and nothing else is printed."""
    shown = pattern.decode(errors="backslashreplace") if isinstance(pattern, bytes) else pattern
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.strings.regex_full_match("a", pattern)
    assert f"Invalid pattern: {shown}, error: " in caught.value.message
    assert capfd.readouterr() == ("", "")


_CLEANERS = [
    rb"[^0-9]", rb"\s+", rb"[!\"#$%&\(\)\*\+,\-\./:;<=>\?@\\\]\^_`\{\|\}~]", rb"<br />", rb"[^a-zA-Z0-9 ]+", rb"a+", rb"\.", rb".", rb"[\d\-x]",
    rb"[a-]", rb"[-a]", rb"[^\w\s]", rb"\+", rb"[a^]", rb"\W\D\S",
]  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(_CLEANERS),
    st.text(alphabet="ab0 9\n\t\x0b\x0c\r.,-+x<br />^]_\\\x00\x7f\u00e9\u4e2d", max_size=14),
    st.sampled_from([b"", b" ", rb"<\\>", b"\n"]),
    st.booleans(),
)
def test_plain_patterns_replace_what_re2_does(pattern, text, rewrite, replace_global):
    """Patterns of a few sets of characters, which need no RE2 for ASCII texts, give RE2's result for any text."""
    assert regex._plain(pattern) is not None
    literal = rewrite.replace(rb"\\", b"\\")
    expected = regex._replaced(regex.compiled(pattern), text.encode(), lambda _: literal, replace_global)
    assert regex.rewritten(pattern, rewrite, replace_global)(text.encode()) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        rb"(a)",
        rb"a|b",
        rb"a*",
        rb"^a",
        rb"a$",
        rb"\bx",
        rb"\pN",
        rb"[[:alpha:]]",
        rb"ab+",
        rb"[]a]",
        rb"[b-a]",
        rb"a{2}",
        rb"\x41",
        "é".encode(),
        b"",
    ],
)
def test_other_patterns_are_left_to_re2(pattern):
    """What may mean something else to Python, or take more than linear time, runs with RE2."""
    assert regex._plain(pattern) is None
