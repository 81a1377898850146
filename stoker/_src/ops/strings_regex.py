"""RE2's regular expressions in Python's engine: what differs in syntax and in replacing."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from stoker._src.base.errors import InvalidArgumentError

_POSIX = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"ascii": rb"\x00-\x7f",
    b"blank": rb"\t ",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"!-~",
    b"lower": rb"a-z",
    b"print": rb" -~",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb"\t\n\v\f\r ",
    b"upper": rb"A-Z",
    b"word": rb"0-9A-Za-z_",
    b"xdigit": rb"0-9A-Fa-f",
}
_CLASS = re.compile(rb"\[:(\^?)(\w+):\]")
# Constructs that RE2 refuses, because they cannot be matched in linear time.
_REFUSED = re.compile(r"(?<!\\)(?:\\\\)*(\(\?(?:=|!|<=|<!|P=|\()|\\[1-9])")


def _translated(pattern: bytes) -> str:
    """An RE2 pattern as Python writes it.

    Raises:
        InvalidArgumentError: a construct that RE2 does not have, or that has no counterpart here.
    """

    def posix(match: re.Match[bytes]) -> bytes:
        name = match[2]
        if name not in _POSIX:
            raise InvalidArgumentError(
                None,
                None,
                f"Invalid pattern: {_shown(pattern)}, error: invalid character class range: {_shown(match[0])}",
            )
        if match[1]:
            raise InvalidArgumentError(
                None, None, f"Invalid pattern: {_shown(pattern)}, error: negated POSIX classes are not supported"
            )
        return _POSIX[name]

    text = _CLASS.sub(posix, pattern).decode("utf-8", "surrogateescape")
    refused = _REFUSED.search(text)
    if refused is not None:
        raise InvalidArgumentError(
            None, None, f"Invalid pattern: {_shown(pattern)}, error: invalid perl operator or escape: {refused[1]}"
        )
    text = text.replace(r"\z", r"\Z").replace(r"\C", r"[\s\S]")
    text = re.sub(r"\\Q(.*?)(?:\\E|$)", lambda match: re.escape(match[1]), text, flags=re.DOTALL)
    text = text.replace(r"\pL", r"[^\W\d_]").replace(r"\p{L}", r"[^\W\d_]")
    if re.search(r"\\[pP]", text):
        raise InvalidArgumentError(
            None, None, f"Invalid pattern: {_shown(pattern)}, error: Unicode classes other than \\pL are not supported"
        )
    return text


def _shown(text: bytes) -> str:
    return text.decode(errors="backslashreplace")


class Pattern:
    """A compiled pattern over bytes. Text is matched as UTF-8, as RE2 does; bytes that are not UTF-8 match themselves."""

    def __init__(self, pattern: bytes) -> None:
        try:
            # In RE2 \d, \w, \s and \b know ASCII only.
            self._regex = re.compile(_translated(pattern), re.ASCII)
        except re.error as error:
            raise InvalidArgumentError(None, None, f"Invalid pattern: {_shown(pattern)}, error: {error}") from None
        self.groups = self._regex.groups

    def fullmatch(self, text: bytes) -> re.Match[str] | None:
        return self._regex.fullmatch(text.decode("utf-8", "surrogateescape"))

    def replaced(self, text: bytes, rewrite: Callable[[re.Match[str]], str], count: int) -> bytes:
        """RE2's GlobalReplace: an empty match right after another match is passed over."""
        source = text.decode("utf-8", "surrogateescape")
        parts: list[str] = []
        position = last = 0
        previous = -1
        while position <= len(source):
            match = self._regex.search(source, position)
            if match is None:
                break
            if match.end() == match.start() == previous:
                position = match.end() + 1
                continue
            parts += [source[last : match.start()], rewrite(match)]
            last = previous = match.end()
            position = match.end() if match.end() > match.start() else match.end() + 1
            count -= 1
            if count == 0:
                break
        parts.append(source[last:])
        return "".join(parts).encode("utf-8", "surrogateescape")


@functools.lru_cache(maxsize=256)
def compiled(pattern: bytes) -> Pattern:
    """The compiled form of an RE2 pattern.

    Raises:
        InvalidArgumentError: it is not one.
    """
    return Pattern(pattern)


def rewritten(pattern: bytes, rewrite: bytes, replace_global: bool) -> Callable[[bytes], bytes]:
    r"""The function that replaces matches of `pattern` by `rewrite`, with `\0` to `\9` for groups.

    A rewrite that names a group the pattern does not have changes nothing, as in TensorFlow.
    """
    found = compiled(pattern)
    pieces = re.split(r"\\([0-9\\])", rewrite.decode("utf-8", "surrogateescape"))
    valid = all(piece == "\\" or int(piece) <= found.groups for piece in pieces[1::2])
    if not valid or any("\\" in piece for piece in pieces[::2]):
        return lambda text: text

    def rewrite_match(match: re.Match[str]) -> str:
        out = [pieces[0]]
        for group, literal in zip(pieces[1::2], pieces[2::2]):
            out += ["\\" if group == "\\" else match[int(group)] or "", literal]
        return "".join(out)

    return lambda text: found.replaced(text, rewrite_match, -1 if replace_global else 1)
