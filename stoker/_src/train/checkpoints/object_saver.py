"""Writes an object graph to a checkpoint and reads it back, in eager mode or by ops of a graph."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from google.protobuf import message

from stoker._src.base import dtypes
from stoker._src.base.errors import DataLossError
from stoker._src.formats.filesystems import one_commit, path_text
from stoker._src.formats.protos import TrackableObjectGraph
from stoker._src.graph import context
from stoker._src.graph.saveable import SaveableObject
from stoker._src.graph.scopes import device, init_scope
from stoker._src.ops.array import constants, inplace
from stoker._src.ops.io import checkpoints
from stoker._src.train.checkpoints.object_graph import OBJECT_GRAPH_KEY, ObjectGraph, Saved
from stoker._src.train.checkpoints.options import CheckpointOptions
from stoker._src.train.checkpoints.reader import CheckpointReader
from stoker._src.train.checkpoints.restoration import PythonSaveable, Restoration, RestoreOps, restore_ops
from stoker._src.train.checkpoints.saver_ops import texts
from stoker._src.train.checkpoints.statuses import (
    CheckpointLoadStatus,
    InitializationOnlyStatus,
    LoadStatus,
    NameBasedSaverStatus,
    session_or_default,
)

_NAMES_UIDS = itertools.count()


class _GraphOps:
    """The ops of one saver in one graph."""

    def __init__(self) -> None:
        self.restoring = RestoreOps()
        self.saved: tuple[Any, ...] | None = None  # what the save op below saves
        self.save: Any = None
        self.path: Any = None
        self.description: Any = None
        self.python: dict[Any, Callable[[], Any]] = {}  # tensors that are fed with what Python holds


class Background:
    """Writes one checkpoint at a time while the program continues."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, write: Callable[[], Any]) -> None:
        self.wait()

        def guarded() -> None:
            try:
                write()
            except BaseException as error:
                self._error = error

        # Not a daemon thread: the program must not end before its checkpoint is written.
        self._thread = threading.Thread(target=guarded, name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Waits for the checkpoint that is being written, and raises its error if it failed."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error


class ObjectSaver:
    """Saves and restores everything that can be reached from a root.

    Args:
        root: the root.
        attached: returns further children of the root, by name.
        children: returns the children of an object, as `ObjectGraph` takes it.
    """

    def __init__(
        self, root: Any, attached: Callable[[], dict[str, Any]] = dict, children: Callable[..., Any] | None = None
    ) -> None:
        self._root, self._attached, self._children = root, attached, children
        self._by_graph: weakref.WeakKeyDictionary[Any, _GraphOps] = weakref.WeakKeyDictionary()
        self.background = Background()

    def _ops(self) -> _GraphOps:
        return self._by_graph.setdefault(context.get_default_graph(), _GraphOps())

    # -- saving --------------------------------------------------------------------------------------------------

    def save(
        self,
        path: str,
        session: Any,
        options: CheckpointOptions,
        record: Callable[[], Any] = lambda: None,
        clean_up: Callable[[], Any] = lambda: None,
    ) -> str:
        """Writes a checkpoint to exactly `path`.

        Args:
            path: the path.
            session: in a graph, the session that holds the variables.
            options: how to write it. Their callbacks are called at the end.
            record: writes files that appear with the checkpoint, after it.
            clean_up: is called when the checkpoint is on disk, and may delete others.
        """
        graph = ObjectGraph(self._root, self._attached(), self._children)
        values = graph.values()
        description = graph.message(values).SerializeToString(deterministic=True)

        def finish() -> None:
            clean_up()
            options.written(path)

        if not context.executing_eagerly():
            with one_commit(path):
                self._save_by_ops(path, values, description, session_or_default(session))
                record()
            finish()
            return path
        names, slices, tensors = _tensors([value.saveable() for value in values])
        names.append(OBJECT_GRAPH_KEY)
        slices.append("")
        tensors.append(constants.constant(description, dtypes.string))
        if options.enable_async:
            # The program may assign to variables while the checkpoint is written.
            tensors = [inplace.DEEP_COPY(each) for each in tensors]

        def write() -> None:
            # A new thread does not inherit the program's execution mode.
            with one_commit(path):
                with context.enter_eager(), device(options.experimental_io_device or "/device:CPU:0"):
                    checkpoints.SAVE_V2(path, texts(names), texts(slices), tensors)
                record()
            finish()

        if options.enable_async:
            self.background.start(write)
        else:
            self.background.wait()
            write()
        return path

    def _save_by_ops(self, path: str, values: list[Saved], description: bytes, session: Any) -> None:
        ops = self._ops()
        wanted = tuple((value.key, id(value.owner)) for value in values)
        if ops.saved != wanted:
            ops.path = constants.constant(b"model", dtypes.string)
            ops.description = constants.constant(b"", dtypes.string)
            ops.python = {}
            saveables = [value.saveable() for value in values]
            names, slices, tensors = [], [], []
            for saveable in saveables:
                if isinstance(saveable, PythonSaveable):
                    fed = constants.constant(b"", dtypes.string)
                    ops.python[fed] = saveable.specs[0]._make  # type: ignore[assignment]
                    saved = [fed]
                else:
                    saved = [spec.tensor for spec in saveable.specs]
                names += [spec.name for spec in saveable.specs]
                slices += [spec.slice_spec for spec in saveable.specs]
                tensors += saved
            with device("/device:CPU:0"):
                ops.save = checkpoints.SAVE_V2(
                    ops.path, texts([*names, OBJECT_GRAPH_KEY]), texts([*slices, ""]), [*tensors, ops.description]
                )
            ops.saved = wanted
        feeds = {ops.path: path, ops.description: description}
        feeds.update({tensor: make() for tensor, make in ops.python.items()})
        session.run(ops.save, feeds)

    # -- restoring -----------------------------------------------------------------------------------------------

    def restore(self, save_path: Any, options: CheckpointOptions) -> LoadStatus:
        """Restores objects from a checkpoint. In a graph, it creates the ops that do so.

        Raises:
            NotFoundError: the checkpoint does not exist.
            DataLossError: the checkpoint is damaged.
        """
        if save_path is None:
            return InitializationOnlyStatus(self._root, self._attached())
        self.background.wait()
        path = path_text(save_path)
        reader = CheckpointReader(path)
        if not reader.has_tensor(OBJECT_GRAPH_KEY):
            return self._restore_names(path, reader)
        try:
            graph = TrackableObjectGraph.FromString(reader.get_tensor(OBJECT_GRAPH_KEY))
        except message.DecodeError as error:
            raise DataLossError(None, None, f"{path}: the description of its objects is damaged: {error}") from error
        _check(graph, path)
        with init_scope():
            cache = None if context.executing_eagerly() else self._ops().restoring
        attached = self._attached()
        restoration = Restoration(
            graph, path, reader, attached, cache, lambda: constants.constant(b"model", dtypes.string), options
        )
        restoration.restore(self._root, 0)
        return CheckpointLoadStatus(restoration, self._root, attached)

    def _restore_names(self, path: str, reader: CheckpointReader) -> NameBasedSaverStatus:
        restoration = NamesRestoration(path, reader)
        attached = self._attached()
        for part in attached.values():
            restoration.restore(part)
        restoration.restore(self._root)
        return NameBasedSaverStatus(restoration, self._root, attached)


def _check(graph: Any, path: str) -> None:
    """Raises DataLossError if the graph refers to nodes that do not exist."""
    count = len(graph.nodes)
    for node in graph.nodes:
        numbers = [child.node_id for child in node.children]
        for slot in node.slot_variables:
            numbers += [slot.original_variable_node_id, slot.slot_variable_node_id]
        if any(not 0 <= number < count for number in numbers):
            raise DataLossError(None, None, f"{path}: the description of its objects names nodes that are not there")
    if not count:
        raise DataLossError(None, None, f"{path}: the description of its objects is empty")


def _tensors(saveables: list[SaveableObject]) -> tuple[list[str], list[str], list[Any]]:
    specs = [spec for saveable in saveables for spec in saveable.specs]
    return [spec.name for spec in specs], [spec.slice_spec for spec in specs], [spec.tensor for spec in specs]


class NamesRestoration:
    """One `restore` of a name-based checkpoint (`tf.train.Saver`) into objects. Variables are matched by name.

    Args:
        path: the path of the checkpoint.
        reader: its reader.
    """

    def __init__(self, path: str, reader: CheckpointReader) -> None:
        self.uid = next(_NAMES_UIDS)
        self.found: list[Any] = []
        self.ops: list[Any] = []
        self._path, self._reader = path, reader

    def restore(self, trackable: Any) -> None:
        """Restores an object and its children, including children that are created later."""
        saveables = []
        for each in ObjectGraph(trackable).objects:
            waiting = each._tracking_state().by_name
            if self not in waiting:
                waiting.append(self)
            for saveable in _own_saveables(each):
                if self._has(saveable):
                    saveables.append(saveable)
                    self.found.append(each)
        with init_scope():
            made = restore_ops(self._path, saveables)
            if not context.executing_eagerly():
                self.ops += made

    def _has(self, saveable: SaveableObject) -> bool:
        return all(self._reader.has_tensor(spec.name) for spec in saveable.specs)

    def missing(self, trackable: Any) -> list[str]:
        """Returns the names of an object's values that the checkpoint does not contain."""
        return [each.name for each in _own_saveables(trackable) if not self._has(each)]


def _own_saveables(trackable: Any) -> list[SaveableObject]:
    """Returns the saveables of an object, under the object's own names."""
    made = []
    for make in trackable._gather_saveables_for_checkpoint().values():
        if isinstance(make, SaveableObject):
            made.append(make)
        elif hasattr(make, "_saveable"):
            made.append(make._saveable(make._shared_name))
        else:
            made.append(make())
    return [each for each in made if not isinstance(each, PythonSaveable)]
