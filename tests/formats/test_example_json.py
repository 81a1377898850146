"""Examples written as JSON."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.formats.example_json import decode_json_example
from stoker._src.formats.protos import Example


def feature(text):
    """The Feature of a JSON text for one."""
    return Example.FromString(decode_json_example(b'{"features":{"feature":{"a":%s}}}' % text)).features.feature["a"]


def test_the_three_kinds():
    """Floats, 64-bit integers (as numbers or text) and base64 bytes are read, under either spelling of a field."""
    assert feature(b'{"floatList":{"value":[1.5,"Infinity",2]}}').float_list.value == [1.5, float("inf"), 2]
    assert feature(b'{"float_list":{"value":[1.5]}}').float_list.value == [1.5]
    assert feature(b'{"int64List":{"value":["9223372036854775807",-6,1.0]}}').int64_list.value == [2**63 - 1, -6, 1]
    assert feature(b'{"bytesList":{"value":["aGk=","aGk","_-8"]}}').bytes_list.value == [b"hi", b"hi", b"\xff\xef"]


CASES = json.loads((Path(__file__).parent.parent / "golden" / "json_examples.json").read_text())


def test_outcomes_equal_tensorflows():
    """Texts that stretch JSON, odd numbers and base64, repeated names: read or refused as TensorFlow does."""
    for text, wanted in CASES:
        try:
            found = Example.FromString(decode_json_example(text.encode("latin-1")))
        except InvalidArgumentError:
            found = None
        # As text, since a NaN does not equal itself.
        expected = None if wanted is None else str(Example.FromString(bytes.fromhex(wanted)))
        assert (found if found is None else str(found)) == expected, text


def test_empty_messages():
    """An empty object is an empty Example, and null leaves a field out."""
    assert decode_json_example(b"{}") == decode_json_example(b'{"features":null}') == b""


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"5",
        b'"x"',
        b'{"x":1}',
        b"\xff",
        b'{"features":[]}',
        b'{"features":{"feature":{"a":{"int64List":{"value":[1.5]}}}}}',
        b'{"features":{"feature":{"a":{"int64List":{"value":[9223372036854775808]}}}}}',
        b'{"features":{"feature":{"a":{"floatList":{"value":[1e400]}}}}}',
        b'{"features":{"feature":{"a":{"floatList":{"value":[1]},"int64List":{"value":[1]}}}}}',
        b'{"features":{"feature":{"a":{},"a":{}}}}',
        b'{"features":' * 100_000,
        b"[" * 100_000,
        b'{"features":{"feature":{"a":{"int64List":{"value":[' + b"1" * 5000 + b"]}}}}}",
    ],
    ids=lambda text: repr(text[:40]),
)
def test_refusals(text):
    """What is not the JSON of an Example is an InvalidArgumentError."""
    with pytest.raises(InvalidArgumentError, match="Error while parsing JSON"):
        decode_json_example(text)


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.sampled_from(["features", "feature", "a", "int64List", "value"]), v), max_leaves=8))  # fmt: skip
def test_any_json_gives_an_example_or_a_refusal(value):
    """JSON of any shape is read or refused, nothing else."""
    try:
        Example.FromString(decode_json_example(json.dumps(value).encode()))
    except InvalidArgumentError as error:
        assert "Error while parsing JSON" in error.message
