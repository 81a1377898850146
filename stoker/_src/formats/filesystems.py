"""A common interface to files: the local disk through `os`, all other schemes through fsspec.

`resolve("scheme://...")` returns the file system and the path within it. All methods raise only `tf.errors` classes.
`gfile.py` builds TensorFlow's file functions on this.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

from stoker._src.base import errors
from stoker._src.formats import atomic


class FileStatistics(NamedTuple):
    """The result of `stat`: length in bytes, modification time in nanoseconds, and whether the file is a directory."""

    length: int
    mtime_nsec: int
    is_directory: bool


_BY_ERRNO: dict[int, type[errors.OpError]] = {
    errno.ENOENT: errors.NotFoundError,
    errno.ENODEV: errors.NotFoundError,
    errno.ENXIO: errors.NotFoundError,
    errno.ESRCH: errors.NotFoundError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.EROFS: errors.PermissionDeniedError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.EBUSY: errors.FailedPreconditionError,
    errno.EPIPE: errors.FailedPreconditionError,
    errno.EBADF: errors.FailedPreconditionError,
    errno.EINVAL: errors.InvalidArgumentError,
    errno.ENAMETOOLONG: errors.InvalidArgumentError,
    errno.E2BIG: errors.InvalidArgumentError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.EMFILE: errors.ResourceExhaustedError,
    errno.ENFILE: errors.ResourceExhaustedError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.ENOMEM: errors.ResourceExhaustedError,
    errno.EMLINK: errors.ResourceExhaustedError,
    errno.EFBIG: errors.OutOfRangeError,
    errno.EXDEV: errors.UnimplementedError,
    errno.ENOSYS: errors.UnimplementedError,
    errno.ENOTSUP: errors.UnimplementedError,
    errno.ETIMEDOUT: errors.DeadlineExceededError,
    errno.ECONNREFUSED: errors.UnavailableError,
    errno.EHOSTUNREACH: errors.UnavailableError,
    errno.ENETUNREACH: errors.UnavailableError,
    errno.EINTR: errors.UnavailableError,
    errno.ESTALE: errors.AbortedError,
    errno.EDEADLK: errors.AbortedError,
    errno.ECANCELED: errors.CancelledError,
}
# fsspec's implementations raise these without an errno.
_BY_CLASS: tuple[tuple[type[BaseException], int], ...] = (
    (FileNotFoundError, errno.ENOENT),
    (FileExistsError, errno.EEXIST),
    (IsADirectoryError, errno.EISDIR),
    (NotADirectoryError, errno.ENOTDIR),
    (PermissionError, errno.EACCES),
    (TimeoutError, errno.ETIMEDOUT),
    (NotImplementedError, errno.ENOSYS),
)


def raise_for(error: BaseException, path: str) -> NoReturn:
    """Raises the `tf.errors` class that corresponds to an OS error for `path`."""
    number = getattr(error, "errno", None)
    if number is None:
        number = next((code for cls, code in _BY_CLASS if isinstance(error, cls)), None)
    if number is None:
        raise errors.UnknownError(None, None, f"{path}; {error}") from error
    raise _BY_ERRNO.get(number, errors.UnknownError)(None, None, f"{path}; {os.strerror(number)}") from error


class mapped:
    """Context manager that converts OS errors in the block to `tf.errors` classes that name `path`."""

    # This is a class rather than a generator for speed, since it surrounds every small read of a checkpoint.
    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, errors.OpError):
            return
        if isinstance(error, (OSError, NotImplementedError)):
            raise_for(error, self._path)
        if isinstance(error, ValueError):  # the name contains a NUL byte
            raise errors.InvalidArgumentError(None, None, f"{self._path!r}; {error}") from error


class LocalFileSystem:
    """The local files."""

    def open_read(self, path: str) -> BinaryIO:
        with mapped(path):
            return open(path, "rb")

    def open_write(self, path: str, append: bool, buffering: int = -1) -> BinaryIO:
        """Opens for writing. `buffering` is the buffer size in bytes, or -1 for the default."""
        with mapped(path):
            return cast(BinaryIO, open(path, "ab" if append else "wb", buffering=buffering))

    def stat(self, path: str) -> FileStatistics:
        with mapped(path):
            status = os.stat(path)
        return FileStatistics(status.st_size, status.st_mtime_ns, (status.st_mode & 0o170000) == 0o040000)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def isdir(self, path: str) -> bool:
        return os.path.isdir(path)

    def listdir(self, path: str) -> list[str]:
        with mapped(path):
            return os.listdir(path)

    def scan(self, path: str) -> list[tuple[str, bool]]:
        """Returns (name, is a directory) for every entry."""
        with mapped(path), os.scandir(path) as entries:
            return [(entry.name, entry.is_dir()) for entry in entries]

    def mkdir(self, path: str) -> None:
        with mapped(path):
            os.mkdir(path)

    def remove(self, path: str) -> None:
        with mapped(path):
            # unlink(2) on a directory is EISDIR on Linux and EPERM elsewhere.
            if os.path.isdir(path) and not os.path.islink(path):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            os.unlink(path)

    def rmdir(self, path: str) -> None:
        with mapped(path):
            os.rmdir(path)

    def rename(self, source: str, target: str) -> None:
        with mapped(source):
            os.replace(source, target)

    def is_link(self, path: str) -> bool:
        return os.path.islink(path)


class _Gathering(io.BufferedWriter):
    """A write buffer that records that it was closed, because in-memory files of fsspec stay open after `close`."""

    _ended = False

    @property
    def closed(self) -> bool:
        return self._ended or self.raw.closed

    def close(self) -> None:
        if not self.closed:
            try:
                super().close()
            finally:
                self._ended = True


class FsspecFileSystem:
    """Files of a scheme that fsspec supports."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def open_read(self, path: str) -> BinaryIO:
        with mapped(path):
            if self._backend.isdir(path):
                raise IsADirectoryError
            return cast(BinaryIO, self._backend.open(path, "rb"))

    def open_write(self, path: str, append: bool, buffering: int = -1) -> BinaryIO:
        """Like `LocalFileSystem.open_write`. The backend may add its own buffering."""
        with mapped(path):
            if self._backend.isdir(path):
                raise IsADirectoryError
            file = self._backend.open(path, "ab" if append else "wb")
            return cast(BinaryIO, file if buffering < 0 else _Gathering(file, buffering))

    def stat(self, path: str) -> FileStatistics:
        with mapped(path):
            status = self._backend.info(path)
            modified = None
            with contextlib.suppress(NotImplementedError, FileNotFoundError):
                modified = self._backend.modified(path)
        seconds = modified.timestamp() if modified is not None else 0
        return FileStatistics(status.get("size") or 0, int(seconds * 1e9), status["type"] == "directory")

    def exists(self, path: str) -> bool:
        with mapped(path):
            return bool(self._backend.exists(path))

    def isdir(self, path: str) -> bool:
        with mapped(path):
            return bool(self._backend.isdir(path))

    def listdir(self, path: str) -> list[str]:
        return [name for name, _ in self.scan(path)]

    def scan(self, path: str) -> list[tuple[str, bool]]:
        """Returns (name, is a directory) for every entry."""
        with mapped(path):
            # Object stores cache listings; a program that just wrote a file must see it.
            self._backend.invalidate_cache()
            entries = self._backend.ls(path, detail=True)
        own = path.rstrip("/")
        found = [(str(entry["name"]).rstrip("/"), entry["type"] == "directory") for entry in entries]
        return [
            (name.rsplit("/", 1)[-1], is_directory) for name, is_directory in found if name.strip("/") != own.strip("/")
        ]

    def mkdir(self, path: str) -> None:
        with mapped(path):
            self._backend.mkdir(path, create_parents=False)

    def remove(self, path: str) -> None:
        with mapped(path):
            if self._backend.isdir(path):
                raise IsADirectoryError
            self._backend.rm_file(path)

    def rmdir(self, path: str) -> None:
        with mapped(path), contextlib.suppress(FileNotFoundError):
            # Object stores have no directories: a directory disappears with its last file.
            self._backend.rmdir(path)

    def rename(self, source: str, target: str) -> None:
        with mapped(source):
            if not self._backend.exists(source):
                raise FileNotFoundError
            directory = self._backend.isdir(source)
            if self._backend.isdir(target):  # `mv` would move the source into it
                if not directory:
                    raise IsADirectoryError
                if self._backend.ls(target):
                    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
                self.rmdir(target)
            elif directory and self._backend.exists(target):
                raise NotADirectoryError
            self._backend.mv(source, target, recursive=directory)

    def is_link(self, path: str) -> bool:
        return False


