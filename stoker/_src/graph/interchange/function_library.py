"""Imports functions from the library of a GraphDef. `function_def.py` exports them.

A FunctionDef refers to values as `node:output:index`, and to arguments by name alone. A GraphDef uses `node:index`. The import rewrites the
nodes to the GraphDef form, with a Placeholder for each argument, and then treats them like any other graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, NotFoundError
from stoker._src.base.shapes import as_shape
from stoker._src.formats.protos import GraphDef
from stoker._src.graph.attr_values import FunctionRef, from_attr_value, to_attr_value, typed_attr_value
from stoker._src.graph.attributes import MISSING
from stoker._src.graph.definition import STATEFUL, find_definition
from stoker._src.graph.function_graph import FuncGraph, Function, unique_function_name
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.raise_control_flow import Body
from stoker._src.graph.tensor import Tensor


class MalformedGraphError(InvalidArgumentError, ValueError):
    """Raised for an invalid GraphDef.

    TensorFlow raises ValueError for errors it finds when a graph is imported, and InvalidArgumentError for those it finds when the
    graph first runs. Stoker finds all of them on import, so this class is both.
    """


class UnknownNameError(NotFoundError, ValueError):
    """Raised for an op or function that is not defined. TensorFlow 1 raises ValueError for it, TensorFlow 2 NotFoundError."""


def check_call(op: Any, function: Function) -> None:
    """Checks that the arguments of a call match the function's. A file may hold a call that does not.

    Raises:
        InvalidArgumentError: the number of arguments or their dtypes differ.
    """
    count = len(op.definition.inputs[-1].dtypes(op.attrs))
    if count != len(function.inputs):
        raise InvalidArgumentError(
            None,
            op,
            f"Function '{function.name}' has {len(function.inputs)} arguments, but '{op.name}' passes {count}.",
        )
    for i, (given, wanted) in enumerate(zip(op._inputs[len(op._inputs) - count :], function.inputs)):
        if given.dtype.base_dtype is not wanted.dtype.base_dtype:
            raise InvalidArgumentError(
                None,
                op,
                f"Argument {i} of function '{function.name}' is {wanted.dtype.base_dtype.name}, but '{op.name}' passes "
                f"{given.dtype.base_dtype.name}.",
            )


def check_results(op: Any, function: Function) -> None:
    """Checks that the results a node expects match its function's.

    Raises:
        InvalidArgumentError: the number of results or their dtypes differ.
    """
    found = [tensor.dtype.base_dtype for tensor in function.outputs]
    if op.definition.planning.calls == "loop" and op.attrs["cond"].target is function:
        if len(found) != 1:
            raise InvalidArgumentError(
                None,
                op,
                f"Function '{function.name}', the condition of '{op.name}', returns {len(found)} values, not 1.",
            )
        return
    expected = [dtype.base_dtype for arg in op.definition.outputs for dtype in arg.dtypes(op.attrs)]
    if found != expected:
        raise InvalidArgumentError(
            None,
            op,
            f"Function '{function.name}' returns ({', '.join(t.name for t in found)}), but '{op.name}' expects "
            f"({', '.join(t.name for t in expected)}).",
        )


class _Unread:
    """A library function that no node uses. It is kept in the form in which it was read."""

    def __init__(self, proto: Any) -> None:
        self.name = proto.signature.name
        self.proto = proto

    def to_function_def(self) -> Any:
        return self.proto


class Library:
    """The functions of a FunctionDefLibrary by name. A body is built when a node first refers to it.

    `graph` stores the functions for export. `import_nodes(graph, body, given, library)` imports a body and
    returns the importer, which knows the ops that it created.
    """

    def __init__(self, graph: Graph, library: Any, import_nodes: Callable[..., Any]) -> None:
        self.graph = graph
        self._import_nodes = import_nodes
        self.protos = {proto.signature.name: proto for proto in library.function}
        for name in self.protos:
            if find_definition(name) is not None:
                raise MalformedGraphError(
                    None, None, f"Cannot add function '{name}' because an op with the same name already exists."
                )
        self.gradients = {item.function_name: item.gradient_func for item in library.gradient}
        self.bodies: dict[str, Body] = {}  # functions created from 1.x control flow
        self._built: dict[Any, Function] = {}
        self._building: list[str] = []
        for name, proto in self.protos.items():
            graph._functions.setdefault(name, _Unread(proto))

    def __contains__(self, name: str) -> bool:
        return name in self.protos

    def resolve(self, ref: FunctionRef, *, is_call: bool) -> FunctionRef:
        """Returns the reference with its function resolved. `is_call` has the same meaning as for `function`.

        Raises:
            ValueError: the function does not exist, or it calls itself.
        """
        function = self.function(ref.name, ref.attrs, is_call=is_call)
        return FunctionRef(function.name, ref.attrs, function)

    def function(self, name: str, attrs: dict[str, Any], *, is_call: bool) -> Function:
        """Returns the function of the given name.

        Args:
            name: the function's name.
            attrs: the attributes to instantiate it with.
            is_call: whether an op calls the function by name. All stateful ops in such a function run, unless the function
                lists its control outputs. In a branch or loop body, TensorFlow runs only what the outputs need.
        """
        if name in self.bodies:
            if name not in self._built:
                self._built[name] = self._build_body(self.bodies[name])
            return self._built[name]
        proto = self.protos.get(name)
        if proto is None:
            raise UnknownNameError(None, None, f"Function '{name}' is not defined in the library of the GraphDef.")
        given = tuple(sorted((k, repr(v)) for k, v in attrs.items())) if proto.signature.attr else ()
        key = (name, given, is_call and not proto.signature.control_output)
        found = self._built.get(key)
        if found is None:
            if name in self._building:
                cycle = " -> ".join([*self._building[self._building.index(name) :], name])
                raise ValueError(f"Function '{name}' calls itself ({cycle}): recursive functions cannot be run.")
            self._building.append(name)
            try:
                found = self._built[key] = self._build(proto, attrs, is_call)
            finally:
                self._building.pop()
            if name in self.gradients:
                found.gradient = self.function(self.gradients[name], attrs, is_call=is_call)
        return found

    def _build(self, proto: Any, attrs: dict[str, Any], is_call: bool) -> Function:
        name = proto.signature.name
        attrs = {**_attr_defaults(proto), **attrs}
        graph = FuncGraph(name, self.graph)
        body = GraphDef()
        values: dict[str, str] = {}  # maps a name in the FunctionDef to one in the GraphDef
        arguments: list[str] = []
        for position, arg in enumerate(proto.signature.input_arg):
            kinds = _arg_dtypes(arg, attrs)
            is_list = bool(arg.number_attr or arg.type_list_attr)
            for index, dtype in enumerate(kinds):
                unique = f"{arg.name}_{index}" if is_list else arg.name
                arguments.append(unique)
                values[f"{arg.name}:{index}"] = unique
                if not is_list:
                    values[arg.name] = unique
                tensor = graph.add_input(dtype, _argument_shape(proto, position, dtype), unique)
                _note_imported_handle(tensor, proto, position)
        given = dict(zip(arguments, graph.inputs))
        for node in proto.node_def:
            copy = body.node.add()
            copy.CopyFrom(node)
            _substitute(copy, attrs)
            self._name_outputs(copy, values)
        for node in body.node:
            inputs = [self._input(text, values, node.name) for text in node.input]
            del node.input[:]
            node.input.extend(inputs)
        importer = self._import_nodes(graph, body, given, self)
        outputs = []
        for arg in proto.signature.output_arg:
            if arg.name not in proto.ret:
                raise ValueError(f"Function '{name}' does not say what its output '{arg.name}' is.")
            kinds = _arg_dtypes(arg, attrs)
            text = proto.ret[arg.name]
            if arg.number_attr or arg.type_list_attr:
                base = text if text.count(":") < 2 else text.rsplit(":", 1)[0]
                outputs.extend(self._output(importer, given, f"{base}:{i}", values, name) for i in range(len(kinds)))
            else:
                outputs.append(self._output(importer, given, text, values, name))
        controls = []
        for node_name in proto.control_ret.values():
            if node_name not in importer.ops:
                raise ValueError(f"Function '{name}' has no node '{node_name}', which its control outputs name.")
            controls.append(importer.ops[node_name])
        if is_call and not proto.signature.control_output:
            controls = [op for op in graph.stateful_ops() if op not in {t.op for t in graph.inputs}]
        unique = name if self._is_ours(name) else unique_function_name(name)
        made = Function(unique, graph, list(graph.inputs), outputs, controls)
        made.attributes = {
            key: from_attr_value(value)
            for key, value in proto.attr.items()
            if value.WhichOneof("value") in ("s", "b", "i")
        }
        return made

    def _build_body(self, body: Body) -> Function:
        """Builds a function that was created from 1.x control flow."""
        graph = FuncGraph(body.name, self.graph)
        given: dict[str, Tensor] = {}
        for name, number, is_reference in body.arguments:
            dtype = as_dtype(number).base_dtype
            given[name] = graph.add_input(dtype._as_ref if is_reference else dtype, as_shape(None), name)
        nodes = GraphDef()
        nodes.node.extend(body.nodes)
        importer = self._import_nodes(graph, nodes, given, self)
        outputs = []
        for text in body.outputs:
            node, _, index = text.partition(":")
            outputs.append(given[text] if text in given else importer.ops[node].outputs[int(index or 0)])
        controls = [importer.ops[name] for name in body.controls if name in importer.ops]
        made = Function(unique_function_name(body.name), graph, list(graph.inputs), outputs, controls)
        made.captures = frozenset(range(body.variables, len(body.arguments)))
        return made

    def output_types(self, node: Any) -> list[int]:
        """Returns the dtype numbers of a node's outputs."""
        definition = find_definition(node.op)
        if definition is not None:
            attrs = {key: spec.default for key, spec in definition.attrs.items() if spec.default is not MISSING}
            for key, value in node.attr.items():
                if key in definition.attrs:
                    attrs[key] = from_attr_value(value)
            return [dtype.base_dtype.as_datatype_enum for dtype in definition.output_dtypes(attrs)]
        if node.op in self.protos:
            attrs = {key: from_attr_value(value) for key, value in node.attr.items()}
            args = self.protos[node.op].signature.output_arg
            return [dtype.base_dtype.as_datatype_enum for arg in args for dtype in _arg_dtypes(arg, attrs)]
        raise UnknownNameError(
            None, None, f"Op type not registered '{node.op}' (node '{node.name}'): stoker does not know this op."
        )

    def _is_ours(self, name: str) -> bool:
        """Returns whether the graph's function of this name is the one being imported. If not, the imported one is renamed."""
        known = self.graph._functions.get(name)
        return isinstance(known, _Unread) and known.proto is self.protos[name]

    def _name_outputs(self, node: Any, values: dict[str, str]) -> None:
        position = 0
        for arg_name, count in self._output_args(node):
            for index in range(count):
                values[f"{node.name}:{arg_name}:{index}"] = f"{node.name}:{position}" if position else node.name
                position += 1

    def _output_args(self, node: Any) -> list[tuple[str, int]]:
        definition = find_definition(node.op)
        if definition is not None:
            attrs = {key: spec.default for key, spec in definition.attrs.items() if spec.default is not MISSING}
            for key, value in node.attr.items():
                if key in definition.attrs:
                    attrs[key] = typed_attr_value(value, definition.attrs[key].kind, key)
            check_counts(definition, attrs)
            missing = {name for arg in definition.outputs for name in (arg.type_attr, arg.number_attr, arg.list_attr)}
            missing -= {None, *attrs}
            if missing:
                raise ValueError(f"Node '{node.name}': NodeDef missing attr '{missing.pop()}' from Op<{node.op}>.")
            return [(arg.name, len(arg.dtypes(attrs))) for arg in definition.outputs]
        if node.op in self.protos:
            attrs = {key: from_attr_value(value) for key, value in node.attr.items()}
            return [(arg.name, len(_arg_dtypes(arg, attrs))) for arg in self.protos[node.op].signature.output_arg]
        raise UnknownNameError(
            None, None, f"Op type not registered '{node.op}' (node '{node.name}'): stoker does not know this op."
        )

    def _input(self, text: str, values: dict[str, str], node: str) -> str:
        if text.startswith("^"):
            return text
        if text in values:
            return values[text]
        if text + ":0" in values:
            return values[text + ":0"]
        raise ValueError(f"Node '{node}': its input '{text}' is neither an argument nor an output of a node.")

    def _output(self, importer: Any, given: dict[str, Tensor], text: str, values: dict[str, str], name: str) -> Tensor:
        found = values.get(text) or values.get(text + ":0")
        if found is None:
            raise ValueError(f"Function '{name}' has no value '{text}', which its outputs name.")
        if found in given:
            return given[found]
        node, _, index = found.partition(":")
        return importer.ops[node].outputs[int(index or 0)]


