"""Lists of tensors as values (dtype variant), which TensorArrays and the gradients of loops are built on."""

from __future__ import annotations

import functools
import itertools
import math as numbers
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import INT32, SHAPE, TYPE, VIEW, define, one_of, scalar
from stoker._src.graph.planning import Elements
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.control_flow.tensor_list_values import TensorList, on_one_device, rows_of
from stoker._src.ops.math import arithmetic
from stoker._src.ops.support.values import torch_dtype


def _shape_of(sizes: Any) -> Shape:
    """The shape that an op was given as numbers. A scalar -1 is an unknown shape; as a size, -1 is unknown."""
    if isinstance(sizes, int):
        if sizes != -1:
            raise InvalidArgumentError(
                None, None, f"The only valid scalar shape tensor is the fully unknown shape -1, not {sizes}."
            )
        return UNKNOWN_SHAPE
    return _of_sizes(tuple(sizes))


@functools.lru_cache(maxsize=1024)
def _of_sizes(sizes: tuple[int, ...]) -> Shape:
    for size in sizes:
        if size < -1:
            raise InvalidArgumentError(None, None, f"Dimension {size} must be >= -1")
    return Shape(None if size < 0 else size for size in sizes)


def _list_of(items: list[Any], found: Shape, element_dtype: DType, element_shape: Any) -> TensorList:
    """A list of `items`, which all have the shape `found`. The declared element shape is `element_shape`."""
    shape = _shape_of(element_shape)
    if not shape.compatible(found):
        raise InvalidArgumentError(None, None, f"Specified a list with shape {shape} from a tensor with shape {found}")
    return TensorList(items, element_dtype, shape)


def _stacked(items: list[Any], dtype: DType, sizes: list[Any], like: Any = None) -> Any:
    if not items:
        return (
            np.empty([0, *sizes], dtype=object)
            if dtype is dtypes.string
            else torch.zeros([0, *sizes], dtype=torch_dtype(dtype))
        )
    shape = items[0].shape
    for position, item in enumerate(items):
        if item.shape != shape:
            raise InvalidArgumentError(
                None,
                None,
                f"Tried to stack elements of a list with different shapes: element 0 is {Shape(shape)}, element {position} is {Shape(item.shape)}",
            )
    return torch.stack(on_one_device(items)) if isinstance(items[0], torch.Tensor) else np.stack(items)


def _rows(tensor: Any) -> list[Any]:
    return rows_of(tensor) if isinstance(tensor, torch.Tensor) else [np.asarray(row, dtype=object) for row in tensor]


def sizes_after_first(tensor: Tensor) -> Any:
    """The shape of the rows of `tensor` as an input of an op; a constant if it is statically known."""
    rows = Shape(None) if tensor.static_shape.dims is None else Shape(tensor.static_shape.dims[1:])
    if rows.known:
        return constant(list(rows.dims or ()), dtypes.int32, shape=[len(rows)])
    return shaping.shape(tensor)[1:]


_SIZES = one_of(*INDEX)

# ---- making lists -----------------------------------------------------------------------------------------------

EMPTY_TENSOR_LIST = define(
    "EmptyTensorList(element_shape: host shape_type, max_num_elements: host int32) -> (handle: variant)",
    element_dtype=TYPE,
    shape_type=_SIZES,
)


@EMPTY_TENSOR_LIST.kernel
def empty_tensor_list_kernel(element_shape: Any, max_num_elements: int, *, element_dtype: DType) -> TensorList:
    return TensorList([], element_dtype, _shape_of(element_shape), max_num_elements)


EMPTY_TENSOR_LIST.shape(lambda element_shape, max_num_elements: SCALAR, as_shapes=["element_shape"])

TENSOR_LIST_RESERVE = define(
    "TensorListReserve(element_shape: host shape_type, num_elements: any/scalar host int32) -> (handle: variant)",
    element_dtype=TYPE,
    shape_type=_SIZES,
)


@TENSOR_LIST_RESERVE.kernel
def tensor_list_reserve_kernel(element_shape: Any, num_elements: int, *, element_dtype: DType) -> TensorList:
    if num_elements < 0:
        raise InvalidArgumentError(
            None, None, f"The num_elements to reserve must be a non negative number, but got {num_elements}"
        )
    return TensorList([None] * num_elements, element_dtype, _shape_of(element_shape))


