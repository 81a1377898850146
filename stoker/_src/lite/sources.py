"""The sources of a conversion: the graph of a session, a frozen GraphDef, a SavedModel, a Keras model, concrete functions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from stoker._src.base import dtypes, nest
from stoker._src.base.errors import FailedPreconditionError
from stoker._src.base.shapes import as_shape
from stoker._src.formats import gfile
from stoker._src.formats.keras_files import KerasModel, Weights
from stoker._src.formats.protos import GraphDef
from stoker._src.graph import context
from stoker._src.graph.definition import find_definition
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.importer import import_graph_def
from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.lite.convert import ConverterError, Source
from stoker._src.lite.custom_nodes import import_with_custom_nodes, is_unregistered
from stoker._src.lite.keras.network import build_network
from stoker._src.lite.lowering import Table, Value, Variable, needed_ops
from stoker._src.ops.resources.table_ops import LookupTable
from stoker._src.ops.support.values import to_numpy
from stoker._src.runtime.session import Session
from stoker._src.saved_model import constants, files
from stoker._src.saved_model.loaded import load
from stoker._src.saved_model.loader import load_into
from stoker._src.saved_model.signatures import get_tensor_from_tensor_info

_REFERENCES = ("Variable", "VariableV2")
_VARIABLES = (*_REFERENCES, "VarHandleOp")
_HIDDEN_SIGNATURES = (constants.INIT_OP_SIGNATURE_KEY, constants.TRAIN_OP_SIGNATURE_KEY)


def array_name(tensor: GraphTensor) -> str:
    """The name of a tensor as used for a model's arrays: "x" for "x:0"."""
    return tensor.name.removesuffix(":0")


# ---- sessions -----------------------------------------------------------------------------------------------------


def from_session(
    session: Any, inputs: Iterable[Any], outputs: Iterable[Any], signature: str = "", owned: bool = False
) -> Source:
    """The graph of a session, with the current values of its variables.

    An `owned` session was opened for the conversion alone. Its values are used as they are, without a copy.
    """
    graph = session.graph
    given = [graph.as_graph_element(each, allow_operation=False) for each in inputs]
    wanted = [graph.as_graph_element(each, allow_operation=False) for each in outputs]
    source = _source(given, wanted)
    source.variables = _values(session, given, wanted, owned)
    source.tables = _tables(session, given, wanted)
    source.signature = signature
    return source


def _source(inputs: list[GraphTensor], outputs: list[GraphTensor]) -> Source:
    return Source(inputs, outputs, [array_name(each) for each in inputs], [array_name(each) for each in outputs])


def _values(
    session: Any, inputs: list[GraphTensor], outputs: list[GraphTensor], owned: bool = False
) -> dict[str, Variable]:
    owners = [op for op in needed_ops(outputs, (), dict.fromkeys(inputs)) if op.type in _VARIABLES]
    found = {op: _stored(session, op) if owned else None for op in owners}
    rest = [op for op in owners if found[op] is None]
    fetched = session.run([_read(op) for op in rest]) if rest else []
    values = found | dict(zip(rest, fetched, strict=True))
    return {op.name: Variable(op.name, np.asarray(values[op])) for op in owners}


def _stored(session: Any, op: Operation) -> np.ndarray | None:
    """The memory of a variable as an array, or None where NumPy cannot use it."""
    kind = "resource_variable" if op.type == "VarHandleOp" else "variable"
    name = op.attr("shared_name") or op.name
    state = session._runner.resources.lookup(op.attr("container"), kind, name)
    value = None if state is None else state.value
    if value is None or isinstance(value, np.ndarray):
        return value
    try:
        return value.detach().numpy()
    except (TypeError, RuntimeError):
        return None  # a type of 16 bits that NumPy lacks, or another device


def _read(op: Operation) -> GraphTensor:
    if op.type in _REFERENCES:
        return op.outputs[0]
    for consumer in op.outputs[0].consumers():
        if consumer.type == "ReadVariableOp" and not consumer.control_inputs:
            return consumer.outputs[0]
    raise ConverterError(f"Resource variable '{op.name}' is never read in the graph, so its value cannot be fetched.")


