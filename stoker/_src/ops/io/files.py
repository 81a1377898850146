"""File ops: reading, writing and matching names; and writing a graph to a file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.formats import gfile
from stoker._src.formats.filesystems import resolve
from stoker._src.formats.message_files import write_message
from stoker._src.graph import context
from stoker._src.graph.definition import STATEFUL, define, unregistered
from stoker._src.graph.graph import Graph
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.rows import Input
from stoker._src.ops.variables import variables


def _path(filename: np.ndarray, what: str = "filename") -> str:
    if filename.ndim:
        raise InvalidArgumentError(
            None, None, f"Input {what} tensor must be scalar, but had shape: {list(filename.shape)}"
        )
    return os.fsdecode(filename.item())


# A file may change between runs, so the result of reading is not a function of the name alone.
READ_FILE = define("ReadFile(filename: string) -> (contents: string)", STATEFUL)


@READ_FILE.kernel
def read_file_kernel(filename: np.ndarray) -> np.ndarray:
    with gfile.GFile(_path(filename), "rb") as file:
        return np.array(file.read(), dtype=object)


READ_FILES = unregistered("ReadFiles(filenames: string) -> (contents: string)", STATEFUL)
READ_FILES.shape(lambda filenames: filenames)


@READ_FILE.rows
def read_file_of_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    return None if inputs[0].rank != 0 else [READ_FILES(inputs[0].tensor)]


@READ_FILES.kernel
def read_files_kernel(filenames: np.ndarray) -> np.ndarray:
    result = np.empty(filenames.shape, dtype=object)
    result[...] = gfile.read_files([os.fsdecode(each) for each in filenames.tolist()])
    return result


@READ_FILE.shape
def read_file_shape(filename: Shape) -> Shape:
    filename.of_rank(0)
    return SCALAR


@export("io.read_file", v1="read_file")
def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The contents of a file, as a string scalar."""
    return READ_FILE(filename, name=name)


WRITE_FILE = define("WriteFile(filename: string, contents: string) -> ()", STATEFUL)


@WRITE_FILE.kernel
def write_file_kernel(filename: np.ndarray, contents: np.ndarray) -> None:
    path = _path(filename)
    if contents.ndim:
        raise InvalidArgumentError(None, None, f"Contents tensor must be scalar, but had shape: {list(contents.shape)}")
    location = resolve(path)
    folder = os.path.dirname(location.path)
    if folder and not location.system.exists(folder):
        gfile.makedirs(location.at(folder).full)
    with gfile.GFile(path, "wb") as file:
        file.write(contents.item())


@WRITE_FILE.shape
def write_file_shape(filename: Shape, contents: Shape) -> tuple[()]:
    filename.of_rank(0)
    contents.of_rank(0)
    return ()


@export("io.write_file", v1="write_file")
def write_file(filename: Any, contents: Any, name: str | None = None) -> Any:
    """Writes a file and creates missing parent folders. Returns the op (None in eager mode)."""
    written = WRITE_FILE(filename, contents, name=name)
    return None if context.executing_eagerly() else written


MATCHING_FILES = define("MatchingFiles(pattern: string) -> (filenames: string)", STATEFUL)


@MATCHING_FILES.kernel
def matching_files_kernel(pattern: np.ndarray) -> np.ndarray:
    if pattern.ndim > 1:
        raise InvalidArgumentError(
            None, None, f"Input patterns tensor must be scalar or vector, but had shape: {list(pattern.shape)}"
        )
    found = sorted(name for each in pattern.ravel().tolist() for name in gfile.glob(os.fsdecode(each)))
    names = np.empty(len(found), dtype=object)
    names[:] = [os.fsencode(name) for name in found]
    return names


@MATCHING_FILES.shape
def matching_files_shape(pattern: Shape) -> Shape:
    pattern.at_most(1)
    return Shape((None,))


@export("io.matching_files", v1="matching_files")
def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The sorted names of the files that match one or several patterns. Wildcards are allowed in the last path component."""
    return MATCHING_FILES(pattern, name=name)


@export("io.match_filenames_once", v1="train.match_filenames_once")
def match_filenames_once(pattern: Any, name: str | None = None) -> Any:
    """A local variable with the file names that match `pattern` when it is initialized."""
    with name_scope(name, "matching_filenames", None) as scope:
        return variables.Variable(
            initial_value=matching_files(pattern),
            trainable=False,
            validate_shape=False,
            name=scope,
            collections=[GraphKeys.LOCAL_VARIABLES],
            dtype=dtypes.string,
        )


@export("io.write_graph", v1="train.write_graph")
def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Writes a graph's GraphDef as text or binary, and returns the path. Missing folders are created.

    The file is written atomically.
    """
    graph_def = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    logdir = os.fspath(logdir)
    gfile.makedirs(logdir)
    path = os.path.join(logdir, name)
    write_message(path, graph_def, as_text=as_text)
    return path
