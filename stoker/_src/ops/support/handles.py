"""Static information about the variable behind a resource handle."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.late_binding import ops
from stoker._src.graph.tensor import Tensor


def handle_shape(handle: Tensor) -> Shape:
    """The static shape of the variable that a handle refers to."""
    noted = getattr(handle, "handle_shape", None)  # set on handles that are passed into a function
    if noted is not None:
        return noted
    if getattr(handle, "is_eager", False):
        return getattr(handle._value, "shape", UNKNOWN_SHAPE)  # type: ignore[attr-defined]
    made_by = getattr(handle, "op", None)
    return made_by.attrs["shape"] if made_by is not None and made_by.type == "VarHandleOp" else UNKNOWN_SHAPE


def handle_dtype(handle: Tensor) -> DType | None:
    """The dtype of the variable that a handle refers to; None if it does not refer to a variable."""
    noted = getattr(handle, "handle_dtype", None)
    if noted is not None:
        return noted
    if getattr(handle, "is_eager", False):
        return getattr(handle._value, "dtype", None)  # type: ignore[attr-defined]
    return handle.op.attrs["dtype"] if handle.op.type == "VarHandleOp" else None


def variable_sizes(handle: Any, kind: DType) -> Any:
    """The sizes of the variable behind a handle: static, or else read at run time."""
    if getattr(handle, "is_eager", False):
        return np.array(handle._value.read().shape, kind.as_numpy_dtype)
    known = handle_shape(handle)
    if known.known:
        return np.array(list(known), kind.as_numpy_dtype)
    return ops.VariableShape(handle, out_type=kind)


def is_resource_variable(value: Any) -> bool:
    """Whether a value is a resource variable. Reference variables are not."""
    handle = getattr(value, "handle", None)
    return isinstance(handle, Tensor) and handle.dtype is dtypes.resource
