"""Versions: which version of a builtin an operator needs, and which runtime has it."""

from __future__ import annotations

from stoker._src.lite.model import Model, Operator

# Builtins whose first version is not 1.
FIRST = {"BROADCAST_TO": 2}


def version_of(operator: Operator) -> int:
    return FIRST.get(operator.code, 1)


def assign_versions(model: Model) -> None:
    for operator in model.operators():
        operator.version = version_of(operator)


def minimum_runtime(model: Model) -> str:
    return "1.5.0"
