"""TensorArray ops of the oldest graphs, whose handles are strings (V2) or references to strings (V1).

They differ from the ops of `tensor_array_v3.py` only in the handle, and creating an array does not return a flow.
"""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import ANY, SHAPE, STATEFUL, STRING, TYPE, VIEW, OpDefinition, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.control_flow import tensor_array_v3
from stoker._src.ops.control_flow.tensor_array_v3 import ArrayState

_ARRAY = {
    "dtype": TYPE,
    "element_shape": SHAPE(UNKNOWN_SHAPE),
    "dynamic_size": False,
    "clear_after_read": True,
    "tensor_array_name": "",
}
_BY_REFERENCE = ("dtype", "dynamic_size", "clear_after_read", "tensor_array_name", "element_shape")

TENSOR_ARRAY_V2 = define("TensorArrayV2(size: host int32) -> (handle: string)", STATEFUL, **_ARRAY)
TENSOR_ARRAY = define(
    "TensorArray(size: host int32) -> (handle: Ref(string))", STATEFUL, **{name: _ARRAY[name] for name in _BY_REFERENCE}
)
TENSOR_ARRAY_GRAD_V2 = define(
    "TensorArrayGradV2(handle: string, flow_in: float32) -> (grad_handle: string)", STATEFUL, source=STRING
)
TENSOR_ARRAY_GRAD = define(
    "TensorArrayGrad(handle: string, flow_in: float32) -> (grad_handle: Ref(string))", STATEFUL, source=STRING
)


def array_kernel(
    size: int, *, dtype: DType, element_shape: Shape, dynamic_size: bool, clear_after_read: bool, tensor_array_name: str
) -> ArrayState:
    return tensor_array_v3.tensor_array_kernel(
        size,
        dtype=dtype,
        element_shape=element_shape,
        dynamic_size=dynamic_size,
        clear_after_read=clear_after_read,
        tensor_array_name=tensor_array_name,
    )[0]


def array_grad_kernel(handle: ArrayState, flow_in: torch.Tensor, *, source: str) -> ArrayState:
    return handle.gradient(source)


for _definition in (TENSOR_ARRAY_V2, TENSOR_ARRAY):
    _definition.not_differentiable().kernel(array_kernel)
    _definition.shape(lambda size: Shape((2,)))
for _definition in (TENSOR_ARRAY_GRAD_V2, TENSOR_ARRAY_GRAD):
    _definition.not_differentiable().kernel(array_grad_kernel)
    _definition.shape(lambda handle, flow_in: Shape((2,)))


def _older(definition: OpDefinition, name: str, handle: str) -> OpDefinition:
    """Defines the op under the name of an older version, with that version's handles."""
    arguments = []
    for arg in definition.inputs:
        kind = f"[{arg.list_attr}]" if arg.list_attr else arg.type_attr or (arg.dtype or dtypes.string).name
        if arg.dtype is dtypes.resource:
            kind = handle
        arguments.append(f"{arg.name}: {'host ' if arg.host else ''}{kind}")
    results = [f"{arg.name}: {arg.type_attr or (arg.dtype or dtypes.string).name}" for arg in definition.outputs]
    made = define(f"{name}({', '.join(arguments)}) -> ({', '.join(results)})", definition.traits, **definition.attrs)
    made.differentiable = definition.differentiable
    return made.same_as(definition)


