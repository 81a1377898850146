"""TensorFlow's file functions, `tf.io.gfile` and `tf.gfile`, for local files and fsspec.

Paths may be str, bytes or path-like. Errors are `tf.errors` classes. The 2.x names are lower case (`copy`, `glob`); the
1.x names are at the end of the module (`Copy`, `Glob`).
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from stoker._src.base import errors
from stoker._src.base.extensions import extension
from stoker._src.formats.filesystems import (
    LOCAL,
    FileStatistics,
    Location,
    locate,
    mapped,
    path_text,
    registered_schemes,
)

_native = extension("stoker._src.formats._native")
_COPY_CHUNK = 1 << 20
_MODES = frozenset(("r", "w", "a", "r+", "w+", "a+"))


class GFile:
    """A file that is opened on the first read or write.

    Text modes decode UTF-8; a "b" anywhere in the mode makes it binary. Sizes and positions are in bytes in both.
    As in TensorFlow, reading and writing have separate positions. A file open for both ("w+", "a+") is read from
    its start and sees flushed data. A write in "r+" mode also truncates the file. After `close`, the file may
    be used again, from the start. `readline` drops carriage returns.

    Args:
        name: the path.
        mode: r, w, a, r+, w+ or a+, with or without b.

    Raises:
        InvalidArgumentError: the mode is invalid.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._source: BinaryIO | None = None
        self._sink: BinaryIO | None = None
        self._name = name
        self._mode = mode
        plain = mode.replace("b", "")
        if plain not in _MODES:
            raise errors.InvalidArgumentError(
                None, None, f"mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+': {mode!r}"
            )
        self._binary = plain != mode
        self._readable = plain in ("r", "r+", "w+", "a+")
        self._writable = plain != "r"
        self._append = plain.startswith("a")

    @property
    def name(self) -> Any:
        """The path as passed by the caller."""
        return self._name

    @property
    def mode(self) -> str:
        return self._mode

    def _reader(self) -> BinaryIO:
        if self._source is None:
            if not self._readable:
                raise errors.PermissionDeniedError(None, None, "File isn't open for reading")
            location = locate(self._name)
            if location.system.isdir(location.path):
                raise errors.FailedPreconditionError(None, None, f"{path_text(self._name)}; Is a directory")
            self._source = location.system.open_read(location.path)
        return self._source

    def _writer(self) -> BinaryIO:
        if self._sink is None:
            if not self._writable:
                raise errors.PermissionDeniedError(None, None, "File isn't open for writing")
            location = locate(self._name)
            self._sink = location.system.open_write(location.path, self._append)
        return self._sink

    def _decoded(self, data: bytes) -> Any:
        return data if self._binary else data.decode("utf-8")

    def _mapped(self) -> contextlib.AbstractContextManager[None]:
        return mapped(path_text(self._name))

    def size(self) -> int:
        """Returns the file's length on disk, which may not include unflushed data."""
        return stat(self._name).length

    def read(self, n: int = -1) -> Any:
        """Returns the next `n` bytes (by default all remaining ones), as str in text modes.

        Raises:
            UnicodeDecodeError: in a text mode, the bytes are not UTF-8 or `n` splits a character.
        """
        source = self._reader()
        if n < -1:
            raise errors.InvalidArgumentError(None, None, f"Can't read a negative number of bytes: {n}")
        with self._mapped():
            data = source.read(n)
        return self._decoded(data)

    def readline(self) -> Any:
        """Returns the next line with its newline, or an empty string at the end."""
        source = self._reader()
        with self._mapped():
            line = source.readline()
        return self._decoded(line.replace(b"\r", b"") if b"\r" in line else line)

    def readlines(self) -> list[Any]:
        """Returns the remaining lines."""
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Moves the read position.

        Args:
            offset: the offset in bytes, relative to `whence`.
            whence: 0 for the start, 1 for the current position, 2 for the end of the file.
            position: a deprecated name of `offset`.

        Raises:
            OutOfRangeError: the position is past the end. The read position is then the end.
            InvalidArgumentError: the position is before the start, or `whence` is unknown.
            PermissionDeniedError: the file is not open for reading.
        """
        source = self._reader()
        if offset is None:
            offset = position
        if offset is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (0, 1, 2):
            raise errors.InvalidArgumentError(
                None, None, f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2."
            )
        with self._mapped():
            before = source.tell()
            target = offset + (0, before, 0)[whence]
            size = source.seek(0, os.SEEK_END) if whence == 2 or target > 0 else 0
            if whence == 2:
                target += size
            source.seek(min(target, size) if target >= 0 else before)
        if target < 0:
            raise errors.InvalidArgumentError(None, None, f"Seeking to a negative position: {target}")
        if target > size:
            raise errors.OutOfRangeError(None, None, "reached end of file")

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        """Returns the read position, or the write position of a write-only file."""
        handle = self._reader() if self._readable else self._writer()
        with self._mapped():
            return handle.tell()

    def write(self, file_content: Any) -> None:
        """Appends str (as UTF-8) or bytes."""
        if isinstance(file_content, str):
            data: Any = file_content.encode("utf-8")
        elif isinstance(file_content, (bytes, bytearray, memoryview)):
            data = file_content
        else:
            raise TypeError(f"Expected binary or unicode string, got {file_content!r}")
        sink = self._writer()
        with self._mapped():
            sink.write(data)

    def flush(self) -> None:
        """Passes buffered data to the operating system."""
        if self._sink is not None:
            with self._mapped():
                self._sink.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        source, sink = self._source, self._sink
        self._source = self._sink = None
        with self._mapped():
            if source is not None:
                source.close()
            if sink is not None:
                sink.close()

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()

    def __del__(self) -> None:
        # A file that is garbage-collected without close is still written, as in TensorFlow.
        with contextlib.suppress(Exception):
            self.close()


FastGFile = Open = GFile


def exists(path: Any) -> bool:
    """Returns whether there is a file or directory at `path`. A broken symbolic link does not count."""
    location = locate(path)
    return location.system.exists(location.path)


def isdir(path: Any) -> bool:
    """Returns whether `path` is a directory."""
    location = locate(path)
    return location.system.isdir(location.path)


def stat(path: Any) -> FileStatistics:
    """Returns length, modification time and kind of the file at `path`.

    Raises:
        NotFoundError: the file does not exist.
    """
    location = locate(path)
    return location.system.stat(location.path)


def listdir(path: Any) -> list[str]:
    """Returns the names in a directory, in arbitrary order, without "." and "..".

    Raises:
        NotFoundError: the directory does not exist.
    """
    location = locate(path)
    if not location.system.isdir(location.path):
        raise errors.NotFoundError(None, None, f"Could not find directory {path_text(path)}")
    return location.system.listdir(location.path)


def mkdir(path: Any) -> None:
    """Creates a directory. As in TensorFlow, an existing one is left unchanged.

    Raises:
        NotFoundError: the parent does not exist.
        FailedPreconditionError: the parent is a file.
    """
    location = locate(path)
    if not location.path:
        return
    with contextlib.suppress(errors.AlreadyExistsError):
        location.system.mkdir(location.path)


def makedirs(path: Any) -> None:
    """Creates a directory and its missing parents. Does nothing if it exists.

    Raises:
        FailedPreconditionError: the path, or one of its parents, is a file.
    """
    location = locate(path)
    missing = []
    current = location.path.rstrip("/")
    while current and not location.system.exists(current):
        missing.append(current)
        current = posixpath.dirname(current)
    if current and current != "/" and not location.system.isdir(current):
        raise errors.FailedPreconditionError(None, None, f"{location.at(current).full} is not a directory")
    for directory in reversed(missing):
        # Another process may have created it in the meantime.
        with contextlib.suppress(errors.AlreadyExistsError):
            location.system.mkdir(directory)


def remove(path: Any) -> None:
    """Removes a file.

    Raises:
        NotFoundError: the file does not exist.
        FailedPreconditionError: it is a directory.
    """
    location = locate(path)
    location.system.remove(location.path)


def rmtree(path: Any) -> None:
    """Removes a directory and its contents, or a file. Links inside are removed, not followed.

    Raises:
        NotFoundError: there is nothing at `path`.
        FailedPreconditionError: `path` is a link to a directory.
    """
    location = locate(path)
    if not location.system.exists(location.path):
        raise errors.NotFoundError(None, None, f"{path_text(path)} not found")
    if location.system.is_link(location.path):
        raise errors.FailedPreconditionError(None, None, f"{path_text(path)}; Not a directory")
    _remove_tree(location)


def _remove_tree(location: Location) -> None:
    system, path = location.system, location.path
    if system.is_link(path) or not system.isdir(path):
        system.remove(path)
        return
    for name in system.listdir(path):
        _remove_tree(location.at(posixpath.join(path, name)))
    system.rmdir(path)


def _check_target_free(target: Location, overwrite: bool) -> None:
    if not overwrite and target.system.exists(target.path):
        raise errors.AlreadyExistsError(None, None, f"file already exists: {target.full}")


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Moves a file or directory within one file system.

    Raises:
        AlreadyExistsError: `dst` exists and `overwrite` is False.
        NotFoundError: `src`, or the directory of `dst`, does not exist.
        UnimplementedError: the two are in different file systems.
    """
    source, target = locate(src), locate(dst)
    if (source.prefix or "file://") != (target.prefix or "file://"):
        raise errors.UnimplementedError(None, None, f"Renaming {source.full} to {target.full} not implemented")
    _check_target_free(target, overwrite)
    source.system.rename(source.path, target.path)


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file's content, also between file systems. Copying a file onto itself does nothing.

    Raises:
        AlreadyExistsError: `dst` exists and `overwrite` is False.
        NotFoundError: `src`, or the directory of `dst`, does not exist.
        InvalidArgumentError: `src` is a directory.
        FailedPreconditionError: `dst` is a directory.
    """
    source, target = locate(src), locate(dst)
    _check_target_free(target, overwrite)
    if source.system.isdir(source.path):
        raise errors.InvalidArgumentError(None, None, f"{source.full}; Invalid argument: is a directory")
    if _same_file(source, target):
        return
    with (
        contextlib.closing(source.system.open_read(source.path)) as reader,
        contextlib.closing(target.system.open_write(target.path, append=False)) as writer,
        mapped(target.full),
    ):
        while chunk := reader.read(_COPY_CHUNK):
            writer.write(chunk)


def _same_file(source: Location, target: Location) -> bool:
    if source.prefix in ("", "file://") and target.prefix in ("", "file://"):
        with contextlib.suppress(OSError):
            return os.path.samefile(source.path, target.path)
        return False
    return source.full == target.full


_WILDCARD = re.compile(r"[*?\[\\]")


def _matches(location: Location, pattern: str) -> list[str]:
    """Returns the paths that match the pattern. Wildcards do not match slashes, but match leading dots."""
    if not _WILDCARD.search(pattern):
        system = location.system
        return [pattern] if system.exists(pattern) or system.is_link(pattern) else []
    head, name = posixpath.split(pattern.rstrip("/"))
    # TensorFlow returns "./name" for a local pattern without a directory.
    top = "" if location.prefix else "."
    parents = _matches(location, head) if _WILDCARD.search(head) else [head or top]
    found = []
    # Python's patterns have no escapes, so an escaped character becomes a character class.
    spelled = re.sub(r"\\(.)", lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], name)
    accept = re.compile(fnmatch.translate(spelled.replace("[^", "[!"))).match
    for parent in parents:
        if location.system.isdir(parent):
            found += [posixpath.join(parent, each) for each in location.system.listdir(parent) if accept(each)]
    return found


def glob(pattern: Any) -> list[str]:
    """Returns the files and directories that match a pattern or any of a list of patterns, sorted within each pattern.

    `*`, `?` and `[...]` match within one path component, including names that start with a dot; `**` means `*`. A backslash
    escapes them.
    """
    if isinstance(pattern, (str, bytes)) or hasattr(pattern, "__fspath__"):
        pattern = [pattern]
    found: list[str] = []
    for each in pattern:
        location = locate(each)
        if location.path:
            found += [location.at(path).full for path in sorted(_matches(location, location.path))]
    return found


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[errors.OpError], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields (directory, names of its directories, names of its files) for the tree under `top`. Links are followed.

    Args:
        top: the start directory. If it is not a directory, nothing is yielded.
        topdown: whether parents come before their children.
        onerror: called with the error when a directory cannot be listed. The directory is then skipped.
    """
    location = locate(top)
    try:
        if not location.system.isdir(location.path):
            raise errors.NotFoundError(None, None, f"Could not find directory {path_text(top)}")
        entries = sorted(location.system.scan(location.path))
    except errors.OpError as error:
        if onerror is not None:
            onerror(error)
        return
    directories = [name for name, is_directory in entries if is_directory]
    here = (location.full, directories, [name for name, is_directory in entries if not is_directory])
    if topdown:
        yield here
    for name in directories:
        yield from walk(posixpath.join(location.full, name), topdown, onerror)
    if not topdown:
        yield here