def _tables(
    session: Any, inputs: list[GraphTensor], outputs: list[GraphTensor]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The keys and values of the tables that the outputs need, by the name of the table's node."""
    found = {}
    for op in needed_ops(outputs, (), dict.fromkeys(inputs)):
        if op.type in ("HashTableV2", "HashTable"):
            entries = _entries(op)
            if entries is not None:
                keys, values = session.run(entries)
                found[op.name] = np.asarray(keys), np.asarray(values)
    return found


def _entries(op: Operation) -> list[GraphTensor] | None:
    """The tensors that hold the keys and values of a table: the inputs of its initializer, or an export of its contents in the session."""
    for consumer in op.outputs[0].consumers():
        if consumer.type in ("InitializeTableV2", "LookupTableImportV2", "InitializeTable"):
            return list(consumer.inputs[1:3])
    if op.graph.finalized or op.type != "HashTableV2":
        return None
    export = find_definition("LookupTableExportV2")
    assert export is not None
    with op.graph.as_default():
        return list(export(op.outputs[0], Tkeys=op.attr("key_dtype"), Tvalues=op.attr("value_dtype")))


# ---- frozen graphs ------------------------------------------------------------------------------------------------


def read_graph_def(path: Any) -> Any:
    """The GraphDef of a file, binary or text.

    Raises:
      OSError: The file does not exist or does not contain a GraphDef.
    """
    if not gfile.exists(path):
        raise OSError(f"File '{path}' does not exist.")
    with gfile.GFile(path, "rb") as file:
        data = file.read()
    try:
        return GraphDef.FromString(data)
    except DecodeError:
        pass
    try:
        return text_format.Parse(data.decode(), GraphDef())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise OSError(f"Unable to parse input file '{path}'.") from error


def is_frozen(graph_def: Any) -> bool:
    return not any(node.op in _VARIABLES for node in graph_def.node)


def from_graph_def(graph_def: Any, inputs: Sequence[str], outputs: Sequence[str], shapes: Any) -> Source:
    """A frozen graph from its GraphDef, with the names of its inputs and outputs. Nodes of unknown ops become custom operators.

    Raises:
      ValueError: The graph lacks some of the names, or a shape contradicts it.
    """
    graph = Graph()
    if any(is_unregistered(node.op) for node in graph_def.node):
        import_with_custom_nodes(graph, graph_def, [name for name in outputs if isinstance(name, str)])
    else:
        with graph.as_default():
            import_graph_def(graph_def, name="")
    source = from_graph(graph, tensors_named(graph, inputs), tensors_named(graph, outputs))
    set_shapes(source, shapes)
    return source


def tensors_named(graph: Graph, names: Sequence[str]) -> list[GraphTensor]:
    """The tensors with the given names. "x" means "x:0".

    Raises:
      ValueError: The graph lacks some of the names. The message lists all of them.
    """
    found, missing = [], []
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"Invalid type for a tensor name in the provided graph. Expected type for a tensor name is 'str', instead got type '{type(name)}' for tensor name '{name}'"
            )
        try:
            found.append(graph.get_tensor_by_name(name if ":" in name else f"{name}:0"))
        except (KeyError, ValueError):
            missing.append(name)
    if missing:
        raise ValueError(f"Invalid tensors '{','.join(missing)}' were found.")
    return found


def from_graph(graph: Graph, inputs: list[GraphTensor], outputs: list[GraphTensor]) -> Source:
    """A graph without variables.

    Raises:
      ValueError: It has a table or a variable, and nothing that says what is in it.
    """
    with Session(graph=graph) as session:
        try:
            return from_session(session, inputs, outputs)
        except FailedPreconditionError as error:
            raise ValueError(
                "The graph has a table or a variable and does not say what is in it, because a frozen graph has only what its outputs need: "
                f"convert the model with from_session, after its initializers have run, or with from_saved_model. {error}"
            ) from error


def set_shapes(source: Source, shapes: dict[str, Any] | None) -> None:
    """Sets the shapes of inputs as given by the caller. None leaves an input unchanged.

    Raises:
      ValueError: A name is not an input, or a shape contradicts the graph's.
    """
    if shapes and not hasattr(shapes, "items"):
        raise ValueError(f"Shapes are given as a dictionary by the names of the inputs, found {shapes!r}.")
    for name, sizes in (shapes or {}).items():
        if name not in source.input_names:
            raise ValueError(f"Invalid tensor '{name}' found in tensor shapes map.")
        if sizes is None:
            continue
        tensor = source.inputs[source.input_names.index(name)]
        shape = as_shape(sizes)
        if not shape.compatible(tensor.static_shape):
            raise ValueError(
                f"The shape of tensor '{name}' cannot be changed from {tensor.shape} to {list(shape)}. Shapes must be equal "
                f"or unknown: {tensor.shape} and {list(shape)} are incompatible."
            )
        source.shapes[tensor] = tuple(-1 if size is None else size for size in shape)


# ---- SavedModels --------------------------------------------------------------------------------------------------


