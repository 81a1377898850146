"""`convert_variables_to_constants`: makes an inference graph that holds the values of its variables as constants.

A reference variable becomes a Const of the same name, and so does a resource variable. Consumers of a resource handle then take the value:
ReadVariableOp becomes Identity, ResourceGather becomes GatherV2, and functions that are called with the handle (branches and
loop bodies) are copied, with an argument of the variable's dtype instead of the resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.formats.protos import GraphDef
from stoker._src.formats.tensor_proto import to_tensor_proto
from stoker._src.graph.graph_util import extract_sub_graph, node_name

_REFERENCES = ("Variable", "VariableV2")
_PASSING = ("Identity",)
# For each op that calls functions: the attributes that hold its input types, its output types and the functions.
_CALLS = {
    "If": ("Tin", None, ("then_branch", "else_branch")),
    "StatelessIf": ("Tin", None, ("then_branch", "else_branch")),
    "Case": ("Tin", None, ("branches",)),
    "StatelessCase": ("Tin", None, ("branches",)),
    "While": ("T", "T", ("cond", "body")),
    "StatelessWhile": ("T", "T", ("cond", "body")),
    "PartitionedCall": ("Tin", None, ("f",)),
    "StatefulPartitionedCall": ("Tin", None, ("f",)),
}


@export(v1="graph_util.convert_variables_to_constants")
def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Iterable[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> Any:
    """Extracts the subgraph that the outputs need and replaces variables with constants of their values in `sess`.

    Args:
        sess: the session that holds the variables.
        input_graph_def: a GraphDef, usually `sess.graph_def`.
        output_node_names: names of the nodes to keep, together with their dependencies.
        variable_names_whitelist: only these variables are replaced (default: all).
        variable_names_blacklist: these variables are not replaced.

    Raises:
        AssertionError: an output is not in the graph.
        ValueError: a resource variable is used by an op that cannot take a value instead of a handle.
    """
    graph = extract_sub_graph(input_graph_def, output_node_names)
    allowed = None if variable_names_whitelist is None else set(variable_names_whitelist)
    kept = set(variable_names_blacklist or ())
    chosen = [
        node
        for node in graph.node
        if node.op in (*_REFERENCES, "VarHandleOp")
        and (allowed is None or node.name in allowed)
        and node.name not in kept
    ]
    reads = {node.name: _read_of(sess.graph, node) for node in chosen}
    values = sess.run(reads) if reads else {}
    return _Freezer(graph, values).run()


def _read_of(graph: Any, node: Any) -> str:
    """Returns the tensor to fetch for a variable's value."""
    if node.op in _REFERENCES:
        return f"{node.name}:0"
    handle = graph.get_tensor_by_name(f"{node.name}:0")
    for consumer in handle.consumers():
        if consumer.type == "ReadVariableOp" and not consumer.control_inputs:
            return consumer.outputs[0].name
    raise ValueError(f"Resource variable '{node.name}' is never read in the graph, so its value cannot be fetched.")


class _Freezer:
    def __init__(self, graph: Any, values: dict[str, Any]) -> None:
        self.graph, self.values = graph, values
        self.functions = {function.signature.name: function for function in graph.library.function}
        self.copies: dict[tuple[str, tuple[tuple[int, int], ...]], str] = {}
        self.result = GraphDef()

    def run(self) -> Any:
        self.result.versions.CopyFrom(self.graph.versions)
        self.result.library.CopyFrom(self.graph.library)
        # Maps the output of a node to the dtype of the value that replaces its handle.
        frozen: dict[str, int] = {}
        for node in self.graph.node:
            if node.name in self.values and node.op == "VarHandleOp":
                frozen[node.name] = node.attr["dtype"].type
        for node in _in_order(self.graph.node):
            self.result.node.extend(self._converted(node, frozen, _plain))
        order = {node.name: i for i, node in enumerate(self.graph.node)}
        nodes = sorted(self.result.node, key=lambda node: order.get(node.name, len(order)))
        del self.result.node[:]
        self.result.node.extend(nodes)
        return self.result

    def _converted(self, node: Any, frozen: dict[str, int], output: Any) -> list[Any]:
        """Returns the nodes that replace `node`, and adds to `frozen` its outputs that changed from handles to values."""
        copy = type(node)()
        copy.CopyFrom(node)
        if node.name in self.values and node.op in (*_REFERENCES, "VarHandleOp"):
            return [_constant(node, self.values[node.name])]
        data = [text for text in node.input if not text.startswith("^")]
        touched = {i: frozen[_key(text)] for i, text in enumerate(data) if _key(text) in frozen}
        if not touched:
            return [copy]
        if node.op in _CALLS:
            self._convert_call(copy, node, touched, frozen, output)
            return [copy]
        if node.op == "ReadVariableOp":
            copy.op = "Identity"
            dtype = copy.attr["dtype"].type
            copy.ClearField("attr")
            copy.attr["T"].type = dtype
            return [copy]
        if node.op == "ResourceGather":
            return _gather(copy, output)
        if node.op in _PASSING:
            copy.attr["T"].type = touched[0]
            frozen[output(node.name, 0, "output")] = touched[0]
            return [copy]
        raise ValueError(
            f"Node '{node.name}' (op {node.op}) takes the handle of a variable that is to become a constant: "
            "only reads, gathers and calls of functions can take its value instead."
        )

    def _convert_call(self, copy: Any, node: Any, touched: dict[int, int], frozen: dict[str, int], output: Any) -> None:
        types_attr, results_attr, function_attrs = _CALLS[node.op]
        # The first input of If and Case (the predicate or branch index) is not passed to the functions.
        shift = sum(1 for text in node.input if not text.startswith("^")) - len(node.attr[types_attr].list.type)
        arguments = {position - shift: dtype for position, dtype in touched.items()}
        for position, dtype in arguments.items():
            copy.attr[types_attr].list.type[position] = dtype
        for attr in function_attrs:
            value = copy.attr[attr]
            for ref in value.list.func if value.WhichOneof("value") == "list" else [value.func]:
                ref.name = self._function(ref.name, arguments)
        if results_attr is not None:
            for position, dtype in arguments.items():
                frozen[output(node.name, position, "output")] = dtype
        shapes = copy.attr["output_shapes"].list.shape if "output_shapes" in copy.attr else ()
        if results_attr is not None and shapes:
            for position in arguments:
                shapes[position].Clear()
                shapes[position].unknown_rank = True

    def _function(self, name: str, arguments: dict[int, int]) -> str:
        """Copies a function so that `arguments` are values of the given dtypes instead of handles, and returns the copy's name."""
        key = (name, tuple(sorted(arguments.items())))
        if key in self.copies:
            return self.copies[key]
        source = self.functions.get(name)
        if source is None:
            raise ValueError(f"The graph calls the function '{name}', which its library does not define.")
        copy = type(source)()
        copy.CopyFrom(source)
        unique = self.copies[key] = f"{name}_frozen_{len(self.copies)}"
        copy.signature.name = unique
        frozen: dict[str, int] = {}
        for position, dtype in arguments.items():
            arg = copy.signature.input_arg[position]
            arg.type = dtype
            frozen[arg.name] = dtype
            copy.arg_attr.pop(position, None)
        del copy.node_def[:]
        for node in _in_order(source.node_def):
            copy.node_def.extend(self._converted(node, frozen, _of_function))
        _rename_reads(source, copy)
        for arg in copy.signature.output_arg:
            text = copy.ret[arg.name]
            if _key(text) in frozen:
                arg.type = frozen[_key(text)]
        copy.attr.pop("_input_shapes", None)  # the shapes recorded for handles no longer apply
        self.result.library.function.append(copy)
        return unique


