"""`tf.train.Checkpoint`, which saves and restores objects, and `PythonState`, which puts other Python state into checkpoints."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.errors import NotFoundError
from stoker._src.base.export import export
from stoker._src.formats.filesystems import path_text
from stoker._src.graph import context
from stoker._src.graph.saveable import SaveSpec
from stoker._src.graph.scopes import device, init_scope
from stoker._src.graph.trackable import Trackable
from stoker._src.graph.tracked_structures import AutoTrackable, wrapped
from stoker._src.ops.array.constants import constant
from stoker._src.ops.variables.variables import Variable
from stoker._src.train.checkpoints.object_saver import ObjectSaver
from stoker._src.train.checkpoints.options import DEFAULT, CheckpointOptions
from stoker._src.train.checkpoints.restoration import PythonSaveable
from stoker._src.train.checkpoints.state import write_checkpoint_state
from stoker._src.train.checkpoints.statuses import LoadStatus, NameBasedSaverStatus, session_or_default


@export("train.experimental.PythonState")
class PythonState(Trackable, abc.ABC):
    """Python state that checkpoints hold. Subclasses convert it to bytes and back."""

    @abc.abstractmethod
    def serialize(self) -> bytes | str:
        """Returns the state to save."""

    @abc.abstractmethod
    def deserialize(self, string_value: bytes) -> None:
        """Restores the state from what `serialize` returned."""

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[..., Any]]:
        def saveable(name: str = "py_state") -> PythonSaveable:
            # The value is computed when the checkpoint is written.
            def value() -> Any:
                saved = self.serialize()
                return constant(saved, dtypes.string) if context.executing_eagerly() else saved

            return PythonSaveable(self, [SaveSpec(value, "", name, dtypes.string)], name, self.deserialize)

        return {"py_state": saveable}


def _expected(what: str, value: Any) -> ValueError:
    return ValueError(
        f"`Checkpoint` was expecting {what}a trackable object (an object derived from `Trackable`), got {value}. If you believe "
        "this object should be trackable (i.e. it is part of the TensorFlow Python API and manages state), please open an issue."
    )


class _Saves(AutoTrackable):
    """Base class of both forms of `Checkpoint`."""

    _saver: ObjectSaver
    _save_counter: Any

    @property
    def save_counter(self) -> Any:
        """The number of saved checkpoints: an int64 variable, which is itself part of the checkpoint."""
        self._make_save_counter()
        return self._save_counter

    def _make_save_counter(self) -> None:
        if self.__dict__.get("_save_counter") is None:
            with init_scope(), device("/cpu:0"):
                counter = Variable(0, name="save_counter", dtype=dtypes.int64, trainable=False, use_resource=True)
            self.__dict__["_save_counter"] = counter
            self._track_counter(counter)

    def _track_counter(self, counter: Any) -> None:
        self._track_trackable(counter, "save_counter")

    def _numbered(self, file_prefix: Any, session: Any, options: CheckpointOptions | None) -> str:
        """Increments the counter, and writes `<prefix>-<count>` and the state file of its directory."""
        prefix = path_text(file_prefix)
        if context.executing_eagerly():
            self.save_counter.assign_add(1)
            number = int(self.save_counter.numpy())
        else:
            session = session_or_default(session)
            if self.__dict__.get("_save_counter") is None:
                session.run(self.save_counter.initializer)
            number = int(session.run(self._counting()))
        path = f"{prefix}-{number}"
        return self._saver.save(
            path,
            session,
            options or DEFAULT,
            lambda: write_checkpoint_state(os.path.dirname(path), path, [path], relative=True),
        )

    def _counting(self) -> Any:
        """Returns the op that increments the counter. It is created once."""
        if "_counting_op" not in self.__dict__:
            self.__dict__["_counting_op"] = self.save_counter.assign_add(1, read_value=True).value()
        return self.__dict__["_counting_op"]

    def _restored(self, status: LoadStatus) -> LoadStatus:
        # The counter must exist, so that it continues from the value in the checkpoint.
        self._make_save_counter()
        if isinstance(status, NameBasedSaverStatus):
            status.add_to_optionally_restored(self._save_counter)
        return status


@export(v1="train.Checkpoint")
class CheckpointV1(_Saves):
    """Saves objects and everything reachable from them, and restores them. Objects that do not exist yet are restored when they are created.

        checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)
        path = checkpoint.save("logs/model", session=session)     # logs/model-1
        status = checkpoint.restore(tf.train.latest_checkpoint("logs"))
        status.assert_consumed().run_restore_ops(session)         # in a graph; in eager mode values are there at once

    Args:
        **kwargs: the objects to save, by name. They become attributes. More attributes may be assigned later.

    Raises:
        ValueError: an object is not trackable.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, value in sorted(kwargs.items()):
            setattr(self, name, value)
            if not isinstance(getattr(self, name), Trackable):
                raise _expected("", value)
        self.__dict__["_save_counter"] = None
        self.__dict__["_saver"] = ObjectSaver(self)

    def write(self, file_prefix: Any, session: Any = None, options: CheckpointOptions | None = None) -> str:
        """Writes a checkpoint to exactly this path, without incrementing the counter or writing a state file.

        Args:
            file_prefix: the path.
            session: in a graph, the session that holds the variables; by default the default session.
            options: how to write it.
        """
        return self._saver.save(path_text(file_prefix), session, options or DEFAULT)

    def save(self, file_prefix: Any, session: Any = None, options: CheckpointOptions | None = None) -> str:
        """Writes the next checkpoint, `<prefix>-<n>`, and the `checkpoint` file of its directory.

        Args:
            file_prefix: the start of the path.
            session: in a graph, the session that holds the variables; by default the default session.
            options: how to write it.

        Returns:
            The path to give to `restore`.
        """
        return self._numbered(file_prefix, session, options)

    def restore(self, save_path: Any) -> LoadStatus:
        """Restores a checkpoint. Objects that do not exist yet are restored when they are created. In a graph, the ops of the status restore.

        Args:
            save_path: what `save` or `write` returned, or a checkpoint of `tf.train.Saver`; None restores nothing.

        Raises:
            NotFoundError: the checkpoint does not exist.
        """
        return self._restored(self._saver.restore(save_path, DEFAULT))