MAX_COUNT = 1 << 20
"""How many tensors one argument of a node may stand for: a file may ask for 2^63, which no program makes."""


def check_counts(definition: Any, attrs: dict[str, Any]) -> None:
    """Checks the lengths of list arguments before lists of these lengths are created.

    Raises:
        ValueError: a length is negative or unreasonably large.
    """
    for arg in (*definition.inputs, *definition.outputs):
        if arg.number_attr is not None and not 0 <= attrs.get(arg.number_attr, 0) <= MAX_COUNT:
            raise ValueError(
                f"attr '{arg.number_attr}' of Op<{definition.name}> says {attrs[arg.number_attr]} tensors."
            )


def _attr_defaults(proto: Any) -> dict[str, Any]:
    return {
        attr.name: from_attr_value(attr.default_value)
        for attr in proto.signature.attr
        if attr.default_value.WhichOneof("value") is not None
    }


def _arg_dtypes(arg: Any, attrs: dict[str, Any]) -> list[DType]:
    try:
        if arg.type_list_attr:
            return list(attrs[arg.type_list_attr])
        dtype = attrs[arg.type_attr] if arg.type_attr else as_dtype(arg.type)
        count = attrs[arg.number_attr] if arg.number_attr else 1
        if not isinstance(count, int) or not 0 <= count <= MAX_COUNT:
            raise TypeError(f"{arg.number_attr} is {count}")
    except (KeyError, TypeError) as error:
        raise ValueError(f"argument '{arg.name}' of a function has no usable type ({error})") from None
    return [dtype._as_ref if arg.is_ref else dtype] * count