class _Version:
    """The ops of one version. Their gradients are ops of the same version."""

    def __init__(self, suffix: str) -> None:
        handle = "string" if suffix else "Ref(string)"
        self.make_gradient = TENSOR_ARRAY_GRAD_V2 if suffix else TENSOR_ARRAY_GRAD
        self.write = _older(tensor_array_v3.TENSOR_ARRAY_WRITE_V3, f"TensorArrayWrite{suffix}", handle)
        self.read = _older(tensor_array_v3.TENSOR_ARRAY_READ_V3, f"TensorArrayRead{suffix}", handle)
        self.gather = _older(tensor_array_v3.TENSOR_ARRAY_GATHER_V3, f"TensorArrayGather{suffix}", handle)
        self.scatter = _older(tensor_array_v3.TENSOR_ARRAY_SCATTER_V3, f"TensorArrayScatter{suffix}", handle)
        self.concat = _older(tensor_array_v3.TENSOR_ARRAY_CONCAT_V3, f"TensorArrayConcat{suffix}", handle)
        self.split = _older(tensor_array_v3.TENSOR_ARRAY_SPLIT_V3, f"TensorArraySplit{suffix}", handle)
        _older(tensor_array_v3.TENSOR_ARRAY_SIZE_V3, f"TensorArraySize{suffix}", handle)
        _older(tensor_array_v3.TENSOR_ARRAY_CLOSE_V3, f"TensorArrayClose{suffix}", handle)
        self.write.grad(self._write_grad)
        self.read.grad(self._read_grad)
        self.gather.grad(self._gather_grad)
        self.scatter.grad(self._scatter_grad)
        self.concat.grad(self._concat_grad)
        self.split.grad(self._split_grad)

    def gradient_array(self, op: Operation, g: Tensor, flow: Tensor) -> Tensor:
        return self.make_gradient(op.inputs[0], flow, source=tensor_array_v3.source_of(g))

    def _write_grad(self, op: Operation, flow: Tensor) -> list[Any]:
        handle = self.gradient_array(op, flow, flow)
        return [None, None, self.read(handle, op.inputs[1], flow, dtype=op.attr("T")), flow]

    def _read_grad(self, op: Operation, g: Tensor) -> list[Any]:
        flow = op.inputs[2]
        return [None, None, self.write(self.gradient_array(op, g, flow), op.inputs[1], g, flow)]

    def _gather_grad(self, op: Operation, g: Tensor) -> list[Any]:
        flow = op.inputs[2]
        return [None, None, self.scatter(self.gradient_array(op, g, flow), op.inputs[1], g, flow)]

    def _scatter_grad(self, op: Operation, flow: Tensor) -> list[Any]:
        handle = self.gradient_array(op, flow, flow)
        return [None, None, self.gather(handle, op.inputs[1], flow, dtype=op.attr("T")), flow]

    def _concat_grad(self, op: Operation, g: Tensor, _: Any) -> list[Any]:
        flow = op.inputs[1]
        return [None, self.split(self.gradient_array(op, g, flow), g, op.outputs[1], flow)]

    def _split_grad(self, op: Operation, flow: Tensor) -> list[Any]:
        handle = self.gradient_array(op, flow, flow)
        return [None, self.concat(handle, flow, dtype=op.attr("T"))[0], None, flow]


V2 = _Version("V2")
V1 = _Version("")

# ---- all elements at once, of the first version alone ---------------------------------------------------------------

PACK = define(
    "TensorArrayPack(handle: Ref(string), flow_in: float32) -> (value: dtype)",
    STATEFUL,
    dtype=TYPE,
    element_shape=SHAPE(UNKNOWN_SHAPE),
)


@PACK.kernel
def pack_kernel(handle: ArrayState, flow_in: torch.Tensor, *, dtype: DType, element_shape: Shape) -> Any:
    everything = list(range(len(handle.items)))
    return tensor_array_v3.tensor_array_gather_kernel(
        handle, everything, flow_in, dtype=dtype, element_shape=element_shape
    )


@PACK.shape
def pack_shape(handle: Shape, flow_in: Shape, *, element_shape: Shape) -> Shape:
    return UNKNOWN_SHAPE if element_shape.dims is None else Shape((None, *element_shape.dims))


UNPACK = define(
    "TensorArrayUnpack(handle: Ref(string), value: T, flow_in: float32) -> (flow_out: float32)", STATEFUL | VIEW, T=ANY
)
UNPACK.shape(lambda handle, value, flow_in: SCALAR)


@UNPACK.kernel
def unpack_kernel(handle: ArrayState, value: Any, flow_in: torch.Tensor, *, T: DType) -> torch.Tensor:
    return tensor_array_v3.tensor_array_scatter_kernel(handle, list(range(value.shape[0])), value, flow_in, T=T)
