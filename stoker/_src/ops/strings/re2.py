"""RE2's syntax, written in Python's: what RE2 refuses is refused, and what it reads otherwise is spelled out."""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]

_POSIX: dict[str, Ranges] = {
    name: tuple((ord(first), ord(last)) for first, last in zip(spans[::2], spans[1::2]))
    for name, spans in {
        "alnum": "09AZaz",
        "alpha": "AZaz",
        "ascii": "\x00\x7f",
        "blank": "\t\t  ",
        "cntrl": "\x00\x1f\x7f\x7f",
        "digit": "09",
        "graph": "!~",
        "lower": "az",
        "print": " ~",
        "punct": "!/:@[`{~",
        "space": "\t\r  ",
        "upper": "AZ",
        "word": "09AZ__az",
        "xdigit": "09AFaf",
    }.items()
}
_PERL: dict[str, Ranges] = {"d": _POSIX["digit"], "w": _POSIX["word"], "s": ((9, 10), (12, 13), (32, 32))}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# Bytes that are not UTF-8 reach the engine as these; no class has them.
_NOT_TEXT = (0xD800, 0xDFFF)
_NEWLINE = (10, 10)
_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_MOST_REPEATS = 1000


class RefusedError(ValueError):
    """What RE2 says of a pattern that it does not take."""


def in_python(pattern: str) -> str:
    """An RE2 pattern as Python's `re` reads it (without flags).

    Raises:
        RefusedError: a construct that RE2 does not have, or a class of Unicode that is not known here.
    """
    return _Translation(pattern).run()


def _complement(ranges: Ranges) -> Ranges:
    found, start = [], 0
    for first, last in sorted((*ranges, _NOT_TEXT)):
        if start < first:
            found.append((start, first - 1))
        start = max(start, last + 1)
    if start <= sys.maxunicode:
        found.append((start, sys.maxunicode))
    return tuple(found)


