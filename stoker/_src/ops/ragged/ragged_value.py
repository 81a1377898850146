"""`RaggedTensorValue`: the arrays of a ragged tensor, as a session returns them."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base.export import export_constant


class RaggedTensorValue:
    """The value of a RaggedTensor: arrays of values and row splits."""

    def __init__(self, values: Any, row_splits: Any) -> None:
        if not (isinstance(row_splits, np.ndarray) and row_splits.dtype in (np.int64, np.int32)):
            raise TypeError("row_splits must be a 1-D array of int32 or int64")
        if not isinstance(values, (np.ndarray, np.generic, RaggedTensorValue)):
            raise TypeError("values must be an array or a RaggedTensorValue")
        self._values, self._row_splits = values, row_splits

    @property
    def values(self) -> Any:
        return self._values

    @property
    def row_splits(self) -> np.ndarray:
        return self._row_splits

    @property
    def flat_values(self) -> Any:
        return self._values.flat_values if isinstance(self._values, RaggedTensorValue) else self._values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        deeper = self._values.nested_row_splits if isinstance(self._values, RaggedTensorValue) else ()
        return (self._row_splits, *deeper)

    @property
    def ragged_rank(self) -> int:
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> Any:
        return self._values.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    def to_list(self) -> list[Any]:
        """The rows as nested Python lists."""
        rows = self._values.to_list() if isinstance(self._values, RaggedTensorValue) else self._values.tolist()
        return [rows[a:b] for a, b in zip(self._row_splits[:-1], self._row_splits[1:])]

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"


export_constant(__name__, "RaggedTensorValue", v1="ragged.RaggedTensorValue")


def as_array(value: Any) -> Any:
    """Converts rows to an array: a plain one if all rows have the same length, else an array of arrays."""
    if not isinstance(value, RaggedTensorValue):
        return value
    inner = as_array(value.values)
    rows = [inner[a:b] for a, b in zip(value.row_splits[:-1], value.row_splits[1:])]
    if len({row.shape for row in rows}) == 1 and all(row.dtype == rows[0].dtype for row in rows):
        return np.stack(rows)
    result = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        result[i] = row
    return result
