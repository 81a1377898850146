"""The values behind list handles.

Lists are immutable: an op that changes one returns a new list. Usually only the newest list is used again. `TensorList` makes this
case as cheap as an in-place change: the newest list owns the Python list, and an older one knows how to undo the change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.moving import moved_to
from stoker._src.ops.support.values import torch_dtype
from stoker._src.ops.support.waiting import current_run

_SET, _PUSH, _POP = range(3)
_UNDO_PUSH = (_POP,)
_MORE = {_SET: 0, _PUSH: 1, _POP: -1}  # items that undoing a change adds
_FEW_CHANGES = 64
_ROWS_AT_ONCE = 50_000
_NEW = object.__new__


def on_one_device(items: list[torch.Tensor]) -> list[torch.Tensor]:
    """Moves the items of one op to one device. Integers, and zeros for items that were never written, may be on the host."""
    for item in items:
        if item.is_cuda:
            return [moved_to(each, item.device) for each in items]
    return items


def rows_of(stack: torch.Tensor) -> list[torch.Tensor]:
    """The rows of a tensor. Millions of them take seconds, so a run that was cancelled in the meantime ends between two parts.

    Raises:
        CancelledError: the run was cancelled.
        DeadlineExceededError: the run's time ran out.
    """
    count = stack.shape[0]
    if count <= _ROWS_AT_ONCE:
        return list(stack.unbind(0))
    state = current_run()
    rows: list[torch.Tensor] = []
    for start in range(0, count, _ROWS_AT_ONCE):
        if state is not None:
            state.check("Dividing a tensor into a list of its rows")
        rows += stack[start : start + _ROWS_AT_ONCE].unbind(0)
    return rows


class TensorList:
    """An immutable list of tensors of one dtype. Items are kernel values, or None if nothing was written.

    Attributes:
        dtype: the dtype of the items.
        shape: a shape that is compatible with every item.
        limit: the maximum number of items; -1 for any number.
    """

    __slots__ = ("_accepted", "_change", "_items", "_newer", "_stack", "dtype", "limit", "shape")

    def __init__(self, items: list[Any], dtype: DType, shape: Shape, limit: int = -1) -> None:
        self._items: list[Any] | None = items
        self._newer: TensorList | None = None
        self._change: tuple[Any, ...] = ()
        self._stack: torch.Tensor | None = None  # the items as one tensor, if the list was made from one
        self._accepted: Any = None  # the shape of the last item that was checked
        self.dtype = dtype
        self.shape = shape
        self.limit = limit

    @classmethod
    def of_rows(cls, stack: torch.Tensor, dtype: DType, shape: Shape, limit: int = -1) -> TensorList:
        """A list of the rows of a tensor. They become items only when one of them is asked for."""
        made = cls([], dtype, shape, limit)
        made._items, made._stack = None, stack
        return made

    def items(self) -> list[Any]:
        """The items. The caller must not change them."""
        if self._items is None:
            self._items = self._rebuilt() if self._stack is None else rows_of(self._stack)
        return self._items

    def length(self) -> int:
        """The number of items. A list that is little older than the newest is not rebuilt to count them."""
        if self._stack is not None:
            return self._stack.shape[0]
        newest, more = self._newest()
        return len(newest) + more

    def _newest(self) -> tuple[list[Any], int]:
        """The Python list of a newer list, and how many more items this list has."""
        at, more = self, 0
        for _ in range(_FEW_CHANGES):
            if at._items is not None or at._stack is not None:
                return at.items(), more
            more += _MORE[at._change[0]]
            assert at._newer is not None
            at = at._newer
        return self.items(), 0  # this list may be asked often

    def rows(self) -> torch.Tensor | None:
        """All items as one tensor; None if items are missing, of different shapes, or not tensors. The caller must not change it."""
        if self._stack is not None:
            return self._stack
        items = self.items()
        if self.is_blank and self._has_zeros:
            return self._zero([len(items), *(self.shape.dims or ())])
        if not items or not all(isinstance(item, torch.Tensor) and item.shape == items[0].shape for item in items):
            return None
        return torch.stack(items)

    @property
    def is_blank(self) -> bool:
        """Whether there are items, and nothing was written to any of them."""
        items = () if self._stack is not None else self.items()
        return len(items) > 0 and all(item is None for item in items)

    @property
    def _has_zeros(self) -> bool:
        """Whether items that were never written count as zeros of a known shape."""
        return self.shape.known and self.dtype not in (dtypes.variant, dtypes.resource, dtypes.string)

    def _rebuilt(self) -> list[Any]:
        """The items of an older list: those of a newer list with the changes undone."""
        changes, newer = [self._change], self._newer
        assert newer is not None
        while newer._items is None:
            changes.append(newer._change)
            newer = newer._newer
            assert newer is not None
        items = list(newer._items)
        for kind, *rest in reversed(changes):
            if kind == _SET:
                items[rest[0]] = rest[1]
            elif kind == _PUSH:
                items.append(rest[0])
            else:
                items.pop()
        self._newer, self._change = None, ()
        return items

    def _succeeded(self, items: list[Any], undo: tuple[Any, ...]) -> TensorList:
        following: TensorList = _NEW(TensorList)  # a loop makes dozens in each iteration
        following._items, following._newer, following._change, following._stack = items, None, (), None
        following.dtype, following.shape, following.limit = self.dtype, self.shape, self.limit
        following._accepted = self._accepted
        self._items, self._newer, self._change = None, following, undo
        return following

    def pushed(self, item: Any) -> TensorList:
        items = self.items() if self._items is None else self._items
        if 0 <= self.limit <= len(items):
            raise InvalidArgumentError(
                None,
                None,
                f"Tried to push item into a full list: list size {len(items)}, max_num_elements {self.limit}",
            )
        if type(item) is not torch.Tensor or item.shape != self._accepted:
            self._check(item)
        items.append(item)
        return self._succeeded(items, _UNDO_PUSH)

    def popped(self) -> tuple[TensorList, Any]:
        items = self.items() if self._items is None else self._items
        if not items:
            raise InvalidArgumentError(None, None, "Trying to pop from an empty list.")
        item = items.pop()
        return self._succeeded(items, (_PUSH, item)), item

    def with_item(self, index: int, item: Any, *, resize: bool = False) -> TensorList:
        items = self.items() if self._items is None else self._items
        self._check(item)
        if resize and index >= len(items):
            grown = TensorList([*items, *[None] * (index + 1 - len(items))], self.dtype, self.shape, self.limit)
            return grown.with_item(index, item)
        self._check_index(index)
        old, items[index] = items[index], item
        return self._succeeded(items, (_SET, index, old))

    def replaced(self, items: list[Any]) -> TensorList:
        return TensorList(items, self.dtype, self.shape, self.limit)

    def _check(self, item: Any) -> None:
        # A list inside a list, or an array, is a single handle, whatever the shape of its own items.
        found = item.shape if isinstance(item, (torch.Tensor, np.ndarray)) else ()
        if found == self._accepted:
            return
        self._check_shape(found)
        self._accepted = found

    def _check_shape(self, found: Any) -> None:
        dims = self.shape.dims
        if dims is None or dims == found:
            return
        if len(dims) != len(found) or any(size is not None and size != other for size, other in zip(dims, found)):
            raise InvalidArgumentError(
                None,
                None,
                f"Tried to append a tensor with incompatible shape to a list. Op element shape: {Shape(found)} list shape: {self.shape}",
            )

    def check_dtype(self, dtype: DType) -> None:
        if self.dtype is not dtype:
            raise InvalidArgumentError(
                None, None, f"Invalid data types; op elements {dtype.name}, but list elements {self.dtype.name}"
            )

    def _check_index(self, index: int) -> None:
        if not 0 <= index < len(self.items()):
            raise InvalidArgumentError(
                None, None, f"Trying to access element {index} in a list with {len(self.items())} elements."
            )

    def item(self, index: int, shape: Shape) -> Any:
        """One item; zeros if nothing was written and the shape is known."""
        self._check_index(index)
        found = self.items()[index]
        return self._zeros(shape, index) if found is None else found

    def _zeros(self, shape: Shape, index: int) -> Any:
        wanted = self.shape if self.shape == shape else self.shape.merge(shape)
        if not wanted.known:  # another item of the list may have the shape
            for other in self.items():
                if other is not None:
                    wanted = wanted.merge(Shape(other.shape))
                    break
        if not wanted.known:
            raise InvalidArgumentError(
                None,
                None,
                f"Trying to read an uninitialized tensor (element {index}) but element_shape is not fully defined: {wanted}",
            )
        return self._zero(list(wanted.dims or ()))

    def _zero(self, sizes: list[Any]) -> Any:
        if self.dtype is dtypes.variant:
            return None
        allocatable(sizes, 8 if self.dtype is dtypes.string else self.dtype.size)
        if self.dtype is dtypes.string:
            return np.full(sizes, b"", dtype=object)
        device = next((item.device for item in self.items() if isinstance(item, torch.Tensor)), None)
        return torch.zeros(sizes, dtype=torch_dtype(self.dtype), device=device)  # on the device of the written items

    def all_items(self, shape: Shape, indices: list[int] | None = None) -> list[Any]:
        return [self.item(i, shape) for i in (range(len(self.items())) if indices is None else indices)]

    # -- as gradients ------------------------------------------------------------------------------------------

    def zeros_like(self) -> TensorList:
        def zero(item: Any) -> Any:
            if isinstance(item, torch.Tensor):
                return torch.zeros_like(item)
            return item.zeros_like() if hasattr(item, "zeros_like") else None  # lists and optionals have this method

        if self._stack is not None:
            return TensorList.of_rows(torch.zeros_like(self._stack), self.dtype, self.shape, self.limit)
        if self._has_zeros:
            newest, more = self._newest()
            written = next((item for item in newest if item is not None), None)
            if written is None or not written.is_cuda:  # on a GPU, zeros would have to be moved there
                return self.replaced([None] * (len(newest) + more))  # which costs nothing to add to
        return self.replaced([zero(item) for item in self.items()])

    def sum_with(self, others: list[TensorList]) -> TensorList:
        """The sum by item. Items that were never written count as zero."""
        if len(others) == 1:
            stack, other = self._stack, others[0]._stack
            if stack is not None and other is not None and stack.shape == other.shape:
                return TensorList.of_rows(torch.add(*on_one_device([stack, other])), self.dtype, self.shape, self.limit)
        columns = [self.items(), *[other.items() for other in others]]
        size = max(map(len, columns))
        wrong = next((len(column) for column in columns if len(column) not in (0, size)), None)
        if wrong is not None:
            raise InvalidArgumentError(
                None, None, f"Trying to add two lists of tensors with different lengths: {wrong} and {size}"
            )
        total: list[Any] = list(columns[0]) or [None] * size
        for column in columns[1:]:
            for i, item in enumerate(column):
                if item is None:
                    continue
                before = total[i]
                if before is None:
                    total[i] = item
                elif hasattr(before, "sum_with"):
                    total[i] = before.sum_with([item])
                else:
                    total[i] = torch.add(*on_one_device([before, item]))
        return self.replaced(total)

    def __repr__(self) -> str:
        return f"<list of {len(self.items())} {self.dtype.name}{self.shape}>"