def from_saved_model(
    directory: Any, tags: Any, keys: Sequence[str] | None, input_arrays: Any = None, output_arrays: Any = None
) -> list[Source]:
    """The signatures of a SavedModel, each as a graph to convert.

    Args:
      directory: The directory of the model.
      tags: The tags of the meta graph. None selects the only one.
      keys: The signatures. None selects all, of a model that Keras exported the default one.
      input_arrays: Names of tensors to use as inputs instead of the signature's.
      output_arrays: Names of tensors to use as outputs.

    Raises:
      ValueError: A signature or a tensor does not exist.
    """
    if tags is None:
        meta_graphs = files.read_saved_model(directory).meta_graphs
        sets = [set(meta.meta_info_def.tags) for meta in meta_graphs]
        tags = sets[0] if len(sets) == 1 else {constants.SERVING}
    graph = Graph()
    with Session(graph=graph) as session:
        meta = load_into(session, list(tags), directory)
        available = [key for key in sorted(meta.signature_def) if key not in _HIDDEN_SIGNATURES]
        if not available:
            raise ValueError("Only support at least one signature key.")
        if keys is None:
            keys = _default_keys(meta, available)
        for key in keys:
            if key not in meta.signature_def:
                raise ValueError(
                    f"No '{key}' in the SavedModel's SignatureDefs. Possible values are '{','.join(available)}'."
                )
        try:
            sources = [_signature(session, key, meta.signature_def[key], input_arrays, output_arrays) for key in keys]
        except FailedPreconditionError:
            if input_arrays is not None or output_arrays is not None or not meta.object_graph_def.nodes:
                raise
            # `tf.saved_model.save` of a model of Keras 3 makes copies of its variables: the graph restores these, the objects restore all.
            return _signatures_of_objects(directory, tags, keys)
    for source in sources[1:]:
        for name, variable in source.variables.items():
            source.variables[name] = sources[0].variables.setdefault(name, variable)
    return sources


def _signatures_of_objects(directory: Any, tags: Any, keys: Sequence[str]) -> list[Source]:
    """The signatures of a SavedModel's objects."""
    with context.enter_eager():
        loaded = load(directory, list(tags))
        sources = from_concrete_functions([loaded.signatures[key] for key in keys])
    for key, source in zip(keys, sources, strict=True):
        source.signature = key
        source.name = key if key != constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY else "main"
    return sources


def _default_keys(meta: Any, available: list[str]) -> list[str]:
    """All signatures, but one of a model that Keras exported: its endpoint `serve` is there a second time as the default signature."""
    root = meta.object_graph_def.nodes[:1]
    default = constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    is_export = any(child.local_name == "serve" for node in root for child in node.children)
    return [default] if is_export and default in available else available


def _signature(session: Session, key: str, definition: Any, input_arrays: Any, output_arrays: Any) -> Source:
    graph = session.graph
    input_keys, output_keys = sorted(definition.inputs), sorted(definition.outputs)
    inputs = [get_tensor_from_tensor_info(definition.inputs[name], graph) for name in input_keys]
    outputs = [get_tensor_from_tensor_info(definition.outputs[name], graph) for name in output_keys]
    if input_arrays is not None:
        inputs, input_keys = tensors_named(graph, input_arrays), list(input_arrays)
    if output_arrays is not None:
        outputs, output_keys = tensors_named(graph, output_arrays), list(output_arrays)
    for tensor in (*inputs, *outputs):
        if not isinstance(tensor, GraphTensor):
            raise ValueError(
                f"Signature '{key}' has a composite tensor ({type(tensor).__name__}), which TFLite does not have."
            )
    source = from_session(session, inputs, outputs, signature=key, owned=True)
    source.name = key if key != constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY else "main"
    source.signature_inputs, source.signature_outputs = input_keys, output_keys
    return source


# ---- Keras --------------------------------------------------------------------------------------------------------


def from_keras(
    model: KerasModel, custom_objects: Any, input_arrays: Any = None, output_arrays: Any = None, signature: bool = False
) -> Source:
    """A model as Keras describes it."""
    network = build_network(model, custom_objects)
    inputs = network.inputs if input_arrays is None else tensors_named(network.graph, input_arrays)
    outputs = network.outputs if output_arrays is None else tensors_named(network.graph, output_arrays)
    with Session(graph=network.graph) as session:
        session.run([each.initializer for each in network.graph.get_collection("variables")])
        source = from_session(session, inputs, outputs, owned=True)
    source.controls = network.updates
    if signature:
        source.signature = constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        source.signature_inputs = list(source.input_names)
        source.signature_outputs = [name.rpartition("/")[0] or name for name in source.output_names]
        if len(set(source.signature_outputs)) < len(outputs):
            source.signature_outputs = [f"output_{position}" for position in range(len(outputs))]
    return source


