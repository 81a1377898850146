"""`tf.saved_model.load`: a SavedModel for eager mode.

The objects of a TensorFlow 2 model are rebuilt (`object_loader.py`). A 1.x model has no objects. Its graph is imported into a graph and a
session of its own, its variables are restored and its initializers run. Each signature feeds that session and fetches from it.

`variables` and `prune` of a 1.x model, and calls under a gradient tape, need variables of eager mode. They are made from the session's when
they are first needed. From then on signatures are functions of them: the part of the graph that a function needs is imported into it, with the
variables in the place of the graph's own. A part that updates variables or uses tables cannot be imported so; it runs in the session, and is not
differentiable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.formats.filesystems import path_text
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.graph import Graph
from stoker._src.graph.graph_util import extract_sub_graph
from stoker._src.graph.interchange.importer import import_graph_def
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.planning import Trait
from stoker._src.graph.scopes import init_scope
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.graph.tapes import tapes
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.trackable import Trackable
from stoker._src.graph.tracked_structures import AutoTrackable
from stoker._src.graph.type_spec import type_spec_from_value
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.ragged.ragged_value import RaggedTensorValue
from stoker._src.ops.variables.variables import Variable
from stoker._src.runtime.functions.wrap_function import WrappedFunction, wrap_function
from stoker._src.runtime.plan.ordering import is_handle
from stoker._src.runtime.session import Session
from stoker._src.saved_model import constants, files
from stoker._src.saved_model.loader import asset_path, load_into
from stoker._src.saved_model.object_loader import ObjectLoader
from stoker._src.saved_model.options import DEFAULT_LOAD, LoadOptions
from stoker._src.saved_model.signatures import get_tensor_from_tensor_info


class Signature(Trackable):
    """One signature of a loaded model: a function from tensors by name to a dictionary of tensors."""

    def __init__(self, key: str, definition: Any, model: LoadedModel) -> None:
        self.name = f"signature_wrapper_{key}"
        self._model = model
        self._inputs = _tensors(definition.inputs, model.graph)
        self._outputs = _tensors(definition.outputs, model.graph)
        self._function: WrappedFunction | None = None
        self._has_function = all(isinstance(each, Tensor) for each in (*self._inputs.values(), *self._outputs.values()))

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables of the model."""
        return tuple(self._model.variables)

    @property
    def structured_input_signature(self) -> tuple[tuple[()], dict[str, Any]]:
        """The arguments: none by position, and a TensorSpec for each name."""
        return (), {name: _spec(tensor, name) for name, tensor in self._inputs.items()}

    @property
    def structured_outputs(self) -> dict[str, Any]:
        """A TensorSpec for each output."""
        return {name: _spec(tensor, name) for name, tensor in self._outputs.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Computes the outputs, by name.

        Raises:
            TypeError: other arguments than the signature has.
            NotImplementedError: where a graph is being built.
        """
        if not context.executing_eagerly():
            raise NotImplementedError(
                "Signatures of a loaded SavedModel run in eager mode; in a graph, load it by tf.compat.v1.saved_model.load."
            )
        if args:
            (first, *more) = args
            if more or len(self._inputs) != 1 or kwargs:
                raise TypeError(
                    f"{self.name} takes its arguments by name: {sorted(self._inputs)}; one alone may go without."
                )
            kwargs = {next(iter(self._inputs)): first}
        if kwargs.keys() != self._inputs.keys():
            raise TypeError(f"{self.name} takes the arguments {sorted(self._inputs)}, not {sorted(kwargs)}.")
        if self._has_function and (tapes.active or self._model.has_variables) and self._make_function():
            assert self._function is not None
            values = [convert_to_tensor(kwargs[name], self._inputs[name].dtype.base_dtype) for name in self._inputs]
            return self._function(*values)
        feeds: dict[Any, Any] = {}
        for name, tensor in self._inputs.items():
            if isinstance(tensor, RaggedTensor):
                parts = nest.flatten([tensor, kwargs[name]], expand_composites=True)
                count = len(parts) // 2
                feeds.update(zip(parts[:count], [part.numpy() for part in parts[count:]], strict=True))
            else:
                feeds[tensor] = _fed(kwargs[name], tensor)
        return {name: _eager(value) for name, value in self._model.run(self._outputs, feeds).items()}

    def _make_function(self) -> bool:
        """Returns whether the signature is a function of the model's variables."""
        if self._function is None:
            self._function = self._model.function(list(self._inputs.values()), self._outputs, self.name)
            self._has_function = self._function is not None
        return self._has_function

    def __repr__(self) -> str:
        return f"<signature {self.name}: {sorted(self._inputs)} -> {sorted(self._outputs)}>"


def _tensors(infos: Any, graph: Graph) -> dict[str, Any]:
    with graph.as_default():  # sparse and ragged tensors are put together from those of the graph
        return {name: get_tensor_from_tensor_info(infos[name], graph) for name in sorted(infos)}


def _spec(tensor: Any, name: str) -> Any:
    if isinstance(tensor, RaggedTensor):
        return type_spec_from_value(tensor)
    return TensorSpec(tensor.get_shape(), tensor.dtype, name=name)


def _fed(value: Any, tensor: Any) -> Any:
    if is_sparse(tensor):
        given = SparseTensor.from_value(value)
        return tuple(part.numpy() for part in (given.indices, given.values, given.dense_shape))  # pyright: ignore[reportAttributeAccessIssue]
    return convert_to_tensor(value, tensor.dtype.base_dtype).numpy()  # type: ignore[attr-defined]


def _eager(value: Any) -> Any:
    if isinstance(value, RaggedTensorValue):
        return RaggedTensor.from_nested_row_splits(value.flat_values, value.nested_row_splits)
    return SparseTensor.from_value(value) if is_sparse(value) else convert_to_tensor(value)


class _Signatures(Mapping[str, Signature]):
    def __init__(self, found: dict[str, Signature]) -> None:
        self._found = found

    def __getitem__(self, key: str) -> Signature:
        return self._found[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"_SignatureMap({self._found})"


def _has_state(op: Operation) -> bool:
    """Whether an op stands for a variable, a table, a queue or another resource."""
    return any(is_handle(tensor) for tensor in op.outputs) and not op.inputs


def _updates(op: Operation) -> bool:
    return bool(op.definition.traits & Trait.WRITES)


class LoadedModel(Trackable):
    """What `tf.saved_model.load` returns.

    Attributes:
        signatures: the model's signatures by name.
        graph: the graph of the model.
        tensorflow_version: of the TensorFlow that wrote it.
    """

    def __init__(self, meta: Any, graph: Graph, session: Session) -> None:
        self.graph, self._session = graph, session
        self._variables: list[tuple[Any, Variable]] | None = None  # of the graph, and of eager mode
        self.tensorflow_version = meta.meta_info_def.tensorflow_version
        hidden = (constants.INIT_OP_SIGNATURE_KEY, constants.TRAIN_OP_SIGNATURE_KEY)
        self.signatures = _Signatures(
            {
                key: Signature(key, meta.signature_def[key], self)
                for key in sorted(meta.signature_def)
                if key not in hidden
            }
        )

    @property
    def has_variables(self) -> bool:
        """Whether the variables of eager mode have been made."""
        return self._variables is not None

    @property
    def variables(self) -> list[Variable]:
        """The variables, as those of eager mode. Signatures use them, so that assigning to one changes the model."""
        return [variable for _, variable in self._pairs()]

    def _pairs(self) -> list[tuple[Any, Variable]]:
        if self._variables is None:
            found = self.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
            values = self._session.run(found)
            with init_scope():
                made = [
                    Variable(value, name=each.op.name, trainable=each.trainable, use_resource=True)
                    for each, value in zip(found, values)
                ]
            self._variables = list(zip(found, made))
        return self._variables

    def prune(self, feeds: Any, fetches: Any, name: str | None = None) -> WrappedFunction:
        """Returns a function for a part of the graph, from `feeds` to `fetches`. It is differentiable.

        Args:
            feeds: a structure of tensors of `graph` (or their names) that become the arguments.
            fetches: a structure of its tensors (or their names).
            name: the name of the function.

        Raises:
            KeyError, ValueError: a feed or fetch is not in the graph.
            NotImplementedError: this part of the graph updates variables or uses tables.
        """
        arguments = [self.graph.as_graph_element(feed, True, False) for feed in nest.flatten(feeds)]
        results = nest.map_structure(lambda fetch: self.graph.as_graph_element(fetch, True, False), fetches)
        function = self.function(arguments, results, name or "pruned")
        if function is None:
            raise NotImplementedError(
                f"The part of the graph that {fetches} need updates variables or uses tables or queues: run it by "
                "tf.compat.v1.saved_model.load in a session."
            )
        return function

    def function(self, arguments: list[Tensor], results: Any, name: str) -> WrappedFunction | None:
        """Returns a part of the graph as a function of the variables of eager mode; None if it cannot be one."""
        flat = nest.flatten(results)
        part = extract_sub_graph(self.graph.as_graph_def(), list(dict.fromkeys(each.op.name for each in flat)))
        pairs = {each.op.name: (each, variable) for each, variable in self._pairs()}
        nodes = [self.graph.get_operation_by_name(node.name) for node in part.node]
        if any(_has_state(op) and op.name not in pairs for op in nodes) or any(map(_updates, nodes)):
            return None

        def body(*values: Any) -> Any:
            inner: Any = context.get_default_graph()
            replaced = {tensor.name: value for tensor, value in zip(arguments, values)}
            for op in nodes:
                if op.name in pairs:
                    variable = pairs[op.name][1]
                    is_resource = op.outputs[0].dtype is dtypes.resource
                    replaced[f"{op.name}:0"] = inner.capture(variable.handle) if is_resource else variable.read_value()
            found = import_graph_def(part, input_map=replaced, return_elements=[each.name for each in flat], name="")
            return nest.pack_sequence_as(results, found)

        specs = [TensorSpec(each.get_shape(), each.dtype.base_dtype) for each in arguments]
        return wrap_function(body, specs, name)

    def run(self, fetches: Any, feeds: dict[Any, Any]) -> Any:
        """Runs a part of the graph in the session, with the values of the variables of eager mode where there are some."""
        for each, variable in self._variables or ():
            each.load(variable.numpy(), self._session)
        values = self._session.run(fetches, feeds)
        if self._variables:
            for (_, variable), value in zip(self._variables, self._session.run([each for each, _ in self._variables])):
                variable.assign(value)
        return values

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"A loaded 1.x SavedModel has signatures ({sorted(self.__dict__.get('signatures', ()))}) and no objects: it has no "
            f"attribute {name!r}."
        )


@export(v2="saved_model.load", v1="saved_model.load_v2")
def load(export_dir: Any, tags: Any = None, options: LoadOptions | None = None) -> Any:
    """Loads a SavedModel for eager mode.

        model = tf.saved_model.load("export")
        model.signatures["serving_default"](x=[[1.0, 2.0]])["y"]
        model(x); model.kernel; model.layers[0]         # the objects of a TensorFlow 2 model

    Args:
        export_dir: the directory.
        tags: the tags of the meta graph; may be omitted if there is only one.
        options: how to read it.

    Returns:
        The object that was saved: its variables, containers and functions are attributes, and its signatures are in `signatures`.
        A 1.x model has signatures, `variables` and `prune`.

    Raises:
        OSError: there is no model.
        ValueError: there are several meta graphs, and no tags.
        RuntimeError: there is no meta graph with these tags.
        DataLossError: the model is damaged.
        NotImplementedError: a graph is being built.
    """
    options = options or DEFAULT_LOAD
    directory = path_text(export_dir)
    model = files.read_saved_model(directory)
    if tags is None:
        if len(model.meta_graphs) != 1:
            sets = [sorted(meta.meta_info_def.tags) for meta in model.meta_graphs]
            raise ValueError(
                "Importing a SavedModel with `tf.saved_model.load` requires a `tags=` argument if there is more than one "
                f"MetaGraph. Got `tags=None`, but there are {len(sets)} MetaGraphs in the SavedModel with tag sets: {sets}. "
                "Pass a `tags=` argument to load this SavedModel."
            )
        tags = list(model.meta_graphs[0].meta_info_def.tags)
    meta = files.meta_graph_of(model, tags)
    if meta.object_graph_def.nodes:
        return _load_objects(meta, directory, options)
    graph = Graph()
    session = Session(graph=graph)
    return LoadedModel(load_into(session, tags, directory), graph, session)


def _load_objects(meta: Any, directory: str, options: LoadOptions) -> Any:
    with init_scope():
        if not context.executing_eagerly():
            raise NotImplementedError(
                "`tf.saved_model.load` works in eager mode; in a graph, load a SavedModel by tf.compat.v1.saved_model.load."
            )
    assets = [asset_path(each.filename, directory) for each in meta.asset_file_def]
    loader = ObjectLoader(meta, directory, assets, options)
    root = loader.load()
    if isinstance(root, AutoTrackable):
        root.tensorflow_version = meta.meta_info_def.tensorflow_version
        root.tensorflow_git_version = meta.meta_info_def.tensorflow_git_version
        if options.experimental_load_function_aliases:
            names: dict[str, list[str]] = {}
            for name, alias in meta.meta_info_def.function_aliases.items():
                names.setdefault(alias, []).append(name)
            root.function_aliases = {alias: loader.concrete_functions(each) for alias, each in sorted(names.items())}
    return root
