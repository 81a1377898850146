"""The Assert op and `tf.debugging.Assert`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import INT32, STATEFUL, TYPES, define
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.device_checks import require
from stoker._src.ops.support.number_text import float_text, question_marks, string_text
from stoker._src.ops.support.rows import Input
from stoker._src.ops.support.values import to_numpy

ASSERT = define(
    "Assert(condition: host bool, data: [T]) -> ()", STATEFUL, T=TYPES(minimum=1), summarize=INT32(3)
).not_differentiable()
ASSERT.small("assert")
ASSERT.planning.refuses, ASSERT.planning.device_numbers = True, frozenset(("condition",))


@ASSERT.rows
def assert_rows(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    """Checks all rows. The check of the row that fails has the better message."""
    condition = inputs[0]
    if condition.rank != 0:
        return None
    ASSERT(ops.reduce_all(condition.tensor) if condition.stacked else condition.tensor, [condition.tensor])
    return []


@ASSERT.kernel
def assert_kernel(condition: bool | torch.Tensor, data: list[Any], *, summarize: int) -> None:
    def refusal() -> InvalidArgumentError:
        shown = " ".join(f"[{summary(to_numpy(value), summarize)}]" for value in data)
        shown = shown.encode(errors="surrogateescape").decode(errors="backslashreplace")
        return InvalidArgumentError(None, None, f"assertion failed: {shown}")

    if isinstance(condition, torch.Tensor) and condition.ndim == 0:
        require(condition, refusal)
    elif condition is not True:
        raise refusal()


def summary(array: np.ndarray, limit: int) -> str:
    """The first `limit` elements (all for -1), with brackets around each row except the outermost. Invalid UTF-8 becomes surrogates."""
    array = np.asarray(array)
    if np.iscomplexobj(array):
        return question_marks(array.size, limit)
    count = array.size if limit < 0 else min(limit, array.size)
    if not array.size or (limit == 0 and array.dtype == np.bool_):  # TensorFlow omits the dots for booleans
        return ""
    flat = [_text(item) for item in array.reshape(-1)[:count]]
    return _rows(flat, array.shape, 0)[0] + ("..." if array.size > count else "")


def _rows(flat: list[str], shape: tuple[int, ...], at: int) -> tuple[str, int]:
    """Formats the elements of `flat` from `at` on as an array of `shape`. Also returns the position after them."""
    if len(shape) <= 1:
        end = at + (shape[0] if shape else 1)
        return " ".join(flat[at:end]), end
    text = ""
    for _ in range(shape[0]):
        if at >= len(flat):
            break
        row, at = _rows(flat, shape[1:], at)
        cut = "..." if at > len(flat) and len(shape) == 2 else ""
        text += f"[{row}{cut}]"
    return text, at


def _text(item: Any) -> str:
    if isinstance(item, bytes):
        return string_text(item)
    if isinstance(item, (bool, np.bool_)):
        return str(int(item))
    if isinstance(item, (float, np.floating)) or type(item).__name__ == "bfloat16":
        return float_text(float(item), double=isinstance(item, np.float64))
    return str(item)


def _listed(value: Any, limit: int) -> str:
    """Formats data as `Assert` does in eager mode: Python's representations, separated by commas."""
    array = np.asarray(value, dtype=object if isinstance(value, bytes) else None)
    if array.ndim == 0:
        return str(array[()])
    count = array.size if limit < 0 else limit
    shown = ", ".join(str(item) for item in array.reshape(-1)[:count])
    return shown + (", ..." if array.size > count else "")


@export("debugging.Assert", "Assert")
def assert_op(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> Any:
    """Raises InvalidArgumentError with `data` unless `condition` is true.

    In graph mode, returns an op that checks when it runs; use it as a control dependency. In eager mode, checks at once and returns None.

    Args:
        condition: a scalar bool.
        data: tensors to show in the message.
        summarize: how many elements of each tensor to show: 3 by default, -1 for all.
        name: the name of the op.
    """
    if context.executing_eagerly():
        if not bool(condition):
            shown = [convert_to_tensor(item).numpy() for item in data]  # type: ignore[attr-defined]
            text = "\n".join(_listed(item, 3 if summarize is None else summarize) for item in shown)
            raise InvalidArgumentError(None, None, f"Expected '{condition!s}' to be true. Summarized data: {text}")
        return None
    if isinstance(data, (str, bytes)):
        raise TypeError(f"Expected list for 'data' argument to 'Assert' Op, not {data}.")
    with name_scope(name, "Assert", [condition, *data]):
        if not isinstance(condition, Tensor):
            condition = convert_to_tensor(condition, name="Condition")
        if condition.static_shape.rank not in (None, 0):
            raise ValueError(f"Shape must be rank 0 but is {condition.shape}: the condition of an assertion")
        tensors = [convert_to_tensor(item) for item in data]
        # As in TensorFlow, a string or number becomes a constant twice: once to find its dtype, once as the input of the node.
        plain = all(tensor.dtype in (dtypes.string, dtypes.int32) for tensor in tensors)
        return ASSERT(condition, list(data) if plain else tensors, summarize=summarize, name="Assert")
