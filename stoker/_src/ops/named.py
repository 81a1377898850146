"""Ops by TensorFlow's name, for code that lives above the op's own module."""

from __future__ import annotations

from stoker._src.graph.definition import OpDefinition, find_definition


def named_op(name: str) -> OpDefinition:
    """The definition of an op.

    Raises:
        NotImplementedError: there is no such op.
    """
    definition = find_definition(name)
    if definition is None:
        raise NotImplementedError(f"The op {name} is not defined.")
    return definition