TENSOR_LIST_RESERVE.planning.list_role = "reserve"
TENSOR_LIST_RESERVE.shape(lambda element_shape, num_elements: SCALAR, as_shapes=["element_shape"])

TENSOR_LIST_FROM_TENSOR = define(
    "TensorListFromTensor(tensor: element_dtype, element_shape: host shape_type) -> (output_handle: variant)",
    VIEW,
    element_dtype=TYPE,
    shape_type=_SIZES,
)


@TENSOR_LIST_FROM_TENSOR.kernel
def tensor_list_from_tensor_kernel(tensor: Any, element_shape: Any, *, element_dtype: DType) -> TensorList:
    if tensor.ndim < 1:
        raise InvalidArgumentError(None, None, "Tensor must be at least a vector, but saw shape: []")
    made = _list_of([], Shape(tensor.shape[1:]), element_dtype, element_shape)
    if not isinstance(tensor, torch.Tensor):
        return made.replaced(_rows(tensor))
    return TensorList.of_rows(tensor, element_dtype, made.shape)


@TENSOR_LIST_FROM_TENSOR.shape(as_shapes=["element_shape"])
def tensor_list_from_tensor_shape(tensor: Shape, element_shape: Shape) -> Shape:
    if (dims := tensor.at_least(1).dims) is not None:
        element_shape.merge(Shape(dims[1:]))
    return SCALAR


@TENSOR_LIST_FROM_TENSOR.grad
def tensor_list_from_tensor_grad(op: Operation, dlist: Tensor) -> Any:
    tensor = op.inputs[0]
    size = tensor.static_shape.at_least(1)[0]
    grad = TENSOR_LIST_STACK(
        dlist,
        sizes_after_first(tensor),
        element_dtype=tensor.dtype.base_dtype,
        num_elements=-1 if size is None else size,
    )
    return grad, None


# ---- one item ---------------------------------------------------------------------------------------------------

TENSOR_LIST_PUSH_BACK = define(
    "TensorListPushBack(input_handle: variant, tensor: element_dtype) -> (output_handle: variant)",
    VIEW,
    element_dtype=TYPE,
)


@TENSOR_LIST_PUSH_BACK.kernel
def tensor_list_push_back_kernel(input_handle: TensorList, tensor: Any, *, element_dtype: DType) -> TensorList:
    if input_handle.dtype is not element_dtype:
        input_handle.check_dtype(element_dtype)
    return input_handle.pushed(tensor)


TENSOR_LIST_PUSH_BACK.planning.list_role = "push"
TENSOR_LIST_PUSH_BACK.shape(lambda input_handle, tensor: SCALAR)


@TENSOR_LIST_PUSH_BACK.grad
def tensor_list_push_back_grad(op: Operation, dlist: Tensor) -> Any:
    rest, item = TENSOR_LIST_POP_BACK(dlist, _item_sizes(op.inputs[1]), element_dtype=op.attr("element_dtype"))
    return rest, item


TENSOR_LIST_PUSH_BACK_BATCH = define(
    "TensorListPushBackBatch(input_handles: variant, tensor: element_dtype) -> (output_handles: variant)",
    VIEW,
    element_dtype=TYPE,
).not_differentiable()


@TENSOR_LIST_PUSH_BACK_BATCH.kernel
def tensor_list_push_back_batch_kernel(input_handles: Any, tensor: Any, *, element_dtype: DType) -> Any:
    """Appends the corresponding row of `tensor` to each of several lists."""
    if tensor.ndim < 1:
        raise InvalidArgumentError(None, None, "Expected tensor to be at least a vector, but saw a scalar")
    handles = np.asarray(input_handles, dtype=object)
    if handles.size != tensor.shape[0]:
        raise InvalidArgumentError(
            None, None, f"Expected tensor.shape[0] == input_handles.size, but saw {tensor.shape[0]} vs. {handles.size}"
        )
    pushed = np.empty(handles.size, dtype=object)
    for i, handle in enumerate(handles.ravel()):
        handle.check_dtype(element_dtype)
        pushed[i] = handle.pushed(tensor[i])
    return pushed.reshape(handles.shape)


@TENSOR_LIST_PUSH_BACK_BATCH.shape
def tensor_list_push_back_batch_shape(input_handles: Shape, tensor: Shape) -> Shape:
    if tensor.dims is not None and not tensor.dims:
        raise InvalidArgumentError(None, None, "Shape must be at least rank 1 but is rank 0")
    return input_handles


