"""Objects that a saver can save: they list the tensors they consist of, and restore themselves from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stoker._src.base.dtypes import as_dtype


class SaveSpec:
    """One tensor of a saveable object.

    Args:
        tensor: its value, or a function that computes it when it is saved.
        slice_spec: the part of a larger tensor that it is, in the format of save ops; "" for a whole tensor.
        name: its name in the checkpoint.
        dtype: its dtype; may be omitted for a tensor.
        device: its device.
    """

    def __init__(self, tensor: Any, slice_spec: str, name: str, dtype: Any = None, device: str | None = None) -> None:
        if callable(tensor):
            if dtype is None:
                raise ValueError(f"SaveSpec {name}: a function that makes a tensor needs a dtype beside it.")
            self._make, made = tensor, None
        else:
            self._make, made = None, tensor
        self._tensor = made
        self.slice_spec = slice_spec
        self.name = name
        self.dtype = as_dtype(tensor.dtype if dtype is None else dtype).base_dtype
        self.device = tensor.device if device is None and made is not None else device or ""

    @property
    def tensor(self) -> Any:
        return self._make() if self._make is not None else self._tensor


class SaveableObject:
    """An object that a saver can save. Subclasses implement `restore`.

    Args:
        op: identifies the object, to distinguish it from others.
        specs: its SaveSpecs.
        name: its name.
    """

    def __init__(self, op: Any, specs: Iterable[SaveSpec] | Callable[[], Iterable[SaveSpec]], name: str) -> None:
        self.op = op
        self._specs = specs
        self.name = name

    @property
    def specs(self) -> list[SaveSpec]:
        if callable(self._specs):
            self._specs = self._specs()
        return list(self._specs)

    @property
    def optional_restore(self) -> bool:
        return False

    @property
    def device(self) -> str:
        return self.specs[0].device

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """Returns the op that restores the object from its tensors, with the shapes in `restored_shapes` if given."""
        raise NotImplementedError("A saveable object must say how it is restored.")
