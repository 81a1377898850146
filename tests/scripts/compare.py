"""What two runs of a program printed: equal words, and numbers that agree to what rounding may change."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def difference(expected: str, found: str, tolerance: float = 2e-3) -> str:
    """Where `found` differs from `expected`, or ""."""
    expected_lines, found_lines = expected.splitlines(), found.splitlines()
    if len(expected_lines) != len(found_lines):
        return f"{len(found_lines)} lines instead of {len(expected_lines)}:\n{found}"
    for number, (want, got) in enumerate(zip(expected_lines, found_lines), start=1):
        if _NUMBER.sub("#", want) != _NUMBER.sub("#", got):
            return f"line {number}: {got!r} instead of {want!r}"
        for a, b in zip(_NUMBER.findall(want), _NUMBER.findall(got)):
            if abs(float(a) - float(b)) > tolerance * max(1.0, abs(float(a))):
                return f"line {number}: {b} instead of {a} in {got!r}"
    return ""