def _argument_shape(proto: Any, position: int, dtype: DType) -> Any:
    noted = proto.arg_attr[position].attr if position in proto.arg_attr else {}
    for key in ("_output_shapes", "shape"):
        if key in noted:
            shapes = noted[key].list.shape if noted[key].WhichOneof("value") == "list" else [noted[key].shape]
            if len(shapes) == 1:
                return as_shape(shapes[0])
    return as_shape([]) if dtype is dtypes.resource else as_shape(None)


def _note_imported_handle(tensor: Tensor, proto: Any, position: int) -> None:
    noted = proto.arg_attr[position].attr if position in proto.arg_attr else {}
    if "_handle_shapes" in noted and len(noted["_handle_shapes"].list.shape) == 1:
        tensor.handle_shape = as_shape(noted["_handle_shapes"].list.shape[0])  # type: ignore[attr-defined]
        if "_handle_dtypes" in noted and len(noted["_handle_dtypes"].list.type) == 1:
            tensor.handle_dtype = as_dtype(noted["_handle_dtypes"].list.type[0])  # type: ignore[attr-defined]


def _substitute(node: Any, attrs: dict[str, Any]) -> None:
    """Replaces attribute placeholders with the attributes that the function is called with."""
    for key in list(node.attr):
        if node.attr[key].WhichOneof("value") == "placeholder":
            name = node.attr[key].placeholder
            if name not in attrs:
                raise ValueError(f"Node '{node.name}': attribute '{key}' stands for '{name}', which was not given.")
            node.attr[key].CopyFrom(to_attr_value(attrs[name]))


def is_stateful_signature(proto: Any) -> bool:
    """Returns whether a call of the function has side effects."""
    if proto.signature.is_stateful:
        return True
    for node in proto.node_def:
        definition = find_definition(node.op)
        if definition is not None and definition.traits & STATEFUL:
            return True
    return False
