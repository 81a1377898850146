"""Atomic file writes: a file appears complete or not at all.

    with atomic.replacing("model.index") as file:
        file.write(...)

The data is written to a temporary file in the same directory and synced to disk. The file is then renamed, and
the directory is synced. After a crash at any point, a reader finds either the old file or the new one. If the block
raises, the old file remains and the temporary file is removed. A crash may leave a temporary file behind. Its name starts with a dot
and ends in `.tmp`, and nothing reads it. `sweep` removes such files, except those that are locked because they are being written.

Several files become visible in the order in which their blocks end, so a file that refers to others (an index, the
`checkpoint` file) is written last. `one_commit` does so for all files that a block writes, and pays for the disk only once.

Which syncs are necessary? Let a save write D (data), I (its index) and S (the state file that names the checkpoint).

- The contents of D, I and S are synced before the first rename. Otherwise a power failure could leave a name whose bytes are missing.
  The three need no order among each other, because nothing refers to a temporary file. All are handed to the disk first and awaited
  afterwards, so that the file system writes its journal once for all of them.
- D, I and S are renamed in this order, without a sync in between. File systems with a journal or a log (ext4, XFS, Btrfs, ZFS, APFS, NTFS)
  make the renames of one directory durable in the order in which they were made. After a power failure, a prefix of the sequence is
  there: S never names a checkpoint that is not. If files are in different directories, each directory is synced before the next
  directory's files are renamed.
- The directory is synced after the last rename, before the caller deletes older checkpoints or reports success.

A process that is killed leaves a prefix of the sequence on every file system, because the system keeps what it has been told.

`replacing_directory` does the same for a directory: its files are written to a temporary directory beside it, and the two directories
change names in one step.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
import threading
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

    A caller with other needs states the steps itself: `create` makes a temporary file, and `rename`, `link` and `remove` are carried out in the
    order of the calls, after all files are on disk.
    """

    def __init__(self) -> None:
        self._files: dict[str, BinaryIO] = {}  # temporary name -> open file
        self._steps: list[tuple[str, str, str]] = []  # what to do, with which file, under which name

    def open(self, path: Path) -> BinaryIO:
        """Opens a binary file for reading and writing that is renamed to `path` at the end.

        Raises:
            OSError: the directory does not exist or is not writable.
        """
        file = self.create(path)
        self.rename(file, path)
        return file

    def create(self, path: Path, buffering: int = -1) -> BinaryIO:
        """Opens a temporary file in the directory of `path`. It is removed at the end unless a step gives it a name.

        Raises:
            OSError: the directory does not exist or is not writable.
        """
        directory, name = os.path.split(os.fsdecode(path))
        while True:
            # The truncated name keeps the temporary name within the file system's limit on name length.
            temporary = os.path.join(directory, f".{name[:100]}.{secrets.token_hex(8)}.tmp")
            # The mode is the same as in open(): 0o666 less the umask. O_EXCL prevents writing through a symbolic link.
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
            if _locked(descriptor) and os.path.exists(temporary):
                break
            os.close(descriptor)  # a sweep ran between creation and locking
        file: Any = os.fdopen(descriptor, "w+b", buffering)
        self._files[temporary] = file
        return file

    def name(self, file: BinaryIO) -> str:
        """Returns the temporary name of a file."""
        return next(name for name, each in self._files.items() if each is file)

    def rename(self, file: BinaryIO | str, path: Path) -> None:
        """Gives a file its name; `file` is one of these files or the path of another. A file that has the name is replaced."""
        self._steps.append(("rename", file if isinstance(file, str) else self.name(file), os.fsdecode(path)))

    def link(self, file: BinaryIO | str, path: Path) -> None:
        """Gives a file one more name. The name disappears again if the next step fails."""
        self._steps.append(("link", file if isinstance(file, str) else self.name(file), os.fsdecode(path)))

    def remove(self, path: Path) -> None:
        """Removes a file if it exists and can be removed."""
        self._steps.append(("remove", "", os.fsdecode(path)))

    def __enter__(self) -> Together:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self._discard()
            return
        try:
            for file in self._files.values():
                file.flush()
                start_writing(file)
            group = getattr(_LOCAL, "group", None)
            if group is None:
                self._commit()
            else:
                group._files.update(self._files)
                group._steps += self._steps
        except BaseException:
            self._discard()
            raise

    def _commit(self) -> None:
        _sync_all([file.fileno() for file in self._files.values()])
        before = None
        links: list[str] = []
        try:
            for what, source, path in self._steps:
                directory = os.path.dirname(path)
                if before not in (None, directory):
                    sync_directory(before)
                before = directory
                if what == "rename":
                    os.replace(source, path)
                    links.clear()
                    file = self._files.pop(source, None)
                    if file is not None:
                        file.close()
                elif what == "link":
                    links.append(path)
                    _link_synced(source, path)
                else:
                    with suppress(OSError):
                        os.unlink(path)
        except BaseException:
            for path in links:
                with suppress(OSError):
                    os.unlink(path)
            raise
        self._discard()
        if before is not None:
            sync_directory(before)

    def _discard(self) -> None:
        for temporary, file in self._files.items():
            with suppress(OSError):  # flushing the buffer may fail if the disk is full
                file.close()
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        self._files.clear()


