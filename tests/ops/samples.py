"""One sample of an op, and the runner that takes it through everything an op must do.

    Sample("MatMul", [f32(2, 3), f32(3, 4)], reference=np.matmul)
    Sample("MatMul", [f32(32, 784), f32(128, 10)], raises=(InvalidArgumentError, "784 and 128"))

`check_sample` compares the graph's value with the reference, the static shape with the real one (also with unknown sizes),
eager mode with graph mode, the gradient with finite differences, memory sharing with what the definition states, and the
GraphDef round trip.
"""

from __future__ import annotations

import collections
import linecache
import re
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.definition import Trait, find_definition
from stoker._src.graph.tensor import Tensor

# What a shape rule refuses is found while a graph is built: TensorFlow's class there is Python's.
WHEN_BUILT = (ValueError, InvalidArgumentError)
_FIRST_LINE = re.compile(r" {0,4}[^\s\])}]")


class _Calls:
    """How often the frames of a call have called from where they are: elements of a comprehension differ from each other."""

    def __init__(self) -> None:
        self._counts: dict[Any, collections.Counter[int]] = {}

    def numbers(self, frames: list[Any]) -> list[int]:
        self._counts = {frame: self._counts.get(frame, collections.Counter()) for frame in frames}
        for frame in frames:
            self._counts[frame][frame.f_lasti] += 1
        return [self._counts[frame][frame.f_lasti] for frame in frames]


_calls = _Calls()


