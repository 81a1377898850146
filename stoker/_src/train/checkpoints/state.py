"""The state file `checkpoint`, which names the newest checkpoint of a directory, and the files of a checkpoint."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from google.protobuf import text_format

from stoker._src.base import tf_logging
from stoker._src.base.deprecation import deprecated
from stoker._src.base.errors import OpError
from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.formats.filesystems import path_text
from stoker._src.formats.message_files import write_message
from stoker._src.formats.protos import CheckpointState, SaverDef
from stoker._src.formats.tensor_bundle import index_filename

# The interval in seconds at which a directory is checked for a new checkpoint.
_PATIENCE = 1.0


def state_filename(directory: str, latest_filename: str | None = None) -> str:
    """Returns the path of the state file of a directory."""
    return os.path.join(directory, "checkpoint" if latest_filename is None else latest_filename)


@export(v1="train.generate_checkpoint_state_proto")
def generate_checkpoint_state_proto(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> Any:
    """Returns a CheckpointState message.

    Args:
        save_dir: the directory of the state file. If it is relative, relative paths are rewritten relative to it.
        model_checkpoint_path: the newest checkpoint.
        all_model_checkpoint_paths: all checkpoints that have not been deleted, oldest first. The newest is appended if it is missing.
        all_model_checkpoint_timestamps: the times at which these were written, in seconds since the epoch.
        last_preserved_timestamp: the time at which the last checkpoint that is never deleted was written.

    Raises:
        ValueError: the number of timestamps differs from the number of paths.
    """
    save_dir = path_text(save_dir)
    paths = list(all_model_checkpoint_paths or ())
    if not paths or paths[-1] != model_checkpoint_path:
        tf_logging.info("%s is not in all_model_checkpoint_paths. Manually adding it.", model_checkpoint_path)
        paths.append(model_checkpoint_path)
    if all_model_checkpoint_timestamps and len(all_model_checkpoint_timestamps) != len(paths):
        raise ValueError(
            "Checkpoint timestamps, if provided, must match checkpoint paths (got paths "
            f"{paths} and timestamps {all_model_checkpoint_timestamps})"
        )

    def inside(path: str) -> str:
        relative = not os.path.isabs(save_dir) and not os.path.isabs(path)
        return os.path.relpath(path, save_dir or ".") if relative else path

    return CheckpointState(
        model_checkpoint_path=inside(model_checkpoint_path),
        all_model_checkpoint_paths=map(inside, paths),
        all_model_checkpoint_timestamps=all_model_checkpoint_timestamps,
        last_preserved_timestamp=last_preserved_timestamp,
    )


@export(v1="train.update_checkpoint_state")
@deprecated(None, "tf.train.CheckpointManager keeps the state of a directory.")
def update_checkpoint_state(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Writes the state file of a directory. The arguments are those of `generate_checkpoint_state_proto`.

    Raises:
        RuntimeError: the checkpoint has the same path as the state file.
    """
    write_checkpoint_state(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        latest_filename,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )


def write_checkpoint_state(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    *,
    relative: bool = False,
) -> None:
    """Writes the state file like `update_checkpoint_state`. With `relative`, all paths are written relative to the directory."""
    save_dir = path_text(save_dir)
    path = state_filename(save_dir, latest_filename)
    paths = all_model_checkpoint_paths
    if relative:
        # Relative paths start at the working directory, like a relative `save_dir`.
        model_checkpoint_path = os.path.relpath(model_checkpoint_path, save_dir or ".")
        paths = [os.path.relpath(each, save_dir or ".") for each in paths or ()]
        state = generate_checkpoint_state_proto(
            "", model_checkpoint_path, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
        )
    else:
        state = generate_checkpoint_state_proto(
            save_dir, model_checkpoint_path, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
        )
    if path == state.model_checkpoint_path:
        raise RuntimeError(
            f"Save path '{model_checkpoint_path}' conflicts with path used for checkpoint state.  "
            "Please use a different save path."
        )
    write_message(path, state, as_text=True)


@export("train.get_checkpoint_state")
def get_checkpoint_state(checkpoint_dir: Any, latest_filename: str | None = None) -> Any:
    """Returns the CheckpointState of a directory, or None if the state file is missing or unreadable.

    The paths in it are relative to the working directory or absolute.

    Raises:
        ValueError: the state does not name a newest checkpoint.
    """
    checkpoint_dir = path_text(checkpoint_dir)
    path = state_filename(checkpoint_dir, latest_filename)
    if not gfile.exists(path):
        return None
    state = CheckpointState()
    try:
        with gfile.GFile(path, "rb") as file:
            text_format.Parse(file.read(), state)
    except (OpError, text_format.ParseError, UnicodeDecodeError) as error:
        tf_logging.warning("%s: %s", type(error).__name__, error)
        tf_logging.warning("%s: Checkpoint ignored", path)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {checkpoint_dir}")
    state.model_checkpoint_path = os.path.join(checkpoint_dir, state.model_checkpoint_path)
    state.all_model_checkpoint_paths[:] = [
        os.path.join(checkpoint_dir, each) for each in state.all_model_checkpoint_paths
    ]
    return state


