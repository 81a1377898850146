"""Ops of other families by their TensorFlow name: `ops.Rsqrt(x)`.

Compositions in this package use many ops of which only the type matters, not the module that defines it.
"""

from __future__ import annotations

from typing import Any

from stoker._src.graph.definition import find_definition


class _Ops:
    def __getattr__(self, name: str) -> Any:
        definition = find_definition(name)
        if definition is None:
            raise NotImplementedError(f"the op {name} is not defined")
        return definition


ops = _Ops()
