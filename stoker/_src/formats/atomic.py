"""Files that appear whole or not at all.

    with atomic.replacing("model.index") as file:
        file.write(...)

The bytes go to a temporary name in the same directory, are forced to the disk, take their real name by a rename, and
the directory is forced to the disk: whatever moment a crash picks, a reader finds the old file or the new one. A block
that raises leaves the old file and no temporary one. (A crash may leave a temporary file; its name starts with a dot
and ends in `.tmp`, nothing reads it, and `sweep` takes it away: a file that is being written is locked.)

Several files become visible in the order in which their blocks end, so whatever names the others (an index, the
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
    """Several files that appear together, in the order in which they were opened; none of them where one cannot be written.

        with Together() as files:
            data, index = files.open("model.data"), files.open("model.index")
            ...

    The bytes of all are forced to the disk at the same time, which costs little more than one does.
    """

    def __init__(self) -> None:
        self._files: list[tuple[BinaryIO, str, str]] = []  # (file, temporary name, name)

    def open(self, path: Path) -> BinaryIO:
        """A binary file, open for reading and writing, that takes the name `path` in the end.

        Raises:
            OSError: the directory is not there or cannot be written.
        """
        target = os.fsdecode(path)
        directory, name = os.path.split(target)
        while True:
            # A name cut short keeps within the file system's limit for any name that is itself within it.
            temporary = os.path.join(directory, f".{name[:100]}.{secrets.token_hex(8)}.tmp")
            # As open() makes files: everyone's rights less the umask. O_EXCL: never write through someone's link.
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
            if _locked(descriptor) and os.path.exists(temporary):
                break
            os.close(descriptor)  # a sweep came between the two
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
            with suppress(OSError):  # what is still in its buffer may not fit on the disk
                file.close()
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def _locked(descriptor: int) -> bool:
    """Tells other processes that a file is being written, for as long as it is open; False if it is being swept."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def _sync_all(descriptors: list[int]) -> None:
    """Forces files to the disk, all at once."""
    if len(descriptors) == 1:
        os.fsync(descriptors[0])
    elif descriptors:
        with ThreadPoolExecutor(len(descriptors)) as pool:
            list(pool.map(os.fsync, descriptors))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file, open for reading and writing, that takes the name `path` when the block ends without an exception.

    Raises:
        OSError: the directory is not there or cannot be written, or the disk is full.
    """
    with Together() as files:
        yield files.open(path)


_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp")


def sweep(directory: Path) -> None:
    """Takes away temporary files of writers that were killed; those that somebody is writing stay."""
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
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while it is being written
        os.unlink(path)
    finally:
        os.close(descriptor)


def write(path: Path, data: bytes | bytearray | memoryview) -> None:
    """Gives the file `path` the contents `data`."""
    with replacing(path) as file:
        file.write(data)


def sync_directory(directory: Path) -> None:
    """Forces a directory's entries (names made, renamed or removed) to the disk, where the system can do that."""
    flag = getattr(os, "O_DIRECTORY", None)
    if flag is None:
        return
    descriptor = os.open(os.fsdecode(directory) or ".", os.O_RDONLY | flag)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