TENSOR_LIST_POP_BACK = define(
    "TensorListPopBack(input_handle: variant, element_shape: host int32) -> (output_handle: variant, tensor: element_dtype)",
    VIEW,
    element_dtype=TYPE,
)


@TENSOR_LIST_POP_BACK.kernel
def tensor_list_pop_back_kernel(
    input_handle: TensorList, element_shape: Any, *, element_dtype: DType
) -> tuple[TensorList, Any]:
    if input_handle.dtype is not element_dtype:
        input_handle.check_dtype(element_dtype)
    rest, item = input_handle.popped()
    if item is None:
        item = input_handle._zeros(_shape_of(element_shape), len(rest.items()))
    return rest, item


TENSOR_LIST_POP_BACK.planning.list_role = "pop"
# In the body of a loop, elements of lists come from outside, like the other values that an iteration is given: their sizes belong together.
TENSOR_LIST_POP_BACK.planning.sized_by = ()


@TENSOR_LIST_POP_BACK.shape(as_shapes=["element_shape"])
def tensor_list_pop_back_shape(input_handle: Shape, element_shape: Shape) -> tuple[Shape, Shape]:
    return SCALAR, element_shape


@TENSOR_LIST_POP_BACK.grad
def tensor_list_pop_back_grad(op: Operation, dlist: Tensor | None, ditem: Tensor | None) -> Any:
    item = op.outputs[1]
    dtype = op.attr("element_dtype")
    if dlist is None:
        dlist = EMPTY_TENSOR_LIST(_item_sizes(item), constant(-1, dtypes.int32), element_dtype=dtype)
    if ditem is None:
        ditem = shaping.zeros_like(item)
    return TENSOR_LIST_PUSH_BACK(dlist, ditem), None


def _item_sizes(item: Tensor) -> Any:
    """The shape of an item as an input of an op; a constant if it is statically known."""
    static = item.static_shape
    if item.dtype.base_dtype in (dtypes.variant, dtypes.resource):
        return constant([], dtypes.int32, shape=[0])
    if static.dims is None:
        return constant(-1, dtypes.int32)
    return constant([-1 if d is None else d for d in static.dims], dtypes.int32, shape=[len(static.dims)])


TENSOR_LIST_SET_ITEM = define(
    "TensorListSetItem(input_handle: variant, index: any/scalar host int32, item: element_dtype) -> (output_handle: variant)",
    VIEW,
    element_dtype=TYPE,
    resize_if_index_out_of_bounds=False,
)


@TENSOR_LIST_SET_ITEM.kernel
def tensor_list_set_item_kernel(
    input_handle: TensorList, index: int, item: Any, *, element_dtype: DType, resize_if_index_out_of_bounds: bool
) -> TensorList:
    input_handle.check_dtype(element_dtype)
    return input_handle.with_item(index, item, resize=resize_if_index_out_of_bounds)


TENSOR_LIST_SET_ITEM.planning.list_role = "set"
TENSOR_LIST_SET_ITEM.shape(lambda input_handle, index, item: SCALAR)


@TENSOR_LIST_SET_ITEM.grad
def tensor_list_set_item_grad(op: Operation, dlist: Tensor) -> Any:
    _, index, item = op.inputs
    dtype = op.attr("element_dtype")
    grad = TENSOR_LIST_GET_ITEM(dlist, index, shaping.shape(item), element_dtype=dtype)
    rest = TENSOR_LIST_SET_ITEM(dlist, index, shaping.zeros_like(item))
    if op.attr("resize_if_index_out_of_bounds"):
        rest = TENSOR_LIST_RESIZE(rest, TENSOR_LIST_LENGTH(op.inputs[0]))
    return rest, None, grad


TENSOR_LIST_GET_ITEM = define(
    "TensorListGetItem(input_handle: variant, index: any/one host int32, element_shape: host Tshape) -> (item: element_dtype)",
    VIEW,
    element_dtype=TYPE,
    Tshape=one_of(*INDEX, default=dtypes.int32),
)


@TENSOR_LIST_GET_ITEM.kernel
def tensor_list_get_item_kernel(
    input_handle: TensorList, index: int, element_shape: Any, *, element_dtype: DType
) -> Any:
    input_handle.check_dtype(element_dtype)
    return input_handle.item(index, _shape_of(element_shape))


