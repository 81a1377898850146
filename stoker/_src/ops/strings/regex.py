"""Regular expressions with the RE2 engine, whose time is linear in the text, and RE2's rewrite rules."""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Callable
from typing import Any

import re2

from stoker._src.base.errors import InvalidArgumentError

# One UTF-8 character, or one invalid byte.
_CHARACTER = re.compile(
    rb"[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}|.",
    re.DOTALL,
)
_REFERENCE = re.compile(rb"\\([0-9\\])")


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False  # an invalid pattern raises an exception; RE2 need not log it as well
    return options


@functools.lru_cache(maxsize=256)
def compiled(pattern: bytes) -> Any:
    """Compiles a pattern that matches bytes, decoded as UTF-8.

    Raises:
        InvalidArgumentError: RE2 rejects the pattern.
    """
    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        shown, reason = (text.decode(errors="backslashreplace") for text in (pattern, error.args[0]))
        raise InvalidArgumentError(None, None, f"Invalid pattern: {shown}, error: {reason}") from None


def rewritten(pattern: bytes, rewrite: bytes, replace_global: bool) -> Callable[[bytes], bytes]:
    r"""The function that replaces matches of `pattern` by `rewrite`, with `\0` to `\9` for groups and `\\` for a backslash.

    A rewrite that refers to a missing group changes nothing. A rewrite with an invalid escape changes nothing if only the
    first match is replaced. Otherwise each match becomes the text before that escape. TensorFlow does the same.
    """
    found = compiled(pattern)
    literals, references, complete = _parsed(rewrite)
    if any(number > found.groups for number in references) or not (complete or replace_global):
        return lambda text: text

    if not references:
        literal, plain = literals[0], _plain(pattern)
        if plain is None:
            return lambda text: _replaced(found, text, lambda _: literal, replace_global)
        template, count = literal.replace(b"\\", rb"\\"), 0 if replace_global else 1

        def replaced(text: bytes) -> bytes:
            if text.isascii():
                return plain.sub(template, text, count)
            return _replaced(found, text, lambda _: literal, replace_global)

        return replaced

    def rewrite_match(match: Any) -> bytes:
        out = [literals[0]]
        for number, literal in zip(references, literals[1:]):
            out += (match[number] or b"", literal)
        return b"".join(out)

    return lambda text: _replaced(found, text, rewrite_match, replace_global)


_ASCII = frozenset(range(128))
_NAMED = {"d": b"0123456789", "s": b"\t\n\f\r ", "w": string.ascii_letters.encode() + b"0123456789_"}
_ITEM = re.compile(r"\[(\^?)((?:\\.|[^\\\]\[])+)\]|\\(.)|([^\\\[\](){}*+?|^$])", re.DOTALL)


def _plain(pattern: bytes) -> re.Pattern[bytes] | None:
    """Python's pattern that matches the same parts of ASCII texts, if `pattern` is a few sets of characters in a row, or one set repeated.

    A match of RE2 costs two microseconds in Python, and programs that clean texts replace each character that is no letter. Such patterns mean
    the same to both engines, and take linear time.
    """
    try:
        text = pattern.decode("ascii")
    except UnicodeDecodeError:
        return None
    repeats, sets, at = text.endswith("+") and not text.endswith("\\+"), [], 0
    end = len(text) - repeats
    while at < end:
        item = _ITEM.match(text, at, end)
        found = None if item is None else _characters(*item.groups())
        if item is None or not found:
            return None
        sets.append(found)
        at = item.end()
    if not sets or (repeats and len(sets) > 1):
        return None
    classes = ["[" + "".join(f"\\x{code:02x}" for code in sorted(each)) + "]" for each in sets]
    return re.compile(("".join(classes) + "+" * repeats).encode())


def _characters(
    negated: str | None, inside: str | None, escaped: str | None, single: str | None
) -> frozenset[int] | None:
    """The codes that one item of a pattern matches; None if it is not a plain set."""
    if single is not None:
        return _ASCII - {ord("\n")} if single == "." else frozenset((ord(single),))
    if escaped is not None:
        return _escape(escaped)
    assert inside is not None
    codes: set[int] = set()
    parts = re.findall(r"\\.|[^\\]", inside, re.DOTALL)
    at = 0
    while at < len(parts):
        first = _escape(parts[at][1]) if parts[at][0] == "\\" else frozenset((ord(parts[at]),))
        is_range = at + 2 < len(parts) and parts[at + 1] == "-"
        if first is None or (is_range and (len(first) > 1 or parts[at + 2][0] == "\\")):
            return None
        if is_range:
            low, high = min(first), ord(parts[at + 2])
            if low > high:
                return None  # RE2 reports it
            codes.update(range(low, high + 1))
            at += 3
        else:
            codes |= first
            at += 1
    return _ASCII - codes if negated else frozenset(codes)


def _escape(letter: str) -> frozenset[int] | None:
    if letter in string.punctuation:
        return frozenset((ord(letter),))
    if letter.lower() not in _NAMED:
        return {"n": frozenset(b"\n"), "t": frozenset(b"\t"), "r": frozenset(b"\r")}.get(letter)
    codes = frozenset(_NAMED[letter.lower()])
    return codes if letter.islower() else _ASCII - codes


def _parsed(rewrite: bytes) -> tuple[list[bytes], list[int], bool]:
    """Parses a rewrite into literal parts, the groups between them, and whether it is valid to the end."""
    literals, references = [b""], []
    at = 0
    while at < len(rewrite):
        escape = rewrite.find(b"\\", at)
        if escape < 0:
            literals[-1] += rewrite[at:]
            break
        literals[-1] += rewrite[at:escape]
        reference = _REFERENCE.match(rewrite, escape)
        if reference is None:
            return literals, references, False
        if reference[1] == b"\\":
            literals[-1] += b"\\"
        else:
            references.append(int(reference[1]))
            literals.append(b"")
        at = reference.end()
    return literals, references, True


def _replaced(pattern: Any, text: bytes, rewrite: Callable[[Any], bytes], replace_global: bool) -> bytes:
    """RE2's Replace and GlobalReplace."""
    parts: list[bytes] = []
    copied = 0  # the length of the text already in `parts`
    for match in pattern.finditer(text):
        start, end = match.span()
        if (
            start == end and replace_global
        ):  # after an empty match, the iterator continues differently from RE2's GlobalReplace
            return _replaced_with_empty_matches(pattern, text, rewrite)
        parts += (text[copied:start], rewrite(match))
        copied = end
        if not replace_global:
            break
    if not parts:
        return text
    parts.append(text[copied:])
    return b"".join(parts)


def _replaced_with_empty_matches(pattern: Any, text: bytes, rewrite: Callable[[Any], bytes]) -> bytes:
    """RE2's GlobalReplace: skips an empty match directly after another match, one character at a time."""
    parts: list[bytes] = []
    copied = 0
    previous = -1  # the end of the last match
    match = pattern.search(text)
    while match is not None:
        start, end = match.span()
        if start == end == previous:
            character = _CHARACTER.match(text, end)
            if character is None:
                break
            match = pattern.search(text, character.end())
            continue
        parts += (text[copied:start], rewrite(match))
        copied = previous = end
        match = pattern.search(text, end)
    parts.append(text[copied:])
    return b"".join(parts)
