"""`tf.TensorArray`: an array of tensors written and read by index, on lists of tensors (`tensor_lists.py`)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, OutOfRangeError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops import array, tensor_lists
from stoker._src.ops.constants import constant


@export("TensorArray")
class TensorArray:
    """An array of tensors of one dtype. Every change gives a new TensorArray: go on with what `write` returns.

    Args:
        dtype: of the elements.
        size: the number of elements.
        dynamic_size: writing beyond the end makes the array longer.
        clear_after_read: in eager mode, an element may be read once (the default); graphs keep elements while they are needed.
        tensor_array_name: accepted; arrays of one name in one run are still different arrays.
        handle: not used: arrays are values.
        flow: the list that holds the elements, of an array made elsewhere.
        infer_shape: elements must have one shape, which the first one written tells.
        element_shape: the shape of the elements.
        colocate_with_first_write_call: accepted; placement follows the ops that use the array.
        name: a name scope.

    Raises:
        ValueError: neither a size nor a flow.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None:
            raise NotImplementedError(
                "TensorArray(handle=...): arrays are made of lists and have no handle; pass `flow`."
            )
        if flow is None and size is None:
            raise ValueError("Size must be declared when not creating a tensor array from an existing handle or flow")
        if flow is not None and size is not None:
            raise ValueError("Cannot provide both a flow and size at the same time")
        if flow is not None and element_shape is not None and not infer_shape:
            raise ValueError("Cannot provide both a flow and element_shape at the same time")
        self._dtype = as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        self._name = tensor_array_name
        self._clear_after_read = True if clear_after_read is None else clear_after_read
        self._cleared: set[int] = set()
        self._static = as_shape(element_shape)
        self._count: int | None = None  # the number of elements, where it is known and cannot change
        if flow is not None:
            self._flow = flow
            return
        with name_scope(name, "TensorArrayV2" if name is None else name, [size]):
            size = convert_to_tensor(size, dtypes.int32)
            self._flow = tensor_lists.TENSOR_LIST_RESERVE(_sizes(self._static), size, element_dtype=self._dtype)
            known = None if self._dynamic_size else constant_value(size)
            self._count = None if known is None else int(known)

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def flow(self) -> Any:
        return self._flow

    @property
    def handle(self) -> None:
        """None: the array is the value `flow`."""
        return

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        return self._dynamic_size

    @property
    def element_shape(self) -> TensorShape:
        return TensorShape(self._static)

    def _changed(self, flow: Any, shape: Shape | None = None) -> TensorArray:
        """The array after a change. In eager mode it is this very object, as in TensorFlow."""
        known = self._static if shape is None else self._merged(shape)
        if context.executing_eagerly():
            self._flow, self._static = flow, known
            return self
        return self._with_flow(flow, known)

    def _with_flow(self, flow: Any, static: Shape | None = None) -> TensorArray:
        made = TensorArray.__new__(TensorArray)
        made._dtype, made._dynamic_size, made._infer_shape = self._dtype, self._dynamic_size, self._infer_shape
        made._name, made._clear_after_read, made._cleared = self._name, self._clear_after_read, set(self._cleared)
        made._static, made._count = self._static if static is None else static, self._count
        made._flow = flow
        return made

    def _merged(self, shape: Shape) -> Shape:
        if not self._infer_shape:
            return self._static
        if not self._static.compatible(shape):
            raise ValueError(
                f"Incompatible shape for value ({TensorShape(shape)}), expected ({TensorShape(self._static)})"
            )
        return self._static.merge(shape)

    def _value(self, value: Any) -> Tensor:
        value = convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
        if value.dtype.base_dtype is not self._dtype:
            raise InvalidArgumentError(
                None,
                None,
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype {value.dtype.base_dtype.name}.",
            )
        return value

    # -- one element ---------------------------------------------------------------------------------------------

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`.

        Raises:
            OutOfRangeError: (eager mode) there is none.
            InvalidArgumentError: (eager mode) it was read before and `clear_after_read` is set.
        """
        if context.executing_eagerly():
            self._check_eager_read(int(index))
        return tensor_lists.TENSOR_LIST_GET_ITEM(
            self._flow, index, _sizes(self._static), element_dtype=self._dtype, name=name
        )

    def _check_eager_read(self, index: int) -> None:
        size = int(cast(Any, self.size()))
        if not 0 <= index < size:
            raise OutOfRangeError(None, None, f"Tried to read from index {index} but array size is: {size}")
        if index in self._cleared:
            raise InvalidArgumentError(
                None,
                None,
                f"Could not read index {index} twice because it was cleared after a previous read (perhaps try setting clear_after_read = false?)",
            )
        if self._clear_after_read:
            self._cleared.add(index)

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with `value` at `index`."""
        value = self._value(value)
        if context.executing_eagerly():
            position, size = int(index), int(cast(Any, self.size()))
            if position < 0 or (position >= size and not self._dynamic_size):
                raise OutOfRangeError(
                    None, None, f"Tried to write to index {position} but array is not resizeable and size is: {size}"
                )
            self._cleared.discard(position)
        merged = self._merged(value.static_shape)
        flow = tensor_lists.TENSOR_LIST_SET_ITEM(
            self._flow, index, value, resize_if_index_out_of_bounds=self._dynamic_size, name=name
        )
        return self._changed(flow, merged)

    # -- all elements --------------------------------------------------------------------------------------------

    def stack(self, name: str | None = None) -> Tensor:
        """The elements as one tensor."""
        with name_scope(name, "TensorArrayV2Stack", [self._flow]):
            return tensor_lists.TENSOR_LIST_STACK(
                self._flow,
                _sizes(self._static),
                element_dtype=self._dtype,
                num_elements=-1 if self._count is None else self._count,
                name="TensorListStack",
            )

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices` as one tensor."""
        return tensor_lists.TENSOR_LIST_GATHER(
            self._flow, indices, _sizes(self._static), element_dtype=self._dtype, name=name
        )

    def concat(self, name: str | None = None) -> Tensor:
        """The elements joined along their first dimension."""
        sizes = Shape(None) if self._static.dims is None else Shape((None, *self._static.dims[1:]))
        leading = constant([], dtypes.int64, shape=[0])
        joined, _ = tensor_lists.TENSOR_LIST_CONCAT_V2(
            self._flow, _sizes(sizes), leading, element_dtype=self._dtype, name=name or "TensorArrayV2Concat"
        )
        return joined

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """An array of the rows of `value`."""
        with name_scope(name, "TensorArrayUnstack", [value]):
            value = self._value(value)
            rows = Shape(None) if value.static_shape.dims is None else Shape(value.static_shape.dims[1:])
            merged = self._merged(rows)
            flow = tensor_lists.TENSOR_LIST_FROM_TENSOR(value, _sizes(rows), element_dtype=self._dtype)
            self._cleared.clear()
            made = self._changed(flow, merged)
            made._count = None if self._dynamic_size or not value.static_shape.rank else value.static_shape[0]
            return made

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of `value` at `indices`."""
        with name_scope(name, "TensorArrayScatter", [value, indices]):
            value = self._value(value)
            rows = Shape(None) if value.static_shape.dims is None else Shape(value.static_shape.dims[1:])
            merged = self._merged(rows)
            flow = tensor_lists.TENSOR_LIST_SCATTER_INTO_EXISTING_LIST(
                self._flow, value, convert_to_tensor(indices, dtypes.int32)
            )
            return self._changed(flow, merged)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """An array of consecutive pieces of `value`, of the given lengths."""
        with name_scope(name, "TensorArraySplit", [value, lengths]):
            value = self._value(value)
            lengths = convert_to_tensor(lengths, dtypes.int64)
            sizes = Shape(None)
            if value.static_shape.dims is not None:
                known = constant_value(lengths)
                same = known is not None and len(known) and (np.asarray(known) == known[0]).all()
                sizes = Shape((int(known[0]) if known is not None and same else None, *value.static_shape.dims[1:]))
            flow = tensor_lists.TENSOR_LIST_SPLIT(value, _sizes(sizes), lengths, element_dtype=self._dtype)
            made = self._changed(flow, sizes)
            made._count = None if self._dynamic_size else lengths.static_shape.of_rank(1)[0]
            return made

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        return tensor_lists.TENSOR_LIST_LENGTH(self._flow, name=name)

    def identity(self) -> TensorArray:
        """The same array, in the scopes that are open."""
        return self._with_flow(array.identity(self._flow))

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> Any:
        """Not there: gradients pass through arrays as through any op.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("TensorArray.grad: the array is a value; tf.gradients passes through it.")

    def close(self, name: str | None = None) -> Any:
        """Does nothing: the array goes when nobody uses it."""
        return None

    def __repr__(self) -> str:
        return f"<TensorArray of {self._dtype.name}{self._static}>"


def _sizes(shape: Shape) -> Any:
    if shape.dims is None:
        return constant(-1, dtypes.int32, name="element_shape")
    sizes = [-1 if size is None else size for size in shape.dims]
    return constant(sizes, dtypes.int32, shape=[len(sizes)], name="element_shape")


nest.register_composite(TensorArray, lambda ta: [ta.flow], lambda ta, parts: ta._with_flow(parts[0]))