TENSOR_LIST_GET_ITEM.planning.sized_by = ()
TENSOR_LIST_GET_ITEM.planning.list_role = "get"


@TENSOR_LIST_GET_ITEM.shape(as_shapes=["element_shape"])
def tensor_list_get_item_shape(input_handle: Shape, index: Shape, element_shape: Shape) -> Shape:
    return element_shape


@TENSOR_LIST_GET_ITEM.grad
def tensor_list_get_item_grad(op: Operation, ditem: Tensor) -> Any:
    size = TENSOR_LIST_LENGTH(op.inputs[0])
    blank = TENSOR_LIST_RESERVE(shaping.shape(ditem), size, element_dtype=op.attr("element_dtype"))
    return TENSOR_LIST_SET_ITEM(blank, op.inputs[1], ditem), None, None


# ---- the list as a whole ----------------------------------------------------------------------------------------

TENSOR_LIST_LENGTH = define("TensorListLength(input_handle: variant) -> (length: int32)").not_differentiable()
TENSOR_LIST_LENGTH.kernel(lambda input_handle: torch.tensor(input_handle.length(), dtype=torch.int32))
TENSOR_LIST_LENGTH.planning.list_role = "length"
TENSOR_LIST_LENGTH.planning.of_list_sizes = True
TENSOR_LIST_LENGTH.shape(scalar)

TENSOR_LIST_RESIZE = define(
    "TensorListResize(input_handle: variant, size: scalar host int32) -> (output_handle: variant)", VIEW
)


@TENSOR_LIST_RESIZE.kernel
def tensor_list_resize_kernel(input_handle: TensorList, size: int) -> TensorList:
    if size < 0:
        raise InvalidArgumentError(None, None, f"TensorListSlice expects size to be non-negative. Got: {size}")
    items = input_handle.items()
    return input_handle.replaced([*items[:size], *[None] * (size - len(items))])


TENSOR_LIST_RESIZE.shape(lambda input_handle, size: SCALAR)


@TENSOR_LIST_RESIZE.grad
def tensor_list_resize_grad(op: Operation, dlist: Tensor) -> Any:
    return TENSOR_LIST_RESIZE(dlist, TENSOR_LIST_LENGTH(op.inputs[0])), None


TENSOR_LIST_ELEMENT_SHAPE = define(
    "TensorListElementShape(input_handle: variant) -> (element_shape: shape_type)", shape_type=_SIZES
).not_differentiable()


@TENSOR_LIST_ELEMENT_SHAPE.kernel
def tensor_list_element_shape_kernel(input_handle: TensorList, *, shape_type: DType) -> torch.Tensor:
    dims = input_handle.shape.dims
    sizes = -1 if dims is None else [-1 if size is None else size for size in dims]
    return torch.tensor(sizes, dtype=torch_dtype(shape_type))


TENSOR_LIST_ELEMENT_SHAPE.planning.of_list_sizes = True
TENSOR_LIST_ELEMENT_SHAPE.shape(lambda input_handle: UNKNOWN_SHAPE)

TENSOR_LIST_STACK = define(
    "TensorListStack(input_handle: variant, element_shape: host int32) -> (tensor: element_dtype)",
    element_dtype=TYPE,
    num_elements=INT32(-1),
)


@TENSOR_LIST_STACK.kernel
def tensor_list_stack_kernel(
    input_handle: TensorList, element_shape: Any, *, element_dtype: DType, num_elements: int
) -> Any:
    input_handle.check_dtype(element_dtype)
    if num_elements not in (-1, input_handle.length()):
        raise InvalidArgumentError(
            None,
            None,
            f"Operation expected a list with {num_elements} elements but got a list with {input_handle.length()} elements.",
        )
    shape = input_handle.shape.merge(_shape_of(element_shape))
    if input_handle._stack is not None and shape.compatible(Shape(input_handle._stack.shape[1:])):
        return input_handle._stack.clone(memory_format=torch.contiguous_format)
    items = input_handle.items()
    if not items:
        if not shape.known:
            raise InvalidArgumentError(
                None, None, f"Tried to stack elements of an empty list with non-fully-defined element_shape: {shape}"
            )
        return _stacked([], element_dtype, list(shape.dims or ()))
    if any(item is None for item in items):
        items = input_handle.all_items(shape)
    if not shape.compatible(Shape(items[0].shape)):
        raise InvalidArgumentError(
            None, None, f"Tried to stack list elements of shape {Shape(items[0].shape)} with element_shape {shape}"
        )
    return _stacked(items, element_dtype, [])


