"""Files that appear whole or not at all.

    with atomic.replacing("model.index") as file:
        file.write(...)

The bytes go to a temporary name in the same directory, are forced to the disk, take their real name by a rename, and
the directory is forced to the disk: whatever moment a crash picks, a reader finds the old file or the new one. A block
that raises leaves the old file and no temporary one. (A crash may leave a temporary file; its name starts with a dot
and ends in `.tmp`, and nothing reads it.)

Several files become visible in the order in which their blocks end, so whatever names the others (an index, the
`checkpoint` file) is written last.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

Path = str | bytes | os.PathLike[Any]


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file, open for reading and writing, that takes the name `path` when the block ends without an exception.

    Raises:
        OSError: the directory is not there or cannot be written, or the disk is full.
    """
    target = os.fsdecode(path)
    directory, name = os.path.split(target)
    # A name cut short keeps within the file system's limit for any name that is itself within it.
    temporary = os.path.join(directory, f".{name[:100]}.{secrets.token_hex(8)}.tmp")
    # As open() makes files: everyone's rights less the umask. O_EXCL: never write through someone's link.
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_directory(directory)


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
