"""The input of a replica: its rows of each batch of a dataset, and the iterators of strategies."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.data.dataset import make_initializable_iterator
from stoker._src.graph import context
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.sparse import sparse_functions


def own_rows(dataset: Any, rank: int, size: int) -> Any:
    """Returns a dataset of the rows that process `rank` of `size` has of each batch.

    Raises:
        ValueError: an element of the dataset is not a batch.
    """
    if size == 1:
        return dataset
    shapes = [spec.static_shape for spec in nest.flatten(dataset.element_spec)]
    if any(shape.rank == 0 for shape in shapes):
        raise ValueError(
            f"Only batches can be divided among {size} processes; call `batch` first: {dataset.element_spec}"
        )
    known = next((shape[0] for shape in shapes if shape.rank), None)

    def rows(*components: Any) -> Any:
        element = components if isinstance(dataset.element_spec, tuple) else components[0]
        count = _length(nest.flatten(element)[0]) if known is None else known
        start, end = count * rank // size, count * (rank + 1) // size
        return nest.map_structure(lambda batch: _slice(batch, start, end), element)

    return dataset.map(rows)


def _length(batch: Any) -> Any:
    if isinstance(batch, RaggedTensor):
        return batch.nrows()
    return batch.dense_shape[0] if isinstance(batch, SparseTensor) else shaping.shape(batch)[0]


def _slice(batch: Any, start: Any, end: Any) -> Any:
    if not isinstance(batch, SparseTensor):
        return batch[start:end]
    rest = batch.dense_shape[1:]
    corner, extent = (
        joining.concat([shaping.reshape(casting.cast(first, dtypes.int64), [1]), others], 0)
        for first, others in ((start, rest * 0), (end - start, rest))
    )
    return sparse_functions.slice(batch, corner, extent)


class InputIterator:
    """What `make_dataset_iterator` and `make_input_fn_iterator` return: gives the inputs of this process.

    Args:
        source: a dataset, or a function that returns the next input.
    """

    def __init__(self, source: Any) -> None:
        self._source, self._is_function = source, callable(source)
        self._iterator: Any = None
        if not self._is_function:
            self._iterator = iter(source) if context.executing_eagerly() else make_initializable_iterator(source)

    def get_next(self, name: str | None = None) -> Any:
        """Returns the next input of this process."""
        return self._source() if self._is_function else self._iterator.get_next(name)

    def __iter__(self) -> InputIterator:
        return self

    def __next__(self) -> Any:
        """The next input, in eager mode."""
        return self._source() if self._is_function else next(self._iterator)

    def initialize(self) -> Any:
        """Returns the op that starts from the first input. In eager mode, starts there."""
        if self._is_function:
            return None if context.executing_eagerly() else grouping.no_op()
        if context.executing_eagerly():
            self._iterator = iter(self._source)
            return None
        return self._iterator.initializer

    @property
    def initializer(self) -> Any:
        """The op that `initialize` returns."""
        return self.initialize()
