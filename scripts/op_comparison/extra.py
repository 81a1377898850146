"""Cases for ops that have no Sample in the tests."""

from __future__ import annotations

from op_comparison.cases import Case


def extra_cases() -> list[Case]:
    return []
