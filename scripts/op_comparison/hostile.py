"""Bad input for every op: variants of a good call, each with one thing wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from op_comparison.cases import Case, leaves
from op_comparison.exchange import Variable
from stoker._src.base.dtypes import DType
from stoker._src.graph.definition import find_definition
from stoker._src.graph.signature import Arg

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
# Sizes and positions nobody can serve; 2**40 elements fit no memory, and two of 2**32 no 64-bit product.
NUMBERS = (-1, -7, 0, 1, 1000, 2**20, INT32_MAX, -(2**31), 2**32 + 1, 2**40, INT64_MAX, -(2**63))


def hostile_variants(case: Case) -> Iterator[Case]:
    """The call with one input or one attribute changed for the worse."""
    definition = find_definition(case.op)
    assert definition is not None
    for arg in definition.inputs:
        item = case.inputs.get(arg.name)
        if item is None or isinstance(item, Variable):
            continue
        for kind, changed in input_variants(arg, item):
            yield replace(case, kind=f"{arg.name}: {kind}", inputs={**case.inputs, arg.name: changed})
    for name, spec in definition.attrs.items():
        if spec.kind in ("func", "list(func)", "tensor"):
            continue
        for value in attribute_variants(spec.kind, case.attrs.get(name, spec.default)):
            if not (name in case.attrs and case.attrs[name] == value):
                yield replace(case, kind=f"attr {name}={value!r:.40}", attrs={**case.attrs, name: value})


def input_variants(arg: Arg, item: Any) -> Iterator[tuple[str, Any]]:
    if arg.is_list:
        yield "no elements", []
        if item:
            yield "one element", item[:1]
            yield "one more", [*item, item[0]]
            for kind, changed in _tensors(item[0]):
                yield f"first {kind}", [changed, *item[1:]]
        return
    yield from _tensors(item)


def _tensors(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    if array.ndim:
        yield "scalar", array.ravel()[:1].reshape(()) if array.size else np.zeros((), array.dtype)
        yield "flat", array.reshape(-1)
        yield "a dimension more", array[None]
        yield (
            "a dimension less",
            np.asarray(array[0], array.dtype) if len(array) else array.reshape(array.shape[1:] or (0,)),
        )
        yield "nothing", array[:0]
        for axis in range(array.ndim):
            if array.shape[axis]:
                yield f"one more along {axis}", np.concatenate([array, array.take([0], axis)], axis)
                yield f"none along {axis}", array.take([], axis)
    else:
        yield "vector", array[None]
        yield "vector of two", np.stack([array, array])
        yield "matrix", array[None, None]
        yield "empty vector", array[None][:0]
    yield from _values(array)


def _values(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    kind = array.dtype.kind
    if kind == "O":
        yield "another dtype", np.zeros(array.shape, np.float32)
        yield "garbage", _strings(array.shape, b"\xff\x00garbage")
        yield "empty strings", _strings(array.shape, b"")
        return
    yield "another dtype", _strings(array.shape, b"text")
    if kind == "b":
        yield "integers", array.astype(np.int32)
    if kind == "f":
        yield "integers", array.astype(np.int32)
        yield "NaN", np.full_like(array, np.nan)
        yield "infinite", np.full_like(array, -np.inf)
        yield "negative", np.full_like(array, -3)
    if kind in "iu":
        yield "floats", array.astype(np.float32)
        limits = np.iinfo(array.dtype)
        for number in NUMBERS:
            if limits.min <= number <= limits.max:
                yield f"all {number}", np.full_like(array, number)
                if array.size > 1:
                    changed = array.copy()
                    changed.flat[-1] = number
                    yield f"last {number}", changed
                    changed = array.copy()
                    changed.flat[0] = number
                    yield f"first {number}", changed


def _strings(shape: tuple[int, ...], text: bytes) -> np.ndarray:
    result = np.empty(shape, object)
    result.fill(text)
    return result


def attribute_variants(kind: str, good: Any) -> Iterator[Any]:
    if kind == "int":
        yield from (-1, 0, 1, -7, 1000, INT32_MAX, 2**40, INT64_MAX, -(2**63), "text", 1.5, None)
    elif kind == "float":
        yield from (float("nan"), float("inf"), -1.0, 0.0, 1e30, "text")
    elif kind == "string":
        yield from ("bogus", "", 3)
    elif kind == "bool":
        yield from ("text", 2)
    elif kind == "type":
        yield from ("bogus", 3.5)
    elif kind == "list(int)":
        values = list(good) if good else [1, 1, 1, 1]
        yield from ([], [0] * len(values), [-1] * len(values), values[:-1], [*values, 1])
        yield from ([INT32_MAX] * len(values), [2**40] * len(values), [INT64_MAX] * len(values), 3)
    elif kind == "list(float)":
        yield from ([], [float("nan")] * 2, [-1.0])
    elif kind == "shape":
        yield from ([-5], [2**40, 2**40], [0], 7, "text")
    elif kind == "list(shape)":
        yield from ([], [[-5]], [[2**40, 2**40]])
    elif kind == "list(type)":
        yield from ([], ["bogus"])


def describe(case: Case) -> str:
    """The call in words, for reports."""
    shown = ", ".join(
        f"{name}={'list of ' if isinstance(item, list) else ''}"
        + "; ".join(f"{leaf.dtype.name}{list(leaf.shape)}" for leaf in leaves(item))
        for name, item in case.inputs.items()
    )
    plain = {key: value.name if isinstance(value, DType) else value for key, value in case.attrs.items()}
    return f"{case.op}({shown}, {plain}) [{case.kind}]"
