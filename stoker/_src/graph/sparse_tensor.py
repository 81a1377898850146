"""`SparseTensor`: the elements of a tensor that are there, with their coordinates."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph import context, type_spec
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor, _default_session

SparseTensorValue = namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])
SparseTensorValue.__doc__ = "What a run gives for a SparseTensor: three arrays."
export_constant(__name__, "SparseTensorValue", v1="SparseTensorValue")


@export("SparseTensor", "sparse.SparseTensor")
class SparseTensor:
    """Element `values[i]` stands at the coordinates `indices[i]` of a tensor of shape `dense_shape`; the rest is absent.

    Args:
        indices: int64 [N, rank].
        values: [N], of any dtype.
        dense_shape: int64 [rank].

    Raises:
        ValueError: shapes that do not fit together.
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
        """A SparseTensor of constants.

        Raises:
            TypeError: not a SparseTensorValue or SparseTensor.
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
        """The same places with other values."""
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
        """The static shape, as far as `dense_shape` tells it."""
        return TensorShape(self.static_shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Merges what is known of the shape.

        Raises:
            ValueError: `shape` contradicts what is known.
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


def _rebuild(instance: SparseTensor, parts: Any) -> Any:
    indices, values, dense_shape = parts
    if all(isinstance(part, Tensor) for part in parts):
        return SparseTensor(indices, values, dense_shape)
    return SparseTensorValue(indices, values, dense_shape)


nest.register_composite(
    SparseTensor, lambda sparse: [sparse.indices, sparse.values, sparse.dense_shape], _rebuild, type_spec.alike
)


@export(v1="convert_to_tensor_or_sparse_tensor")
def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """`value` as a SparseTensor when it is one (or a SparseTensorValue), else as a tensor.

    Raises:
        RuntimeError: a SparseTensor of another dtype.
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
