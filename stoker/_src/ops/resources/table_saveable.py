"""How a mutable table is saved: its keys and its values as two tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stoker._src.graph import context
from stoker._src.graph.saveable import SaveableObject, SaveSpec
from stoker._src.graph.scopes import name_scope
from stoker._src.ops.resources import table_ops


class TableSaveable(SaveableObject):
    """Saves a table as `<name>-keys` and `<name>-values`.

    Args:
        table: The table.
        name: The name in the checkpoint.
        exported: The keys and values, if the graph already has ops for them.
    """

    def __init__(self, table: Any, name: str, exported: tuple[Any, Any] | None = None) -> None:
        self._table = table
        self._label = table._name
        if context.executing_eagerly():
            halves: list[Any] = [lambda: table.export()[0], lambda: table.export()[1]]
            place: str | None = ""
        else:
            halves, place = list(table.export() if exported is None else exported), None
        specs = [
            SaveSpec(half, "", f"{name}-{part}", dtype, place)
            for half, part, dtype in zip(halves, ("keys", "values"), (table.key_dtype, table.value_dtype))
        ]
        super().__init__(table.resource_handle, specs, name)

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """Returns the op that replaces all keys and values. The shapes are the checkpoint's because a table has no fixed size."""
        del restored_shapes
        with name_scope(f"{self._label}_table_restore"):
            keys, values = restored_tensors
            return table_ops.IMPORT(self._table.resource_handle, keys, values)
