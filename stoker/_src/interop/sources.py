"""The sources of `to_torch`: a graph, and the values of its variables."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

import numpy as np

from stoker._src.base.errors import FailedPreconditionError, NotFoundError
from stoker._src.formats import gfile
from stoker._src.formats.checkpoints import Reader, open_checkpoint
from stoker._src.formats.filesystems import path_text
from stoker._src.formats.graph_files import read_graph_file
from stoker._src.formats.protos import GraphDef, MetaGraphDef
from stoker._src.formats.tensor_bundle import index_filename
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.importer import import_graph_def
from stoker._src.graph.interchange.meta_graph import import_scoped_meta_graph
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support.values import to_numpy
from stoker._src.runtime.session import Session, get_default_session
from stoker._src.saved_model.files import contains_saved_model, meta_graph_of, read_saved_model
from stoker._src.saved_model.loader import load_into
from stoker._src.train.checkpoints.reader import checkpoint_filename
from stoker._src.train.checkpoints.saver import object_keys
from stoker._src.train.checkpoints.state import has_checkpoint, latest_checkpoint

_DEFAULT_SIGNATURE = "serving_default"


class Source:
    """A graph, the values of its variables, and the signature that names its inputs and outputs."""

    def __init__(self, graph: Graph, session: Any = None, checkpoint: str | None = None, meta: Any = None) -> None:
        self.graph = graph
        self.meta = meta
        self._session = session
        self._stack = ExitStack()
        self._reader: Reader | None = None
        self._keys: dict[str, str] = {}
        if checkpoint is not None:
            path = checkpoint_filename(checkpoint)
            self._reader = self._stack.enter_context(open_checkpoint(path))
            self._keys = object_keys(path) or {}
        variables = [
            *graph.get_collection(GraphKeys.GLOBAL_VARIABLES),
            *graph.get_collection(GraphKeys.LOCAL_VARIABLES),
        ]
        self._variables = {each.op.name: each for each in variables if hasattr(each, "op")}
        trainable = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        self._trainable = {each.op.name for each in trainable if hasattr(each, "op")} if self._variables else None

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.close()

    def keep(self, context: Any) -> Any:
        """Enters a context that lasts as long as the source."""
        return self._stack.enter_context(context)

    def is_trainable(self, op: Operation) -> bool:
        """Whether a variable becomes a parameter. In a graph without collections, all floating-point variables do."""
        return self._trainable is None or op.name in self._trainable

    def value(self, op: Operation) -> np.ndarray:
        """The value of a variable.

        Raises:
            FailedPreconditionError: the variable has no value.
        """
        if self._reader is not None:
            return self._read(op)
        if self._session is not None:
            worker = getattr(self._session._runner, "_worker", None)
            if worker is None:
                raise NotImplementedError("to_torch cannot read variables of a remote session: give a checkpoint.")
            definition = op.definition
            keywords = {name: op.attrs[name] for name in definition.kernel_attrs}
            state = definition.kernel_fn(**keywords, ctx=worker.node_context(op))  # type: ignore[misc]
            if state.value is not None:
                return np.array(to_numpy(state.value))
        raise FailedPreconditionError(
            None,
            op,
            f"The variable {op.name} has no value. Give to_torch a session in which it is initialized (session=...), or a checkpoint "
            "(checkpoint=...).",
        )

    def _read(self, op: Operation) -> np.ndarray:
        assert self._reader is not None
        variable = self._variables.get(op.name)
        info = None if variable is None else variable._get_save_slice_info()
        name = op.name if info is None else info.full_name
        name = name if name in self._reader else self._keys.get(name, name)
        if name not in self._reader:
            names = sorted(self._reader.keys())
            raise NotFoundError(
                None,
                op,
                f"Key {name} not found in checkpoint. It holds {len(names)} tensors: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}.",
            )
        value = self._reader.read(name)
        if info is not None:
            cut = tuple(slice(start, start + size) for start, size in zip(info.var_offset, info.var_shape))
            value = value[cut]
        return value

    def signature(self, key: str | None) -> Any:
        """The SignatureDef with the given key. Without a key it is the default one, or the only one.

        Raises:
            ValueError: the signature does not exist.
        """
        known = (
            {}
            if self.meta is None
            else {k: v for k, v in self.meta.signature_def.items() if v.outputs and not k.startswith("__")}
        )
        if key is None:
            key = _DEFAULT_SIGNATURE if _DEFAULT_SIGNATURE in known or len(known) != 1 else next(iter(known))
        if key not in known:
            what = f"has the signatures {sorted(known)}" if known else "has no signatures"
            raise ValueError(f"There is no signature {key!r}: the model {what}. Name the inputs and outputs instead.")
        return known[key]


def open_source(source: Any, session: Any, checkpoint: Any, tags: Any) -> Source:
    """Opens the argument of `to_torch`: a Graph, Session, message or path."""
    checkpoint = None if checkpoint is None else path_text(checkpoint)
    if isinstance(source, Graph):
        if session is None and checkpoint is None:
            session = get_default_session()
            session = session if session is not None and session.graph is source else None
        return Source(source, session, checkpoint)
    if hasattr(source, "run") and isinstance(getattr(source, "graph", None), Graph):
        return Source(source.graph, None if checkpoint else source, checkpoint)
    if isinstance(source, GraphDef):
        return Source(_imported(source), session, checkpoint)
    if isinstance(source, MetaGraphDef):
        return Source(_imported_meta(source), session, checkpoint, source)
    if isinstance(source, (str, bytes, os.PathLike)):
        return _open_path(path_text(source), checkpoint, tags)
    raise TypeError(
        f"to_torch takes a tf.Graph, a tf.Session, a GraphDef, a MetaGraphDef or a path, not {type(source).__name__}."
    )


def _open_path(path: str, checkpoint: str | None, tags: Any) -> Source:
    if gfile.isdir(path):
        if contains_saved_model(path):
            return _open_saved_model(path, tags, checkpoint)
        newest = latest_checkpoint(path)
        if newest is None:
            raise NotFoundError(None, None, f"The directory {path} holds neither a SavedModel nor a checkpoint.")
        path = newest
    if gfile.exists(index_filename(path)) or not gfile.exists(path):
        if not gfile.exists(path + ".meta"):
            raise NotFoundError(None, None, f"{path}.meta does not exist: a checkpoint alone does not hold the graph.")
        checkpoint, path = checkpoint or path, path + ".meta"
    found = read_graph_file(path)
    if isinstance(found, GraphDef):
        return Source(_imported(found), None, checkpoint)
    if not isinstance(found, MetaGraphDef):
        raise NotFoundError(None, None, f"{path} is the file of a SavedModel: give its directory.")
    beside = path.removesuffix(".meta")
    if checkpoint is None and beside != path and has_checkpoint(beside):
        checkpoint = beside
    return Source(_imported_meta(found), None, checkpoint, found)


def _open_saved_model(path: str, tags: Any, checkpoint: str | None) -> Source:
    model = read_saved_model(path)
    if tags is None:
        available = [sorted(meta.meta_info_def.tags) for meta in model.meta_graphs]
        tags = ["serve"] if ["serve"] in available or len(available) != 1 else available[0]
    meta = meta_graph_of(model, tags)
    graph = Graph()
    session = Session(graph=graph)
    try:
        with graph.as_default():
            load_into(session, tags, path)
        source = Source(graph, None if checkpoint else session, checkpoint, meta)
    except BaseException:
        session.close()
        raise
    source.keep(session)
    return source


def _imported(graph_def: Any) -> Graph:
    graph = Graph()
    with graph.as_default():
        import_graph_def(graph_def, name="")
    return graph


def _imported_meta(meta: Any) -> Graph:
    graph = Graph()
    with graph.as_default():
        import_scoped_meta_graph(meta, graph=graph)
    return graph
