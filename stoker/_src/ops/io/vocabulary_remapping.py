"""Ops that reorder rows and columns of a saved matrix for another vocabulary."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.formats import gfile
from stoker._src.formats.checkpoints import open_checkpoint
from stoker._src.graph.definition import INT, STATEFUL, define
from stoker._src.ops.support.values import to_numpy

# Files may change between runs.
GENERATE_VOCAB_REMAPPING = define(
    "GenerateVocabRemapping(new_vocab_file: scalar string, old_vocab_file: scalar string)"
    " -> (remapping: int64, num_present: int32)",
    STATEFUL,
    new_vocab_offset=INT(minimum=0),
    num_new_vocab=INT(minimum=0),
    old_vocab_size=INT(-1, minimum=-1),
)


def _lines(path: np.ndarray, count: int) -> list[bytes]:
    """The first `count` lines of a file (all for -1).

    Raises:
        InvalidArgumentError: the file has fewer lines.
    """
    name = os.fsdecode(path.item())
    with gfile.GFile(name, "rb") as file:
        lines = file.read().split(b"\n")
    if not lines[-1]:
        del lines[-1]
    if count > len(lines):
        raise InvalidArgumentError(None, None, f"{name} has {len(lines)} lines, {count} are wanted")
    return lines if count < 0 else lines[:count]


@GENERATE_VOCAB_REMAPPING.kernel
def generate_vocab_remapping_kernel(
    new_vocab_file: np.ndarray,
    old_vocab_file: np.ndarray,
    *,
    new_vocab_offset: int,
    num_new_vocab: int,
    old_vocab_size: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    places: dict[bytes, int] = {}
    for number, word in enumerate(_lines(old_vocab_file, old_vocab_size)):
        if places.setdefault(word, number) != number:
            raise FailedPreconditionError(
                None, None, f"{word!r} is in lines {places[word] + 1} and {number + 1} of {old_vocab_file.item()!r}"
            )
    words = _lines(new_vocab_file, new_vocab_offset + num_new_vocab)[new_vocab_offset:]
    found = [places.get(word, -1) for word in words]
    present = sum(place >= 0 for place in found)
    return torch.tensor(found, dtype=torch.int64), torch.tensor(present, dtype=torch.int32)


@GENERATE_VOCAB_REMAPPING.shape
def generate_vocab_remapping_shape(new_vocab_file: Shape, old_vocab_file: Shape, *, num_new_vocab: int) -> Any:
    return Shape((num_new_vocab,)), SCALAR


LOAD_AND_REMAP_MATRIX = define(
    "LoadAndRemapMatrix(ckpt_path: scalar string, old_tensor_name: scalar string, row_remapping: any/vector int64,"
    " col_remapping: any/vector int64, initializing_values: float32) -> (output_matrix: float32)",
    STATEFUL,
    num_rows=INT(minimum=0),
    num_cols=INT(minimum=1),
    max_rows_in_memory=-1,
)


def _remapping(given: torch.Tensor, count: int, size: int, what: str) -> np.ndarray:
    """For each new row or column, the index of the old one (of `size`), or -1 if it is missing.

    Raises:
        InvalidArgumentError: the length is not `count`, or an old index is out of range.
        UnimplementedError: an old index is used twice.
    """
    places = to_numpy(given)
    if len(places) != count:
        raise InvalidArgumentError(None, None, f"Size of {what} remapping is {len(places)}, with {count} {what}s")
    if count and places.max() >= size:
        raise InvalidArgumentError(None, None, f"{what} {places.max()} of a matrix that has {size} of them")
    used = places[places >= 0]
    if len(np.unique(used)) < len(used):
        raise UnimplementedError(None, None, f"A {what} of the saved matrix is used twice: {places.tolist()}")
    return places


@LOAD_AND_REMAP_MATRIX.kernel
def load_and_remap_matrix_kernel(
    ckpt_path: np.ndarray,
    old_tensor_name: np.ndarray,
    row_remapping: torch.Tensor,
    col_remapping: torch.Tensor,
    initializing_values: torch.Tensor,
    *,
    num_rows: int,
    num_cols: int,
    max_rows_in_memory: int,
) -> torch.Tensor:
    name = old_tensor_name.item().decode(errors="surrogateescape")
    with open_checkpoint(os.fsdecode(ckpt_path.item())) as reader:
        info = reader.info(name)
        if len(info.shape) != 2:
            raise InvalidArgumentError(None, None, f"Tensor {name} has shape {list(info.shape)}, a matrix is wanted")
        old_rows, old_cols = info.shape
        rows = _remapping(row_remapping, num_rows, old_rows, "row")
        plain = not len(col_remapping)
        cols = np.arange(num_cols) if plain else _remapping(col_remapping, num_cols, old_cols, "column")
        if plain and num_cols != old_cols:
            raise InvalidArgumentError(
                None, None, f"Tensor {name} has {old_cols} columns, {num_cols} are wanted and none remapped"
            )
        known = (rows >= 0)[:, None] & (cols >= 0)
        missing = known.size - int(known.sum())
        if missing != initializing_values.numel():
            raise InvalidArgumentError(
                None, None, f"{initializing_values.numel()} initializing values for {missing} missing elements"
            )
        matrix = np.empty((num_rows, num_cols), np.float32)
        # Only this many rows of the saved matrix are in memory at a time.
        step = max_rows_in_memory if max_rows_in_memory > 0 else max(old_rows, 1)
        for start in range(0, old_rows, step):
            held = (rows >= start) & (rows < start + step)
            if held.any():
                part = reader.read_slice(name, [(start, min(step, old_rows - start)), (0, -1)])
                matrix[np.ix_(held, cols >= 0)] = part[np.ix_(rows[held] - start, cols[cols >= 0])]
    matrix[~known] = to_numpy(initializing_values).reshape(-1)
    return torch.from_numpy(matrix).to(initializing_values.device)


@LOAD_AND_REMAP_MATRIX.shape
def load_and_remap_matrix_shape(
    ckpt_path: Shape, old_tensor_name: Shape, row_remapping: Shape, col_remapping: Shape, initializing_values: Shape,
    *, num_rows: int, num_cols: int,
) -> Shape:  # fmt: skip
    return Shape((num_rows, num_cols))