def described_model(model: Any) -> tuple[KerasModel, dict[str, Any]] | None:
    """What an object of Keras itself, of any backend, says about itself, and the functions of its Lambda layers by their names. None if it is
    no such object.

    Raises:
      ValueError: The model is a class of the user, whose layers are not connected.
    """
    if not hasattr(model, "get_config") or not hasattr(model, "layers") or isinstance(model.layers, str):
        return None
    weights: dict[str, Weights] = {}
    functions: dict[str, Any] = {}

    def collect(layers: Any, into: dict[str, Weights]) -> None:
        for layer in layers:
            inner = getattr(layer, "layers", None)
            if isinstance(inner, (list, tuple)):
                own = Weights()
                collect(inner, own.layers)
            else:
                names = [str(getattr(each, "path", None) or each.name) for each in layer.weights]
                values = [_values_of(each) for each in layer.weights]
                own = Weights({name.removesuffix(":0"): value for name, value in zip(names, values, strict=True)})
            into[layer.name] = own
            if type(layer).__name__ == "Lambda" and callable(getattr(layer, "function", None)):
                functions[layer.name] = layer.function

    collect(model.layers, weights)
    try:
        described = json.loads(model.to_json())
    except (NotImplementedError, TypeError, ValueError) as error:
        raise ValueError(_SUBCLASSED.format(type(model).__name__)) from error
    if "layers" not in described["config"] and not isinstance(described["config"], list):
        raise ValueError(_SUBCLASSED.format(type(model).__name__))
    config = {"class_name": type(model).__name__, "config": described["config"]}
    return KerasModel(config, weights, str(described.get("keras_version", ""))), functions


_SUBCLASSED = (
    "The model of the class {} is neither Sequential nor functional, so it does not describe how its layers are connected. Save it with "
    "model.export(...) or tf.saved_model.save(...) and use from_saved_model, or pass a concrete function to from_concrete_functions."
)


def _values_of(variable: Any) -> np.ndarray:
    return np.asarray(variable.numpy() if hasattr(variable, "numpy") else variable)


# ---- concrete functions -------------------------------------------------------------------------------------------


def from_concrete_functions(functions: Sequence[Any]) -> list[Source]:
    """Traced functions, with the current values of the variables they use."""
    shared: dict[int, Variable | Table] = {}
    return [_function_source(each, shared, len(functions) == 1) for each in functions]


def _function_source(function: Any, shared: dict[int, Variable | Table], alone: bool) -> Source:
    body = function._function
    captured_count = len(function.captured_inputs)
    arguments = body.inputs[: len(body.inputs) - captured_count]
    source = _source(arguments, list(body.outputs))
    for inner, value in zip(body.inputs[len(arguments) :], function.captured_inputs, strict=True):
        source.captured[inner] = _captured(inner, value, shared)
    source.controls = list(body.control_outputs)
    source.signature = constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY if alone else _plain_name(function.name)
    source.name = "main" if alone else source.signature
    source.signature_inputs = _argument_names(function, source)
    source.signature_outputs = _result_names(function, source)
    return source


def _plain_name(name: str) -> str:
    return name.removeprefix("__inference_").rpartition("_")[0] or name


def _argument_names(function: Any, source: Source) -> list[str]:
    specs = [leaf for leaf in nest.flatten(function.structured_input_signature) if isinstance(leaf, TensorSpec)]
    names = [spec.name for spec in specs]
    if len(names) != len(source.inputs) or None in names or len(set(names)) != len(names):
        return list(source.input_names)
    return [str(name) for name in names]


def _result_names(function: Any, source: Source) -> list[str]:
    structure = function.structured_outputs
    if isinstance(structure, dict) and len(structure) == len(source.outputs):
        return sorted(structure)
    return [f"output_{position}" for position in range(len(source.outputs))]


def _captured(inner: GraphTensor, value: Any, shared: dict[int, Variable | Table]) -> Value:
    if inner.dtype is not dtypes.resource:
        return np.asarray(value.numpy())
    # Functions of a loaded SavedModel know their variables from what they are called with alone.
    reference = getattr(inner, "variable", None) or getattr(value, "variable", None)
    variable = reference() if reference is not None else None
    state = getattr(value, "_value", None)
    if variable is None and isinstance(state, LookupTable) and state.static:
        if id(state) not in shared:
            keys, values = (to_numpy(each) for each in state.export())
            shared[id(state)] = Table(_unused(state.name, shared), state.key_dtype, state.value_dtype, keys, values)
        return shared[id(state)]
    if variable is None:
        raise ConverterError(
            f"The function captures '{inner.name}', which is neither a tensor nor a variable that still exists, nor a table with fixed entries."
        )
    if id(variable) not in shared:
        name = _unused(variable.name.partition(":")[0], shared)
        shared[id(variable)] = Variable(name, np.asarray(variable.numpy()))
    return shared[id(variable)]


def _unused(name: str, shared: dict[int, Variable | Table]) -> str:
    """A name that nothing else has: the interpreter finds variables and tables by their names, of which eager mode gives several the same."""
    used = {each.name for each in shared.values()}
    candidates = itertools.chain([name], (f"{name}_{n}" for n in itertools.count(1)))
    return next(each for each in candidates if each not in used)
