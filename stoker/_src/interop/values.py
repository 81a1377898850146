"""The writer's knowledge about each tensor of the graph."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.ops.support.values import torch_dtype

TENSOR, HOST, CONSTANT, LIST, VARIABLE = "tensor", "host", "constant", "list", "variable"
_SIMPLE = re.compile(r"-?\d+|[A-Za-z_][\w.]*(\[\d+\])?|\(?[A-Za-z_][\w.]*\.shape\[-?\d+\]\)?")


@dataclass
class Value:
    """A tensor of the graph in the written code.

    `kind` is TENSOR (a torch tensor), HOST (plain Python integers or booleans, such as sizes: `code` for a scalar, `items` with the code of
    each element for a vector), CONSTANT (`array`), LIST (a TensorArray: a Python list of tensors) or VARIABLE (a parameter or buffer).
    """

    kind: str
    dtype: DType
    code: str = ""
    items: list[str] | None = None
    array: Any = None
    name: str = ""  # the node of a constant, or the argument of an input

    @property
    def is_host(self) -> bool:
        """Whether the tensor can be represented by plain numbers: sizes, and small constants of integers or booleans."""
        if self.kind == CONSTANT:
            return is_countable(self.dtype) and self.array.ndim <= 2 and self.array.size <= 64
        return self.kind == HOST

    @property
    def elements(self) -> list[str]:
        """The code of each element of a host vector."""
        if self.kind == CONSTANT:
            return [repr(each) for each in self.array.tolist()]
        assert self.items is not None
        return self.items

    @property
    def is_vector(self) -> bool:
        return self.array.ndim == 1 if self.kind == CONSTANT else self.items is not None

    @property
    def is_scalar(self) -> bool:
        return self.array.ndim == 0 if self.kind == CONSTANT else self.items is None

    def host(self) -> str:
        """The code of plain numbers; for a tensor, the numbers in it."""
        if self.kind == CONSTANT:
            return _numbers(self.array.tolist())
        if self.kind == HOST:
            return self.code if self.items is None else "[" + ", ".join(self.items) + "]"
        return f"ops.numbers({self.code})"


def _numbers(value: Any) -> str:
    """Numbers in nested lists as Python literals."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_numbers, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def is_countable(dtype: DType) -> bool:
    return dtype.base_dtype in (dtypes.int32, dtypes.int64, dtypes.bool_)


def is_simple(code: str) -> bool:
    """Whether code is short enough to be repeated instead of assigned to a name."""
    return _SIMPLE.fullmatch(code) is not None


def dtype_code(dtype: DType) -> str:
    return str(torch_dtype(dtype.base_dtype))


def literal(array: np.ndarray) -> str:
    """A scalar as a Python literal, with as few digits as its precision needs."""
    value = array.item()
    if isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, complex):
        return repr(value)
    if value != value:
        return 'float("nan")'
    if value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    short = str(array[()])
    try:
        if array.dtype.type(float(short)) == array[()]:
            return repr(float(short))
    except ValueError:
        pass
    return repr(float(value))
