"""RE2's regular expressions in Python's engine: matching and replacing."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.strings.re2 import RefusedError, in_python


def _shown(text: bytes) -> str:
    return text.decode(errors="backslashreplace")


class Pattern:
    """A compiled pattern over bytes. Text is matched as UTF-8, as RE2 does; bytes that are not UTF-8 match themselves."""

    def __init__(self, pattern: bytes) -> None:
        try:
            self._regex = re.compile(in_python(pattern.decode()))
        except UnicodeDecodeError:
            raise InvalidArgumentError(
                None, None, f"Invalid pattern: {_shown(pattern)}, error: invalid UTF-8"
            ) from None
        except (RefusedError, re.error) as error:
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