@TENSOR_LIST_STACK.shape(as_shapes=["element_shape"])
def tensor_list_stack_shape(input_handle: Shape, element_shape: Shape, *, num_elements: int) -> Shape:
    if element_shape.dims is None:
        return UNKNOWN_SHAPE
    return Shape((None if num_elements < 0 else num_elements, *element_shape.dims))


@TENSOR_LIST_STACK.grad
def tensor_list_stack_grad(op: Operation, g: Tensor) -> Any:
    return TENSOR_LIST_FROM_TENSOR(g, op.inputs[1], element_dtype=op.attr("element_dtype")), None


TENSOR_LIST_GATHER = define(
    "TensorListGather(input_handle: variant, indices: any/flat host int32, element_shape: host int32) -> (values: element_dtype)",
    element_dtype=TYPE,
)


@TENSOR_LIST_GATHER.kernel
def tensor_list_gather_kernel(
    input_handle: TensorList, indices: list[int], element_shape: Any, *, element_dtype: DType
) -> Any:
    input_handle.check_dtype(element_dtype)
    shape = input_handle.shape.merge(_shape_of(element_shape))
    items = input_handle.all_items(shape, indices)
    if not items and not shape.known:
        raise InvalidArgumentError(
            None, None, f"Tried to gather 0-elements from a list with non-fully-defined shape: {shape}"
        )
    return _stacked(items, element_dtype, list(shape.dims or ()))


@TENSOR_LIST_GATHER.shape(as_shapes=["element_shape"])
def tensor_list_gather_shape(input_handle: Shape, indices: Shape, element_shape: Shape) -> Shape:
    if element_shape.dims is None:
        return UNKNOWN_SHAPE
    count = numbers.prod(indices.dims or ()) if indices.known else None  # type: ignore[arg-type]
    return Shape((count, *element_shape.dims))


@TENSOR_LIST_GATHER.grad
def tensor_list_gather_grad(op: Operation, g: Tensor) -> Any:
    dlist = TENSOR_LIST_SCATTER_V2(
        g, op.inputs[1], op.inputs[2], TENSOR_LIST_LENGTH(op.inputs[0]), element_dtype=op.attr("element_dtype")
    )
    return dlist, None, None


TENSOR_LIST_SCATTER = define(
    "TensorListScatter(tensor: element_dtype, indices: host int32, element_shape: host shape_type) -> (output_handle: variant)",
    VIEW,
    element_dtype=TYPE,
    shape_type=_SIZES,
)
TENSOR_LIST_SCATTER_V2 = define(
    "TensorListScatterV2(tensor: element_dtype, indices: host int32, element_shape: host shape_type, num_elements: host int32) -> (output_handle: variant)",
    VIEW,
    element_dtype=TYPE,
    shape_type=_SIZES,
)
TENSOR_LIST_SCATTER_INTO_EXISTING_LIST = define(
    "TensorListScatterIntoExistingList(input_handle: variant, tensor: rank>0 element_dtype, indices: vector host int32) -> (output_handle: variant)",
    VIEW,
    element_dtype=TYPE,
)


def _scattered(items: list[Any], tensor: Any, indices: list[int]) -> list[Any]:
    rows = _rows(tensor)
    if len(rows) != len(indices):
        raise InvalidArgumentError(
            None, None, f"Expected len(indices) == tensor.shape[0], but saw: {len(indices)} and {len(rows)}"
        )
    if any(index < 0 for index in indices):
        raise InvalidArgumentError(None, None, f"Indices in TensorListScatter must all be non-negative: {indices}")
    size = max([len(items), *[index + 1 for index in indices]])
    result = [*items, *[None] * (size - len(items))]
    for index, row in zip(indices, rows):
        result[index] = row
    return result


@TENSOR_LIST_SCATTER.kernel
def tensor_list_scatter_kernel(tensor: Any, indices: list[int], element_shape: Any, *, element_dtype: DType) -> Any:
    items = _scattered([], tensor, indices)
    return _list_of(items, Shape(tensor.shape[1:]), element_dtype, element_shape)


