"""The function library of a SavedModel: its functions under names of their own, so that models loaded side by side do not conflict."""

from __future__ import annotations

import re
from typing import Any

from stoker._src.formats.protos import FunctionDefLibrary
from stoker._src.graph.function_graph import Function, unique_function_name
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_library import Library
from stoker._src.graph.interchange.importer import import_body

_NUMBERED = re.compile(r"(.*?)(_\d+)?", re.DOTALL)
_TABLES = frozenset(("HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2", "MutableDenseHashTableV2"))


class LoadedLibrary:
    """The functions of one load.

    Args:
        library: the FunctionDefLibrary of the model.
    """

    def __init__(self, library: Any) -> None:
        self._names = {
            function.signature.name: unique_function_name(_NUMBERED.fullmatch(function.signature.name)[1])  # type: ignore[index]
            for function in library.function
        }
        # Resources are found by name. Each load has resources of its own.
        self._suffix = unique_function_name("_load")
        self.gradients = {each.registered_op_type: each.gradient_func for each in library.registered_gradients}
        self._gradient_names = {name: unique_function_name("CustomGradient-loaded") for name in self.gradients}
        renamed = FunctionDefLibrary()
        renamed.CopyFrom(library)
        for function in renamed.function:
            function.signature.name = self._names[function.signature.name]
            for node in function.node_def:
                self._rename(node)
        for gradient in renamed.gradient:
            gradient.function_name = self._names.get(gradient.function_name, gradient.function_name)
            gradient.gradient_func = self._names.get(gradient.gradient_func, gradient.gradient_func)
        self.protos = {function.signature.name: function for function in renamed.function}
        self._library = Library(Graph(), renamed, import_body)

    def _rename(self, node: Any) -> None:
        node.op = self._names.get(node.op, node.op)
        for attr in node.attr.values():
            kind = attr.WhichOneof("value")
            references = [attr.func] if kind == "func" else attr.list.func if kind == "list" else ()
            for reference in references:
                reference.name = self._names.get(reference.name, reference.name)
        if "_gradient_op_type" in node.attr:
            given: str = node.attr["_gradient_op_type"].s.decode(errors="replace")
            node.attr["_gradient_op_type"].s = self._gradient_names.get(given, given).encode()
        if "shared_name" in node.attr and node.attr["shared_name"].s:
            node.attr["shared_name"].s += self._suffix.encode()
        elif node.op in _TABLES:
            node.attr["shared_name"].s = f"{node.name}{self._suffix}".encode()

    def registered_gradients(self) -> list[tuple[str, str]]:
        """Returns the names that nodes have for custom gradients, each with the name of its function in the file."""
        return [(self._gradient_names[name], function) for name, function in self.gradients.items()]

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def proto(self, name: str) -> Any:
        """Returns the FunctionDef of a function, by its name in the file."""
        return self.protos[self._names[name]]

    def function(self, name: str) -> Function:
        """Builds a function, by its name in the file.

        Raises:
            InvalidArgumentError, NotFoundError, ValueError: the function is invalid, or uses ops that do not exist here.
        """
        return self._library.function(self._names[name], {}, is_call=True)