def _link_synced(source: str, target: str) -> None:
    """Links a file, or copies it where the file system has no links."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        shutil.copyfile(source, target)
        with open(target, "rb+") as file:
            os.fsync(file.fileno())


_LOCAL = threading.local()


@contextmanager
def one_commit() -> Iterator[None]:
    """Lets all files that the block writes in this thread appear together at its end, in the order in which they were finished.

    The block does not see the files under their names. If it raises, none of them appears.
    """
    if getattr(_LOCAL, "group", None) is not None:
        yield  # part of the outer block
        return
    with Together() as group:
        _LOCAL.group = group
        try:
            yield
        finally:
            _LOCAL.group = None


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
    """Syncs files to disk at the same time. The file system then writes its journal once for all of them."""
    others = [_syncers().submit(os.fsync, descriptor) for descriptor in descriptors[1:]]
    try:
        for descriptor in descriptors[:1]:
            os.fsync(descriptor)
    finally:
        errors = [each.exception() for each in others]  # waits: no file may be closed while it is synced
    for error in errors:
        if error is not None:
            raise error


def _syncers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None or _pool[0] != os.getpid():  # threads do not survive a fork
        _pool = os.getpid(), ThreadPoolExecutor(4, "sync")
    return _pool[1]


_pool: tuple[int, ThreadPoolExecutor] | None = None

_WRITE = 2  # SYNC_FILE_RANGE_WRITE
_sync_file_range: Any = None
if sys.platform.startswith("linux"):
    _sync_file_range = getattr(ctypes.CDLL(None), "sync_file_range", None)
if _sync_file_range is not None:
    _sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


def start_writing(file: BinaryIO) -> None:
    """Asks the system to write a file's bytes to disk, without waiting for it. A later sync has less to do, and reports what goes wrong."""
    if _sync_file_range is not None:
        _sync_file_range(file.fileno(), 0, 0, _WRITE)


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


# ---- directories ------------------------------------------------------------------------------------------------

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def replacing_directory(path: Path) -> Iterator[str]:
    """Gives an empty directory to write to, which takes the place of `path` if the block ends without an exception.

    Files of the old directory that the block does not write and that do not belong to a SavedModel, stay.

    After a crash at any point, a reader finds either the old directory or the new one. Where the system cannot exchange two names
    in one step (other systems than Linux, some file systems), there is a moment in which the old directory is set aside.

    Raises:
        OSError: the parent directory does not exist or is not writable, or the disk is full.
    """
    target = os.path.realpath(os.fsdecode(path))
    parent, name = os.path.split(target)
    _sweep_directories(parent, name)
    temporary = os.path.join(parent, f".{name[:100]}.{secrets.token_hex(8)}.tmp")
    os.mkdir(temporary)
    try:
        with _held(temporary):
            yield temporary
            if os.path.isdir(target):
                _keep_others(target, temporary)
            for folder, _, _ in os.walk(temporary):
                sync_directory(folder)
            _exchange(temporary, target)
            sync_directory(parent)
    finally:
        # What is left under the temporary name is the old directory, or what a failed block has written.
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _held(directory: str) -> Iterator[None]:
    """Locks a directory, to show other processes that it is being written."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        _locked(descriptor)
        yield
    finally:
        os.close(descriptor)


def _keep_others(old: str, new: str) -> None:
    """Links the files of the old directory that have no successor into the new one, except those of the model itself."""
    for entry in os.scandir(old):
        successor = os.path.join(new, entry.name)
        if entry.name in _MODEL_FILES or _TEMPORARY.fullmatch(entry.name) or os.path.lexists(successor):
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.copytree(entry.path, successor, symlinks=True, copy_function=_link_or_copy)
        else:
            _link_or_copy(entry.path, successor)


# The files of a SavedModel. Those of an old model must not mix with those of a new one.
_MODEL_FILES = frozenset(("saved_model.pb", "saved_model.pbtxt", "fingerprint.pb", "variables", "assets", "debug"))


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _exchange(new: str, target: str) -> None:
    """Gives `new` the name `target`. If that exists, it gets the name of `new`."""
    try:
        os.rename(new, target)  # succeeds if the target does not exist or is an empty directory
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    if not _exchanged(new, target):
        aside = f"{new.removesuffix('.tmp')}.old"
        os.rename(target, aside)
        os.rename(new, target)
        os.rename(aside, new)


def _exchanged(first: str, second: str) -> bool:
    """Exchanges two names in one step. Returns False if the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is None:
        return False
    if exchange(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(code, os.strerror(code), second)


def _sweep_directories(parent: str, name: str) -> None:
    """Removes temporary directories of writers of `name` that were killed."""
    if fcntl is None:
        return
    pattern = re.compile(rf"\.{re.escape(name[:100])}\.[0-9a-f]{{16}}\.tmp")
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    descriptor = os.open(entry.path, os.O_RDONLY)
                    try:
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(entry.path)
                    finally:
                        os.close(descriptor)
