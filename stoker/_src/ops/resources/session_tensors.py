"""Tensors that a session keeps between runs: `get_session_handle`, `get_session_tensor`, `delete_session_tensor`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.devices import canonical_name
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InternalError, InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE
from stoker._src.graph import context
from stoker._src.graph.definition import ANY, RETAINS, STATEFUL, TYPE, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array.constants import placeholder
from stoker._src.ops.support.values import to_numpy

_KIND = "session tensor"
_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
_numbers = itertools.count()

GET_SESSION_HANDLE = define(
    "GetSessionHandle(value: T) -> (handle: string)", STATEFUL | RETAINS, T=ANY
).not_differentiable()


@GET_SESSION_HANDLE.kernel
def get_session_handle_kernel(value: Any, *, T: DType, ctx: Any) -> np.ndarray:
    text = f"{ctx.name};{next(_numbers)};{_DEVICE}".encode()
    ctx.resources.lookup_or_create("", _KIND, text.decode(), lambda: (value, T))
    return np.array(text, dtype=object)


GET_SESSION_HANDLE.shape(lambda value: SCALAR)

GET_SESSION_TENSOR = define(
    "GetSessionTensor(handle: host string) -> (value: dtype)", STATEFUL, dtype=TYPE
).not_differentiable()


@GET_SESSION_TENSOR.kernel
def get_session_tensor_kernel(handle: Any, *, dtype: DType, ctx: Any) -> Any:
    value, found = _kept(ctx.resources, _text(handle))
    if found is not dtype:
        raise InternalError(
            None, None, f"Output 0 of type {found.name} does not match declared output type {dtype.name}"
        )
    # A kept tensor does not change, whatever happens to the value that a run returns.
    return value.clone() if isinstance(value, torch.Tensor) else value.copy()


def _kept(resources: Any, handle: str) -> tuple[Any, DType]:
    kept = resources.lookup("", _KIND, handle)
    if kept is None:
        raise InvalidArgumentError(None, None, f"The tensor with handle '{handle}' is not in the session store.")
    return kept


GET_SESSION_TENSOR.shape(lambda handle: UNKNOWN_SHAPE)

DELETE_SESSION_TENSOR = define("DeleteSessionTensor(handle: host string) -> ()", STATEFUL).not_differentiable()


@DELETE_SESSION_TENSOR.kernel
def delete_session_tensor_kernel(handle: Any, *, ctx: Any) -> None:
    _kept(ctx.resources, _text(handle))
    ctx.resources.remove("", _KIND, _text(handle))


def _text(handle: Any) -> str:
    return handle.decode(errors="replace") if isinstance(handle, bytes) else str(handle)


class TensorHandle:
    """A tensor that a session keeps, the result of running `get_session_handle`. Feeding it feeds the tensor.

    The tensor is deleted together with the handle object, unless `get_raw_handle` was called.
    """

    def __init__(self, handle: Any, dtype: Any, owner: Any) -> None:
        self._handle = _text(handle)
        self._dtype = as_dtype(dtype)
        self._owner = owner  # The session's runner, which holds the resources.
        self._owns = True

    @property
    def handle(self) -> str:
        """The string that names the tensor. Feed it to the placeholder of `get_session_tensor`."""
        return self._handle

    @property
    def dtype(self) -> DType:
        return self._dtype

    def get_raw_handle(self) -> str:
        """Returns the string. From then on, the caller is responsible for deleting the tensor."""
        self._owns = False
        return self._handle

    def eval(self) -> Any:
        """Returns the tensor's value.

        Raises:
            TypeError: The tensor was deleted, or `get_raw_handle` was called.
            RuntimeError: The session is closed.
            InvalidArgumentError: The session no longer has the tensor.
        """
        self._check()
        if self._owner.closed:
            raise RuntimeError("Attempted to use a closed Session.")
        value, _ = _kept(self._owner.resources, self._handle)
        array = to_numpy(value)
        return array.copy() if array.ndim else array[()]

    def delete(self) -> None:
        """Deletes the tensor from the session.

        Raises:
            TypeError: The tensor was deleted before, or `get_raw_handle` was called.
        """
        self._check()
        self._owns = False
        self._forget()

    def _check(self) -> None:
        if not self._owns:
            raise TypeError(f"Persistent tensor {self._handle} may have already been deleted.")

    def _forget(self) -> None:
        self._owner.resources.remove("", _KIND, self._handle)

    def __del__(self) -> None:
        if getattr(self, "_owns", False):
            self._forget()

    def __str__(self) -> str:
        return self._handle


def fetched_handle(tensor: Tensor, value: Any, owner: Any) -> Any:
    """The value of a fetched `get_session_handle`: the object that owns the kept tensor."""
    return TensorHandle(value, tensor.op.attrs["T"], owner)


@export(v1="get_session_handle")
def get_session_handle(data: Any, name: str | None = None) -> Tensor:
    """Returns a tensor that, when run, keeps `data` in the session and gives a `TensorHandle`.

    Raises:
        TypeError: `data` is not a tensor.
    """
    if not isinstance(data, Tensor):
        raise TypeError("`data` must be of type Tensor.")
    return GET_SESSION_HANDLE(data, name=name)


@export(v1="get_session_tensor")
def get_session_tensor(handle: Any, dtype: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns a placeholder for the string of a handle, and the tensor that it names.

    Args:
        handle: The string of a handle, which contains the device, or a `TensorHandle`.
        dtype: The dtype of the tensor.
        name: The name of the op.
    """
    with context.target().device(_device_of(handle)):
        holder = placeholder(dtypes.string)
        return holder, GET_SESSION_TENSOR(holder, dtype=as_dtype(dtype), name=name)


@export(v1="delete_session_tensor")
def delete_session_tensor(handle: Any, name: str | None = None) -> tuple[Tensor, Operation]:
    """Returns a placeholder for the string of a handle, and the operation that deletes the tensor."""
    with context.target().device(_device_of(handle)):
        holder = placeholder(dtypes.string)
        return holder, DELETE_SESSION_TENSOR(holder, name=name)


def _device_of(handle: Any) -> str:
    return canonical_name(_text(handle).split(";")[-1])