FileSystem = LocalFileSystem | FsspecFileSystem

LOCAL = LocalFileSystem()
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://")
_ALIASES = {"ram": "memory"}  # TensorFlow's own in-memory scheme


class Location(NamedTuple):
    """A parsed path: its file system, the path within it, and the prefix to add to results."""

    system: FileSystem
    path: str
    prefix: str

    def at(self, path: str) -> Location:
        return self._replace(path=path)

    @property
    def full(self) -> str:
        return self.prefix + self.path


def resolve(path: str) -> Location:
    """Finds the file system of a path by its scheme. Without a scheme, or with `file://`, it is the local one.

    Raises:
        UnimplementedError: no installed backend supports the scheme.
    """
    match = _SCHEME.match(path)
    if match is None:
        return Location(LOCAL, path, "")
    scheme, prefix = match.group(1), match.group(0)
    if scheme == "file":
        return Location(LOCAL, path[match.end() :], prefix)
    import fsspec  # slow to import and rarely needed

    try:
        # The backend handles hosts, users and ports; the rest is the path within the file system.
        backend, inner = fsspec.core.url_to_fs(f"{_ALIASES.get(scheme, scheme)}://{path[match.end() :]}")
    except (ValueError, ImportError, TypeError) as error:
        raise errors.UnimplementedError(
            None, None, f"File system scheme '{scheme}' not implemented (file: '{path}'): {error}"
        ) from error
    except OSError as error:
        raise_for(error, path)
    inner, bare = str(inner), path.rstrip("/")  # backends drop trailing slashes
    return Location(FsspecFileSystem(backend), inner, bare.removesuffix(inner) if bare.endswith(inner) else prefix)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Opens a file for writing that gets its name when the block ends, and is discarded if the block raises."""
    location = resolve(path)
    if location.prefix in ("", "file://"):
        with mapped(path), atomic.replacing(location.path) as sink:
            yield sink
        return
    # Stores behind fsspec make a file visible when it is closed.
    sink = location.system.open_write(location.path, append=False)
    try:
        yield sink
    except BaseException:
        with contextlib.suppress(OSError, errors.OpError):
            sink.close()
            location.system.remove(location.path)
        raise
    with mapped(path):
        sink.close()


@contextlib.contextmanager
def one_commit(path: str) -> Iterator[None]:
    """`atomic.one_commit` for files at or near `path`. A failure to make them appear is an error of tf.errors."""
    failure: BaseException | None = None
    try:
        with atomic.one_commit():
            try:
                yield
            except BaseException as error:
                failure = error
                raise
    except OSError as error:
        if error is failure:
            raise
        raise_for(error, path)


def sweep_beside(path: str) -> None:
    """Removes temporary files of killed writers from the directory of `path`, if it is a local one."""
    location = resolve(path)
    if location.prefix in ("", "file://"):
        atomic.sweep(os.path.dirname(location.path))


def path_text(path: Any) -> str:
    """Converts a path (str, bytes or os.PathLike) to text."""
    if isinstance(path, str):
        return path
    if hasattr(path, "__fspath__"):
        path = path.__fspath__()
    if isinstance(path, bytes):
        return os.fsdecode(path)
    if isinstance(path, str):
        return path
    raise TypeError(f"Expected binary or unicode string, got {path!r}")


def locate(path: Any) -> Location:
    """`resolve` for a path of any type."""
    return resolve(path_text(path))


def registered_schemes() -> list[str]:
    """Returns all available schemes; the empty one is the local disk."""
    import fsspec

    return ["", "file", *_ALIASES, *(name for name in fsspec.available_protocols() if name not in ("file", "local"))]
