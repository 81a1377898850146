"""Functional forms of TensorFlow's in-place row updates: replace, add and subtract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import ANY, STATEFUL, TYPE, OpDefinition, define, unchanged
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.unsigned import modular
from stoker._src.ops.support.values import torch_dtype


def _rows(name: str, change: Callable[[Any, Any, Any], Any]) -> OpDefinition:
    definition = define(f"{name}(x: T, i: int32, v: T) -> (y: T)", T=ANY)

    @definition.kernel
    def inplace_kernel(x: Any, i: torch.Tensor, v: Any) -> Any:
        if x.ndim == 0 or i.ndim > 1:
            raise InvalidArgumentError(
                None, None, f"x must have rows and i must be a vector, not {Shape(x.shape)}, {Shape(i.shape)}"
            )
        rows = i.reshape(-1)
        wanted = (*i.shape, *x.shape[1:])
        if tuple(v.shape) != wanted:
            raise InvalidArgumentError(
                None, None, f"v must be {Shape(wanted)} (i then the rows of x), but has shape {Shape(v.shape)}"
            )
        places = torch.remainder(rows, max(x.shape[0], 1)).to(torch.int64)  # indices wrap around, as in TensorFlow
        values = v.reshape((rows.numel(), *x.shape[1:]))
        if isinstance(x, np.ndarray):
            if name != "InplaceUpdate":
                raise InvalidArgumentError(None, None, "Unsupported data type: string")
            result = x.copy()
            result[places.numpy()] = values
            return result
        return change(x.clone(), places, values) if x.numel() else x.clone()

    definition.shape(unchanged)
    return definition


def _put(x: torch.Tensor, places: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    x[places] = v
    return x


INPLACE_UPDATE = _rows("InplaceUpdate", _put)


def _numeric(change: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    wrapped = modular(change)

    def run(x: torch.Tensor, places: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.bool:
            raise InvalidArgumentError(None, None, "Unsupported data type: bool")
        return wrapped(x, places, v)

    return run


INPLACE_ADD = _rows("InplaceAdd", _numeric(lambda x, places, v: x.index_add_(0, places, v)))
INPLACE_SUB = _rows("InplaceSub", _numeric(lambda x, places, v: x.index_add_(0, places, v, alpha=-1)))

EMPTY = define("Empty(shape: host int32) -> (output: dtype)", STATEFUL, dtype=TYPE, init=False)
EMPTY.shape(lambda shape: shape, as_shapes=["shape"])


@EMPTY.kernel
def empty_kernel(shape: list[int], *, dtype: DType) -> Any:
    """Zeros, whether or not `init` requests them, so that uninitialized memory is never visible."""
    sizes = allocatable(shape, 8)
    if dtype.name == "string":
        return np.full(sizes, b"", object)
    return torch.zeros(sizes, dtype=torch_dtype(dtype))


# ---- DeepCopy ---------------------------------------------------------------------------------------------------

DEEP_COPY = define("DeepCopy(x: T) -> (y: T)", STATEFUL, T=ANY)
DEEP_COPY.kernel(lambda x: x.clone() if isinstance(x, torch.Tensor) else x.copy() if isinstance(x, np.ndarray) else x)
DEEP_COPY.shape(unchanged)
