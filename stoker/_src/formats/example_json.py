r"""Parses Examples in protobuf's JSON mapping: the core of TensorFlow's DecodeJSONExample.

Like TensorFlow's reader, this one accepts a superset of JSON:

    value  := object | list | text | number | true | false | null
    object := "{" (name ":" value ("," name ":" value)* ","?)? "}"
    list   := "[" (value ("," value)* ","?)? "]"
    name   := text | an identifier other than true, false and null
    text   := '"' ... '"' | "'" ... "'"      control characters are allowed; \b \f \n \r \t \uXXXX \" \' \\ \/
    number := JSON's

A list of values may be nested or be a single value, and null in it means zero or empty. Integers may be written with a
decimal point, an exponent or as text. Numbers as text may be hexadecimal. Bytes may use either base64 alphabet, with or
without padding. Unknown names, two kinds of list in a feature, and duplicate features are rejected.
"""

from __future__ import annotations

import base64
import re
from typing import Any, NamedTuple

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.formats.protos import Example

_DEPTH = 100  # maximum nesting of objects and lists, as in protobuf
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = {quote: re.compile(rf"[^\\{quote}]*") for quote in "\"'"}
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z_.])")
_WORDS = {"true": True, "false": False, "null": None}

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan(?:\([0-9a-z_]*\))?)", re.I
)
_HEXADECIMAL = re.compile(r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?", re.I)
_BASE64 = re.compile(r"((?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}|[A-Za-z0-9+/_-]{3})?)(={0,2})")
_SMALLEST, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def decode_json_example(text: bytes) -> bytes:
    """Returns the serialized Example that a JSON text describes.

    The message equals TensorFlow's, but its bytes may differ, since number lists are packed here and unpacked there.

    Args:
        text: UTF-8.

    Raises:
        InvalidArgumentError: the text does not follow the grammar above, or is not an Example.
    """
    try:
        value = _Reader(text.decode()).whole()
        message = Example()
        _fill_example(message, value)
    except ValueError as error:
        raise InvalidArgumentError(None, None, f"Error while parsing JSON: {error}") from error
    return message.SerializeToString(deterministic=True)


# ---- text to values ---------------------------------------------------------------------------------------------


class _Object(NamedTuple):
    """The name-value pairs of an object, in order; names may repeat."""

    pairs: list[tuple[str, Any]]


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> Any:
        value = self._value(0)
        if self._peek():
            raise self._unexpected("the end")
        return value

    def _peek(self) -> str:
        """Returns the next non-space character, or an empty string at the end."""
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return self._text[self._at : self._at + 1]

    def _unexpected(self, wanted: str) -> ValueError:
        return ValueError(f"expected {wanted} at character {self._at}, found {self._text[self._at : self._at + 20]!r}")

    def _take(self, character: str) -> None:
        if self._peek() != character:
            raise self._unexpected(repr(character))
        self._at += 1

    def _value(self, depth: int) -> Any:
        if depth > _DEPTH:
            raise ValueError(f"more than {_DEPTH} levels")
        first = self._peek()
        if first == "{":
            return self._object(depth)
        if first == "[":
            return self._list(depth)
        if first in _PLAIN:
            return self._string(first)
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            self._at = number.end()
            return _number(number)
        word = _IDENTIFIER.match(self._text, self._at)
        if word is None or word.group() not in _WORDS:
            raise self._unexpected("a value")
        self._at = word.end()
        return _WORDS[word.group()]

    def _object(self, depth: int) -> _Object:
        pairs = []
        self._take("{")
        while self._peek() != "}":
            name = self._name()
            self._take(":")
            pairs.append((name, self._value(depth + 1)))
            if self._peek() != "}":
                self._take(",")
        self._at += 1
        return _Object(pairs)

    def _name(self) -> str:
        first = self._peek()
        if first in _PLAIN:
            return self._string(first)
        word = _IDENTIFIER.match(self._text, self._at)
        if word is None or word.group() in _WORDS:
            raise self._unexpected("a name")
        self._at = word.end()
        return word.group()

    def _list(self, depth: int) -> list[Any]:
        values = []
        self._take("[")
        while self._peek() != "]":
            values.append(self._value(depth + 1))
            if self._peek() != "]":
                self._take(",")
        self._at += 1
        return values

    def _string(self, quote: str) -> str:
        parts = []
        self._at += 1
        while True:
            plain = _PLAIN[quote].match(self._text, self._at)
            assert plain is not None
            parts.append(plain.group())
            self._at = plain.end()
            end = self._text[self._at : self._at + 1]
            if not end:
                raise self._unexpected(f"the closing {quote}")
            self._at += 1
            if end == quote:
                return "".join(parts)
            parts.append(self._escaped())

    def _escaped(self) -> str:
        letter = self._text[self._at : self._at + 1]
        self._at += 1
        if letter != "u":
            if letter not in _ESCAPED or not letter:
                raise ValueError(f"\\{letter} at character {self._at} stands for nothing")
            return _ESCAPED[letter]
        code = self._code()
        if 0xD800 <= code < 0xDC00 and self._text.startswith("\\u", self._at):
            self._at += 2
            low = self._code()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + (code - 0xD800) * 0x400 + low - 0xDC00)
        if 0xD800 <= code < 0xE000:
            raise ValueError(f"half of a character before character {self._at}")
        return chr(code)

    def _code(self) -> int:
        digits = _HEX.match(self._text, self._at)
        if digits is None:
            raise self._unexpected("four hexadecimal digits")
        self._at = digits.end()
        return int(digits.group(), 16)


