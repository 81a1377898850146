"""Helpers of `tensorflow.python.ops.rnn` and `rnn_cell_impl` that programs with their own cells and loops import."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.shapes import TensorShape
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import constants, joining, shaping


def concat_sizes(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """Joins two sizes (numbers, shapes, or int32 tensors) to one.

    Returns:
        A tensor; or if `static`, a list with None for unknown sizes, or None if not even the number of sizes is known.

    Raises:
        ValueError: a tensor is no scalar or vector; or a size is unknown and `static` is not set.
    """
    parts = [_sizes(prefix, "prefix"), _sizes(suffix, "suffix")]
    known = [constant_value(each) if isinstance(each, Tensor) else each for each in parts]
    if static:
        if any(each is None for each in known):
            return None
        return [None if size is None else int(size) for each in known if each is not None for size in each]
    if any(each is None or any(size is None for size in each) for each in parts if not isinstance(each, Tensor)):
        raise ValueError(f"Provided a prefix or suffix of None: {prefix} and {suffix}")
    tensors = [each if isinstance(each, Tensor) else constants.constant(each, dtypes.int32) for each in parts]
    return joining.concat(tensors, 0)


def _sizes(given: Any, role: str) -> Any:
    """A vector of sizes, a list with None for unknown sizes, or None if their number is unknown."""
    if isinstance(given, Tensor):
        if given.static_shape.rank not in (0, 1):
            raise ValueError(f"{role} tensor must be either a scalar or vector, but saw tensor: {given}")
        return shaping.reshape(given, [1]) if given.static_shape.rank == 0 else given
    if given is None:
        return None
    shape = TensorShape([given] if isinstance(given, (int, np.integer)) else given)
    return None if shape.rank is None else shape.as_list()


def best_effort_input_batch_size(flat_input: Any) -> Any:
    """The batch size of inputs [time, batch, ...]: a number if one of their static shapes has it, otherwise a tensor."""
    for each in flat_input:
        shape = each.static_shape
        if shape.rank is None:
            continue
        if shape.rank < 2:
            raise ValueError(f"Expected input tensor {each.name} to have rank at least 2")
        if shape[1] is not None:
            return shape[1]
    return shaping.shape(flat_input[0])[1]
