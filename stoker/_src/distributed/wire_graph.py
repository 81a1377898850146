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
from stoker._src.distributed.branches import HANDLES, Branches, BranchNodes
from stoker._src.distributed.frames import Share, take_shares
from stoker._src.distributed.rendezvous import key_text, task_of
from stoker._src.formats.protos import GraphDef
from stoker._src.graph import context
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_library import UnknownNameError
from stoker._src.graph.interchange.importer import import_graph_def
from stoker._src.graph.interchange.node_def import PRODUCER_VERSION
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
    shares: dict[str, tuple[Share, WireGraph]] = field(default_factory=dict)
    """The shares of divided loops, by frame, with the graph of one iteration. In that, feeds and fetches have the names of nodes as keys."""


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
        UnimplementedError: a loop that is divided over tasks carries a reference, or a branch returns a resource.
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
    # What stoker's master sends is never dead: it divides no branches and no loops.
    passing = {name for name, _, node in found if not node.attr["client_terminated"].b and not node.attr[PUSHED].b}
    shares: dict[str, Share] = {}
    if passing and any(node.op in CONTROL_FLOW for node in plain.node):
        shares, _ = take_shares(plain, passing)
    return _imported(plain, {name: (is_receive, node) for name, is_receive, node in found}, shares)


def _imported(
    plain: Any, transfers: dict[str, tuple[bool, Any]], shares: dict[str, Share], entering: tuple[str, ...] = ()
) -> WireGraph:
    """Imports a graph.

    `transfers` are the nodes through which values arrive (True) and leave, and the `_Recv` and `_Send` they come from; `entering` are placeholders whose
    values may be dead.
    """
    here = {node.name for node in plain.node}
    found = {name: transfer for name, transfer in transfers.items() if name in here}
    passing = {
        name for name, (_, node) in found.items() if not node.attr["client_terminated"].b and not node.attr[PUSHED].b
    }
    is_divided = bool(shares or entering)
    control_flow = any(node.op in CONTROL_FLOW for node in plain.node)
    nodes = BranchNodes(plain) if is_divided or (passing and control_flow) else None
    graph = import_graph(plain)
    receives, sends = [], []
    for name, (is_receive, node) in found.items():
        (receives if is_receive else sends).append(_edge(graph, name, node))
    mortal = [*received_by(receives), *(graph._by_name[name].outputs[0] for name in entering)]
    branches = Branches() if nodes is None or not (nodes.found or is_divided) else nodes.branches(graph, mortal)
    return WireGraph(
        graph,
        receives,
        sends,
        branches,
        {share.frame: (share, _iteration(share, transfers)) for share in shares.values()},
    )


def _iteration(share: Share, transfers: dict[str, tuple[bool, Any]]) -> WireGraph:
    """Imports the graph of one iteration of a share."""
    share.graph_def.versions.producer = PRODUCER_VERSION
    handles = {
        node.name for node in share.graph_def.node if node.op == "Placeholder" and node.attr["dtype"].type in HANDLES
    }
    given = (*(name for name, _ in share.variables), *share.constants)
    read = _imported(share.graph_def, transfers, share.inner, tuple(name for name in given if name not in handles))
    ops = read.graph._by_name

    def edge(name: str) -> Edge:
        return Edge(name, ops[name].outputs[0], "", "", is_client=True, is_pushed=False)

    read.receives.extend(map(edge, given))
    read.sends.extend(edge(name) for name in dict.fromkeys((*(name for _, name in share.variables), *share.results)))
    return read


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
