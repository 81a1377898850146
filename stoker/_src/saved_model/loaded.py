"""`tf.saved_model.load`: a SavedModel for eager mode.

The objects of a TensorFlow 2 model are rebuilt (`object_loader.py`). A 1.x model has no objects. Its graph is imported into a graph and a
session of its own, its variables are restored and its initializers run. Each signature feeds that session and fetches from it, so
1.x signatures compute values but are not differentiable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.formats.filesystems import path_text
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.graph import Graph
from stoker._src.graph.scopes import init_scope
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.trackable import Trackable
from stoker._src.graph.tracked_structures import AutoTrackable
from stoker._src.graph.type_spec import type_spec_from_value
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.ragged.ragged_value import RaggedTensorValue
from stoker._src.runtime.session import Session
from stoker._src.saved_model import constants, files
from stoker._src.saved_model.loader import asset_path, load_into
from stoker._src.saved_model.object_loader import ObjectLoader
from stoker._src.saved_model.options import DEFAULT_LOAD, LoadOptions
from stoker._src.saved_model.signatures import get_tensor_from_tensor_info


class Signature(Trackable):
    """One signature of a loaded model: a function from tensors by name to a dictionary of tensors."""

    def __init__(self, key: str, definition: Any, graph: Graph, session: Session) -> None:
        self.name = f"signature_wrapper_{key}"
        self._session = session
        self._inputs = _tensors(definition.inputs, graph)
        self._outputs = _tensors(definition.outputs, graph)

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
        feeds: dict[Any, Any] = {}
        for name, tensor in self._inputs.items():
            if isinstance(tensor, RaggedTensor):
                parts = nest.flatten([tensor, kwargs[name]], expand_composites=True)
                count = len(parts) // 2
                feeds.update(zip(parts[:count], [part.numpy() for part in parts[count:]], strict=True))
            else:
                feeds[tensor] = _fed(kwargs[name], tensor)
        values = self._session.run(self._outputs, feeds)
        return {name: _eager(value) for name, value in values.items()}

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


class LoadedModel(Trackable):
    """What `tf.saved_model.load` returns.

    Attributes:
        signatures: the model's signatures by name.
        graph: the graph of the model.
        tensorflow_version: of the TensorFlow that wrote it.
    """

    def __init__(self, meta: Any, graph: Graph, session: Session) -> None:
        self.graph, self._session = graph, session
        self.tensorflow_version = meta.meta_info_def.tensorflow_version
        hidden = (constants.INIT_OP_SIGNATURE_KEY, constants.TRAIN_OP_SIGNATURE_KEY)
        self.signatures = _Signatures(
            {
                key: Signature(key, meta.signature_def[key], graph, session)
                for key in sorted(meta.signature_def)
                if key not in hidden
            }
        )

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
        A 1.x model has signatures only.

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
