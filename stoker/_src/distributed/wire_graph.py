"""A part of a graph as it arrives at a worker: `_Recv` nodes become placeholders, `_Send` nodes become identities.

The part is an ordinary graph after that. The edges say which placeholder gets which value, and where the value of an identity goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stoker._src.base.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    UnimplementedError,
)
from stoker._src.distributed.branches import Branches, BranchNodes
from stoker._src.distributed.rendezvous import key_text, task_of
from stoker._src.formats.protos import GraphDef
from stoker._src.graph import context
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_library import UnknownNameError
from stoker._src.graph.interchange.importer import import_graph_def
from stoker._src.graph.interchange.raise_control_flow import CONTROL_FLOW
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.values import torch_dtype

_RECEIVES = ("_Recv", "_HostRecv")
_SENDS = ("_Send", "_HostSend")
PYTHON_OPS = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))
PUSHED = "_stoker_pushed"
"""An attribute of `_Send` and `_Recv` nodes between two stoker tasks: the sender sends the value without being asked."""


@dataclass(frozen=True)
class Edge:
    """A value that leaves or enters a part of a graph."""

    key: str
    tensor: Tensor
    source: str  # devices
    destination: str
    is_client: bool  # a feed or a fetch, which travels with the request to run the part
    is_pushed: bool

    @cached_property
    def source_task(self) -> str:
        return task_of(self.source)

    @cached_property
    def destination_task(self) -> str:
        return task_of(self.destination)

    @cached_property
    def torch_dtype(self) -> Any:
        """The dtype of the value as a torch tensor; None if it is none."""
        dtype = self.tensor.dtype.base_dtype
        return None if dtype.name in ("string", "resource", "variant") else torch_dtype(dtype)


@dataclass(frozen=True)
class WireGraph:
    graph: Graph
    receives: list[Edge]
    sends: list[Edge]
    branches: Branches = field(default_factory=Branches)


def check_no_python(graph_def: Any) -> None:
    """Refuses nodes that would call Python functions of this process.

    Raises:
        PermissionDeniedError: there is such a node.
    """
    bodies = [function.node_def for function in graph_def.library.function]
    for nodes in (graph_def.node, *bodies):
        for node in nodes:
            if node.op in PYTHON_OPS:
                raise PermissionDeniedError(
                    None,
                    None,
                    f"Node '{node.name:.200}' (op {node.op}) calls a Python function of its own process: a server does not run it "
                    "for a client in another process.",
                )


def import_graph(graph_def: Any) -> Graph:
    """Returns a GraphDef that came from the network as a graph.

    Raises:
        InvalidArgumentError: the GraphDef is malformed.
        NotFoundError: it has an op that is not registered.
    """
    graph = Graph()
    try:
        with context.enter_graph(graph):
            import_graph_def(graph_def, name="")
    except UnknownNameError as error:
        raise NotFoundError(None, None, error.message) from error
    except OpError:
        raise
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(None, None, str(error)) from error
    return graph


def read_part(graph_def: Any) -> WireGraph:
    """Imports a part of a graph.

    Raises:
        InvalidArgumentError: the part is malformed.
        NotFoundError: it has an op that is not registered.
        UnimplementedError: it has a share of a loop.
    """
    plain = GraphDef()
    plain.versions.CopyFrom(graph_def.versions)
    plain.library.CopyFrom(graph_def.library)
    names = {node.name for node in graph_def.node}
    renamed = {name: _free(f"wire{name}", names) for name in names if name.startswith("_")}
    found: list[tuple[str, bool, Any]] = []
    for node in graph_def.node:
        copy = plain.node.add()
        copy.CopyFrom(node)
        copy.attr.pop("_class", None)  # the placement is settled
        name: str = renamed.get(node.name) or node.name
        copy.name = name
        if renamed:
            copy.input[:] = [_renamed(text, renamed) for text in copy.input]
        if node.op in _RECEIVES:
            found.append((name, True, node))
            copy.op = "Placeholder"
            copy.attr.clear()
            copy.attr["dtype"].type = node.attr["tensor_type"].type
            copy.attr["shape"].shape.unknown_rank = True
        elif node.op in _SENDS:
            found.append((name, False, node))
            copy.op = "Identity"
            copy.attr.clear()
            copy.attr["T"].type = node.attr["T"].type
    # What stoker's master sends is never dead: it divides no branches.
    passing = {name for name, _, node in found if not node.attr["client_terminated"].b and not node.attr[PUSHED].b}
    nodes = None
    if passing and any(node.op in CONTROL_FLOW for node in plain.node):
        nodes = BranchNodes(plain, passing)
    graph = import_graph(plain)
    receives, sends = [], []
    for name, is_receive, node in found:
        (receives if is_receive else sends).append(_edge(graph, name, node))
    if nodes is None or not nodes.found:
        return WireGraph(graph, receives, sends)
    return WireGraph(graph, receives, sends, nodes.branches(graph, received_by(receives)))


def received_by(receives: list[Edge]) -> list[Tensor]:
    """Returns the tensors whose values may arrive dead."""
    return [edge.tensor for edge in receives if not edge.is_client and not edge.is_pushed]


def _edge(graph: Graph, name: str, node: Any) -> Edge:
    attr = node.attr
    try:
        source, destination, edge = (attr[name].s.decode() for name in ("send_device", "recv_device", "tensor_name"))
    except UnicodeDecodeError:
        raise InvalidArgumentError(None, None, f"Node '{node.name}' (op {node.op}): a name is not UTF-8.") from None
    key = key_text(source, attr["send_device_incarnation"].i, destination, edge)
    op = graph._by_name.get(name)
    if op is None:
        raise UnimplementedError(
            None,
            None,
            f"Node '{node.name}' (op {node.op}) is inside of a branch or a loop that spans several tasks: a stoker task runs a branch or "
            "a loop as a whole.",
        )
    is_client, is_pushed = attr["client_terminated"].b, PUSHED in attr and attr[PUSHED].b
    return Edge(key, op.outputs[0], source, destination, is_client, is_pushed)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _renamed(text: str, renamed: dict[str, str]) -> str:
    prefix = "^" if text.startswith("^") else ""
    node, colon, index = text.removeprefix("^").partition(":")
    return f"{prefix}{renamed.get(node, node)}{colon}{index}"