def join(path: Any, *paths: Any) -> Any:
    """Joins parts with slashes. A part that starts with a slash discards the parts before it. Works on str and on bytes."""
    return posixpath.join(os.fspath(path), *(os.fspath(each) for each in paths))


def read_files(names: list[str]) -> list[bytes]:
    """Returns the contents of several files.

    Raises:
        OpError: a file cannot be read.
    """
    found: list[bytes | None] = [None] * len(names)
    if _native is not None:
        places = [locate(name) for name in names]
        local = [os.fsencode(place.path) if place.system is LOCAL else None for place in places]
        found = _native.read_files(local)
    contents = []
    for name, content in zip(names, found):
        if content is None:
            with GFile(name, "rb") as file:
                content = file.read()
        contents.append(content)
    return contents


def get_registered_schemes() -> list[str]:
    """Returns the supported schemes; "" is the local disk."""
    return registered_schemes()


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """1.x name of `copy`."""
    copy(oldpath, newpath, overwrite)


def DeleteRecursively(dirname: Any) -> None:
    """1.x name of `rmtree`."""
    rmtree(dirname)


def Exists(filename: Any) -> bool:
    """1.x name of `exists`."""
    return exists(filename)


def Glob(filename: Any) -> list[str]:
    """1.x name of `glob`."""
    return glob(filename)


def IsDirectory(dirname: Any) -> bool:
    """1.x name of `isdir`."""
    return isdir(dirname)


def ListDirectory(dirname: Any) -> list[str]:
    """1.x name of `listdir`."""
    return listdir(dirname)


def MakeDirs(dirname: Any) -> None:
    """1.x name of `makedirs`."""
    makedirs(dirname)


def MkDir(dirname: Any) -> None:
    """1.x name of `mkdir`."""
    mkdir(dirname)


def Remove(filename: Any) -> None:
    """1.x name of `remove`."""
    remove(filename)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """1.x name of `rename`."""
    rename(oldname, newname, overwrite)


def Stat(filename: Any) -> FileStatistics:
    """1.x name of `stat`."""
    return stat(filename)


def Walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """1.x name of `walk`; `in_order` means `topdown`."""
    return walk(top, in_order)
