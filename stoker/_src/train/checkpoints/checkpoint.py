"""`tf.train.Checkpoint`: objects to checkpoints and back; `PythonState`: objects of Python's own in them."""

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
    """Something of Python's own that checkpoints hold. Subclasses turn it to bytes and back."""

    @abc.abstractmethod
    def serialize(self) -> bytes | str:
        """What to save."""

    @abc.abstractmethod
    def deserialize(self, string_value: bytes) -> None:
        """Takes back what was saved."""

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[..., Any]]:
        def saveable(name: str = "py_state") -> PythonSaveable:
            # The value is what the object holds when the checkpoint is written.
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
    """What both forms of `Checkpoint` share."""

    _saver: ObjectSaver
    _save_counter: Any

    @property
    def save_counter(self) -> Any:
        """How many checkpoints were saved: an int64 variable, which checkpoints hold too."""
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
        """Counts, and writes `<prefix>-<count>` and the state file of its directory."""
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
        """The op that counts, one in a graph."""
        if "_counting_op" not in self.__dict__:
            self.__dict__["_counting_op"] = self.save_counter.assign_add(1, read_value=True).value()
        return self.__dict__["_counting_op"]

    def _restored(self, status: LoadStatus) -> LoadStatus:
        # The counter is there from now on, so that it counts on where the checkpoint was.
        self._make_save_counter()
        if isinstance(status, NameBasedSaverStatus):
            status.add_to_optionally_restored(self._save_counter)
        return status


@export(v1="train.Checkpoint")
class CheckpointV1(_Saves):
    """Saves objects and all that they consist of; restores them, those too that are not there yet.

        checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)
        path = checkpoint.save("logs/model", session=session)     # logs/model-1
        status = checkpoint.restore(tf.train.latest_checkpoint("logs"))
        status.assert_consumed().run_restore_ops(session)         # in a graph; in eager mode values are there at once

    Args:
        **kwargs: what to save, by name: it becomes attributes. Other attributes may be assigned.

    Raises:
        ValueError: something that cannot be tracked.
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
        """Writes a checkpoint to exactly this path; counts nothing and writes no state file.

        Args:
            file_prefix: the path.
            session: the session that holds the variables, in a graph; the default one if there is none.
            options: how to write it.
        """
        return self._saver.save(path_text(file_prefix), session, options or DEFAULT)

    def save(self, file_prefix: Any, session: Any = None, options: CheckpointOptions | None = None) -> str:
        """Writes the next checkpoint, `<prefix>-<n>`, and the `checkpoint` file of its directory.

        Args:
            file_prefix: the start of the path.
            session: the session that holds the variables, in a graph; the default one if there is none.
            options: how to write it.

        Returns:
            The path to give to `restore`.
        """
        return self._numbered(file_prefix, session, options)

    def restore(self, save_path: Any) -> LoadStatus:
        """Restores a checkpoint: at once what is there, later what is not; in a graph, ops of the status do so.

        Args:
            save_path: what `save` or `write` returned, or a checkpoint of `tf.train.Saver`; None restores nothing.

        Raises:
            NotFoundError: there is no such checkpoint.
        """
        return self._restored(self._saver.restore(save_path, DEFAULT))


@export(v2="train.Checkpoint")
class Checkpoint(_Saves):
    """Saves objects and all that they consist of; restores them, those too that are not there yet.

        checkpoint = tf.train.Checkpoint(model)                   # or Checkpoint(model=model, optimizer=optimizer)
        path = checkpoint.save("logs/model")                      # logs/model-1
        checkpoint.restore(path).assert_consumed()

    Args:
        root: an object whose parts are the checkpoint's.
        **kwargs: what to save, by name: it becomes attributes.

    Raises:
        ValueError: something that cannot be tracked; a part of the root with one of the names.
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
        """Writes a checkpoint to exactly this path; counts nothing and writes no state file."""
        return self._saver.save(path_text(file_prefix), None, options or DEFAULT)

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes the next checkpoint, `<prefix>-<n>`, and the `checkpoint` file of its directory; returns its path."""
        return self._numbered(file_prefix, None, options)

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> LoadStatus:
        """Restores what `write` wrote: as `restore`, but the save counter need not be there.

        Raises:
            NotFoundError: there is no such checkpoint.
        """
        return self._saver.restore(save_path, options or DEFAULT)

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> LoadStatus:
        """Restores a checkpoint: at once what is there, later what is not.

        Args:
            save_path: what `save` returned, or a checkpoint of `tf.train.Saver`; None restores nothing.
            options: how to read it.

        Raises:
            NotFoundError: there is no such checkpoint.
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
        """Waits for a checkpoint that is being written in the background; raises what went wrong with it."""
        self._saver.background.wait()
