"""`import_graph_def`: adds the nodes of a GraphDef to the current graph as ops.

The whole message is untrusted. Op types, attributes and inputs are checked against our definitions before a node is
created, and no part of the message is ever executed or used as a Python name.
"""

from __future__ import annotations

import heapq
import re
from contextlib import nullcontext
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.devices import DeviceSpec
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import OpError
from stoker._src.base.export import export
from stoker._src.base.shapes import as_shape
from stoker._src.formats.protos import GraphDef
from stoker._src.graph import context
from stoker._src.graph.attr_values import from_attr_value, typed_attr_value
from stoker._src.graph.attributes import MISSING
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, find_definition
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.interchange.function_library import (
    Library,
    MalformedGraphError,
    UnknownNameError,
    check_call,
    check_counts,
    check_results,
    is_stateful_signature,
)
from stoker._src.graph.interchange.raise_control_flow import CONTROL_FLOW, raise_control_flow
from stoker._src.graph.tensor import Operation, Tensor

CONSUMER_VERSION = 2500
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_NODE_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*")


@export("graph_util.import_graph_def", "import_graph_def")
def import_graph_def(
    graph_def: Any,
    input_map: dict[str, Any] | None = None,
    return_elements: Any = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the nodes of `graph_def` to the current graph, under the name scope `name` ("import" by default).

    Args:
        graph_def: a GraphDef.
        input_map: maps names of inputs (`"x:0"`, `"^op"`) to the tensors that replace them.
        return_elements: names of operations and tensors of `graph_def` to return.
        name: the prefix; "" for no prefix.
        op_dict: accepted and ignored, as in TensorFlow.
        producer_op_list: the producer's OpList. Unknown attributes that have their default value there are dropped.

    Raises:
        TypeError: arguments of the wrong type.
        ValueError: the GraphDef is invalid; the message names the node and the reason.
    """
    if not isinstance(graph_def, GraphDef):
        graph_def = _as_graph_def(graph_def)
    input_map = dict(input_map or {})
    if not all(isinstance(key, (str, bytes)) for key in input_map):
        raise TypeError("Argument `input_map` must be a dictionary mapping strings to Tensor objects.")
    if return_elements is not None and (
        isinstance(return_elements, (str, bytes)) or not all(isinstance(e, (str, bytes)) for e in return_elements)
    ):
        raise TypeError("Argument `return_elements` must be a list of strings.")
    if graph_def.versions.min_consumer > CONSUMER_VERSION:
        raise ValueError(
            f"GraphDef min consumer version {graph_def.versions.min_consumer} above current version {CONSUMER_VERSION}: "
            "the graph was written by a newer program than this one can read."
        )
    if graph_def.versions.producer < 0 or graph_def.versions.min_consumer < 0:
        raise ValueError(
            f"GraphDef versions must not be negative, found producer {graph_def.versions.producer} and min consumer "
            f"{graph_def.versions.min_consumer}."
        )
    graph = context.get_default_graph()
    prefix = "import" if name is None else name
    with graph.name_scope(prefix or None) as scope, graph._undone_on_error():
        importer = Importer(graph, graph_def, _as_tensors(graph, input_map, prefix), producer_op_list, scope)
        importer.run()
        found = [importer.element(_text(element)) for element in return_elements or ()]
    for controller in graph._controllers:  # applies to every node, even if one of its inputs already waits
        for op in importer.ops.values():
            op._add_control_inputs([other for other in controller.inputs if other is not op])
    missing = importer.not_in_graph_def()
    if missing:
        raise ValueError(f"Attempted to map inputs that were not found in graph_def: [{', '.join(missing)}]")
    return None if return_elements is None else found


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _as_tensors(graph: Graph, input_map: dict[Any, Any], prefix: str) -> dict[str, Any]:
    """Returns the map with its values converted to tensors, or operations for control inputs.

    Raises:
        ValueError: a value must become a constant, but there is no scope to create it in.
    """
    if all(isinstance(value, (Tensor, Operation)) for value in input_map.values()):
        return {_text(key): value for key, value in input_map.items()}
    if not prefix:
        raise ValueError(
            "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor values: "
            "try tf.convert_to_tensor() on them first."
        )
    with graph.name_scope("_inputs"):
        return {
            _text(key): value if isinstance(value, Operation) else convert_to_tensor(value)
            for key, value in input_map.items()
        }


def _as_graph_def(message: Any) -> Any:
    """Converts a GraphDef of another protobuf package, such as TensorFlow's own in the same process."""
    if not hasattr(message, "SerializeToString"):
        raise TypeError("graph_def must be a GraphDef proto.")
    return GraphDef.FromString(message.SerializeToString())


_INDEX = re.compile("[0-9]{1,10}")
_LARGEST_INDEX = (1 << 31) - 1


def split_input(text: str) -> tuple[str, int]:
    """Splits the name of an input: `"x:1"` -> ("x", 1), `"^x"` -> ("x", -1).

    Raises:
        ValueError: the text is not a valid input name.
    """
    if text.startswith("^"):
        return text[1:], -1
    node, _, index = text.partition(":")
    if not node or (":" in text and not _INDEX.fullmatch(index)) or int(index or 0) > _LARGEST_INDEX:
        raise ValueError(f"{text!r} is not an input: expected 'node', 'node:index' or '^node'.")
    return node, int(index or 0)


def import_body(graph: Graph, body: Any, given: dict[str, Tensor], library: Library) -> Importer:
    """Adds the nodes of a function's body to its graph; `given` holds the arguments."""
    with graph.as_default():
        importer = Importer(graph, body, given, None, "", library)
        importer.run()
    return importer


class Importer:
    """A single import: checks all nodes, sorts them and creates the ops."""

    def __init__(
        self,
        graph: Graph,
        graph_def: Any,
        input_map: dict[Any, Any],
        producer_op_list: Any,
        scope: str,
        library: Library | None = None,
    ) -> None:
        self.library = library  # set when the nodes are the body of a function
        self.is_body = library is not None
        self.graph, self.graph_def, self.scope = graph, graph_def, scope
        self.input_map: dict[str, Any] = {}
        for key, value in input_map.items():
            self.input_map[key.removesuffix(":0") if not key.startswith("^") else key] = value
        self.unused = set(self.input_map)
        self.producer = {op.name: op for op in producer_op_list.op} if producer_op_list is not None else {}
        self.ops: dict[str, Operation] = {}

    def run(self) -> None:
        if self.library is None:
            self.library = Library(self.graph, self.graph_def.library, import_body)
        self._check_nodes()
        try:
            self.graph_def = raise_control_flow(self.graph_def, self.library.bodies, self.library.output_types)
        except (LookupError, AssertionError) as error:
            raise MalformedGraphError(
                None, None, f"The control flow of the GraphDef is malformed ({type(error).__name__}: {error})."
            ) from error
        except ValueError as error:
            raise MalformedGraphError(None, None, str(error)) from error
        for node in self._in_order():
            try:
                self.ops[node.name] = self._make(node)
            except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError, OpError) as error:
                message = error.message if isinstance(error, OpError) else str(error)
                if isinstance(error, UnknownNameError):
                    raise UnknownNameError(None, None, f"{message} (node '{node.name}')") from error
                raise MalformedGraphError(None, None, f"Node '{node.name}' (op {node.op}): {message}") from error

    def _check_nodes(self) -> None:
        """Checks the names of nodes, and that inputs are well-formed and exist.

        Raises:
            ValueError: a name is invalid or used twice, or an input is invalid.
        """
        names = set()
        for node in self.graph_def.node:
            if not _NODE_NAME.fullmatch(node.name):
                raise ValueError(f"Node '{node.name:.200}': this is not a valid node name.")
            if node.name in names:
                raise ValueError(f"Node '{node.name}' is not unique: the GraphDef has two nodes of that name.")
            names.add(node.name)
        for node in self.graph_def.node:
            controls = False
            for text in node.input:
                source, index = split_input(text)
                if index >= 0 and controls:
                    raise ValueError(
                        f"Node '{node.name}': its input '{text}' comes after control inputs, which come last."
                    )
                controls = index < 0
                if source not in names and self._replaced(text) is None:
                    raise ValueError(f"Node '{node.name}': Unknown input node '{text:.200}'.")
            self._check_places(node, names)
            data = sum(not text.startswith("^") for text in node.input)
            if node.op in CONTROL_FLOW and data < (2 if node.op in ("Switch", "RefSwitch") else 1):
                raise ValueError(f"Node '{node.name}' (op {node.op}): it has too few inputs ({data}).")

    def _check_places(self, node: Any, names: set[str]) -> None:
        """Checks the device of a node and the nodes that it is colocated with."""
        if node.device:
            try:
                DeviceSpec.from_string(node.device)
            except ValueError as error:
                raise ValueError(f"Node '{node.name}': {node.device!r:.200} is not a device ({error}).") from None
        if self.is_body or "_class" not in node.attr:  # a body may be colocated with nodes outside it
            return
        groups = node.attr["_class"].list
        if node.attr["_class"].WhichOneof("value") not in (None, "list") or (groups.ListFields() and not groups.s):
            raise MalformedGraphError(None, None, f"Node '{node.name}': attribute _class must be a list of strings.")
        for group in groups.s:
            try:
                other = group.decode()
            except UnicodeDecodeError as error:
                raise MalformedGraphError(None, None, f"Node '{node.name}': attribute _class: {error}") from None
            if other.startswith("loc:@") and other[5:] not in names and other[5:] not in self.input_map:
                raise ValueError(
                    f"Node '{node.name}' expects to be colocated with unknown node '{other[5:]:.200}' (attribute _class)."
                )

    def _replaced(self, text: str) -> Any:
        """Returns the caller's replacement for an input, or None."""
        return self.input_map.get(text if text.startswith("^") else text.removesuffix(":0"))

    def _in_order(self) -> list[Any]:
        """Sorts the nodes so that each follows its inputs.

        Raises:
            ValueError: there is a cycle.
        """
        nodes = {node.name: node for node in self.graph_def.node}
        waiting: dict[str, int] = {}
        followers: dict[str, list[str]] = {}
        for node in nodes.values():
            sources = set()
            for text in node.input:
                if self._replaced(text) is None:
                    sources.add(split_input(text)[0])
            waiting[node.name] = len(sources)
            for source in sources:
                followers.setdefault(source, []).append(node.name)
        # Among the nodes whose inputs are ready, take the one that was written first, so that a sorted GraphDef keeps its order.
        place = {name: i for i, name in enumerate(nodes)}
        names = list(nodes)
        ready = [i for i, name in enumerate(names) if waiting[name] == 0]
        ordered = []
        while ready:
            name = names[heapq.heappop(ready)]
            ordered.append(nodes[name])
            for follower in followers.get(name, ()):
                waiting[follower] -= 1
                if waiting[follower] == 0:
                    heapq.heappush(ready, place[follower])
        if len(ordered) < len(nodes):
            stuck = sorted(name for name in nodes if waiting[name] > 0)
            raise ValueError(
                f"The GraphDef has a cycle through {', '.join(stuck[:5])} ({len(stuck)} nodes wait for each other)."
            )
        return ordered

    def _make(self, node: Any) -> Operation:
        definition = find_definition(node.op)
        if definition is None and node.op in self.library:
            definition, attrs = self._call(node)
        elif definition is None and node.op in CONTROL_FLOW:
            raise ValueError(f"a {node.op} that belongs to no loop and no branch.")
        elif definition is None:
            raise UnknownNameError(None, None, f"Op type not registered '{node.op}': stoker does not know this op.")
        else:
            attrs = self._attrs(definition, node)
        inputs: list[Tensor] = []
        controls: list[Operation] = []
        for text in node.input:
            source, index = split_input(text)
            if index < 0:
                controls.append(self._control(text, source))
                continue
            inputs.append(self._input(text, source, index))
        self._check_inputs(definition, attrs, inputs)
        name = self.graph.unique_name(node.name)
        with self.graph.control_dependencies(controls) if controls else nullcontext():
            op = self.graph.add(definition, inputs, attrs, name)
        if definition.planning.calls:
            for ref in function_refs(op):
                if ref.target is not None:
                    check_call(op, ref.target)
                    check_results(op, ref.target)
        if not self.is_body and _states_shapes("_output_shapes", node.attr.get("_output_shapes")):
            _take_shapes(op, node.attr["_output_shapes"].list.shape)
        op._frames = ()
        for control in controls:
            if control not in op._control_inputs:
                op._add_control_input(control)
        if node.device:
            op._set_device(node.device if not op.device else op.device)
        return op

    def _call(self, node: Any) -> tuple[OpDefinition, dict[str, Any]]:
        """Converts a node whose op is a library function, which is how 1.x writes calls, to an op that calls the function."""
        assert self.library is not None
        given = {key: from_attr_value(value) for key, value in node.attr.items() if not key.startswith("_")}
        function = self.library.function(node.op, given, is_call=True)
        stateful = is_stateful_signature(self.library.protos[node.op])
        definition = find_definition("StatefulPartitionedCall" if stateful else "PartitionedCall")
        assert definition is not None
        attrs = {key: spec.default for key, spec in definition.attrs.items() if spec.default is not MISSING}
        attrs.update({key: from_attr_value(value) for key, value in node.attr.items() if key.startswith("_")})
        attrs["Tin"] = tuple(tensor.dtype.base_dtype for tensor in function.inputs)
        attrs["Tout"] = tuple(tensor.dtype.base_dtype for tensor in function.outputs)
        attrs["f"] = function.ref
        return definition, attrs

    def _attrs(self, definition: OpDefinition, node: Any) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        is_call = definition.name in _CALLS
        for key, proto in node.attr.items():
            spec = definition.attrs.get(key)
            if spec is None:
                if proto.WhichOneof("value") in (None, "placeholder") or _states_shapes(key, proto):
                    continue
                if key.startswith("_") or not (
                    self._is_producer_default(node.op, key, proto) or _is_default_like(proto)
                ):
                    attrs[key] = from_attr_value(proto)
                continue
            value = typed_attr_value(proto, spec.kind, key)
            if spec.kind == "func":
                value = self.library.resolve(value, is_call=is_call)  # type: ignore[union-attr]
            elif spec.kind == "list(func)":
                value = tuple(self.library.resolve(item, is_call=is_call) for item in value)  # type: ignore[union-attr]
            attrs[key] = definition.check_attr(key, value)
        for key, spec in definition.attrs.items():
            if key not in attrs:
                if spec.default is MISSING:
                    raise ValueError(f"NodeDef missing attr '{key}' from Op<{definition.name}>.")
                attrs[key] = spec.default
        check_counts(definition, attrs)
        if definition.name == "Const" and node.attr["value"].tensor.dtype != attrs["dtype"].as_datatype_enum:
            stored = as_dtype(node.attr["value"].tensor.dtype).name
            raise ValueError(f"its value is of dtype {stored}, but attr 'dtype' says {attrs['dtype'].name}.")
        if "_class" in attrs and self.scope:
            attrs["_class"] = tuple(
                f"loc:@{self.scope}{group[5:]}" if isinstance(group, str) and group.startswith("loc:@") else group
                for group in attrs["_class"]
            )
        return attrs

    def _is_producer_default(self, op_type: str, key: str, proto: Any) -> bool:
        producer = self.producer.get(op_type)
        return producer is not None and any(a.name == key and a.default_value == proto for a in producer.attr)

    def _input(self, text: str, source: str, index: int) -> Tensor:
        key = text.removesuffix(":0")
        if key in self.input_map:
            self.unused.discard(key)
            return self.input_map[key]
        op = self.ops[source]
        if index >= len(op.outputs):
            raise ValueError(f"input '{text}' does not exist: '{source}' has {len(op.outputs)} outputs.")
        return op.outputs[index]

    def _control(self, text: str, source: str) -> Operation:
        replaced = self._replaced(text)
        if replaced is None:
            return self.ops[source]
        self.unused.discard(text)
        op = self.graph._control_op(replaced)
        if op is None:
            raise ValueError(f"input_map gives {replaced!r} for '{text}', which is not an operation to wait for.")
        return op

    def _check_inputs(self, definition: OpDefinition, attrs: dict[str, Any], inputs: list[Tensor]) -> None:
        expected = [(arg, dtype) for arg in definition.inputs for dtype in arg.dtypes(attrs)]
        if len(expected) != len(inputs):
            raise ValueError(f"expects {len(expected)} inputs but has {len(inputs)}.")
        for (arg, dtype), tensor in zip(expected, inputs):
            if tensor.dtype.base_dtype is not dtype.base_dtype:
                raise ValueError(
                    f"Input '{arg.name}' was passed {tensor.dtype.name} from {tensor.name} incompatible with expected {dtype.name}."
                )
            if arg.is_ref and not tensor.dtype._is_ref_dtype:
                raise ValueError(f"Input '{arg.name}' must be a reference, but {tensor.name} is not one.")

    def not_in_graph_def(self) -> list[str]:
        """Returns the names in the caller's map that are neither an input nor an output of any node."""
        missing = []
        for key in self.unused:
            source, index = split_input(key)
            if source not in self.ops or index >= len(self.ops[source].outputs):
                missing.append(key if key.startswith("^") or ":" in key else f"{key}:0")
        return sorted(missing)

    def element(self, name: str) -> Any:
        if ":" in name:
            source, index = split_input(name)
            op = self.ops.get(source)
            if op is None or index >= len(op.outputs):
                raise ValueError(f"Requested return_element '{name}' not found in graph_def.")
            return op.outputs[index]
        if name not in self.ops:
            raise ValueError(f"Requested return_element '{name}' not found in graph_def.")
        return self.ops[name]


