"""GraphDefs with nodes of ops that are not registered, such as the TFLite_Detection_PostProcess that detection models end with.

Such a node takes and gives any tensors. It becomes a custom operator with the node's attributes as options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.shapes import UNKNOWN_SHAPE
from stoker._src.graph.attr_values import from_attr_value
from stoker._src.graph.attributes import TYPES
from stoker._src.graph.definition import OpDefinition, find_definition
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.importer import Importer, split_input
from stoker._src.graph.interchange.raise_control_flow import CONTROL_FLOW
from stoker._src.graph.signature import read_signature
from stoker._src.graph.tensor import Operation


def is_unregistered(kind: str) -> bool:
    return find_definition(kind) is None


def import_with_custom_nodes(graph: Graph, graph_def: Any, wanted: Sequence[str]) -> None:
    """Adds the nodes of a GraphDef to a graph. `wanted` names tensors that must exist, which tell how many results a node has."""
    with graph.as_default(), graph._undone_on_error():
        _Importer(graph, graph_def, wanted).run()


class _Importer(Importer):
    def __init__(self, graph: Graph, graph_def: Any, wanted: Sequence[str]) -> None:
        super().__init__(graph, graph_def, {}, None, "")
        self.results: dict[str, int] = {}
        for text in (*(text for node in graph_def.node for text in node.input), *wanted):
            name, index = split_input(text)
            self.results[name] = max(self.results.get(name, 1), index + 1)

    def _make(self, node: Any) -> Operation:
        assert self.library is not None
        if not is_unregistered(node.op) or node.op in self.library or node.op in CONTROL_FLOW:
            return super()._make(node)
        places = [split_input(text) for text in node.input]
        inputs = [self._input(text, *place) for text, place in zip(node.input, places, strict=True) if place[1] >= 0]
        attrs = {key: from_attr_value(value) for key, value in node.attr.items()}
        stated = attrs.pop("_output_types", ())
        count = max(self.results.get(node.name, 1), len(stated))
        attrs["Tin"] = tuple(tensor.dtype.base_dtype for tensor in inputs)
        attrs["Tout"] = (*stated, *[dtypes.float32] * (count - len(stated)))
        return self.graph.add(_definition(node.op), inputs, attrs, self.graph.unique_name(node.name))


def _definition(kind: str) -> OpDefinition:
    types = {"Tin": TYPES(minimum=0), "Tout": TYPES(minimum=0)}
    definition = OpDefinition(*read_signature(f"{kind}(input: [Tin]) -> (output: [Tout])", types))
    definition.shape(lambda input, *, Tout: [UNKNOWN_SHAPE] * len(Tout))
    return definition