@TENSOR_LIST_SCATTER_V2.kernel
def tensor_list_scatter_v2_kernel(
    tensor: Any, indices: list[int], element_shape: Any, num_elements: int, *, element_dtype: DType
) -> Any:
    if num_elements < -1:
        raise InvalidArgumentError(None, None, f"TensorListScatter expects num_elements >= -1, found: {num_elements}")
    if num_elements >= 0 and any(index >= num_elements for index in indices):
        raise InvalidArgumentError(
            None, None, f"TensorListScatter: Trying to scatter at index {max(indices)} in list with size {num_elements}"
        )
    items = _scattered([None] * max(num_elements, 0), tensor, indices)
    return _list_of(items, Shape(tensor.shape[1:]), element_dtype, element_shape)


@TENSOR_LIST_SCATTER_INTO_EXISTING_LIST.kernel
def tensor_list_scatter_into_kernel(
    input_handle: TensorList, tensor: Any, indices: list[int], *, element_dtype: DType
) -> TensorList:
    input_handle.check_dtype(element_dtype)
    return input_handle.replaced(_scattered(input_handle.items(), tensor, indices))


for _definition in (TENSOR_LIST_SCATTER, TENSOR_LIST_SCATTER_V2):
    _definition.shape(lambda *inputs: SCALAR, as_shapes=["element_shape"])
TENSOR_LIST_SCATTER_INTO_EXISTING_LIST.shape(lambda *inputs: SCALAR)


@TENSOR_LIST_SCATTER.grad
@TENSOR_LIST_SCATTER_V2.grad
def tensor_list_scatter_grad(op: Operation, dlist: Tensor) -> Any:
    tensor, indices = op.inputs[0], op.inputs[1]
    grad = TENSOR_LIST_GATHER(dlist, indices, sizes_after_first(tensor), element_dtype=op.attr("element_dtype"))
    return [grad, *[None] * (len(op.inputs) - 1)]


@TENSOR_LIST_SCATTER_INTO_EXISTING_LIST.grad
def tensor_list_scatter_into_grad(op: Operation, dlist: Tensor) -> Any:
    _, tensor, indices = op.inputs
    dtype = op.attr("element_dtype")
    grad = TENSOR_LIST_GATHER(dlist, indices, sizes_after_first(tensor), element_dtype=dtype)
    rest = TENSOR_LIST_SCATTER_INTO_EXISTING_LIST(dlist, shaping.zeros_like(tensor), indices)
    return rest, grad, None


# ---- concatenation ----------------------------------------------------------------------------------------------

TENSOR_LIST_CONCAT = define(
    "TensorListConcat(input_handle: variant) -> (tensor: element_dtype, lengths: int64)",
    element_dtype=TYPE,
    element_shape=SHAPE(UNKNOWN_SHAPE),
)
TENSOR_LIST_CONCAT_V2 = define(
    "TensorListConcatV2(input_handle: variant, element_shape: host shape_type, leading_dims: host int64) -> (tensor: element_dtype, lengths: int64)",
    element_dtype=TYPE,
    shape_type=_SIZES,
)


def _concatenated(source: TensorList, shape: Shape, leading: list[int], dtype: DType) -> tuple[Any, torch.Tensor]:
    source.check_dtype(dtype)
    shape = source.shape.merge(shape)
    if leading and shape.dims is not None:  # these determine the first size of each item
        shape = Shape((None, *shape.dims[1:]))
    items: list[Any] = []
    accepted = None  # the shape of an item that was checked
    for i, item in enumerate(source.items()):
        if item is not None and item.shape == accepted:
            items.append(item)
            continue
        if item is None:
            sizes = list((shape.dims or ())[1:])
            if shape.dims is None or None in sizes or (i >= len(leading) and shape.dims[0] is None):
                raise InvalidArgumentError(
                    None, None, f"Concat saw an uninitialized element at index {i} but the element shape is {shape}."
                )
            item = source._zero([leading[i] if i < len(leading) else shape.dims[0], *sizes])
        if item.ndim < 1:
            raise InvalidArgumentError(
                None, None, f"Concat saw a scalar shape at index {i} but requires at least vectors."
            )
        if not shape.compatible(Shape(item.shape)):
            raise InvalidArgumentError(
                None,
                None,
                f"First entry of element_shape input does not match the first dim of list element at index {i}: "
                f"expected {shape}, got {Shape(item.shape)}",
            )
        items.append(item)
        accepted = item.shape
    lengths = torch.tensor([item.shape[0] for item in items], dtype=torch.int64)
    if not items:
        sizes = list((shape.dims or ())[1:])
        if shape.dims is None or None in sizes:
            raise InvalidArgumentError(
                None,
                None,
                f"All except the first dimension must be fully defined when concating an empty tensor list. element_shape: {shape}",
            )
        return _stacked([], dtype, sizes), lengths
    return (torch.cat(on_one_device(items)) if isinstance(items[0], torch.Tensor) else np.concatenate(items)), lengths


