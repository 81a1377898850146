"""`tf.train.CheckpointOptions`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from stoker._src.base.export import export


@export("train.CheckpointOptions")
class CheckpointOptions:
    """Options for writing and reading object-based checkpoints.

    Args:
        experimental_io_device: the device whose file system holds the checkpoint.
        experimental_enable_async_checkpoint: the older name of `enable_async`.
        experimental_write_callbacks: functions to call when a checkpoint is complete. A function with one parameter receives the path.
        enable_async: whether to copy the values and write them in the background (eager mode). `Checkpoint.sync` waits.
        experimental_skip_slot_variables: whether to ignore slots when restoring.
        experimental_sharding_callback: must be None, since the checkpoint of one process is one file.

    Raises:
        ValueError: a callback takes more than one argument.
        NotImplementedError: a sharding callback is given.
    """

    def __init__(
        self,
        experimental_io_device: str | None = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Sequence[Callable[..., Any]] | None = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        if experimental_sharding_callback is not None:
            raise NotImplementedError("Sharding callbacks are not supported: a checkpoint of one process is one file.")
        for callback in experimental_write_callbacks or ():
            if len(inspect.signature(callback).parameters) > 1:
                raise ValueError(f"A write callback takes the path or nothing: {callback}")
        self.experimental_io_device = experimental_io_device
        self.enable_async = self.experimental_enable_async_checkpoint = (
            enable_async or experimental_enable_async_checkpoint
        )
        self.experimental_write_callbacks = experimental_write_callbacks
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = None

    def written(self, path: str) -> None:
        """Calls the callbacks."""
        for callback in self.experimental_write_callbacks or ():
            callback(path) if inspect.signature(callback).parameters else callback()


DEFAULT = CheckpointOptions()
