"""Methods of `Variable` that update it or a part of it, or read a part of it, and its arithmetic operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import gathering
from stoker._src.ops.variables import scatter_ops


class PartialUpdates:
    """Assignment and scatter methods. Each kind of variable implements the assignments.

    All updates return the variable's updated value, and raise TypeError if `sparse_delta` is not an IndexedSlices.
    """

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Assigns `value`. Returns the updated value, or the op if `read_value` is False."""
        raise NotImplementedError

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`. Returns the updated value, or the op if `read_value` is False."""
        raise NotImplementedError

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`. Returns the updated value, or the op if `read_value` is False."""
        raise NotImplementedError

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Gathers rows of the variable."""
        return gathering.GATHER_V2(self, indices, 0, name=name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Gathers elements or slices of the variable at coordinates."""
        return gathering.GATHER_ND(self, indices, name=name)

    def _scatter(self, kind: str, indices: Any, updates: Any, name: str | None, use_locking: bool = False) -> Any:
        raise NotImplementedError

    def _scatter_nd(self, kind: str, indices: Any, updates: Any, name: str | None) -> Any:
        raise NotImplementedError

    def _scatter_slices(self, kind: str, sparse_delta: Any, use_locking: bool, name: str | None) -> Any:
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        return self._scatter(kind, sparse_delta.indices, sparse_delta.values, name, use_locking)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds IndexedSlices."""
        return self._scatter_slices("Add", sparse_delta, use_locking, name)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts IndexedSlices."""
        return self._scatter_slices("Sub", sparse_delta, use_locking, name)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiplies rows by IndexedSlices."""
        return self._scatter_slices("Mul", sparse_delta, use_locking, name)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divides rows by IndexedSlices."""
        return self._scatter_slices("Div", sparse_delta, use_locking, name)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Sets rows to the minimum of their value and IndexedSlices."""
        return self._scatter_slices("Min", sparse_delta, use_locking, name)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Sets rows to the maximum of their value and IndexedSlices."""
        return self._scatter_slices("Max", sparse_delta, use_locking, name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Sets rows to IndexedSlices."""
        return self._scatter_slices("Update", sparse_delta, use_locking, name)

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Sets rows of every batch: `self[b..., indices[b..., i]] = values[b..., i]`."""
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        return scatter_ops.batch_scatter_update(self, sparse_delta.indices, sparse_delta.values, use_locking, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Adds at coordinates."""
        return self._scatter_nd("Add", indices, updates, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtracts at coordinates."""
        return self._scatter_nd("Sub", indices, updates, name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Sets elements or slices at coordinates."""
        return self._scatter_nd("Update", indices, updates, name)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Sets elements at coordinates to the minimum of their value and `updates`."""
        return self._scatter_nd("Min", indices, updates, name)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Sets elements at coordinates to the maximum of their value and `updates`."""
        return self._scatter_nd("Max", indices, updates, name)

    def count_up_to(self, limit: int) -> Tensor:
        """Increments the variable and returns its previous value. Raises OutOfRangeError at run time if it has reached `limit`."""
        return scatter_ops.count_up_to(self, limit)


class TensorOperators:
    """Arithmetic and comparison operators that act on the value of the variable."""

    def value(self) -> Tensor:
        """The current value."""
        raise NotImplementedError


def _on_value(dunder: str) -> Callable[..., Any]:
    def operator(self: TensorOperators, *args: Any) -> Any:
        return getattr(Tensor, dunder)(self.value(), *args)

    return operator


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul "
    "lt le gt ge and rand or ror xor rxor neg invert abs"
).split():
    setattr(TensorOperators, f"__{_name}__", _on_value(f"__{_name}__"))
