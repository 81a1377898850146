"""Versions: which version of a builtin an operator needs, and which runtime has it."""

from __future__ import annotations

from stoker._src.lite.model import Model


def assign_versions(model: Model) -> None:
    for operator in model.operators():
        operator.version = 1


def minimum_runtime(model: Model) -> str:
    return "1.5.0"