@export(v2="train.Checkpoint")
class Checkpoint(_Saves):
    """Saves objects and everything reachable from them, and restores them. Objects that do not exist yet are restored when they are created.

        checkpoint = tf.train.Checkpoint(model)                   # or Checkpoint(model=model, optimizer=optimizer)
        path = checkpoint.save("logs/model")                      # logs/model-1
        checkpoint.restore(path).assert_consumed()

    Args:
        root: an object whose children are saved as the children of the checkpoint.
        **kwargs: the objects to save, by name. They become attributes.

    Raises:
        ValueError: an object is not trackable, or the root already has a child of that name.
    """

    _attached: dict[str, Any]

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        super().__init__()
        self.__dict__["_save_counter"] = None
        self.__dict__["_attached"] = attached = {}
        if root is not None:
            root = wrapped(root)
            if not isinstance(root, Trackable):
                raise _expected("root to be ", root)
        for name, value in sorted(kwargs.items()):
            setattr(self, name, value)
            tracked = getattr(self, name)
            if not isinstance(tracked, Trackable):
                raise _expected(f"{name} to be ", value)
            if root is not None:
                present = root._lookup_dependency(name)
                if present is not None and present is not tracked:
                    raise ValueError(
                        f"Cannot create a Checkpoint with keyword argument {name} if root.{name} already exists."
                    )
                attached[name] = tracked
        if root is not None:
            attached["root"] = root
            object.__setattr__(self, "root", root)
            self._track_trackable(root, "root")
        self.__dict__["_saver"] = ObjectSaver(self if root is None else root, lambda: attached)

    def _track_counter(self, counter: Any) -> None:
        self._track_trackable(counter, "save_counter")
        if "root" in self._attached:
            self._attached["save_counter"] = counter
            # A restored value waits with the root, to which the checkpoint attaches the counter.
            self._attached["root"]._handle_deferred_dependencies("save_counter", counter)

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes a checkpoint to exactly this path, without incrementing the counter or writing a state file."""
        return self._saver.save(path_text(file_prefix), None, options or DEFAULT)

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes the next checkpoint, `<prefix>-<n>`, and the `checkpoint` file of its directory; returns its path."""
        return self._numbered(file_prefix, None, options)

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> LoadStatus:
        """Restores what `write` wrote. Unlike `restore`, it does not need the save counter.

        Raises:
            NotFoundError: the checkpoint does not exist.
        """
        return self._saver.restore(save_path, options or DEFAULT)

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> LoadStatus:
        """Restores a checkpoint. Objects that do not exist yet are restored when they are created.

        Args:
            save_path: what `save` returned, or a checkpoint of `tf.train.Saver`; None restores nothing.
            options: how to read it.

        Raises:
            NotFoundError: the checkpoint does not exist.
        """
        try:
            return self._restored(self.read(save_path, options))
        except NotFoundError as error:
            raise NotFoundError(
                error.node_def,
                error.op,
                f"Error when restoring from checkpoint or SavedModel at {save_path}: {error.message}\nPlease double-check that "
                "the path is correct. You may be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1').",
            ) from error

    def sync(self) -> None:
        """Waits for a checkpoint that is being written in the background, and raises its error if it failed."""
        self._saver.background.wait()