def _rename_reads(before: Any, after: Any) -> None:
    """Renames outputs, which functions refer to by argument name: "value" of a ReadVariableOp is "output" of an Identity."""
    was = {node.name for node in before.node_def if node.op == "ReadVariableOp"}
    renamed = {
        f"{n.name}:value:0": f"{n.name}:output:0" for n in after.node_def if n.name in was and n.op == "Identity"
    }
    for node in after.node_def:
        node.input[:] = [renamed.get(text, text) for text in node.input]
    for name, text in after.ret.items():
        after.ret[name] = renamed.get(text, text)


def _key(text: str) -> str:
    """Returns an input in the form that `frozen` uses as a key: output 0 of a graph node has no number."""
    return text.removesuffix(":0") if text.count(":") == 1 else text


def _plain(node: str, position: int, argument: str) -> str:
    return node if position == 0 else f"{node}:{position}"


def _of_function(node: str, position: int, argument: str) -> str:
    return f"{node}:{argument}:{position}"


def _constant(node: Any, value: Any) -> Any:
    constant = type(node)(name=node.name, op="Const", device=node.device)
    dtype = as_dtype(node.attr["dtype"].type)
    constant.attr["dtype"].type = node.attr["dtype"].type
    constant.attr["value"].tensor.CopyFrom(to_tensor_proto(_as_array(value, dtype), dtype))
    return constant


def _as_array(value: Any, dtype: Any) -> Any:
    return np.asarray(value, dtype=dtype.as_numpy_dtype)


def _gather(node: Any, output: Any) -> list[Any]:
    """Returns a GatherV2 along the first axis, and the Const for that axis."""
    dtype, indices = node.attr["dtype"].type, node.attr["Tindices"].type
    batch_dims = node.attr["batch_dims"].i if "batch_dims" in node.attr else 0
    axis = type(node)(name=f"{node.name}/axis", op="Const", device=node.device)
    axis.attr["dtype"].type = dtypes.int32.as_datatype_enum
    axis.attr["value"].tensor.dtype = dtypes.int32.as_datatype_enum
    axis.attr["value"].tensor.tensor_shape.SetInParent()
    axis.attr["value"].tensor.int_val.append(batch_dims)
    node.op = "GatherV2"
    node.ClearField("attr")
    node.attr["Tparams"].type, node.attr["Tindices"].type = dtype, indices
    node.attr["Taxis"].type = dtypes.int32.as_datatype_enum
    if batch_dims:
        node.attr["batch_dims"].i = batch_dims
    node.input.insert(2, output(axis.name, 0, "output"))
    return [axis, node]


def _in_order(nodes: Any) -> list[Any]:
    """Sorts the nodes so that each follows those of its inputs that are nodes. Nodes of 1.x loops may be in any order."""
    sources = {node.name: [node_name(text) for text in node.input] for node in nodes}
    ordered: dict[str, None] = {}
    for start in sources:
        stack = [start]
        open_nodes: set[str] = set()
        while stack:
            name = stack[-1]
            waiting = [s for s in sources[name] if s in sources and s not in ordered and s not in open_nodes]
            if name in ordered or not waiting:
                ordered.setdefault(stack.pop())
                open_nodes.discard(name)
            else:
                open_nodes.add(name)
                stack.append(waiting[0])
    by_name = {node.name: node for node in nodes}
    return [by_name[name] for name in ordered]
