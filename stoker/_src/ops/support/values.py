"""The values that kernels exchange: torch tensors, NumPy object arrays of bytes for strings, Python objects for resources."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Operation

_TORCH: dict[DType, torch.dtype] = {
    dtypes.float16: torch.float16,
    dtypes.bfloat16: torch.bfloat16,
    dtypes.float32: torch.float32,
    dtypes.float64: torch.float64,
    dtypes.complex64: torch.complex64,
    dtypes.complex128: torch.complex128,
    dtypes.bool_: torch.bool,
    dtypes.int8: torch.int8,
    dtypes.int16: torch.int16,
    dtypes.int32: torch.int32,
    dtypes.int64: torch.int64,
    dtypes.uint8: torch.uint8,
    dtypes.uint16: torch.uint16,
    dtypes.uint32: torch.uint32,
    dtypes.uint64: torch.uint64,
    dtypes.qint8: torch.int8,
    dtypes.quint8: torch.uint8,
    dtypes.qint16: torch.int16,
    dtypes.quint16: torch.uint16,
    dtypes.qint32: torch.int32,
}


def torch_dtype(dtype: DType) -> torch.dtype:
    """The torch dtype that holds elements of `dtype`."""
    try:
        return _TORCH[dtype.base_dtype]
    except KeyError:
        raise TypeError(f"{dtype.name} elements are not numbers") from None


def from_numpy(array: np.ndarray) -> Any:
    """The kernel value of an array. torch shares its memory if possible; object arrays (strings) are returned unchanged."""
    kind = array.dtype
    if kind.isbuiltin == 1:  # not of ml_dtypes, and in this machine's order of bytes
        if kind.char == "O":
            return array
        if array.flags.writeable:
            try:
                return torch.from_numpy(array)
            except ValueError:  # it runs backwards
                pass
    if kind == ml_dtypes.bfloat16:
        # `ascontiguousarray` turns a scalar into a vector.
        bits = np.ascontiguousarray(array).reshape(array.shape).view(np.int16)
        return torch.from_numpy(bits).view(torch.bfloat16)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides) or kind.byteorder == ">":
        array = np.array(array, dtype=kind.newbyteorder("="))
    return torch.from_numpy(array)


def to_numpy(value: Any) -> Any:
    """A kernel's value as an array, which shares memory on the CPU."""
    if isinstance(value, torch.Tensor):
        if not value.is_cpu:
            value = value.cpu()
        if value.dtype is torch.bfloat16:
            return value.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        try:
            return value.numpy()
        except RuntimeError:  # its elements are still to be conjugated or negated
            return value.resolve_conj().resolve_neg().numpy()
    return value


def array_text(value: Any) -> str:
    """The text of an array in the `repr` of tensors and variables: scalars as plain numbers, rows on a new line."""
    text = repr(value.item()) if isinstance(value, np.generic) else repr(value)
    return f"\n{text}" if "\n" in text else text


def host_value(value: Any) -> Any:
    """An index-like input as Python numbers (nested lists)."""
    return value.tolist()


def _pure(op: Operation) -> bool:
    skip = Trait.STATEFUL | Trait.SOURCE | Trait.READS | Trait.WRITES | Trait.BLOCKING
    return op.definition.kernel_fn is not None and not op.definition.traits & skip


def call_kernel(op: Operation, values: list[Any]) -> list[Any]:
    """Runs the kernel of a pure op on its flat inputs. Returns one value for each output."""
    definition = op.definition
    arguments = definition.group(values, op.attrs)
    for i, arg in enumerate(definition.inputs):
        if arg.host:
            arguments[i] = [host_value(v) for v in arguments[i]] if arg.is_list else host_value(arguments[i])
    results = definition.kernel_fn(*arguments, **{name: op.attrs[name] for name in definition.kernel_attrs})  # type: ignore[misc]
    return definition.flatten_results(results)


def evaluate(op: Operation, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
    """Evaluates a pure op on arrays, if its kernel supports them."""
    if not _pure(op) or op.definition.needs_context:
        return None
    try:
        return [np.asarray(to_numpy(value)) for value in call_kernel(op, [from_numpy(array) for array in arrays])]
    except Exception:
        # Invalid values are reported when the graph runs, together with the node.
        return None


def shapes_by_kernel(op: Operation) -> list[Shape] | None:
    """The output shapes of a pure op, found by running its kernel on torch's meta device."""
    if not _pure(op) or op.definition.needs_context or any(arg.host for arg in op.definition.inputs):
        return None
    try:
        empty = [torch.empty(list(t.static_shape), dtype=torch_dtype(t.dtype), device="meta") for t in op._inputs]  # type: ignore[arg-type]
        return [Shape(value.shape) for value in call_kernel(op, empty)]
    except Exception:
        # Some kernels cannot run without data; their output shapes are found at run time.
        return None
