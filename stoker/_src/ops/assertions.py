"""The Assert op and `tf.debugging.Assert`."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import STATEFUL, define
from stoker._src.graph.scopes import name_scope
from stoker._src.ops.values import to_numpy

ASSERT = define("Assert(condition: host bool, data: [T]) -> ()", STATEFUL, summarize=3).not_differentiable()


@ASSERT.kernel
def assert_kernel(condition: bool, data: list[Any], *, summarize: int) -> None:
    if condition is not True:
        shown = " ".join(f"[{_summary(to_numpy(value), summarize)}]" for value in data)
        raise InvalidArgumentError(None, None, f"assertion failed: {shown}")


def _summary(array: np.ndarray, limit: int) -> str:
    flat = np.asarray(array).reshape(-1)
    limit = 3 if limit == 0 else limit
    count = len(flat) if limit < 0 else limit
    text = " ".join(_text(item) for item in flat[:count])
    return text + ("..." if len(flat) > count else "")


def _text(item: Any) -> str:
    if isinstance(item, bytes):
        return item.decode("utf-8", "replace")
    if isinstance(item, (bool, np.bool_)):
        return str(int(item))
    return f"{item:g}" if isinstance(item, (float, np.floating)) else str(item)


@export("debugging.Assert", "Assert")
def assert_op(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> Any:
    """Fails with InvalidArgumentError, showing `data`, unless `condition` is true.

    In graph mode an op that checks when it runs (make others wait for it); in eager mode it checks at once and returns None.

    Args:
        condition: a scalar bool.
        data: tensors to show.
        summarize: how many elements of each to show: 3 by default, -1 for all.
        name: the name of the op.
    """
    if context.executing_eagerly():
        if not bool(condition):
            shown = [np.asarray(convert_to_tensor(item)) for item in data]
            text = "\n".join(_summary(item, 3 if summarize is None else summarize) for item in shown)
            raise InvalidArgumentError(None, None, f"Expected '{condition}' to be true. Summarized data: {text}")
        return None
    with name_scope(name, "Assert", [condition, *data]):
        data = [convert_to_tensor(item) for item in data]
        return ASSERT(condition, data, summarize=summarize, name="Assert")
