"""Atomic file writes: a file appears complete or not at all.

    with atomic.replacing("model.index") as file:
        file.write(...)

The data is written to a temporary file in the same directory and synced to disk. The file is then renamed, and
the directory is synced. After a crash at any point, a reader finds either the old file or the new one. If the block
raises, the old file remains and the temporary file is removed. A crash may leave a temporary file behind. Its name starts with a dot
and ends in `.tmp`, and nothing reads it. `sweep` removes such files, except those that are locked because they are being written.

Several files become visible in the order in which their blocks end, so a file that refers to others (an index, the
`checkpoint` file) is written last.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

Path = str | bytes | os.PathLike[Any]


class Together:
    """Several files that appear together, in the order in which they were opened. If one cannot be written, none appears.

        with Together() as files:
            data, index = files.open("model.data"), files.open("model.index")
            ...

    All files are synced to disk at the same time, which costs little more than syncing one.
    """

    def __init__(self) -> None:
        self._files: list[tuple[BinaryIO, str, str]] = []  # (file, temporary name, name)

    def open(self, path: Path) -> BinaryIO:
        """Opens a binary file for reading and writing that is renamed to `path` at the end.

        Raises:
            OSError: the directory does not exist or is not writable.
        """
        target = os.fsdecode(path)
        directory, name = os.path.split(target)
        while True:
            # The truncated name keeps the temporary name within the file system's limit on name length.
            temporary = os.path.join(directory, f".{name[:100]}.{secrets.token_hex(8)}.tmp")
            # The mode is the same as in open(): 0o666 less the umask. O_EXCL prevents writing through a symbolic link.
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
            if _locked(descriptor) and os.path.exists(temporary):
                break
            os.close(descriptor)  # a sweep ran between creation and locking
        file = os.fdopen(descriptor, "w+b")
        self._files.append((file, temporary, target))
        return file

    def __enter__(self) -> Together:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self._discard()
            return
        try:
            for file, _, _ in self._files:
                file.flush()
            _sync_all([file.fileno() for file, _, _ in self._files])
            for file, temporary, target in self._files:
                os.replace(temporary, target)
                file.close()
        except BaseException:
            self._discard()
            raise
        for directory in dict.fromkeys(os.path.dirname(target) for _, _, target in self._files):
            sync_directory(directory)

    def _discard(self) -> None:
        for file, temporary, _ in self._files:
            with suppress(OSError):  # flushing the buffer may fail if the disk is full
                file.close()
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def _locked(descriptor: int) -> bool:
    """Locks a file while it is open, to show other processes that it is being written. Returns False if it is being swept."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system does not support locks
        pass
    return True


def _sync_all(descriptors: list[int]) -> None:
    """Syncs files to disk concurrently."""
    if len(descriptors) == 1:
        os.fsync(descriptors[0])
    elif descriptors:
        with ThreadPoolExecutor(len(descriptors)) as pool:
            list(pool.map(os.fsync, descriptors))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Opens a binary file for reading and writing that is renamed to `path` if the block ends without an exception.

    Raises:
        OSError: the directory does not exist or is not writable, or the disk is full.
    """
    with Together() as files:
        yield files.open(path)


_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp")


def sweep(directory: Path) -> None:
    """Removes temporary files of writers that were killed. Files that are still being written are kept."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(os.fsdecode(directory) or ".") as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _sweep_file(entry.path)


def _sweep_file(path: str) -> None:
    assert fcntl is not None, "only systems with locks know what is being written"
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while another process writes the file
        os.unlink(path)
    finally:
        os.close(descriptor)


def write(path: Path, data: bytes | bytearray | memoryview) -> None:
    """Replaces the contents of the file `path` with `data`."""
    with replacing(path) as file:
        file.write(data)


def sync_directory(directory: Path) -> None:
    """Syncs a directory's entries to disk, so that created, renamed and removed names are durable, where the system supports it."""
    flag = getattr(os, "O_DIRECTORY", None)
    if flag is None:
        return
    descriptor = os.open(os.fsdecode(directory) or ".", os.O_RDONLY | flag)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