def _states_shapes(key: str, proto: Any) -> bool:
    """Returns whether an attribute is the optional list of output shapes that the writer added."""
    if key != "_output_shapes" or proto is None or proto.WhichOneof("value") != "list":
        return False
    return len(proto.list.shape) > 0 or not proto.list.ListFields()


def _take_shapes(op: Operation, shapes: Any) -> None:
    """Refines the static shapes with those that the writer recorded.

    Raises:
        ValueError: there are too few shapes, or one of them is incompatible.
    """
    if len(shapes) < len(op.outputs):
        raise ValueError(
            f"it has {len(op.outputs)} outputs but the _output_shapes attribute specifies shapes for {len(shapes)} outputs."
        )
    for tensor, shape in zip(op.outputs, shapes):
        if not _is_handle(tensor):
            tensor.set_shape(as_shape(shape))


def _is_handle(tensor: Any) -> bool:
    """Returns whether a tensor is a handle of a stack, array, queue or similar. TensorFlow records the shape [2] for many of them."""
    dtype = tensor.dtype
    return dtype.base_dtype is dtypes.resource or (
        dtype.is_ref and dtype.base_dtype is dtypes.string and tensor.op.type not in ("Variable", "VariableV2")
    )


def _is_default_like(proto: Any) -> bool:
    """Returns whether an attribute of a newer producer has no effect: it is false, zero or empty."""
    which = proto.WhichOneof("value")
    if which in ("b", "i", "f", "s"):
        return not getattr(proto, which)
    return which == "list" and not any(len(getattr(proto.list, f)) for f in ("s", "i", "f", "b", "type", "shape"))
