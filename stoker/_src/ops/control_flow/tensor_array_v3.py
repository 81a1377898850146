"""TensorArray and stack ops of 1.x graphs: mutable arrays with a handle, ordered by a `flow` value.

stoker itself builds arrays from lists (`tensor_array.py`). These ops run graphs that TensorFlow 1 wrote. An array lives as long
as the run that created it. The value of the flow does not matter; it only makes reads wait for writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import ANY, SHAPE, STATEFUL, STRING, TYPE, VIEW, define, with_references
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.values import torch_dtype

_FLOW = torch.zeros(())


class ArrayState:
    """The elements of one array in one run, and the arrays of their gradients by source."""

    def __init__(
        self,
        dtype: DType,
        size: int,
        shape: Shape,
        *,
        dynamic: bool,
        clear: bool,
        adds: bool = False,
        alike: bool = False,
        name: str = "",
    ) -> None:
        self.dtype = dtype
        self.items: list[Any] = [None] * size
        self.shape = shape
        self.dynamic = dynamic
        self.clear = clear
        self.adds = adds  # an array of gradients: repeated writes are summed
        self.alike = alike  # all elements have the shape of the first one written
        self.name = name
        self.gradients: dict[str, ArrayState] = {}
        self.sizes: list[tuple[int, ...] | None] = [None] * size
        self.closed = False
        self.device: Any = None  # the device of the elements written so far

    def write(self, index: int, value: Any) -> None:
        if self.closed:
            raise InvalidArgumentError(None, None, f"TensorArray {self.name} has already been closed.")
        if index < 0 or (index >= len(self.items) and not self.dynamic):
            raise InvalidArgumentError(
                None,
                None,
                f"TensorArray {self.name}: Tried to write to index {index} but array is not resizeable and size is: {len(self.items)}",
            )
        while index >= len(self.items):
            self.items.append(None)
            self.sizes.append(None)
        if not self.shape.compatible(Shape(value.shape)):
            raise InvalidArgumentError(
                None,
                None,
                f"TensorArray {self.name}: Could not write to TensorArray index {index} because the value shape is {Shape(value.shape)} which is incompatible with the TensorArray's inferred element shape: {self.shape}",
            )
        before = self.items[index]
        if before is not None:
            if not self.adds:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"TensorArray {self.name}: Could not write to TensorArray index {index} because it has already been written to.",
                )
            value = before + value
        self.items[index] = value
        self.sizes[index] = tuple(value.shape)
        self.device = getattr(value, "device", None)
        if self.alike:
            self.shape = Shape(value.shape)

    def read(self) -> ArrayState:
        """The array itself, for ops that take its handle as a value."""
        return self

    def check_dtype(self, dtype: DType) -> None:
        if dtype.base_dtype is not self.dtype.base_dtype:
            raise InvalidArgumentError(
                None, None, f"TensorArray {self.name}: dtype is {self.dtype.name} but Op requested dtype {dtype.name}."
            )

    def check_written(self, dtype: DType) -> None:
        if dtype.base_dtype is not self.dtype.base_dtype:
            raise InvalidArgumentError(
                None,
                None,
                f"TensorArray {self.name}: dtype is {self.dtype.name} but Op is trying to write dtype {dtype.name}.",
            )

    def item(self, index: int) -> Any:
        if not 0 <= index < len(self.items):
            raise InvalidArgumentError(
                None,
                None,
                f"TensorArray {self.name}: Tried to read from index {index} but array size is: {len(self.items)}",
            )
        item = self.items[index]
        if item is None:
            return self._unwritten(index)
        if self.clear:
            self.items[index] = None
        return item

    def _unwritten(self, index: int) -> Any:
        """Zeros for an element that was never written, if its shape is known."""
        sizes: Any = self.sizes[index]
        was_read = sizes is not None and not self.adds
        if sizes is None and self.shape.known:
            sizes = self.shape.dims
        if sizes is None or was_read:
            raise InvalidArgumentError(
                None,
                None,
                f"TensorArray {self.name}: Could not read from TensorArray index {index}: it was not written (or was read before, and clear_after_read is set).",
            )
        if self.dtype.base_dtype is dtypes.string:
            return np.full(sizes, b"", dtype=object)
        sizes = allocatable(sizes, self.dtype.size)
        return torch.zeros(sizes, dtype=torch_dtype(self.dtype), device=self.device)

    def gradient(self, source: str, prepended: tuple[int, ...] = ()) -> ArrayState:
        found = self.gradients.get(source)
        if found is None:
            found = ArrayState(
                self.dtype,
                len(self.items),
                Shape(prepended).concat(self.shape),
                dynamic=False,
                clear=False,
                adds=True,
                name=f"{self.name}@{source}",
            )
            found.device = self.device
            found.sizes = [None if sizes is None else (*prepended, *sizes) for sizes in self.sizes]
            self.gradients[source] = found
        return found


def _flow_out(*_: Any) -> Shape:
    return SCALAR


TENSOR_ARRAY_V3 = define(
    "TensorArrayV3(size: scalar host int32) -> (handle: resource, flow: float32)",
    STATEFUL,
    dtype=TYPE,
    element_shape=SHAPE(UNKNOWN_SHAPE),
    dynamic_size=False,
    clear_after_read=True,
    identical_element_shapes=False,
    tensor_array_name="",
).not_differentiable()


@TENSOR_ARRAY_V3.kernel
def tensor_array_kernel(
    size: int,
    *,
    dtype: DType,
    element_shape: Shape,
    dynamic_size: bool,
    clear_after_read: bool,
    tensor_array_name: str,
    identical_element_shapes: bool = False,
) -> tuple[ArrayState, torch.Tensor]:
    if size < 0:
        raise InvalidArgumentError(None, None, f"Size should be >= 0, got {size}")
    state = ArrayState(
        dtype,
        size,
        element_shape,
        dynamic=dynamic_size,
        clear=clear_after_read,
        alike=identical_element_shapes,
        name=tensor_array_name,
    )
    return state, _FLOW


TENSOR_ARRAY_V3.shape(lambda size: (SCALAR, SCALAR))

TENSOR_ARRAY_WRITE_V3 = define(
    "TensorArrayWriteV3(handle: resource, index: scalar host int32, value: T, flow_in: float32) -> (flow_out: float32)",
    STATEFUL | VIEW,
    T=ANY,
)


@TENSOR_ARRAY_WRITE_V3.kernel
def tensor_array_write_kernel(
    handle: ArrayState, index: int, value: Any, flow_in: torch.Tensor, *, T: DType
) -> torch.Tensor:
    handle.check_written(T)
    handle.write(index, value)
    return flow_in


TENSOR_ARRAY_WRITE_V3.shape(_flow_out)

TENSOR_ARRAY_READ_V3 = define(
    "TensorArrayReadV3(handle: resource, index: scalar host int32, flow_in: float32) -> (value: dtype)",
    STATEFUL | VIEW,
    dtype=TYPE,
)


@TENSOR_ARRAY_READ_V3.kernel
def tensor_array_read_kernel(handle: ArrayState, index: int, flow_in: torch.Tensor, *, dtype: DType) -> Any:
    handle.check_dtype(dtype)
    return handle.item(index)


TENSOR_ARRAY_READ_V3.shape(lambda handle, index, flow_in: UNKNOWN_SHAPE)

TENSOR_ARRAY_GATHER_V3 = define(
    "TensorArrayGatherV3(handle: resource, indices: host int32, flow_in: float32) -> (value: dtype)",
    STATEFUL,
    dtype=TYPE,
    element_shape=SHAPE(UNKNOWN_SHAPE),
)


@TENSOR_ARRAY_GATHER_V3.kernel
def tensor_array_gather_kernel(
    handle: ArrayState, indices: list[int], flow_in: torch.Tensor, *, dtype: DType, element_shape: Shape
) -> Any:
    handle.check_dtype(dtype)
    shape = handle.shape.merge(element_shape)
    items = [handle.item(index) for index in indices]
    if not items:
        if not shape.known:
            raise InvalidArgumentError(
                None, None, f"TensorArray {handle.name} has size zero, but element shape {shape} is not fully defined."
            )
        return torch.zeros([0, *(shape.dims or ())], dtype=torch_dtype(dtype))  # type: ignore[list-item]
    return torch.stack(items) if isinstance(items[0], torch.Tensor) else np.stack(items)


@TENSOR_ARRAY_GATHER_V3.shape
def tensor_array_gather_shape(handle: Shape, indices: Shape, flow_in: Shape, *, element_shape: Shape) -> Shape:
    if element_shape.dims is None:
        return UNKNOWN_SHAPE
    return Shape((indices.of_rank(1)[0], *element_shape.dims))


TENSOR_ARRAY_SCATTER_V3 = define(
    "TensorArrayScatterV3(handle: resource, indices: vector host int32, value: rank>0 T, flow_in: float32) -> (flow_out: float32)",
    STATEFUL | VIEW,
    T=ANY,
)


@TENSOR_ARRAY_SCATTER_V3.kernel
def tensor_array_scatter_kernel(
    handle: ArrayState, indices: list[int], value: Any, flow_in: torch.Tensor, *, T: DType
) -> torch.Tensor:
    handle.check_written(T)
    if len(indices) != value.shape[0]:
        raise InvalidArgumentError(
            None, None, f"Expected len(indices) == values.shape[0], but saw: {len(indices)} vs. {value.shape[0]}"
        )
    for index, row in zip(indices, value):
        handle.write(index, row if isinstance(row, torch.Tensor) else np.asarray(row, dtype=object))
    return flow_in


@TENSOR_ARRAY_SCATTER_V3.shape
def tensor_array_scatter_shape(handle: Shape, indices: Shape, value: Shape, flow_in: Shape) -> Shape:
    if value.dims is not None:
        indices.of_rank(1).merge(Shape(value.dims[:1]))
    return SCALAR


TENSOR_ARRAY_SIZE_V3 = define(
    "TensorArraySizeV3(handle: resource, flow_in: float32) -> (size: int32)", STATEFUL
).not_differentiable()
TENSOR_ARRAY_SIZE_V3.kernel(lambda handle, flow_in: torch.tensor(len(handle.items), dtype=torch.int32))
TENSOR_ARRAY_SIZE_V3.shape(_flow_out)

TENSOR_ARRAY_CONCAT_V3 = define(
    "TensorArrayConcatV3(handle: resource, flow_in: float32) -> (value: dtype, lengths: int64)",
    STATEFUL,
    dtype=TYPE,
    element_shape_except0=SHAPE(UNKNOWN_SHAPE),
)


@TENSOR_ARRAY_CONCAT_V3.kernel
def tensor_array_concat_kernel(
    handle: ArrayState, flow_in: torch.Tensor, *, dtype: DType, element_shape_except0: Shape
) -> tuple[Any, torch.Tensor]:
    handle.check_dtype(dtype)
    items = [handle.item(index) for index in range(len(handle.items))]
    lengths = torch.tensor([item.shape[0] for item in items], dtype=torch.int64)
    if not items:
        raise InvalidArgumentError(None, None, f"TensorArray {handle.name} has size zero: nothing to concatenate.")
    for index, item in enumerate(items):
        if not element_shape_except0.compatible(Shape(item.shape[1:])):
            raise InvalidArgumentError(
                None,
                None,
                f"TensorArray was passed element_shape_except0 {element_shape_except0} but index {index} has (excluding "
                f"dimension 0) shape: {Shape(item.shape[1:])}",
            )
    return torch.cat(items) if isinstance(items[0], torch.Tensor) else np.concatenate(items), lengths


@TENSOR_ARRAY_CONCAT_V3.shape
def tensor_array_concat_shape(handle: Shape, flow_in: Shape, *, element_shape_except0: Shape) -> tuple[Shape, Shape]:
    dims = element_shape_except0.dims
    return UNKNOWN_SHAPE if dims is None else Shape((None, *dims)), Shape((None,))


TENSOR_ARRAY_SPLIT_V3 = define(
    "TensorArraySplitV3(handle: resource, value: any/rank>0 T, lengths: any/vector host int64, flow_in: float32) -> (flow_out: float32)",
    STATEFUL | VIEW,
    T=ANY,
)


@TENSOR_ARRAY_SPLIT_V3.kernel
def tensor_array_split_kernel(
    handle: ArrayState, value: Any, lengths: list[int], flow_in: torch.Tensor, *, T: DType
) -> torch.Tensor:
    handle.check_written(T)
    if sum(lengths) != value.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {sum(lengths)} and value's shape is: {Shape(value.shape)}",
        )
    start = 0
    for index, length in enumerate(lengths):
        handle.write(index, value[start : start + length])
        start += length
    return flow_in


TENSOR_ARRAY_SPLIT_V3.shape(_flow_out)

TENSOR_ARRAY_CLOSE_V3 = define("TensorArrayCloseV3(handle: resource) -> ()", STATEFUL).not_differentiable()


@TENSOR_ARRAY_CLOSE_V3.kernel
def tensor_array_close_kernel(handle: ArrayState) -> None:
    handle.closed = True
    handle.items = [None] * len(handle.items)


TENSOR_ARRAY_GRAD_V3 = define(
    "TensorArrayGradV3(handle: resource, flow_in: float32) -> (grad_handle: resource, flow_out: float32)",
    STATEFUL,
    source=STRING,
).not_differentiable()
TENSOR_ARRAY_GRAD_V3.shape(lambda handle, flow_in: (SCALAR, SCALAR))


@TENSOR_ARRAY_GRAD_V3.kernel
def tensor_array_grad_kernel(
    handle: ArrayState, flow_in: torch.Tensor, *, source: str
) -> tuple[ArrayState, torch.Tensor]:
    return handle.gradient(source), flow_in


TENSOR_ARRAY_GRAD_WITH_SHAPE = define(
    "TensorArrayGradWithShape(handle: resource, flow_in: float32, shape_to_prepend: any/vector host int32) -> "
    "(grad_handle: resource, flow_out: float32)",
    STATEFUL,
    source=STRING,
).not_differentiable()
TENSOR_ARRAY_GRAD_WITH_SHAPE.shape(lambda handle, flow_in, shape_to_prepend: (SCALAR, SCALAR))


@TENSOR_ARRAY_GRAD_WITH_SHAPE.kernel
def tensor_array_grad_with_shape_kernel(
    handle: ArrayState, flow_in: torch.Tensor, shape_to_prepend: list[int], *, source: str
) -> tuple[ArrayState, torch.Tensor]:
    if any(size < 0 for size in shape_to_prepend):
        raise InvalidArgumentError(None, None, f"shape must be a vector of sizes >= 0, got {shape_to_prepend}")
    return handle.gradient(source, tuple(shape_to_prepend)), flow_in


# ---- gradients: through the array of the same elements' gradients --------------------------------------------------


def source_of(g: Tensor) -> str:
    """Identifies the call of `tf.gradients` that this gradient belongs to. Each call has its own arrays."""
    parts = g.op.name.split("/")
    for i, part in enumerate(parts):
        if part.startswith("gradients"):
            return "/".join(parts[: i + 1])
    return "gradients"


def _gradient_array(op: Operation, g: Tensor, flow: Tensor) -> tuple[Tensor, Tensor]:
    return TENSOR_ARRAY_GRAD_V3(op.inputs[0], flow, source=source_of(g))


@TENSOR_ARRAY_WRITE_V3.grad
def tensor_array_write_grad(op: Operation, flow: Tensor) -> list[Any]:
    handle, flow_in = _gradient_array(op, flow, flow)
    return [None, None, TENSOR_ARRAY_READ_V3(handle, op.inputs[1], flow_in, dtype=op.attr("T")), flow]


@TENSOR_ARRAY_READ_V3.grad
def tensor_array_read_grad(op: Operation, g: Tensor) -> list[Any]:
    handle, flow = _gradient_array(op, g, op.inputs[2])
    return [None, None, TENSOR_ARRAY_WRITE_V3(handle, op.inputs[1], g, flow)]


@TENSOR_ARRAY_GATHER_V3.grad
def tensor_array_gather_grad(op: Operation, g: Tensor) -> list[Any]:
    handle, flow = _gradient_array(op, g, op.inputs[2])
    return [None, None, TENSOR_ARRAY_SCATTER_V3(handle, op.inputs[1], g, flow)]


@TENSOR_ARRAY_SCATTER_V3.grad
def tensor_array_scatter_grad(op: Operation, flow: Tensor) -> list[Any]:
    handle, flow_in = _gradient_array(op, flow, flow)
    return [None, None, TENSOR_ARRAY_GATHER_V3(handle, op.inputs[1], flow_in, dtype=op.attr("T")), flow]


@TENSOR_ARRAY_CONCAT_V3.grad
def tensor_array_concat_grad(op: Operation, g: Tensor, _: Any) -> list[Any]:
    handle, flow = _gradient_array(op, g, op.inputs[1])
    return [None, TENSOR_ARRAY_SPLIT_V3(handle, g, op.outputs[1], flow)]


@TENSOR_ARRAY_SPLIT_V3.grad
def tensor_array_split_grad(op: Operation, flow: Tensor) -> list[Any]:
    handle, flow_in = _gradient_array(op, flow, flow)
    return [None, TENSOR_ARRAY_CONCAT_V3(handle, flow_in, dtype=op.attr("T"))[0], None, flow]


# ---- stacks -------------------------------------------------------------------------------------------------------


class StackState:
    """A stack of one run, used by the gradients of 1.x loops."""

    def __init__(self, name: str, dtype: DType, limit: int = -1) -> None:
        self.name, self.dtype = name, dtype
        self.limit = limit  # the maximum number of items; unlimited if negative
        self.items: list[Any] = []


STACK_V2 = define(
    "StackV2(max_size: any/scalar host int32) -> (handle: resource)", STATEFUL, elem_type=TYPE, stack_name=""
)
STACK_PUSH_V2 = define(
    "StackPushV2(handle: resource, elem: T) -> (output: T)", STATEFUL | VIEW, T=ANY, swap_memory=False
)
STACK_POP_V2 = define("StackPopV2(handle: resource) -> (elem: elem_type)", STATEFUL, elem_type=TYPE)
STACK_CLOSE_V2 = define("StackCloseV2(handle: resource) -> ()", STATEFUL)
STACK_V2.shape(lambda max_size: SCALAR)
STACK_PUSH_V2.shape(lambda handle, elem: elem)
STACK_POP_V2.shape(lambda handle: UNKNOWN_SHAPE)


@STACK_V2.kernel
def stack_kernel(max_size: int, *, elem_type: DType, stack_name: str) -> StackState:
    return StackState(stack_name, elem_type, max_size)


@STACK_PUSH_V2.kernel
def stack_push_kernel(handle: StackState, elem: Any, *, T: DType) -> Any:
    if T.base_dtype is not handle.dtype.base_dtype:
        raise InvalidArgumentError(
            None, None, f"Stack[{handle.name}] must have type {handle.dtype.name} but got {T.name}"
        )
    if 0 <= handle.limit <= len(handle.items):
        raise InvalidArgumentError(None, None, f"Stack[{handle.name}] overflowed its max_size ({handle.limit})")
    # The pushed value may share a variable's memory without the planner knowing, so it is copied.
    handle.items.append(elem.clone() if isinstance(elem, torch.Tensor) else elem)
    return elem


@STACK_POP_V2.kernel
def stack_pop_kernel(handle: StackState) -> Any:
    if not handle.items:
        raise InvalidArgumentError(None, None, f"Stack[{handle.name}] is empty when calling Pop().")
    return handle.items.pop()


@STACK_CLOSE_V2.kernel
def stack_close_kernel(handle: StackState) -> None:
    handle.items.clear()


STACK = define("Stack() -> (handle: Ref(string))", STATEFUL, elem_type=TYPE, stack_name="").not_differentiable()
STACK.shape(lambda: SCALAR)


@STACK.kernel
def unbounded_stack_kernel(*, elem_type: DType, stack_name: str) -> StackState:
    return StackState(stack_name, elem_type)


for _definition, _older in ((STACK_PUSH_V2, "StackPush"), (STACK_POP_V2, "StackPop"), (STACK_CLOSE_V2, "StackClose")):
    with_references(_definition, _older).not_differentiable()