@TENSOR_LIST_CONCAT.kernel
def tensor_list_concat_kernel(input_handle: TensorList, *, element_dtype: DType, element_shape: Shape) -> Any:
    return _concatenated(input_handle, element_shape, [], element_dtype)


@TENSOR_LIST_CONCAT.shape
def tensor_list_concat_shape(input_handle: Shape, *, element_shape: Shape) -> tuple[Shape, Shape]:
    return _joined_shapes(element_shape)


def _joined_shapes(element_shape: Shape) -> tuple[Shape, Shape]:
    """The shapes of items concatenated along their first dimension, and of their lengths."""
    rest = UNKNOWN_SHAPE if element_shape.dims is None else Shape((None, *element_shape.dims[1:]))
    return rest, Shape((None,))


@TENSOR_LIST_CONCAT_V2.kernel
def tensor_list_concat_v2_kernel(
    input_handle: TensorList, element_shape: Any, leading_dims: list[int], *, element_dtype: DType
) -> Any:
    return _concatenated(input_handle, _shape_of(element_shape), leading_dims, element_dtype)


@TENSOR_LIST_CONCAT_V2.shape(as_shapes=["element_shape"])
def tensor_list_concat_v2_shape(input_handle: Shape, element_shape: Shape, leading_dims: Shape) -> tuple[Shape, Shape]:
    return _joined_shapes(element_shape)


@TENSOR_LIST_CONCAT.grad
@TENSOR_LIST_CONCAT_V2.grad
def tensor_list_concat_grad(op: Operation, g: Tensor, _: Any) -> Any:
    dlist = TENSOR_LIST_SPLIT(g, constant(-1, dtypes.int32), op.outputs[1], element_dtype=op.attr("element_dtype"))
    return [dlist, *[None] * (len(op.inputs) - 1)]


TENSOR_LIST_SPLIT = define(
    "TensorListSplit(tensor: rank>0 element_dtype, element_shape: rank<2 host shape_type, lengths: vector host int64) -> (output_handle: variant)",
    VIEW,
    element_dtype=TYPE,
    shape_type=_SIZES,
)


@TENSOR_LIST_SPLIT.kernel
def tensor_list_split_kernel(
    tensor: Any, element_shape: Any, lengths: list[int], *, element_dtype: DType
) -> TensorList:
    if any(length < 0 for length in lengths) or sum(lengths) != tensor.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"Attempting to slice rows of lengths {lengths} (sum {sum(lengths)}) from a tensor of {tensor.shape[0]} rows.",
        )
    if isinstance(tensor, torch.Tensor):
        items = list(tensor.split_with_sizes(lengths))
    else:
        items = [tensor[a:b] for a, b in itertools.pairwise(itertools.accumulate(lengths, initial=0))]
    return _list_of(items, Shape((None, *tensor.shape[1:])), element_dtype, element_shape)


@TENSOR_LIST_SPLIT.shape(as_shapes=["element_shape"])
def tensor_list_split_shape(tensor: Shape, element_shape: Shape, lengths: Shape) -> Shape:
    if tensor.dims is not None:
        element_shape.merge(Shape((None, *tensor.dims[1:])))
    return SCALAR


@TENSOR_LIST_SPLIT.grad
def tensor_list_split_grad(op: Operation, dlist: Tensor) -> Any:
    tensor, _, lengths = op.inputs
    static = tensor.static_shape
    sizes = constant(-1, dtypes.int32) if static.dims is None else _item_sizes_after(static)
    grad, _ = TENSOR_LIST_CONCAT_V2(dlist, sizes, lengths, element_dtype=op.attr("element_dtype"))
    grad.set_shape(static)
    return grad, None, None


