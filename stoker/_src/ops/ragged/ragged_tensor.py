"""`RaggedTensor`: a tensor whose rows differ in length, stored as flat values and row splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor, register_tensor_conversion_function
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor, _default_session
from stoker._src.ops.array import casting, constants, gathering, joining, ranges, shaping
from stoker._src.ops.control_flow import assertions, grouping
from stoker._src.ops.math import arithmetic, comparison, counting, masking, reductions, scans, sorting
from stoker._src.ops.ragged import ragged_ops
from stoker._src.ops.ragged.ragged_value import RaggedTensorValue, as_array

_SPLIT_TYPES = (dtypes.int32, dtypes.int64)


def _splits_tensor(value: Any, name: str, dtype: DType | None = None) -> Tensor:
    """Converts splits, lengths or row ids to a vector of int32 or int64 (int64 if a plain value has no dtype).

    Raises:
        ValueError: the dtype or rank is wrong.
    """
    if isinstance(value, (Tensor, np.ndarray)) or hasattr(value, "dtype"):
        tensor = convert_to_tensor(value, name=name)
        if dtype is not None:
            tensor = casting.cast(_whole_numbers(tensor, dtype, name), dtype)
    else:
        tensor = convert_to_tensor(value, dtype, name=name, dtype_hint=dtypes.int64)
    if tensor.dtype.base_dtype not in _SPLIT_TYPES:
        raise ValueError(f"{name} must have dtype int32 or int64, not {tensor.dtype.name}")
    if tensor.static_shape.rank not in (None, 1):
        raise ValueError(f"{name} must be a vector, but has shape {tensor.shape}")
    return tensor


def checked(tensor: Any, condition: Any, message: str, *data: Any) -> Any:
    """Returns `tensor` with a check of `condition`, which is omitted if the condition is statically known to hold.

    Raises:
        InvalidArgumentError: the condition is false (in graph mode, when the tensor is evaluated).
    """
    known = constant_value(condition)
    if known is not None and bool(known):
        return tensor
    check = assertions.assert_op(condition, [message, *data])
    return tensor if context.executing_eagerly() else grouping.with_dependencies([check], tensor)


def _count(values: Any, dtype: DType) -> Tensor:
    """The number of values; the number of rows if the values are ragged."""
    return values.nrows(dtype) if isinstance(values, RaggedTensor) else shaping.shape(values, out_type=dtype)[0]


def _as_values(values: Any) -> Any:
    if isinstance(values, RaggedTensor):
        return values
    tensor = convert_to_tensor(values, name="values")
    if tensor.static_shape.rank == 0:
        raise ValueError("The values of a RaggedTensor must have at least one dimension, got a scalar.")
    return tensor


def _from_zero(sums: Tensor) -> Tensor:
    return joining.concat([constants.constant([0], sums.dtype.base_dtype), sums], 0)


@export("RaggedTensor")
class RaggedTensor:
    """A tensor with rows of different lengths: row i is `values[row_splits[i]:row_splits[i + 1]]`. The values may be ragged as well.

    Created by `tf.ragged.constant` and the `from_...` methods. With `validate=False`, they do not check that the
    partition matches the values.
    """

    is_tensor_like = True
    __array_priority__ = 100

    _values: Any
    _row_splits: Tensor
    _uniform: Tensor | None

    def __init__(self, values: Any, row_partition: Any, internal: bool = False) -> None:
        raise ValueError(
            "RaggedTensor constructor is private; please use one of the factory methods instead "
            "(e.g., RaggedTensor.from_row_lengths())"
        )

    @classmethod
    def _make(cls, values: Any, row_splits: Tensor, uniform: Tensor | None = None) -> RaggedTensor:
        """Creates an instance from its components, without checks."""
        if isinstance(values, RaggedTensor) and values.row_splits.dtype.base_dtype is not row_splits.dtype.base_dtype:
            values = values.with_row_splits_dtype(dtypes.int64)
            row_splits = casting.cast(row_splits, dtypes.int64)
        self = object.__new__(cls)
        self._values, self._row_splits, self._uniform = values, row_splits, uniform
        return self

    # -- created from values and a partition -----------------------------------------------------------------------

    @classmethod
    def _checked(cls, values: Any, splits: Tensor, validate: bool, uniform: Tensor | None = None) -> RaggedTensor:
        if validate:
            count = _count(values, splits.dtype.base_dtype)
            splits = checked(
                splits,
                comparison.equal(splits[-1], count),
                "Arguments do not form a valid RaggedTensor: the row splits must end with the number of values.",
                splits[-1],
                count,
            )
        return cls._make(values, splits, uniform)

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row i is `values[row_splits[i]:row_splits[i + 1]]`.

        Raises:
            ValueError: the splits are empty, or not int32 or int64.
            InvalidArgumentError: the splits do not increase from 0 to the number of values, if `validate` is set.
        """
        if isinstance(row_splits, (list, tuple)) and not row_splits:
            raise ValueError("row_splits tensor may not be empty.")
        with name_scope(name, "RaggedFromRowSplits", [values, row_splits]):
            values, splits = _as_values(values), _splits_tensor(row_splits, "row_splits")
            if splits.static_shape.rank == 1 and splits.static_shape[0] == 0:
                if context.executing_eagerly():  # eager mode treats it as an error in the data
                    raise InvalidArgumentError(None, None, "row_splits tensor may not be empty.")
                raise ValueError("row_splits tensor may not be empty.")
            if validate:
                wrong = "Arguments to from_row_splits do not form a valid RaggedTensor:"
                splits = checked(splits, comparison.equal(splits[0], 0), f"{wrong}zero", splits)
                rising = reductions.reduce_all(splits[1:] >= splits[:-1])
                splits = checked(splits, rising, f"{wrong}monotonic", splits)
            return cls._checked(values, splits, validate)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row i has `row_lengths[i]` values."""
        with name_scope(name, "RaggedFromRowLengths", [values, row_lengths]):
            values, lengths = _as_values(values), _splits_tensor(row_lengths, "row_lengths")
            if validate:
                lengths = checked(
                    lengths,
                    reductions.reduce_all(lengths >= 0),
                    "Arguments to from_row_lengths do not form a valid RowPartition: negative lengths",
                    lengths,
                )
            return cls._checked(values, _from_zero(scans.cumsum(lengths)), validate)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row i starts with `values[row_starts[i]]`."""
        with name_scope(name, "RaggedFromRowStarts", [values, row_starts]):
            values, starts = _as_values(values), _splits_tensor(row_starts, "row_starts")
            count = shaping.reshape(_count(values, starts.dtype.base_dtype), [1])
            return cls.from_row_splits(values, joining.concat([starts, count], 0), validate=validate)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row i ends before `values[row_limits[i]]`."""
        with name_scope(name, "RaggedFromRowLimits", [values, row_limits]):
            limits = _splits_tensor(row_limits, "row_limits")
            return cls.from_row_splits(values, _from_zero(limits), validate=validate)

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """`values[i]` is in row `value_rowids[i]`. The row ids must not decrease. `nrows` allows empty rows at the end."""
        with name_scope(name, "RaggedFromValueRowIds", [values, value_rowids, nrows]):
            values, ids = _as_values(values), _splits_tensor(value_rowids, "value_rowids")
            kind = ids.dtype.base_dtype
            if not values.shape[:1].is_compatible_with(ids.shape[:1]):
                raise ValueError(f"Shapes {values.shape[:1]} and {ids.shape[:1]} are incompatible")
            if nrows is not None:
                nrows = convert_to_tensor(nrows, kind, "nrows")
                nrows.shape.with_rank(0)
            known, given = constant_value(ids), None if nrows is None else constant_value(nrows)
            if given is not None and int(given) < 0:
                raise ValueError(f"Expected nrows >= 0; got {int(given)}")
            if given is not None and known is not None and len(known) and int(given) <= int(known[-1]):
                raise ValueError(
                    f"Expected nrows >= value_rowids[-1] + 1; got nrows={int(given)}, value_rowids[-1]={int(known[-1])}"
                )
            wrong = "Arguments to from_value_rowids do not form a valid RowPartition:"
            if validate:
                ids = checked(
                    ids,
                    reductions.reduce_all(ids[1:] >= ids[:-1]),
                    f"{wrong} value_rowids must rise",
                    ids,
                )
                ids = checked(
                    ids,
                    comparison.equal(_count(values, kind), _count(ids, kind)),
                    f"{wrong} one number for each value",
                    ids,
                )
            splits = segment_ids_to_row_splits(ids, nrows, kind)
            return cls._checked(values, splits, validate)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True, name: str | None = None
    ) -> RaggedTensor:
        """All rows have the same length. `nrows` is the number of rows; without it, a length of 0 means no rows.

        Raises:
            ValueError: the number of values is not the row length times the number of rows.
        """
        with name_scope(name, "RaggedFromUniformRowLength", [values, uniform_row_length, nrows]):
            values = _as_values(values)
            kind = values.row_splits.dtype.base_dtype if isinstance(values, RaggedTensor) else dtypes.int64
            length = convert_to_tensor(uniform_row_length, name="uniform_row_length")
            if length.dtype.base_dtype not in _SPLIT_TYPES:
                raise ValueError("uniform_row_length must have dtype int32 or int64")
            length.shape.with_rank(0)
            if hasattr(uniform_row_length, "dtype") and not isinstance(values, RaggedTensor):
                kind = length.dtype.base_dtype
            length = casting.cast(length, kind)
            count = _count(values, kind)
            size, total = constant_value(length), constant_value(count)
            if nrows is None:
                rows = count // arithmetic.maximum(length, 1)
                if size is not None and int(size) == 0 and total is not None:
                    rows = constants.constant(0, kind)
            else:
                rows = casting.cast(convert_to_tensor(nrows), kind)
            times = constant_value(rows)
            if None not in (size, total, times):
                if int(size) * int(times) != int(total):  # type: ignore[arg-type]
                    raise ValueError(
                        f"uniform_row_length={int(size)} times nrows={int(times)} must equal nvals={int(total)}"  # type: ignore[arg-type]
                    )
            elif validate:
                rows = checked(
                    rows,
                    comparison.equal(rows * length, count),
                    "uniform_row_length times nrows must equal nvals",
                    count,
                )
            splits = ranges.range(constants.constant(0, kind), rows + 1) * length
            return cls._make(values, splits, length)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Several levels, the outermost first."""
        return cls._nested(
            "RaggedFromNestedRowSplits", cls.from_row_splits, flat_values, nested_row_splits, name, validate
        )

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Several levels, the outermost first."""
        return cls._nested(
            "RaggedFromNestedRowlengths", cls.from_row_lengths, flat_values, nested_row_lengths, name, validate
        )

    @classmethod
    def _nested(cls, scope: str, make: Any, flat_values: Any, levels: Any, name: str | None, validate: bool) -> Any:
        if isinstance(levels, Tensor):
            raise TypeError(f"The levels of a ragged tensor must be a list of tensors, got {levels}")
        with name_scope(name, scope, [flat_values, *levels]):
            result = flat_values
            for level in reversed(list(levels)):
                result = make(result, level, validate=validate)
            return result

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Several levels, the outermost first."""
        if isinstance(nested_value_rowids, Tensor):
            raise TypeError(
                f"Argument `nested_value_rowids` must be a list of Tensors. Received {nested_value_rowids}."
            )
        rows = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        if len(rows) != len(nested_value_rowids):
            raise ValueError(
                f"Argument `nested_nrows` must have the same length as `nested_value_rowids` ({len(rows)} vs. {len(nested_value_rowids)})"
            )
        with name_scope(name, "RaggedFromNestedValueRowIds", [flat_values, *nested_value_rowids]):
            result = flat_values
            for ids, count in zip(reversed(list(nested_value_rowids)), reversed(rows)):
                result = cls.from_value_rowids(result, ids, count, validate=validate)
            return result

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> RaggedTensor:
        """Creates rows from a tensor: whole rows, their first `lengths[i]` values, or the values before trailing `padding`.

        Args:
            tensor: a tensor of rank above `ragged_rank`.
            lengths: a vector of row lengths, or a list of vectors, one for each ragged level.
            padding: the value that pads rows.
            ragged_rank: the number of ragged levels of the result.
            name: a prefix for the names of the ops.
            row_splits_dtype: int32 or int64.

        Raises:
            ValueError: both `lengths` and `padding` are given, or the rank is too small.
        """
        if lengths is not None and padding is not None:
            raise ValueError("Specify argument `lengths` or `padding`, but not both.")
        if not isinstance(ragged_rank, int):
            raise TypeError(f"Argument `ragged_rank` must be an int. Received {ragged_rank}.")
        if ragged_rank <= 0:
            raise ValueError(f"Argument `ragged_rank` must be greater than 0. Received {ragged_rank}.")
        kind = as_dtype(row_splits_dtype)
        with name_scope(name, "RaggedFromTensor", [tensor, lengths, padding]):
            x = convert_to_tensor(tensor, name="tensor")
            rank = x.static_shape.rank
            if rank is not None and rank <= ragged_rank:
                raise ValueError(f"Argument `ragged_rank` ({ragged_rank}) must be less than rank(tensor) ({rank}).")
            if (
                isinstance(lengths, (list, tuple))
                and lengths
                and isinstance(lengths[0], (list, tuple, Tensor, np.ndarray))
            ):
                return cls._from_tensor_levels(x, list(lengths), kind)
            sizes = shaping.shape(x, out_type=kind)
            if ragged_rank > 1:
                if lengths is not None:
                    raise ValueError("With ragged_rank > 1, `lengths` must be a list of vectors, one for each level.")
                merged = shaping.reshape(x, joining.concat([[-1], sizes[2:]], 0))
                inner = cls.from_tensor(merged, None, padding, ragged_rank - 1, row_splits_dtype=kind)
                return cls.from_uniform_row_length(inner, sizes[1], sizes[0], validate=False)
            rows = sizes[0]
            if padding is not None:
                lengths = cls._before_padding(x, padding, kind)
            if lengths is None:
                values = shaping.reshape(x, joining.concat([[-1], sizes[2:]], 0))
                static = x.static_shape
                length: Any = sizes[1] if rank is None or static[1] is None else constants.constant(static[1], kind)
                return cls.from_uniform_row_length(values, length, rows, validate=False)
            lengths = arithmetic.minimum(arithmetic.maximum(_splits_tensor(lengths, "lengths", kind), 0), sizes[1])
            mask = masking.sequence_mask(lengths, sizes[1])
            return cls.from_row_lengths(masking.boolean_mask(x, mask), lengths, validate=False)

    @classmethod
    def _from_tensor_levels(cls, x: Tensor, lengths: list[Any], kind: DType) -> RaggedTensor:
        """Uses one vector of lengths per level. The outer one truncates rows, the next truncates the remaining inner rows."""
        outer = cls.from_tensor(x, lengths[0], row_splits_dtype=kind)
        if len(lengths) == 1:
            return outer
        return outer.with_values(cls._from_tensor_levels(outer.values, lengths[1:], kind))

    @staticmethod
    def _before_padding(x: Tensor, padding: Any, kind: DType) -> Tensor:
        """The length of each row without its trailing padding."""
        fill = convert_to_tensor(padding, x.dtype.base_dtype, name="padding")
        differs = comparison.not_equal(x, fill)
        rank = x.static_shape.rank
        if rank is None:
            raise ValueError("`padding` needs the rank of the tensor.")
        if rank > 2:
            differs = reductions.reduce_any(differs, list(range(2, rank)))
        places = ranges.range(constants.constant(1, kind), shaping.shape(x, out_type=kind)[1] + 1)
        held = casting.cast(differs, kind) * places
        return arithmetic.maximum(reductions.reduce_max(held, 1), constants.constant(0, kind))

    @classmethod
    def from_sparse(cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64) -> RaggedTensor:
        """The rows of a sparse matrix in which every row is filled from the start, without gaps.

        Raises:
            ValueError: the sparse tensor is not a matrix.
            InvalidArgumentError: (at run time) there is a gap before a value.
        """
        if not isinstance(st_input, SparseTensor):
            raise TypeError(
                f"Argument `st_input` must be of type SparseTensor, but is of type {type(st_input).__name__}."
            )
        kind = as_dtype(row_splits_dtype)
        with name_scope(name, "RaggedFromSparse", [st_input.indices]):
            rank = st_input.indices.static_shape.of_rank(2)[1]
            if rank not in (None, 2):
                raise ValueError("rank(st_input) must be 2.")
            rows = st_input.indices[:, 0]
            result = cls.from_value_rowids(
                st_input.values,
                casting.cast(rows, kind),
                casting.cast(st_input.dense_shape[0], kind),
                validate=False,
            )
            places = casting.cast(st_input.indices[:, 1], kind)
            steady = reductions.reduce_all(comparison.equal(places, _places(result)))
            splits = checked(result.row_splits, steady, "SparseTensor is not right-ragged", st_input.indices)
            return cls._make(result.values, splits)

    # -- properties --------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def static_shape(self) -> Shape:
        rows = self._row_splits.static_shape.of_rank(1)[0]
        length = None if self._uniform is None else constant_value(self._uniform)
        inner = self._values.static_shape
        if inner.rank is None:
            return inner
        return Shape((None if rows is None else rows - 1, None if length is None else int(length), *inner.dims[1:]))

    @property
    def shape(self) -> TensorShape:
        """The static shape. Ragged dimensions are None."""
        return TensorShape(self.static_shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def ragged_rank(self) -> int:
        """The number of ragged levels."""
        return 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensor) else 0)

    @property
    def values(self) -> Any:
        """The concatenated rows: a tensor, or a RaggedTensor with one level less."""
        return self._values

    @property
    def row_splits(self) -> Tensor:
        return self._row_splits

    @property
    def uniform_row_length(self) -> Tensor | None:
        """The length of every row, if the tensor was created with uniform rows."""
        return self._uniform

    @property
    def flat_values(self) -> Tensor:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        deeper = self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()
        return (self._row_splits, *deeper)

    @property
    def graph(self) -> Any:
        return self._row_splits.graph

    @property
    def op(self) -> Operation:
        return self.flat_values.op

    @property
    def name(self) -> str:
        return self.flat_values.name

    def consumers(self) -> list[Operation]:
        return list(dict.fromkeys(op for part in self._parts() for op in part.consumers()))

    def _parts(self) -> list[Tensor]:
        return [self.flat_values, *self.nested_row_splits]

    def _with_parts(self, parts: Sequence[Any]) -> Any:
        """The same nesting with other components. The lengths of uniform rows are kept if they are statically known."""
        result, *splits = parts
        uniforms, level = [], self
        while isinstance(level, RaggedTensor):
            uniforms.append(level.uniform_row_length)
            level = level.values
        for cuts, uniform in zip(reversed(splits), reversed(uniforms)):
            outer = object.__new__(RaggedTensor)
            # The uniform row length is a tensor of this instance's graph. In another graph only its static value is valid.
            known = None if uniform is None else constant_value(uniform)
            outer._values, outer._row_splits = result, cuts
            outer._uniform = None if known is None else constants.constant(known)
            result = outer
        return result

    # -- row partition -----------------------------------------------------------------------------------------------

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """The number of rows."""
        kind = self._row_splits.dtype.base_dtype if out_type is None else as_dtype(out_type)
        with name_scope(name, "RaggedNRows", [self._row_splits]):
            return shaping.shape(self._row_splits, out_type=kind)[0] - 1

    def row_starts(self, name: str | None = None) -> Tensor:
        with name_scope(name, "RaggedRowStarts", [self._row_splits]):
            return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        with name_scope(name, "RaggedRowLimits", [self._row_splits]):
            return self._row_splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The length of each row along `axis`: a vector for axis 1, ragged with `axis - 1` levels for a larger axis."""
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return self._row_splits[1:] - self._row_splits[:-1]
        with name_scope(name, "RaggedRowLengths", [self._row_splits]):
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            sizes = shaping.shape(self._values, out_type=self._row_splits.dtype.base_dtype)
            ones = shaping.ones(sizes[: axis - 1], self._row_splits.dtype.base_dtype)
            return self.with_values(ones * sizes[axis - 1])

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value."""
        with name_scope(name, "RaggedValueRowIds", [self._row_splits]):
            return row_splits_to_segment_ids(self._row_splits)

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        with name_scope(name, "RaggedNestedRowLengths", self._parts()):
            deeper = self._values.nested_row_lengths() if isinstance(self._values, RaggedTensor) else ()
            return (self.row_lengths(), *deeper)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        with name_scope(name, "RaggedNestedValueRowIds", self._parts()):
            deeper = self._values.nested_value_rowids() if isinstance(self._values, RaggedTensor) else ()
            return (self.value_rowids(), *deeper)

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Tensor:
        """The shape of the smallest dense tensor that holds all rows, or its sizes at `axis`."""
        own = self._row_splits.dtype.base_dtype
        with name_scope(name, "RaggedBoundingBox", self._parts()):
            flat = shaping.shape(self.flat_values, out_type=own)
            longest = [
                arithmetic.maximum(reductions.reduce_max(lengths), constants.constant(0, own))
                for lengths in self.nested_row_lengths()
            ]
            sizes = joining.concat([joining.stack([self.nrows(), *longest]), flat[1:]], 0)
            if out_type is not None:
                sizes = casting.cast(sizes, as_dtype(out_type))
            if axis is None:
                return sizes
            return sizes[axis] if isinstance(axis, int) else gathering.gather(sizes, axis)

    # -- same rows, other values or dimensions -----------------------------------------------------------------------

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows with other values. The number of values must be the same."""
        values = _as_values(new_values)
        mine, theirs = self._values.static_shape, values.static_shape
        if mine.rank is not None and theirs.rank is not None:
            Shape((mine[0],)).merge(Shape((theirs[0],)))
        return RaggedTensor._make(values, self._row_splits, self._uniform)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows at every level, with other flat values."""
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same rows with splits of another dtype.

        Raises:
            ValueError: `dtype` is neither int32 nor int64.
        """
        kind = as_dtype(dtype)
        if kind not in _SPLIT_TYPES:
            raise ValueError(f"Argument `row_splits` dtype must be int32 or int64. Received {dtype}.")
        if self._row_splits.dtype.base_dtype is kind:
            return self
        values = self._values.with_row_splits_dtype(kind) if isinstance(self._values, RaggedTensor) else self._values
        uniform = None if self._uniform is None else casting.cast(self._uniform, kind)
        return RaggedTensor._make(values, casting.cast(self._row_splits, kind), uniform)

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Merges the dimensions from `outer_axis` to `inner_axis` into one."""
        rank = self.static_shape.rank
        if rank is not None:
            outer_axis, inner_axis = (axis + rank if axis < 0 else axis for axis in (outer_axis, inner_axis))
        if outer_axis > inner_axis:
            raise ValueError(
                f"Expected outer_axis ({outer_axis}) to be less than or equal to inner_axis ({inner_axis})"
            )
        if outer_axis == inner_axis:
            return self
        if outer_axis > 0:
            return self.with_values(_merged(self._values, outer_axis - 1, inner_axis - 1))
        return _merged(self._values, 0, inner_axis - 1)

    # -- conversion --------------------------------------------------------------------------------------------------

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Tensor:
        """Converts to a dense tensor. Rows are padded with `default_value` (0 or ""). A given `shape` truncates or extends the result."""
        with name_scope(name, "RaggedToTensor", [*self._parts(), default_value]):
            kind = self.dtype.base_dtype
            if default_value is None:
                default_value = constants.constant("" if kind is dtypes.string else 0, kind, name="zeros")
            else:
                default_value = convert_to_tensor(default_value, kind, name="default_value")
            own = self._row_splits.dtype.base_dtype
            if shape is None:
                sizes: Any = constants.constant(-1, own)
            elif isinstance(shape, Tensor):
                sizes = shape
            else:
                spelled = as_shape(shape)
                sizes = -1 if spelled.rank is None else [-1 if size is None else size for size in spelled]
                sizes = constants.constant(sizes, own)
            splits = self.nested_row_splits
            result = ragged_ops.RAGGED_TENSOR_TO_TENSOR(
                sizes, self.flat_values, default_value, list(splits), row_partition_types=["ROW_SPLITS"] * len(splits)
            )
            if shape is None and not context.executing_eagerly():
                result.set_shape(self.static_shape)
            return result

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """Converts to a SparseTensor with all values."""
        with name_scope(name, "RaggedToSparse", self._parts()):
            found = ragged_ops.RAGGED_TENSOR_TO_SPARSE(list(self.nested_row_splits), self.flat_values)
            return SparseTensor(*found)

    def _eager_value(self) -> RaggedTensorValue:
        if not context.executing_eagerly():
            raise ValueError("The value of a RaggedTensor is only there in eager mode; use Session.run.")
        values = self._values._eager_value() if isinstance(self._values, RaggedTensor) else self._values.numpy()
        return RaggedTensorValue(values, self._row_splits.numpy())  # type: ignore[attr-defined]

    def to_list(self) -> list[Any]:
        """Converts to nested Python lists, in eager mode."""
        return self._eager_value().to_list()

    def numpy(self) -> Any:
        """Converts to an array (of dtype object if row lengths differ), in eager mode."""
        return as_array(self._eager_value())

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value in `session`, or in the default session, as a RaggedTensorValue."""
        return _default_session(session, self.graph, "Cannot evaluate tensor using `eval()`").run(self, feed_dict)

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __iter__(self) -> Any:
        if not context.executing_eagerly():
            raise TypeError("Iterating over a symbolic RaggedTensor is not possible; it has no value yet.")
        return (self[i] for i in range(len(self._row_splits.numpy()) - 1))  # type: ignore[attr-defined,index]

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        if getattr(self._row_splits, "is_eager", False) and context.executing_eagerly():
            return f"<tf.RaggedTensor {self.to_list()}>"
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._row_splits})"


def _merged(values: Any, outer: int, inner: int) -> Any:
    if outer == inner:
        return values
    if isinstance(values, RaggedTensor):
        if outer == 0:
            return _merged(values.values, 0, inner - 1)
        return values.with_values(_merged(values.values, outer - 1, inner - 1))
    sizes = shaping.shape(values)
    return shaping.reshape(values, joining.concat([sizes[:outer], [-1], sizes[inner + 1 :]], 0))


def _places(ragged: RaggedTensor) -> Tensor:
    """The position of each value in its row."""
    splits = ragged.row_splits
    every = ranges.range(splits[-1])
    return every - gathering.gather(ragged.row_starts(), ragged.value_rowids())


@export("ragged.row_splits_to_segment_ids")
def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """Converts row splits to the row of each value: [0, 2, 2, 3] gives [0, 0, 2]."""
    with name_scope(name, "RaggedSplitsToSegmentIds", [splits]):
        cuts = _splits_tensor(splits, "splits")
        kind = cuts.dtype.base_dtype if out_type is None else as_dtype(out_type)
        # A value's row is the number of rows that end at or before it.
        every = ranges.range(cuts[-1])
        found = sorting.UPPER_BOUND(shaping.expand_dims(cuts[1:], 0), shaping.expand_dims(every, 0), out_type=kind)
        return shaping.squeeze(found, [0])


@export("ragged.segment_ids_to_row_splits")
def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """Converts the row of each value to row splits: [0, 0, 2] gives [0, 2, 2, 3].

    Raises:
        TypeError: `segment_ids` or `num_segments` are not integers.
    """
    with name_scope(name, "SegmentIdsToRaggedSplits", [segment_ids]):
        ids = _whole_numbers(segment_ids, dtypes.int64, "segment_ids")
        if ids.static_shape.rank not in (None, 1):
            raise ValueError(f"Shape {ids.shape} must have rank 1")
        own = ids.dtype.base_dtype
        kind = own if out_type is None else as_dtype(out_type)
        if num_segments is None:
            count = arithmetic.maximum(reductions.reduce_max(ids) + 1, constants.constant(0, own))
            # The maximum of no numbers is the dtype's minimum, so adding one gives a negative number.
        else:
            count = _whole_numbers(num_segments, own, "num_segments")
            count.shape.with_rank(0)
            count = casting.cast(count, own)
        lengths = counting.DENSE_BINCOUNT(ids, count, constants.constant([], kind))
        return joining.concat([constants.constant([0], kind), scans.cumsum(lengths)], 0)


def _whole_numbers(value: Any, hint: DType, name: str) -> Tensor:
    tensor = convert_to_tensor(value, dtype_hint=hint, name=name)
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument `tensor` (name: {name}) must be of type integer. Received `tensor` = {tensor}.")
    return tensor


def _no_conversion(value: RaggedTensor, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    raise TypeError(
        f"A RaggedTensor is no Tensor: call to_tensor() or use a function that takes ragged tensors ({value})."
    )


register_tensor_conversion_function(RaggedTensor, _no_conversion, priority=0)
