"""`SparseTensor`: the present elements of a tensor, with their coordinates."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor, _default_session
from stoker._src.graph.tensor_spec import ShapedSpec, TensorSpec
from stoker._src.graph.type_spec import Column, Hold, Reader, describes, fed_parts

SparseTensorValue = namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])
SparseTensorValue.__doc__ = "The value of a SparseTensor, as a session returns it: three arrays."
export_constant(__name__, "SparseTensorValue", v1="SparseTensorValue")


@export("SparseTensor", "sparse.SparseTensor")
class SparseTensor:
    """A sparse tensor of shape `dense_shape`: `values[i]` is the element at the coordinates `indices[i]`.

    Args:
        indices: int64 [N, rank].
        values: [N], of any dtype.
        dense_shape: int64 [rank].

    Raises:
        ValueError: the shapes are inconsistent.
    """

    is_tensor_like = True

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = convert_to_tensor(indices, dtypes.int64, name="indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, name="dense_shape")
        rows = self._indices.static_shape
        try:
            rows = rows.of_rank(2)
            count = self._values.static_shape.of_rank(1)
            rank = self._dense_shape.static_shape.of_rank(1)
            Shape((rows[0],)).merge(count)
            Shape((rows[1],)).merge(rank)
        except Exception as error:
            raise ValueError(
                f"A SparseTensor needs indices [N, rank], values [N] and dense_shape [rank], got {self._indices.shape}, "
                f"{self._values.shape} and {self._dense_shape.shape}: {getattr(error, 'message', error)}"
            ) from None
        self._spelled: Shape | None = None

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Creates a SparseTensor of constants.

        Raises:
            TypeError: the argument is not a SparseTensorValue or SparseTensor.
        """
        if not isinstance(sparse_tensor_value, (SparseTensorValue, SparseTensor)):
            raise TypeError(
                f"Argument sparse_tensor_value={sparse_tensor_value} is neither a SparseTensor nor SparseTensorValue."
            )
        value = sparse_tensor_value
        return SparseTensor(value.indices, value.values, value.dense_shape)

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        return self._dense_shape

    def with_values(self, new_values: Any) -> SparseTensor:
        """The same indices with other values."""
        return SparseTensor(self._indices, new_values, self._dense_shape)

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def op(self) -> Operation:
        return self._values.op

    @property
    def graph(self) -> Any:
        return self._indices.graph

    @property
    def name(self) -> str:
        return self._values.name

    @property
    def static_shape(self) -> Shape:
        known = constant_value_as_shape(self._dense_shape)
        return known if self._spelled is None else known.merge(self._spelled)

    @property
    def shape(self) -> TensorShape:
        """The static shape, as far as `dense_shape` is statically known."""
        return TensorShape(self.static_shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Refines the static shape.

        Raises:
            ValueError: `shape` contradicts the static shape.
        """
        wanted = as_shape(shape)
        if not self.static_shape.compatible(wanted):
            raise ValueError(f"Shapes {self.shape} and {TensorShape(wanted)} are incompatible")
        self._spelled = self.static_shape.merge(wanted)

    def consumers(self) -> list[Operation]:
        return list(
            dict.fromkeys([*self._indices.consumers(), *self._values.consumers(), *self._dense_shape.consumers()])
        )

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value in `session`, or in the default session, as a SparseTensorValue."""
        return _default_session(session, self.graph, "Cannot evaluate tensor using `eval()`").run(self, feed_dict)

    def numpy(self) -> Any:
        """The value in eager mode, as a SparseTensorValue."""
        if not context.executing_eagerly():
            raise AttributeError("SparseTensor.numpy() is only there in eager mode.")
        return SparseTensorValue(self._indices.numpy(), self._values.numpy(), self._dense_shape.numpy())  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return f"SparseTensor(indices={self._indices!s}, values={self._values!s}, dense_shape={self._dense_shape!s})"

    __repr__ = __str__


@export("SparseTensorSpec")
@describes(SparseTensor, plain=(SparseTensorValue,))
class SparseTensorSpec(ShapedSpec):
    """Describes SparseTensors by their dense shape and the dtype of their values."""

    __slots__ = ()

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = TensorShape(as_shape(shape))
        self._dtype = as_dtype(dtype).base_dtype

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The spec of a SparseTensor or SparseTensorValue.

        Raises:
            TypeError: the value is of another type.
        """
        if isinstance(value, SparseTensor):
            return cls(value.shape, value.dtype)
        if isinstance(value, SparseTensorValue):
            return cls(
                [int(size) for size in np.asarray(value.dense_shape)], convert_to_tensor(value.values).dtype.base_dtype
            )
        raise TypeError(f"Expected SparseTensor or SparseTensorValue. Received: {value!r}")

    _of = from_value

    @property
    def value_type(self) -> type[SparseTensor]:
        return SparseTensor

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    @property
    def _component_specs(self) -> list[TensorSpec]:
        rank = self.static_shape.rank
        return [
            TensorSpec([None, rank], dtypes.int64),
            TensorSpec([None], self._dtype),
            TensorSpec([rank], dtypes.int64),
        ]

    def _to_components(self, value: Any) -> list[Any]:
        sparse = SparseTensor.from_value(value)
        return [sparse.indices, sparse.values, sparse.dense_shape]

    def _from_components(self, components: Any) -> SparseTensor:
        return SparseTensor(*components)

    @classmethod
    def _parts(cls, value: SparseTensor) -> list[Any]:
        return [value.indices, value.values, value.dense_shape]

    @classmethod
    def _with_parts(cls, value: SparseTensor, parts: Sequence[Any]) -> Any:
        """Tensors make a SparseTensor, arrays and whatever else stands for them a SparseTensorValue."""
        kind = SparseTensor if all(isinstance(part, Tensor) for part in parts) else SparseTensorValue
        return kind(*parts)

    @classmethod
    def _fed(cls, key: SparseTensor, value: Any) -> Sequence[Any]:
        return fed_parts(key, SparseTensorValue._fields, value)

    @classmethod
    def _fetched(cls, value: SparseTensor, arrays: Sequence[Any]) -> Any:
        return SparseTensorValue(*arrays)

    @classmethod
    def _differentiated(cls, value: SparseTensor) -> list[Any]:
        return [value.values]

    @classmethod
    def _gradient(cls, value: SparseTensor, gradients: Sequence[Any]) -> Any:
        found = gradients[0]
        return None if found is None else value.with_values(convert_to_tensor(found))

    # -- rows: each is kept as a message; those of all rows together make the whole, as large as the largest row

    def _batch(self, batch_size: int | None) -> SparseTensorSpec:
        return SparseTensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> SparseTensorSpec:
        return SparseTensorSpec(self._shape[1:], self._dtype)

    @classmethod
    def _row_count(cls, value: SparseTensor) -> Any:
        return ops.cast(value.dense_shape[0], dtypes.int32)

    @classmethod
    def _row_reader(cls, value: SparseTensor, hold: Hold) -> Reader:
        messages = ops.SerializeManySparse(value.indices, value.values, value.dense_shape, out_type=dtypes.variant)
        read, row = hold(messages), cls.from_value(value)._unbatch()
        return lambda i: row._from_messages(read(i))

    def _from_messages(self, messages: Any) -> SparseTensor:
        indices, values, dense_shape = ops.DeserializeSparse(messages, dtype=self._dtype)
        rank = self.static_shape.rank
        indices.set_shape([None, rank])
        dense_shape.set_shape([rank])
        return SparseTensor(indices, values, dense_shape)

    def _checked_row(self, value: Any) -> SparseTensor:
        if not isinstance(value, SparseTensor) or value.dtype.base_dtype is not self._dtype:
            raise TypeError(f"fn_output_signature says {self} but fn returned {value}.")
        return value

    def _row_columns(self) -> list[Column]:
        return [Column(dtypes.variant, [3])]

    def _to_columns(self, row: SparseTensor) -> list[Any]:
        return [ops.SerializeSparse(row.indices, row.values, row.dense_shape, out_type=dtypes.variant)]

    def _from_columns(self, columns: Sequence[Any]) -> SparseTensor:
        return self._batch(None)._from_messages(columns[0])


@export(v1="convert_to_tensor_or_sparse_tensor")
def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Returns a SparseTensor (or converts a SparseTensorValue) or else converts `value` to a tensor.

    Raises:
        RuntimeError: the SparseTensor has another dtype.
    """
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if isinstance(value, SparseTensor):
        if wanted is not None and value.dtype.base_dtype is not wanted:
            raise RuntimeError(f"Sparse dtype mismatch. Requested: {wanted.name},  Actual: {value.dtype.name}")
        return value
    return convert_to_tensor(value, wanted, name)


def is_sparse(x: Any) -> bool:
    return isinstance(x, (SparseTensor, SparseTensorValue))