@export("train.latest_checkpoint")
def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Returns the path of the newest checkpoint of a directory, or None if there is none or its files are missing."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    if not has_checkpoint(state.model_checkpoint_path):
        tf_logging.error("Couldn't match files for checkpoint %s", state.model_checkpoint_path)
        return None
    return state.model_checkpoint_path


def written_at(prefix: str) -> float | None:
    """Returns the time at which a checkpoint was written, in seconds since the epoch, or None if it does not exist."""
    path = _first_file(prefix)
    return None if path is None else gfile.stat(path).mtime_nsec / 1e9


def delete_checkpoint(prefix: str, version: int, meta_graph_suffix: str) -> None:
    """Deletes the files of a checkpoint, and its meta graph."""
    patterns = [meta_graph_filename(prefix, meta_graph_suffix)]
    if version == SaverDef.V2:
        # The index is deleted first: without it the other files do not count as a checkpoint.
        patterns += [index_filename(prefix), f"{prefix}.data-?????-of-?????"]
    else:
        patterns.append(prefix)
    for pattern in patterns:
        for path in gfile.glob(pattern):
            gfile.remove(path)


def _first_file(prefix: str) -> str | None:
    """Returns a file that proves that a checkpoint exists: its index, or one of its files in the older format."""
    for pattern in (index_filename(prefix), prefix):
        found = gfile.glob(pattern)
        if found:
            return found[0]
    return None


def has_checkpoint(prefix: str) -> bool:
    """Returns whether a checkpoint of either format exists at this path."""
    return _first_file(prefix) is not None


@export(v1="train.checkpoint_exists")
@deprecated(None, "Search for files with this prefix with tf.io.gfile.glob.")
def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """Returns whether a checkpoint of either format exists at this path."""
    return has_checkpoint(path_text(checkpoint_prefix))


@export(v1="train.get_checkpoint_mtimes")
@deprecated(None, "Use tf.io.gfile.stat.")
def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[Any]) -> list[float]:
    """Returns the times at which checkpoints were written, in seconds since the epoch. Missing checkpoints are skipped."""
    found = (written_at(path_text(prefix)) for prefix in checkpoint_prefixes)
    return [when for when in found if when is not None]


@export(v1="train.remove_checkpoint")
@deprecated(None, "Delete files with this prefix with tf.io.gfile.remove.")
def remove_checkpoint(
    checkpoint_prefix: Any, checkpoint_format_version: int = SaverDef.V2, meta_graph_suffix: str = "meta"
) -> None:
    """Deletes the files of a checkpoint, and its meta graph."""
    delete_checkpoint(path_text(checkpoint_prefix), checkpoint_format_version, meta_graph_suffix)


def meta_graph_filename(prefix: str, suffix: str = "meta") -> str:
    """Returns the file name of the meta graph of a checkpoint. The shards of a checkpoint in the older format share it."""
    stem, _, rest = prefix.rpartition("-?????-of-")
    return f"{stem if stem and rest.isdecimal() else prefix}.{suffix}"


@export(
    "train.checkpoints_iterator",
    v1=("contrib.training.checkpoints_iterator", "contrib.slim.evaluation.checkpoints_iterator"),
)
def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], Any] | None = None,
) -> Iterator[str]:
    """Yields the newest checkpoint of a directory whenever one appears. Checkpoints that are replaced quickly may be skipped.

    Args:
        checkpoint_dir: the directory.
        min_interval_secs: the minimum time between two checkpoints, in seconds.
        timeout: the time to wait for a new checkpoint, in seconds. None waits forever.
        timeout_fn: called after a timeout. The iteration ends if it returns true and continues otherwise. Without it, a timeout ends the
            iteration.
    """
    newest = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, newest, timeout=timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        started = time.monotonic()
        newest = found
        yield newest
        time.sleep(max(0.0, started + min_interval_secs - time.monotonic()))


@export(v1=("contrib.training.wait_for_new_checkpoint", "contrib.slim.evaluation.wait_for_new_checkpoint"))
def wait_for_new_checkpoint(
    checkpoint_dir: Any,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = _PATIENCE,
    timeout: float | None = None,
) -> str | None:
    """Waits for a checkpoint other than `last_checkpoint` in a directory, and returns it; None after `timeout` seconds."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        found = latest_checkpoint(checkpoint_dir)
        if found is not None and found != last_checkpoint:
            return found
        if deadline is not None and time.monotonic() + seconds_to_sleep > deadline:
            return None
        time.sleep(seconds_to_sleep)
