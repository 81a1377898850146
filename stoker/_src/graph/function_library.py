"""Functions that a GraphDef carries in its library."""

from __future__ import annotations

from typing import Any

from stoker._src.graph.graph import Graph


def import_library(graph: Graph, library: Any) -> None:
    """Adds the functions of a FunctionDefLibrary to `graph`."""
    if len(library.function):
        names = ", ".join(function.signature.name for function in library.function[:3])
        raise NotImplementedError(f"functions in a GraphDef's library ({names}) are not read yet")
