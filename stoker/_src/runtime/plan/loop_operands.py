"""What fused loops take of an op: the kinds of its tensors, their precision and shapes, and which arguments are plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.shapes import Shape
from stoker._src.graph.tensor import Tensor
from stoker._src.runtime.plan.instructions import Host, Instruction, Value

ShapeOf = Callable[[Tensor], Shape]
_KINDS = {dtypes.float32: "", dtypes.float64: "", dtypes.bool_: "", dtypes.int32: "int32", dtypes.int64: "int64"}
# Calls of float64 hold 64-bit integers as they are, and know no others; those of float32 convert between 32 and 64 bits.
_PRECISIONS = {dtypes.float32: torch.float32, dtypes.int32: torch.float32, dtypes.float64: torch.float64}


def precisions(instruction: Instruction) -> set[torch.dtype]:
    """The precisions that the tensors of a fusible instruction ask for; none if there are only booleans and 64-bit integers."""
    assert instruction.op is not None
    given = zip(instruction.inputs, are_numbers(instruction.arguments))
    tensors = [*instruction.op.outputs, *(tensor for tensor, is_number in given if not is_number)]
    return {_PRECISIONS[dtype] for dtype in (tensor.dtype.base_dtype for tensor in tensors) if dtype in _PRECISIONS}


def kind_of(tensor: Tensor) -> str | None:
    """The kind of buffer for a tensor; None if there is none."""
    return _KINDS.get(tensor.dtype.base_dtype)


def fit_32_bits(constant: torch.Tensor) -> bool:
    return not constant.numel() or (int(constant.min()) >= -(2**31) and int(constant.max()) < 2**31)


def are_numbers(arguments: list[Any]) -> Iterator[bool]:
    """For each value among the arguments, in order, whether the kernel takes it as plain numbers."""
    for argument in arguments:
        if isinstance(argument, list):
            yield from are_numbers(argument)
        elif isinstance(argument, (Host, Value)):
            yield isinstance(argument, Host)


def is_host(value: Value) -> bool:
    return value.is_constant and isinstance(value.constant, torch.Tensor)


def dims_of(shape_of: ShapeOf, tensor: Tensor) -> tuple[int, ...] | None:
    """The static shape of a tensor that can be a buffer; None for other dtypes and shapes that are not fully known."""
    shape = shape_of(tensor)
    if shape.size is None or kind_of(tensor) is None:
        return None
    return shape.dims  # type: ignore[return-value]
