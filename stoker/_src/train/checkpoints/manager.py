"""`tf.train.CheckpointManager`: the checkpoints of one directory."""

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
    """Keeps the newest checkpoints of a directory, and one of so many hours for good.

        manager = tf.train.CheckpointManager(checkpoint, "logs", max_to_keep=3)
        checkpoint.restore(manager.latest_checkpoint)
        manager.save()

    The state of the directory is the text file `checkpoint`; a manager that is made later goes on from it.

    Args:
        checkpoint: a `Checkpoint`.
        directory: where checkpoints go; made if need be.
        max_to_keep: how many to keep; None keeps all.
        keep_checkpoint_every_n_hours: a checkpoint that would be deleted stays for good, and is listed no more, if the last one that
            stayed is that much older.
        checkpoint_name: the start of the names of files.
        step_counter: a variable that counts steps, for `checkpoint_interval`.
        checkpoint_interval: how many steps there are at least between two checkpoints.
        init_fn: called by `restore_or_initialize` where there is nothing to restore.
        last_checkpoint_step: the step of the last checkpoint, for `checkpoint_interval`.

    Raises:
        ValueError: `max_to_keep` is not positive; an interval without a counter.
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
        )  # the oldest first; when each was written
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
            # A state written by another clock may lie ahead of ours.
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
        """The path of the newest checkpoint, to give to `Checkpoint.restore`; None if there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are kept, the oldest first; without those that stay for good."""
        return list(self._kept)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: CheckpointOptions | None = None
    ) -> str | None:
        """Writes a checkpoint and deletes those that are one too many.

        Args:
            checkpoint_number: the number in its name: an integer, variable or tensor; by default the save counter, which rises in any case.
            check_interval: do nothing if the last checkpoint is fewer steps ago than `checkpoint_interval`.
            options: how to write it.

        Returns:
            Its path; None if nothing was written.
        """
        if self._interval is not None:
            step = self._number(self._step_counter)
            if check_interval and self._last_step is not None and step - self._last_step < self._interval:
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
            deleted.extend(self._one_too_many())
            write_checkpoint_state(
                self._directory, path, list(self._kept), None, list(self._kept.values()), self._preserved, relative=True
            )

        def clean_up() -> None:
            # Checkpoints are deleted once the state does not name them, so that it never names one that is gone.
            for old in deleted:
                self._delete(old)

        self._checkpoint._saver.save(path, session, options or DEFAULT, record, clean_up)
        return path

    def _initialized(self, session: Any, counter: Any) -> bool:
        if "_counter_initialized" not in self._checkpoint.__dict__:
            self._checkpoint.__dict__["_counter_initialized"] = counter.is_initialized()
        return bool(session.run(self._checkpoint.__dict__["_counter_initialized"]))

    def _one_too_many(self) -> list[str]:
        """Takes out those that are one too many; those of them that are to be deleted."""
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
        """Restores the newest checkpoint, or calls `init_fn` where there is none; the checkpoint's path, or None."""
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
        """Waits for a checkpoint that is being written in the background; raises what went wrong with it."""
        self._checkpoint._saver.background.wait()
