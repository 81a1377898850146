"""`tf.train.CheckpointManager` manages the checkpoints of one directory."""

from __future__ import annotations

import collections
import os
import time
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.formats.filesystems import path_text
from stoker._src.formats.protos import SaverDef
from stoker._src.graph import context
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.variables.variables import Variable
from stoker._src.train.checkpoints.options import DEFAULT, CheckpointOptions
from stoker._src.train.checkpoints.state import delete_checkpoint, get_checkpoint_state, write_checkpoint_state
from stoker._src.train.checkpoints.statuses import session_or_default


@export("train.CheckpointManager")
class CheckpointManager:
    """Keeps the newest checkpoints of a directory, and optionally one per given number of hours forever.

        manager = tf.train.CheckpointManager(checkpoint, "logs", max_to_keep=3)
        checkpoint.restore(manager.latest_checkpoint)
        manager.save()

    The state of the directory is the text file `checkpoint`. A manager created later continues from it.

    Args:
        checkpoint: a `Checkpoint`.
        directory: the directory of the checkpoints. It is created if it does not exist.
        max_to_keep: the number of checkpoints to keep. None keeps all.
        keep_checkpoint_every_n_hours: a checkpoint that is due for deletion is kept forever, and no longer listed, if it is at least this
            many hours younger than the previous one kept that way.
        checkpoint_name: the prefix of the file names.
        step_counter: the variable that counts steps, for `checkpoint_interval`.
        checkpoint_interval: the minimum number of steps between two checkpoints.
        init_fn: called by `restore_or_initialize` if there is no checkpoint.
        last_checkpoint_step: the step of the last checkpoint, for `checkpoint_interval`.

    Raises:
        ValueError: `max_to_keep` is not positive, or `checkpoint_interval` is given without `step_counter`.
    """

    def __init__(
        self,
        checkpoint: Any,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint = checkpoint
        self._directory = path_text(directory)
        self._max_to_keep = max_to_keep
        self._hours = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, path_text(checkpoint_name))
        self._step_counter, self._interval, self._init_fn = step_counter, checkpoint_interval, init_fn
        self._last_step = last_checkpoint_step
        self._kept: collections.OrderedDict[str, float] = (
            collections.OrderedDict()
        )  # path -> time of writing, oldest first
        self._latest: str | None = None
        self._clock = time.time
        self._preserved = self._clock()
        state = get_checkpoint_state(self._directory)
        if state is not None:
            times = state.all_model_checkpoint_timestamps
            if not times or len(times) != len(state.all_model_checkpoint_paths):
                times = [self._preserved] * len(state.all_model_checkpoint_paths)
            self._latest = state.model_checkpoint_path
            if state.last_preserved_timestamp:
                self._preserved = min(state.last_preserved_timestamp, self._preserved)
            # The clock that wrote the state may be ahead of ours.
            now = self._clock()
            for path, written in zip(state.all_model_checkpoint_paths, times):
                self._kept[path] = min(written, now)

    @property
    def directory(self) -> str:
        return self._directory

    @property
    def checkpoint(self) -> Any:
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the newest checkpoint, for `Checkpoint.restore`, or None if there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints, oldest first, without those that are kept forever."""
        return list(self._kept)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: CheckpointOptions | None = None
    ) -> str | None:
        """Writes a checkpoint and deletes the surplus ones.

        Args:
            checkpoint_number: the number in the file name: an integer, variable or tensor. The default is the save counter, which is
                incremented in either case.
            check_interval: whether to do nothing if fewer than `checkpoint_interval` steps have passed since the last checkpoint.
            options: the options for writing.

        Returns:
            The path of the checkpoint, or None if nothing was written.
        """
        if self._interval is not None:
            step = self._number(self._step_counter)
            last = self._last_step
            # A step is saved only once in any case.
            if last is not None and (step == last or (check_interval and step - last < self._interval)):
                return None
            self._last_step = step
        eager = context.executing_eagerly()
        counter = self._checkpoint.save_counter
        session = None if eager else session_or_default(None)
        if eager:
            counter.assign_add(1)
        else:
            if not self._initialized(session, counter):
                session.run(counter.initializer)  # pyright: ignore[reportOptionalMemberAccess]
            session.run(self._checkpoint._counting())  # pyright: ignore[reportOptionalMemberAccess]
        number = self._number(counter if checkpoint_number is None else checkpoint_number)
        path = f"{self._prefix}-{number}"
        if self._directory:
            gfile.makedirs(self._directory)

        deleted: list[str] = []

        def record() -> None:
            now = self._clock()
            self._kept.pop(path, None)
            self._kept[path], self._latest = now, path
            deleted.extend(self._take_surplus())
            write_checkpoint_state(
                self._directory, path, list(self._kept), None, list(self._kept.values()), self._preserved, relative=True
            )

        def clean_up() -> None:
            # The state file is written before checkpoints are deleted, so that it never names a deleted one.
            for old in deleted:
                self._delete(old)

        self._checkpoint._saver.save(path, session, options or DEFAULT, record, clean_up)
        return path

    def _initialized(self, session: Any, counter: Any) -> bool:
        if "_counter_initialized" not in self._checkpoint.__dict__:
            self._checkpoint.__dict__["_counter_initialized"] = counter.is_initialized()
        return bool(session.run(self._checkpoint.__dict__["_counter_initialized"]))

    def _take_surplus(self) -> list[str]:
        """Removes surplus checkpoints from the list and returns those that must be deleted."""
        deleted: list[str] = []
        if self._max_to_keep is None:
            return deleted
        while len(self._kept) > self._max_to_keep:
            path, written = self._kept.popitem(last=False)
            if self._hours and written - self._hours * 3600.0 >= self._preserved:
                self._preserved = written
            else:
                deleted.append(path)
        return deleted

    def _delete(self, path: str) -> None:
        try:
            delete_checkpoint(path, SaverDef.V2, "meta")
        except Exception as error:
            tf_logging.warning("Ignoring: %s", error)

    def _number(self, value: Any) -> int:
        if not isinstance(value, (Tensor, Variable)):
            return int(value)
        read: Any = value
        return int(read.numpy() if context.executing_eagerly() else session_or_default(None).run(read))

    def restore_or_initialize(self) -> str | None:
        """Restores the newest checkpoint and returns its path. If there is none, calls `init_fn` and returns None."""
        if self._latest is not None:
            status = self._checkpoint.restore(self._latest)
            if not context.executing_eagerly():
                status.run_restore_ops()
            if self._interval is not None:
                self._last_step = self._number(self._step_counter)
            return self._latest
        if self._init_fn is not None:
            self._init_fn()
            tf_logging.info("Customized initialization is done through the passed `init_fn`.")
        return None

    def sync(self) -> None:
        """Waits for a checkpoint that is being written in the background and raises its error if it failed."""
        self._checkpoint._saver.background.wait()
