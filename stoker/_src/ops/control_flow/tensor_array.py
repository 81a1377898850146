"""`tf.TensorArray`: an array of tensors written and read by index.

Arrays are values: every write makes a new list of tensors (`tensor_lists.py`). Two kinds of array have a handle instead, as
in 1.x graphs (`tensor_array_v3.py`): arrays built from a given handle, and those of `TensorArray.grad`, in which repeated
writes are summed.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, OutOfRangeError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import TypeSpec, describes
from stoker._src.ops.array import ranges, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.control_flow import grouping, tensor_array_v3, tensor_lists


@export("TensorArray")
class TensorArray:
    """An array of tensors of one dtype. Every change returns a new TensorArray, so continue with the result of `write`.

    Args:
        dtype: the dtype of the elements.
        size: the number of elements.
        dynamic_size: whether writing beyond the end makes the array longer.
        clear_after_read: in eager mode, an element may be read only once (the default). Graphs keep elements while they are needed.
        tensor_array_name: accepted; arrays of the same name are still distinct.
        handle: the handle of an existing array, as in an imported graph. `flow` then orders reads after writes.
        flow: without a handle, the list that holds the elements of an existing array.
        infer_shape: whether all elements must have the shape of the first one written.
        element_shape: the shape of the elements.
        colocate_with_first_write_call: accepted; placement follows the ops that use the array.
        name: a name scope.

    Raises:
        ValueError: there is neither a size nor a flow, or a handle is combined with arguments that it determines.
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
            self._check_handle(
                size=size,
                tensor_array_name=tensor_array_name,
                dynamic_size=dynamic_size,
                clear_after_read=clear_after_read,
                element_shape=element_shape,
            )
        elif flow is None and size is None:
            raise ValueError("Size must be declared when not creating a tensor array from an existing handle or flow")
        elif flow is not None and size is not None:
            raise ValueError("Cannot provide both a flow and size at the same time")
        elif flow is not None and element_shape is not None and not infer_shape:
            raise ValueError("Cannot provide both a flow and element_shape at the same time")
        self._dtype = as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        self._name = tensor_array_name
        self._clear_after_read = True if clear_after_read is None else clear_after_read
        self._cleared: set[int] = set()
        self._static = as_shape(element_shape)
        self._gradients: dict[str, TensorArray] = {}
        self._count: int | None = None  # the number of elements, if it is known and fixed
        self._store: _Lists | _BehindHandle = _LISTS
        if handle is not None:
            self._store = _BehindHandle(handle)
            self._flow = constant(0, dtypes.float32) if flow is None else flow
            return
        if flow is not None:
            self._flow = flow
            return
        with name_scope(name, "TensorArrayV2" if name is None else name, [size]):
            if context.executing_eagerly():
                size = max(0, operator.index(cast(Any, size)))
            elif not isinstance(size, Tensor):
                size = convert_to_tensor(size, dtypes.int32)
            if isinstance(size, Tensor) and size.static_shape.rank not in (None, 0):
                raise ValueError(f"Shape must be rank 0 but is {size.shape}: the size of a TensorArray")
            self._flow = tensor_lists.TENSOR_LIST_RESERVE(_sizes(self._static), size, element_dtype=self._dtype)
            known = None if self._dynamic_size else constant_value(size) if isinstance(size, Tensor) else size
            self._count = None if known is None else int(known)

    @staticmethod
    def _check_handle(**others: Any) -> None:
        for name, value in others.items():
            if value is not None:
                raise ValueError(f"Cannot provide both `handle` and `{name}` arguments at the same time.")

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def flow(self) -> Any:
        return self._flow

    @property
    def handle(self) -> Any:
        """The handle of an array that was built from one, else None."""
        return self._store.handle

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
        """The array after a change. In eager mode it is the same object, as in TensorFlow."""
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
        made._flow, made._store, made._gradients = flow, self._store, self._gradients
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
            OutOfRangeError: (eager mode) there is no such element.
            InvalidArgumentError: (eager mode) it was read before and `clear_after_read` is set.
        """
        if context.executing_eagerly():
            self._check_eager_read(int(index))
        return self._store.read(self, index, name)

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
        """Returns the array with `value` at `index`."""
        value = self._value(value)
        if context.executing_eagerly():
            position, size = int(index), int(cast(Any, self.size()))
            if position < 0 or (position >= size and not self._dynamic_size):
                raise OutOfRangeError(
                    None, None, f"Tried to write to index {position} but array is not resizeable and size is: {size}"
                )
            self._cleared.discard(position)
        merged = self._merged(value.static_shape)
        return self._changed(self._store.write(self, index, value, name), merged)

    # -- all elements --------------------------------------------------------------------------------------------

    def stack(self, name: str | None = None) -> Tensor:
        """Stacks the elements into one tensor."""
        return self._store.stack(self, name)

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Stacks the elements at `indices` into one tensor."""
        return self._store.gather(self, indices, name)

    def concat(self, name: str | None = None) -> Tensor:
        """Concatenates the elements along their first dimension."""
        return self._store.concat(self, name)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Returns an array of the rows of `value`."""
        with name_scope(name, "TensorArrayUnstack", [value]):
            value = self._value(value)
            rows = Shape(None) if value.static_shape.dims is None else Shape(value.static_shape.dims[1:])
            merged = self._merged(rows)
            flow = self._store.unstack(self, value, rows)
            self._cleared.clear()
            made = self._changed(flow, merged)
            made._count = None if self._dynamic_size or not value.static_shape.rank else value.static_shape[0]
            return made

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with the rows of `value` at `indices`."""
        with name_scope(name, "TensorArrayScatter", [value, indices]):
            value = self._value(value)
            rows = Shape(None) if value.static_shape.dims is None else Shape(value.static_shape.dims[1:])
            merged = self._merged(rows)
            flow = self._store.scatter(self, convert_to_tensor(indices, dtypes.int32), value)
            return self._changed(flow, merged)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Returns an array of consecutive pieces of `value` with the given lengths."""
        with name_scope(name, "TensorArraySplit", [value, lengths]):
            value = self._value(value)
            lengths = convert_to_tensor(lengths, dtypes.int64)
            sizes = Shape(None)
            if value.static_shape.dims is not None:
                known = constant_value(lengths)
                same = known is not None and len(known) and (np.asarray(known) == known[0]).all()
                sizes = Shape((int(known[0]) if known is not None and same else None, *value.static_shape.dims[1:]))
            made = self._changed(self._store.split(self, value, lengths, sizes), sizes)
            made._count = None if self._dynamic_size else lengths.static_shape.of_rank(1)[0]
            return made

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        return self._store.size(self, name)

    def identity(self) -> TensorArray:
        """The same array, created in the scopes that are open."""
        return self._with_flow(shaping.identity(self._flow))

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> TensorArray:
        """The array of gradients of this array's elements for `source`. Repeated writes are summed.

        All calls with the same `source`, on this array or on results of `write`, return the same array. `tf.gradients` does
        not need this method: it differentiates through arrays like through any op.

        Args:
            source: a name for the gradient, chosen by the caller.
            flow: the flow to wait for; by default this array's flow.
            name: the name of the op.
        """
        flow = self._flow if flow is None else flow
        if not isinstance(self._store, _Lists):
            handle, ordered = tensor_array_v3.TENSOR_ARRAY_GRAD_V3(self.handle, flow, source=source, name=name)
            return self._behind(handle, ordered)
        found = self._gradients.get(source)
        if found is None:
            with name_scope(name, "TensorArrayGrad", [flow]):
                plain, start = tensor_array_v3.TENSOR_ARRAY_V3(
                    self.size(), dtype=self._dtype, element_shape=self._static, clear_after_read=False
                )
                handle, ordered = tensor_array_v3.TENSOR_ARRAY_GRAD_V3(plain, start, source=source)
                found = self._gradients[source] = self._behind(handle, ordered)
        if context.executing_eagerly():
            return found
        with control_dependencies([flow]):
            return found.identity()

    def _behind(self, handle: Any, flow: Any) -> TensorArray:
        made = TensorArray(self._dtype, handle=handle, flow=flow, infer_shape=self._infer_shape)
        made._static, made._clear_after_read = self._static, False
        return made

    def close(self, name: str | None = None) -> Any:
        """Returns an op that destroys an array with a handle. Lists are freed automatically."""
        return self._store.close(self, name)

    def __repr__(self) -> str:
        return f"<TensorArray of {self._dtype.name}{self._static}>"


class _Lists:
    """The implementation for arrays that are values: `flow` is the list."""

    handle = None

    def read(self, ta: TensorArray, index: Any, name: str | None) -> Tensor:
        with name_scope(name, "TensorArrayV2Read", [ta._flow, index]):
            return tensor_lists.TENSOR_LIST_GET_ITEM(ta._flow, index, _sizes(ta._static), element_dtype=ta._dtype)

    def write(self, ta: TensorArray, index: Any, value: Tensor, name: str | None) -> Tensor:
        return tensor_lists.TENSOR_LIST_SET_ITEM(
            ta._flow, index, value, resize_if_index_out_of_bounds=ta._dynamic_size, name=name
        )

    def stack(self, ta: TensorArray, name: str | None) -> Tensor:
        if ta._count == 0 and not ta._static.known and context.executing_eagerly():
            return constant([], ta._dtype)  # no element shape is known
        with name_scope(name, "TensorArrayV2Stack", [ta._flow]):
            return tensor_lists.TENSOR_LIST_STACK(
                ta._flow,
                _sizes(ta._static),
                element_dtype=ta._dtype,
                num_elements=-1 if ta._count is None else ta._count,
                name="TensorListStack",
            )

    def gather(self, ta: TensorArray, indices: Any, name: str | None) -> Tensor:
        return tensor_lists.TENSOR_LIST_GATHER(
            ta._flow, indices, _sizes(ta._static), element_dtype=ta._dtype, name=name
        )

    def concat(self, ta: TensorArray, name: str | None) -> Tensor:
        sizes = Shape(None) if ta._static.dims is None else Shape((None, *ta._static.dims[1:]))
        leading = constant([], dtypes.int64, shape=[0])
        joined, _ = tensor_lists.TENSOR_LIST_CONCAT_V2(
            ta._flow, _sizes(sizes), leading, element_dtype=ta._dtype, name=name or "TensorArrayV2Concat"
        )
        return joined

    def unstack(self, ta: TensorArray, value: Tensor, rows: Shape) -> Tensor:
        return tensor_lists.TENSOR_LIST_FROM_TENSOR(value, _sizes(rows), element_dtype=ta._dtype)

    def scatter(self, ta: TensorArray, indices: Tensor, value: Tensor) -> Tensor:
        return tensor_lists.TENSOR_LIST_SCATTER_INTO_EXISTING_LIST(ta._flow, value, indices)

    def split(self, ta: TensorArray, value: Tensor, lengths: Tensor, sizes: Shape) -> Tensor:
        return tensor_lists.TENSOR_LIST_SPLIT(value, _sizes(sizes), lengths, element_dtype=ta._dtype)

    def size(self, ta: TensorArray, name: str | None) -> Tensor:
        return tensor_lists.TENSOR_LIST_LENGTH(ta._flow, name=name)

    def close(self, ta: TensorArray, name: str | None) -> Any:
        return None if context.executing_eagerly() else grouping.no_op(name)


_LISTS = _Lists()


class _BehindHandle:
    """The implementation for arrays with a handle: `flow` orders the operations."""

    def __init__(self, handle: Tensor) -> None:
        self.handle = handle

    def read(self, ta: TensorArray, index: Any, name: str | None) -> Tensor:
        value = tensor_array_v3.TENSOR_ARRAY_READ_V3(self.handle, index, ta._flow, dtype=ta._dtype, name=name)
        return _told(value, ta._static)

    def write(self, ta: TensorArray, index: Any, value: Tensor, name: str | None) -> Tensor:
        return tensor_array_v3.TENSOR_ARRAY_WRITE_V3(self.handle, index, value, ta._flow, name=name)

    def stack(self, ta: TensorArray, name: str | None) -> Tensor:
        with name_scope(name, "TensorArrayStack", [self.handle]):
            return self.gather(ta, ranges.range(0, self.size(ta, None)), None)

    def gather(self, ta: TensorArray, indices: Any, name: str | None) -> Tensor:
        return tensor_array_v3.TENSOR_ARRAY_GATHER_V3(
            self.handle, indices, ta._flow, dtype=ta._dtype, element_shape=ta._static, name=name
        )

    def concat(self, ta: TensorArray, name: str | None) -> Tensor:
        rest = Shape(None) if ta._static.dims is None else Shape(ta._static.dims[1:])
        joined, _ = tensor_array_v3.TENSOR_ARRAY_CONCAT_V3(
            self.handle, ta._flow, dtype=ta._dtype, element_shape_except0=rest, name=name
        )
        return joined

    def unstack(self, ta: TensorArray, value: Tensor, rows: Shape) -> Tensor:
        return self.scatter(ta, ranges.range(0, shaping.shape(value)[0]), value)

    def scatter(self, ta: TensorArray, indices: Tensor, value: Tensor) -> Tensor:
        return tensor_array_v3.TENSOR_ARRAY_SCATTER_V3(self.handle, indices, value, ta._flow)

    def split(self, ta: TensorArray, value: Tensor, lengths: Tensor, sizes: Shape) -> Tensor:
        return tensor_array_v3.TENSOR_ARRAY_SPLIT_V3(self.handle, value, lengths, ta._flow)

    def size(self, ta: TensorArray, name: str | None) -> Tensor:
        return tensor_array_v3.TENSOR_ARRAY_SIZE_V3(self.handle, ta._flow, name=name)

    def close(self, ta: TensorArray, name: str | None) -> Any:
        return tensor_array_v3.TENSOR_ARRAY_CLOSE_V3(self.handle, name=name)


def _told(value: Tensor, shape: Shape) -> Tensor:
    if not getattr(value, "is_eager", False):
        value.set_shape(shape)
    return value


def _sizes(shape: Shape) -> Any:
    if shape.dims is None:
        return constant(-1, dtypes.int32, name="element_shape")
    sizes = [-1 if size is None else size for size in shape.dims]
    return constant(sizes, dtypes.int32, shape=[len(sizes)], name="element_shape")


@export("TensorArraySpec")
@describes(TensorArray)
class TensorArraySpec(TypeSpec):
    """Describes TensorArrays by their elements."""

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = TensorShape(as_shape(element_shape))
        self._dtype = as_dtype(dtype)
        self._dynamic_size, self._infer_shape = dynamic_size, infer_shape

    @staticmethod
    def from_value(value: Any) -> TensorArraySpec:
        """The spec of a TensorArray.

        Raises:
            TypeError: the value is not a TensorArray.
        """
        if not isinstance(value, TensorArray):
            raise TypeError(f"Expected value to be a TensorArray, but got: `{type(value)}`")
        return TensorArraySpec(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)

    _runs = False

    @classmethod
    def _of(cls, value: Any) -> TensorArraySpec:
        return cls.from_value(value)

    @property
    def value_type(self) -> Any:
        return TensorArray

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    @property
    def _component_specs(self) -> list[TensorSpec]:
        return [TensorSpec([], dtypes.variant)]

    def _to_components(self, value: Any) -> list[Any]:
        return [value.flow]

    def _from_components(self, components: Any) -> Any:
        return TensorArray(
            self._dtype,
            flow=components[0],
            dynamic_size=self._dynamic_size,
            infer_shape=self._infer_shape,
            element_shape=self._element_shape,
        )

    @classmethod
    def _parts(cls, value: TensorArray) -> list[Any]:
        return [value.flow]

    @classmethod
    def _with_parts(cls, value: TensorArray, parts: Sequence[Any]) -> TensorArray:
        # A structure may contain whole arrays, because TensorFlow's nest does not expand them.
        return parts[0] if isinstance(parts[0], TensorArray) else value._with_flow(parts[0])

    @classmethod
    def _alike(cls, first: Any, second: Any) -> bool:
        return True  # TensorFlow compares the elements when they are read