def _number(match: re.Match[str]) -> int | float:
    if match.group(1) is None and match.group(2) is None and len(match.group()) < 25:
        return int(match.group())
    value = float(match.group())
    if value in (float("inf"), -float("inf")):
        raise ValueError(f"{match.group()} is too large")
    return value


# ---- values to a message ----------------------------------------------------------------------------------------


def _pairs(value: Any, what: str) -> list[tuple[str, Any]]:
    if not isinstance(value, _Object):
        raise ValueError(f"{what} must be an object, not {str(value)[:40]!r}")
    return value.pairs


def _fill_example(message: Any, value: Any) -> None:
    for name, features in _pairs(value, "an Example"):
        if name != "features":
            raise ValueError(f"an Example has no field {name!r}")
        if features is None:
            continue
        message.features.SetInParent()
        for inner, entries in _pairs(features, "features"):
            if inner != "feature":
                raise ValueError(f"features have no field {inner!r}")
            _fill_entries(message.features.feature, entries)


def _fill_entries(entries: Any, value: Any) -> None:
    seen = set()
    for name, feature in _pairs(value, "feature") if value is not None else ():
        if name in seen:
            raise ValueError(f"the feature {name!r} comes twice")
        seen.add(name)
        entries[name].Clear()
        if feature is not None:
            _fill_feature(entries[name], feature)


def _fill_feature(message: Any, value: Any) -> None:
    for name, held in _pairs(value, "a feature"):
        kind = _KINDS.get(name)
        if kind is None:
            raise ValueError(f"a feature has no field {name!r}")
        if held is None:
            continue
        field, convert = kind
        if message.WhichOneof("kind") is not None:
            raise ValueError(f"a feature has both {message.WhichOneof('kind')} and {name}")
        target = getattr(message, field)
        target.SetInParent()
        for inner, values in _pairs(held, name):
            if inner != "value":
                raise ValueError(f"{name} has no field {inner!r}")
            if values is not None:
                target.value.extend(convert(each) for each in _flat(values))


def _flat(value: Any) -> list[Any]:
    return [leaf for each in value for leaf in _flat(each)] if isinstance(value, list) else [value]


def _from_text(text: str) -> float | None:
    """Parses a number as C's strtod does; returns None if the text is not a number."""
    text = text.strip(" \t\n\v\f\r")
    if _HEXADECIMAL.fullmatch(text):
        return float.fromhex(text)
    return float(text.partition("(")[0]) if _DECIMAL.fullmatch(text) else None


def _integer(value: Any) -> int:
    given = value
    if value is None:
        return 0
    if isinstance(value, str):
        if _INTEGER.fullmatch(value) and len(value) < 25:
            value = int(value)
        else:
            value = _from_text(value) if value == value.strip() else None
    if isinstance(value, float):
        value = int(value) if abs(value) < 2.0**63 and value.is_integer() else None
    if value is None or isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{str(given)[:40]!r} is no 64-bit integer")
    return value


def _float(value: Any) -> float:
    given, wide = value, False
    if isinstance(value, str):
        value = _from_text(value)
        wide = value is not None and abs(value) == float("inf")  # includes a text that is too large for a double
    if value is None and given is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{str(given)[:40]!r} is not a number")
    if abs(value) > _LARGEST and not wide:
        raise ValueError(f"{str(given)[:40]!r} is too large for a 32-bit float")
    # TensorFlow's kernels flush subnormal numbers to zero.
    return value if value != value or abs(value) >= _SMALLEST else value * 0.0


def _bytes(value: Any) -> bytes:
    if value is None:
        return b""
    match = _BASE64.fullmatch(value) if isinstance(value, str) else None
    if match is None or (match.group(2) and len(value) % 4):
        raise ValueError(f"{str(value)[:40]!r} is not base64")
    digits = match.group(1).translate({ord("-"): "+", ord("_"): "/"})
    return base64.b64decode(digits + "=" * (-len(digits) % 4))


_KINDS = {
    name: (field, convert)
    for field, camel, convert in (
        ("bytes_list", "bytesList", _bytes),
        ("float_list", "floatList", _float),
        ("int64_list", "int64List", _integer),
    )
    for name in (field, camel)
}
