"""Examples written as JSON, in protobuf's JSON mapping: the core of TensorFlow's DecodeJSONExample."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import json_format

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.formats.protos import Example

# Example, Features, the map of features, Feature, list: the objects on the way down to the values.
_DEPTH = 5


def decode_json_example(text: bytes) -> bytes:
    """The serialized Example that a JSON text describes.

    The message equals TensorFlow's; its bytes may not, since number lists are packed here and are not there. TensorFlow
    also takes texts that are not quite JSON (single quotes, bare keys, trailing commas); those are refused here.

    Args:
        text: UTF-8.

    Raises:
        InvalidArgumentError: the text is not JSON, or not an Example.
    """
    try:
        value = json.loads(text.decode(), object_pairs_hook=_object)
        _check_objects([value], _DEPTH)
        message = json_format.ParseDict(value, Example())
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(None, None, f"Error while parsing JSON: {error}") from error
    return message.SerializeToString(deterministic=True)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a name comes twice among {[name for name, _ in pairs][:20]}")
    return found


def _check_objects(values: list[Any], depth: int) -> None:
    """Refuses what is no object where a message belongs: protobuf's reader takes an empty list for one."""
    for value in values:
        if not isinstance(value, dict):
            raise ValueError(f"expected an object where {str(value)[:40]!r} stands")
        if depth > 1:
            _check_objects([below for below in value.values() if below is not None], depth - 1)