def _generator() -> np.random.RandomState:
    """Numbers that follow from the source text of the sample up to the call: they do not change with the samples around it."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    frames = [frame]  # helpers and comprehensions, out to the table or the test
    while not frame.f_code.co_name.startswith(("<module>", "test_")) and frame.f_back is not None:
        frame = frame.f_back
        frames.append(frame)
    described = "".join(map(_text_before, frames)) + str(_calls.numbers(frames))
    return np.random.RandomState(zlib.crc32(described.encode()))


def _text_before(frame: Any) -> str:
    """The source text of the statement or of the row of a table that a frame is at, up to the call that it is in."""
    file = frame.f_code.co_filename
    line, _, column, _ = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    lines = [linecache.getline(file, line)[:column]]
    while not _FIRST_LINE.match(linecache.getline(file, line)) and line > 1:
        line -= 1
        lines.append(linecache.getline(file, line))
    return "".join(reversed(lines))


def _draw(random: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(random.uniform(0.2, 2.0, shape) * np.where(random.rand(*shape) < 0.5, -1, 1)).astype(np.float32)


def f32(*shape: int) -> np.ndarray:
    return _draw(_generator(), shape)


def f64(*shape: int) -> np.ndarray:
    return f32(*shape).astype(np.float64)


def positive(*shape: int) -> np.ndarray:
    return np.abs(f64(*shape))


def i32(*shape: int, low: int = -5, high: int = 6) -> np.ndarray:
    return np.asarray(_generator().randint(low, high, shape)).astype(np.int32)


def i64(*shape: int, low: int = -5, high: int = 6) -> np.ndarray:
    return i32(*shape, low=low, high=high).astype(np.int64)


def booleans(*shape: int) -> np.ndarray:
    return np.asarray(_generator().rand(*shape) < 0.5)


def texts(*items: bytes) -> np.ndarray:
    """A vector of strings."""
    array = np.empty(len(items), object)
    array[:] = items
    return array


def c128(*shape: int) -> np.ndarray:
    random = _generator()
    return _draw(random, shape).astype(np.float64) + 1j * _draw(random, shape)


@dataclass
class Sample:
    """Inputs (arrays; lists of arrays for list inputs) and attributes of one op, with what it must give.

    `reference` takes the inputs and attributes (by keyword, if it names them) and returns the output, or a tuple of outputs.
    `gradient` False says that the op has none; a tuple names the inputs (by position) to differentiate. `static` False says
    that the static shape cannot be known. `raises` is the class of an error, or a pair (in graph mode, in eager mode) such as
    WHEN_BUILT where they differ, and a pattern of its message. `host` inputs (shapes, axes) are always constants.
    """

    op: str
    inputs: list[Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    raises: tuple[type[Exception] | tuple[type[Exception], type[Exception]], str] | None = None
    gradient: bool | tuple[int, ...] = True
    static: bool = True
    rtol: float = 1e-5
    atol: float = 1e-6

    def __str__(self) -> str:
        shapes = ",".join(str(np.shape(x)) if not isinstance(x, list) else "[..]" for x in self.inputs)
        return f"{self.op}-{shapes}-{self.attrs}" if self.attrs else f"{self.op}-{shapes}"


def samples(table: list[Sample]) -> Any:
    """Parametrizes a test over a table of samples."""
    return pytest.mark.parametrize("sample", table, ids=str)


def _call(sample: Sample, inputs: list[Any]) -> list[Tensor]:
    definition = find_definition(sample.op)
    assert definition is not None, f"{sample.op} is not defined"
    outputs = definition(*inputs, **sample.attrs)
    flat: list[Any] = []
    for each in outputs if isinstance(outputs, tuple) else [outputs]:
        flat.extend(each) if isinstance(each, list) else flat.append(each)
    return flat


def _expected(sample: Sample) -> list[Any]:
    assert sample.reference is not None
    results = sample.reference(*sample.inputs)
    flat: list[Any] = []
    for each in results if isinstance(results, tuple) else [results]:
        flat.extend(each) if isinstance(each, list) else flat.append(each)
    return flat


def _compare(found: Any, expected: Any, sample: Sample) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    if expected.dtype.kind in "OSU":
        assert found.tolist() == expected.tolist()
        return
    assert found.shape == expected.shape, f"shape {found.shape} instead of {expected.shape}"
    np.testing.assert_allclose(
        found.astype(np.complex128), expected.astype(np.complex128), rtol=sample.rtol, atol=sample.atol, equal_nan=True
    )


def check_sample(sample: Sample) -> None:
    """All checks on one sample."""
    if sample.raises is not None:
        _check_error(sample)
        return
    graph_values = _check_graph(sample)
    _check_eager(sample, graph_values)
    if sample.static:
        _check_unknown_sizes(sample)
    if sample.gradient is not False:
        _check_gradient(sample)
    _check_round_trip(sample, graph_values)


def _check_error(sample: Sample) -> None:
    """Exactly the class that is stated, in graph mode and in eager mode."""
    assert sample.raises is not None
    kinds, text = sample.raises
    in_graph, at_once = kinds if isinstance(kinds, tuple) else (kinds, kinds)
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(in_graph, match=text) as caught:
        placeholders, feeds = _placeholders(sample, known=False)
        session.run(_call(sample, placeholders), feeds)
    assert caught.type is in_graph
    with context.enter_eager(), pytest.raises(at_once, match=text) as caught:
        _call(sample, sample.inputs)
    assert caught.type is at_once


def _is_host(sample: Sample, position: int) -> bool:
    definition = find_definition(sample.op)
    assert definition is not None
    return definition.inputs[position].host


def _each(sample: Sample, make: Callable[[Any], Any]) -> list[Any]:
    """The inputs with `make` applied: to each element of a list input, to the whole of any other."""
    definition = find_definition(sample.op)
    assert definition is not None
    return [
        [make(leaf) for leaf in item] if arg.is_list else make(item)
        for arg, item in zip(definition.inputs, sample.inputs)
    ]


def _placeholders(sample: Sample, known: bool) -> tuple[list[Any], dict[Any, Any]]:
    """Placeholders for all data inputs (with unknown sizes unless `known`); index-like inputs stay constants."""
    feeds: dict[Any, Any] = {}

    def make(value: Any) -> Any:
        array = np.asarray(value)
        shape = array.shape if known else [None] * array.ndim
        tensor = tf.placeholder(as_dtype(array.dtype), shape)
        feeds[tensor] = array
        return tensor

    made = []
    for position, item in enumerate(sample.inputs):
        if _is_host(sample, position):
            made.append(item)
        else:
            made.append([make(leaf) for leaf in item] if isinstance(item, list) else make(item))
    return made, feeds


def _check_graph(sample: Sample) -> list[Any]:
    """Value against the reference; static shape and dtype against the real ones."""
    with tf.Graph().as_default(), tf.Session() as session:
        placeholders, feeds = _placeholders(sample, known=True)
        outputs = _call(sample, placeholders)
        values = session.run(outputs, feeds)
        for tensor, value in zip(outputs, values):
            static = tensor.static_shape
            assert static.compatible(Shape(np.shape(value))), f"static shape {static}, real shape {np.shape(value)}"
            if sample.static:
                assert static.known, f"static shape {static} of {sample.op} is not fully known"
            if tensor.dtype.is_numeric:
                assert as_dtype(np.asarray(value).dtype) is tensor.dtype.base_dtype or tensor.dtype.is_quantized
    if sample.reference is not None:
        expected = _expected(sample)
        assert len(expected) == len(values)
        for value, reference in zip(values, expected):
            _compare(value, reference, sample)
    return values


def _check_unknown_sizes(sample: Sample) -> None:
    """With sizes unknown, the static shape still fits and the value is the same."""
    with tf.Graph().as_default(), tf.Session() as session:
        placeholders, feeds = _placeholders(sample, known=False)
        outputs = _call(sample, placeholders)
        for tensor, value in zip(outputs, session.run(outputs, feeds)):
            assert tensor.static_shape.compatible(Shape(np.shape(value)))


def _check_eager(sample: Sample, graph_values: list[Any]) -> None:
    """Eager mode gives what graph mode gives, and shares memory with inputs only where the definition says so."""
    definition = find_definition(sample.op)
    assert definition is not None
    with context.enter_eager():
        inputs = _each(sample, tf.convert_to_tensor)
        outputs = _call(sample, inputs)
        for output, value in zip(outputs, graph_values):
            _compare(output.numpy(), value, sample)
        if not definition.traits & Trait.VIEW:
            _check_fresh(inputs, outputs)


def _check_fresh(inputs: list[Any], outputs: list[Any]) -> None:
    flat = [leaf for item in inputs for leaf in (item if isinstance(item, list) else [item])]
    owned = {_storage(leaf._value) for leaf in flat} - {None}
    for output in outputs:
        assert _storage(output._value) not in owned, "the kernel returned memory of its input: declare VIEW"


def _storage(value: Any) -> Any:
    return value.untyped_storage().data_ptr() if hasattr(value, "untyped_storage") and value.numel() else None


def _check_gradient(sample: Sample) -> None:
    """The gradient of a random projection of the outputs against central differences, in float64.

    Where the op states none, asking for it raises.
    """
    wide = _each(sample, _widen)
    chosen = sample.gradient if isinstance(sample.gradient, tuple) else range(len(wide))
    with tf.Graph().as_default(), tf.Session() as session:
        flat_tensors: list[tuple[Tensor, np.ndarray]] = []
        arguments: list[Any] = []
        for position, item in enumerate(wide):
            leaves = item if isinstance(item, list) else [item]
            if _is_host(sample, position):
                arguments.append(item)
                continue
            made = [tf.placeholder(as_dtype(leaf.dtype), leaf.shape) for leaf in leaves]
            arguments.append(made if isinstance(item, list) else made[0])
            if position in chosen:
                flat_tensors.extend((t, leaf) for t, leaf in zip(made, leaves) if leaf.dtype == np.float64)
        feeds = _feeds(arguments, wide, sample)
        outputs = [t for t in _call(sample, arguments) if t.dtype.base_dtype == tf.float64]
        if not outputs or not flat_tensors:
            return
        rng = np.random.RandomState(3)
        weights = [rng.uniform(0.5, 1.5, np.shape(v)) for v in session.run(outputs, feeds)]
        total = tf.add_n([tf.reduce_sum(o * w) for o, w in zip(outputs, weights)])
        definition = find_definition(sample.op)
        assert definition is not None
        if definition.gradient_fn is None and definition.differentiable:
            with pytest.raises(LookupError, match=sample.op):
                tf.gradients(total, [t for t, _ in flat_tensors])
            return
        gradients = tf.gradients(total, [t for t, _ in flat_tensors])
        for (tensor, value), gradient in zip(flat_tensors, gradients):
            assert gradient is not None, f"no gradient for an input of {sample.op}"
            found = session.run(tf.convert_to_tensor(gradient), feeds)
            assert found.shape == value.shape
            expected = _differences(session, total, tensor, value, feeds)
            np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


def _feeds(arguments: list[Any], wide: list[Any], sample: Sample) -> dict[Any, Any]:
    feeds: dict[Any, Any] = {}
    for position, (argument, item) in enumerate(zip(arguments, wide)):
        if _is_host(sample, position):
            continue
        pairs = zip(argument, item) if isinstance(item, list) else [(argument, item)]
        feeds.update(pairs)
    return feeds


def _widen(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _differences(session: Any, total: Tensor, tensor: Tensor, value: np.ndarray, feeds: dict[Any, Any]) -> np.ndarray:
    step = 1e-6
    result = np.zeros_like(value)
    for index in np.ndindex(*value.shape):
        up, down = value.copy(), value.copy()
        up[index] += step
        down[index] -= step
        result[index] = (session.run(total, {**feeds, tensor: up}) - session.run(total, {**feeds, tensor: down})) / (
            2 * step
        )
    return result


def _check_round_trip(sample: Sample, graph_values: list[Any]) -> None:
    """The op written to a GraphDef and read back computes the same."""
    with tf.Graph().as_default() as graph:
        names = [tensor.name for tensor in _call(sample, _each(sample, tf.constant))]
        graph_def = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = tf.import_graph_def(graph_def, return_elements=names, name="")
        for value, reference in zip(session.run(tensors), graph_values):
            _compare(value, reference, sample)