@functools.cache
def _category(name: str) -> Ranges:
    """The characters of a general category (`L`, `Lu`, ...)."""
    found: list[tuple[int, int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith(name):
            if found and found[-1][1] == code - 1:
                found[-1] = found[-1][0], code
            else:
                found.append((code, code))
    return tuple(found)


def _written(ranges: Ranges) -> str:
    """Ranges as the inside of a class."""
    return "".join(f"\\U{first:08x}" + (f"-\\U{last:08x}" if last > first else "") for first, last in ranges)


@dataclass
class _Group:
    """An open parenthesis."""

    flags: frozenset[str]  # as they are in it
    repeats: int = 1  # the largest product of counts inside


class _Translation:
    def __init__(self, pattern: str) -> None:
        self.text, self.at = pattern, 0
        self.out: list[str] = []
        self.groups = [_Group(frozenset())]
        self.repeats = 0  # of what a quantifier would repeat; 0 where there is nothing to repeat

    def run(self) -> str:
        while self.at < len(self.text):
            self._step()
        if len(self.groups) > 1:
            raise RefusedError(f"missing ): {self.text}")
        return "".join(self.out)

    @property
    def flags(self) -> frozenset[str]:
        return self.groups[-1].flags

    def _atom(self, text: str, repeats: int = 1) -> None:
        self.out.append(text)
        self.repeats = repeats

    def _step(self) -> None:
        char = self.text[self.at]
        repeat = _REPEAT.match(self.text, self.at) if char == "{" else None
        if char in "*+?" or repeat is not None:
            return self._quantifier(repeat)
        self.at += 1
        if char == "\\":
            self._escape()
        elif char == "[":
            self._atom(self._folded(self._class()))
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == "|":
            self.out.append("|")
            self.repeats = 0
        elif char == ".":
            self._atom(f"[^{_written((_NOT_TEXT,) if 's' in self.flags else (_NEWLINE, _NOT_TEXT))}]")
        elif char == "^":
            self._atom("(?:(?m:^))" if "m" in self.flags else r"(?:\A)")
        elif char == "$":
            self._atom("(?:(?m:$))" if "m" in self.flags else r"(?:\Z)")
        else:
            self._literal(char)
        return None

    def _literal(self, char: str) -> None:
        self._atom(self._folded(re.escape(char)))

    def _folded(self, text: str) -> str:
        return f"(?i:{text})" if "i" in self.flags else text

    def _quantifier(self, counts: re.Match[str] | None) -> None:
        shown = counts[0] if counts is not None else self.text[self.at]
        if not self.repeats:
            raise RefusedError(f"no argument for repetition operator: {shown}")
        self.at += len(shown)
        if counts is not None:
            least = int(counts[1])
            most = least if counts[2] is None else int(counts[3]) if counts[3] else least
            if most < least or most > _MOST_REPEATS or self.repeats * max(most, 1) > _MOST_REPEATS:
                raise RefusedError(f"invalid repetition size: {shown}")
            self.groups[-1].repeats = max(self.groups[-1].repeats, self.repeats * max(most, 1))
        lazy = self.text[self.at : self.at + 1] == "?"
        self.at += lazy
        following = self.text[self.at : self.at + 1]
        if following and (following in "*+?" or _REPEAT.match(self.text, self.at)):
            raise RefusedError(f"bad repetition operator: {shown}{following}")
        self.out.append(shown + ("?" if lazy != ("U" in self.flags) else ""))
        self.repeats = 0

    # -- groups --------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self.text[self.at : self.at + 1] != "?":
            return self._enter("(", self.flags)
        named = re.compile(r"\?P<(\w+)>").match(self.text, self.at)
        if named is not None:
            self.at = named.end()
            return self._enter("(", self.flags)
        spelled = re.compile(r"\?([imsU]*)(?:-([imsU]+))?([:)])").match(self.text, self.at)
        if spelled is None or (spelled[3] == ")" and not spelled[1] and not spelled[2]):
            raise RefusedError(f"invalid or unsupported Perl syntax: {self.text[self.at - 1 : self.at + 2]}")
        self.at = spelled.end()
        flags = (self.flags | set(spelled[1])) - set(spelled[2] or "")
        if spelled[3] == ":":
            return self._enter("(?:", flags)
        self.groups[-1].flags = flags
        return None

    def _enter(self, opening: str, flags: frozenset[str]) -> None:
        self.out.append(opening)
        self.groups.append(_Group(flags))
        self.repeats = 0

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise RefusedError(f"unexpected ): {self.text}")
        self._atom(")", self.groups.pop().repeats)

    # -- escapes and classes -------------------------------------------------------------------------------------

    def _escape(self) -> None:
        char = self.text[self.at : self.at + 1]
        if char in ("A", "z"):
            self._atom(r"(?:\A)" if char == "A" else r"(?:\Z)")
        elif char == "b":
            self._atom(r"(?a:\b)")
        elif char == "B":  # Python's own does not match in nothing
            self._atom(r"(?a:(?!\b))")
        elif char == "C":
            raise RefusedError("\\C (a byte of a character) is not supported")
        elif char == "Q":
            end = self.text.find(r"\E", self.at)
            for each in self.text[self.at + 1 : end if end >= 0 else len(self.text)]:
                self._literal(each)
            self.at = end + 2 if end >= 0 else len(self.text)
            return
        else:
            written = f"[{_written(self._escaped())}]"
            self._atom(written if char in "DSWP" else self._folded(written))
            return
        self.at += 1

    def _escaped(self) -> Ranges:
        """The characters that the escape sequence here stands for, behind its backslash."""
        char = self.text[self.at : self.at + 1]
        if not char:
            raise RefusedError("trailing \\ at end of regexp: \\")
        start = self.at
        self.at += 1
        if char.lower() in _PERL:
            found = _PERL[char.lower()]
            return found if char.islower() else _complement(found)
        if char in "pP":
            name = re.compile(r"\{(\^?)(\w+)\}|()(\w)").match(self.text, self.at)
            if name is None:
                raise RefusedError(f"invalid character class range: \\{char}")
            self.at = name.end()
            found = self._unicode(name[2] or name[4])
            return _complement(found) if (char == "P") != bool(name[1]) else found
        code = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|(0[0-7]{0,2}|[1-7][0-7]{1,2})").match(
            self.text, start
        )
        if code is not None:
            self.at = code.end()
            number = int(code[1] or code[2], 16) if code[3] is None else int(code[3], 8)
            if number > sys.maxunicode:
                raise RefusedError(f"invalid escape sequence: \\{code[0]}")
            return ((number, number),)
        if char in _CONTROLS:
            char = _CONTROLS[char]
        elif char.isalnum() or not char.isascii():
            raise RefusedError(f"invalid escape sequence: \\{char}")
        return ((ord(char), ord(char)),)

    def _unicode(self, name: str) -> Ranges:
        if name == "Any":
            return ((0, sys.maxunicode),)
        found = _category(name) if re.fullmatch("[A-Z][a-z]?", name) else ()
        if not found:
            raise RefusedError(f"invalid character class range: \\p{{{name}}} (of Unicode, categories are known)")
        return found

    def _class(self) -> str:
        negated = self.text[self.at : self.at + 1] == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while self.at >= len(self.text) or self.text[self.at] != "]" or first:
            if self.at >= len(self.text):
                raise RefusedError(f"missing ]: {self.text}")
            first = False
            named = re.compile(r"\[:(\^?)(\w+):\]").match(self.text, self.at)
            if named is not None:
                if named[2] not in _POSIX:
                    raise RefusedError(f"invalid character class range: {named[0]}")
                self.at = named.end()
                ranges += _complement(_POSIX[named[2]]) if named[1] else _POSIX[named[2]]
                continue
            low = self._class_item()
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                if len(low) == 1 and low[0][0] == low[0][1]:
                    self.at += 1
                    high = self._class_item()
                    if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                        raise RefusedError(f"invalid character class range: {self.text}")
                    low = ((low[0][0], high[0][0]),)
            ranges += low
        self.at += 1
        return f"[^{_written((*ranges, _NOT_TEXT))}]" if negated else f"[{_written(tuple(ranges))}]"

    def _class_item(self) -> Ranges:
        char = self.text[self.at]
        self.at += 1
        return self._escaped() if char == "\\" else ((ord(char), ord(char)),)