def _item_sizes_after(static: Shape) -> Tensor:
    sizes = [-1, *[-1 if size is None else size for size in (static.dims or ())[1:]]]
    return constant(sizes, dtypes.int32, shape=[len(sizes)])


TENSOR_LIST_CONCAT_LISTS = define(
    "TensorListConcatLists(input_a: variant, input_b: variant) -> (output: variant)", VIEW, element_dtype=TYPE
).not_differentiable()


@TENSOR_LIST_CONCAT_LISTS.kernel
def tensor_list_concat_lists_kernel(input_a: TensorList, input_b: TensorList, *, element_dtype: DType) -> TensorList:
    for each in (input_a, input_b):
        each.check_dtype(element_dtype)
    return input_a.replaced([*input_a.items(), *input_b.items()])


TENSOR_LIST_CONCAT_LISTS.shape(lambda input_a, input_b: SCALAR)


# ---- what plans know of elements --------------------------------------------------------------------------------


def _of_rows(tensor: Shape) -> Elements:
    """What is known of a list of the rows of a tensor."""
    return Elements() if not tensor.dims else Elements(Shape(tensor.dims[1:]), tensor.dims[0])


def _reserved(op: Operation, plan: Any) -> Elements:
    count = plan.known_value(op._inputs[1])
    return Elements(None, None if count is None or int(count) < 0 else int(count))


def _with_item(op: Operation, plan: Any) -> Elements:
    before = plan.elements_of(op._inputs[0])
    after = before.agreed(Elements(plan.shape_of(op._inputs[2]), before.count))
    return Elements(after.shape) if op.attr("resize_if_index_out_of_bounds") else after


def _stacked_shape(elements: Elements) -> Shape:
    if elements.shape is None or elements.shape.dims is None:
        return UNKNOWN_SHAPE
    return Shape((elements.count, *elements.shape.dims))


def _taken_out(item: Tensor, shape: Shape | None) -> Elements | Shape | None:
    """What is known of an item of `shape`. If the item is a list itself, nothing is known of its elements."""
    return Elements() if item.dtype.base_dtype is dtypes.variant else shape


def _zeros_like(op: Operation, plan: Any) -> Elements | Shape:
    return (plan.elements_of if _is_list(op) else plan.shape_of)(op._inputs[0])


def _sum(op: Operation, plan: Any) -> Elements | Shape:
    if not _is_list(op):
        return op.outputs[0].static_shape
    return functools.reduce(Elements.agreed, map(plan.elements_of, op._inputs))


# How many elements a list has is not followed where loops add or remove elements one by one.
EMPTY_TENSOR_LIST.elements(lambda op, plan: [Elements(None)])
TENSOR_LIST_RESERVE.elements(lambda op, plan: [_reserved(op, plan)])
TENSOR_LIST_FROM_TENSOR.elements(lambda op, plan: [_of_rows(plan.shape_of(op._inputs[0]))])
TENSOR_LIST_PUSH_BACK.elements(
    lambda op, plan: [plan.elements_of(op._inputs[0]).agreed(Elements(plan.shape_of(op._inputs[1])))]
)
TENSOR_LIST_POP_BACK.elements(
    lambda op, plan: [
        Elements(plan.elements_of(op._inputs[0]).shape),
        _taken_out(op.outputs[1], plan.elements_of(op._inputs[0]).shape),
    ]
)
TENSOR_LIST_SET_ITEM.elements(lambda op, plan: [_with_item(op, plan)])
TENSOR_LIST_GET_ITEM.elements(lambda op, plan: [_taken_out(op.outputs[0], plan.elements_of(op._inputs[0]).shape)])
TENSOR_LIST_RESIZE.elements(lambda op, plan: [Elements(plan.elements_of(op._inputs[0]).shape)])
TENSOR_LIST_STACK.elements(
    lambda op, plan: [_taken_out(op.outputs[0], _stacked_shape(plan.elements_of(op._inputs[0])))]
)
shaping.ZEROS_LIKE.elements(lambda op, plan: [_zeros_like(op, plan)])
arithmetic.ADD_N.elements(lambda op, plan: [_sum(op, plan)])


def _is_list(op: Operation) -> bool:
    return op.outputs[0].dtype is dtypes.variant
