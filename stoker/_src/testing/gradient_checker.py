"""`tf.test.compute_gradient`: compares gradients with finite differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.graph import current_session
from stoker._src.ops.array import constants
from stoker._src.ops.control_flow import gradients
from stoker._src.runtime.eager.tape import GradientTape


def _start(x: Any, shape: Any, given: Any) -> np.ndarray:
    """Returns the point to differentiate at: the given value, or numbers drawn with NumPy's global generator."""
    if given is not None:
        value = np.asarray(given)
        if list(value.shape) != list(shape):
            raise ValueError(f"x_init_value has shape {list(value.shape)}, expected {list(shape)}.")
        return value.astype(x.dtype.base_dtype.as_numpy_dtype)
    drawn = np.random.random_sample(shape)
    if x.dtype.is_complex:
        drawn = drawn + 1j * np.random.random_sample(shape)
    return drawn.astype(x.dtype.base_dtype.as_numpy_dtype)


def _parts_view(array: np.ndarray) -> np.ndarray:
    """Like `_parts`, but a view of a contiguous array's memory."""
    flat: Any = array.reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def _parts(array: np.ndarray) -> np.ndarray:
    """Returns the real numbers of an array, flattened. A complex element counts as two."""
    return _parts_view(np.ascontiguousarray(array))


def _theoretical(x: Any, y: Any, start: np.ndarray, y_shape: Any, feeds: dict[Any, Any]) -> np.ndarray:
    session = current_session()
    seed = constants.placeholder(y.dtype.base_dtype, y_shape)
    (dx,) = gradients.gradients([y], [x], grad_ys=[seed])
    one = np.zeros(y_shape, y.dtype.base_dtype.as_numpy_dtype)
    columns = []
    for position in range(_parts(one).size):
        direction = one.copy()
        _parts_view(direction)[position] = 1
        found = None if dx is None else session.run(dx, {x: start, seed: direction, **feeds})
        columns.append(np.zeros_like(_parts(start)) if found is None else _parts(_dense(found, start)))
    rows = _parts(start).size
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0), _parts(start).dtype)


def _dense(found: Any, start: np.ndarray) -> np.ndarray:
    if not hasattr(found, "indices"):
        return np.asarray(found)
    dense = np.zeros_like(start)
    np.add.at(dense, found.indices, found.values)
    return dense


def _numeric(x: Any, y: Any, start: np.ndarray, delta: float, feeds: dict[Any, Any]) -> np.ndarray:
    session = current_session()
    rows = []
    for position in range(_parts(start).size):
        values = []
        for step in (delta, -delta):
            moved = start.copy()
            _parts_view(moved)[position] += step
            values.append(_parts(np.asarray(session.run(y, {x: moved, **feeds}))))
        rows.append((values[0] - values[1]) / (2 * delta))
    return np.stack(rows) if rows else np.zeros((0, 0), _parts(start).dtype)


@export(v1="test.compute_gradient")
def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:
    """Computes the Jacobian of y with respect to x with `tf.gradients` and with central differences, in the default session.

    Args:
        x, y: tensors; x may be a list.
        x_shape, y_shape: their shapes.
        x_init_value: the point to differentiate at; random by default.
        delta: the step size of the differences.
        init_targets: operations to run first.
        extra_feed_dict: additional feeds for every run.

    Returns:
        Two matrices with a row per element of x and a column per element of y (a list of pairs for a list of x). A complex
        element counts as two.
    """
    session = current_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session: call it inside of `with session:`.")
    if init_targets is not None:
        session.run(init_targets)
    feeds = dict(extra_feed_dict or {})
    if isinstance(x, (list, tuple)):
        starts = x_init_value or [None] * len(x)
        values = [_start(item, shape, given) for item, shape, given in zip(x, x_shape, starts)]
        pairs = []
        for item, value in zip(x, values):
            others = {other: at for other, at in zip(x, values) if other is not item}
            pairs.append(_pair(item, y, value, y_shape, delta, {**others, **feeds}))
        return pairs
    return _pair(x, y, _start(x, x_shape, x_init_value), y_shape, delta, feeds)


def _pair(x: Any, y: Any, start: np.ndarray, y_shape: Any, delta: float, feeds: dict[Any, Any]) -> Any:
    theoretical = _theoretical(x, y, start, list(y_shape), feeds)
    return theoretical, _numeric(x, y, start, delta, feeds).reshape(theoretical.shape)


def _worst(pairs: Any) -> float:
    pairs = [pairs] if isinstance(pairs, tuple) else pairs
    return max((float(np.abs(a - b).max(initial=0.0)) for a, b in pairs), default=0.0)


@export(v1="test.compute_gradient_error")
def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> float:
    """Returns the largest difference between the two Jacobians of `compute_gradient`."""
    return _worst(compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict))


@export(v2="test.compute_gradient")
def compute_gradient_v2(f: Any, x: Any, delta: float | None = None) -> Any:
    """Computes the Jacobian of `f` at `x` with a `GradientTape` and with central differences.

    Args:
        f: a function of tensors that returns one tensor.
        x: a list or tuple of its arguments, of floating or complex dtype.
        delta: the step size of the differences, 1/1024 by default.

    Returns:
        Two tuples with a matrix per argument: a row per element of the result and a column per element of the
        argument. A complex element counts as two.

    Raises:
        ValueError: `x` is not a list or tuple.
        AssertionError: an argument's dtype is not differentiable.
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(
            f"`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), not a {type(x)}"
        )
    arguments = [convert_to_tensor(value) for value in x]
    for i, argument in enumerate(arguments):
        if not (argument.dtype.is_floating or argument.dtype.is_complex):
            raise AssertionError(f"Cannot compute gradient for unsupported type {argument.dtype.name} of argument {i}")
    starts: list[Any] = [np.asarray(argument) for argument in arguments]
    result: Any = f(*arguments)
    example = np.zeros(result.shape, result.dtype.as_numpy_dtype)

    def tape_matrix(position: int) -> np.ndarray:
        start = starts[position]
        rows = [_parts(_taped(f, arguments, position, each, start)) for each in _directions(example)]
        return np.stack(rows) if rows else np.zeros((0, _parts(start).size), _parts(start).dtype)

    def difference_matrix(position: int) -> np.ndarray:
        start, step = starts[position], 1 / 1024 if delta is None else delta
        columns = []
        for direction in _directions(start):
            ends = [
                _parts(np.asarray(f(*arguments[:position], convert_to_tensor(moved), *arguments[position + 1 :])))
                for moved in (start + direction * start.dtype.type(step), start - direction * start.dtype.type(step))
            ]
            columns.append(((ends[0] - ends[1]) / (2 * step)).astype(_parts(start).dtype))
        return np.stack(columns, axis=1) if columns else np.zeros((_parts(example).size, 0), _parts(start).dtype)

    positions = range(len(arguments))
    return tuple(map(tape_matrix, positions)), tuple(map(difference_matrix, positions))


def _directions(like: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the unit vectors of an array's real numbers, in the array's shape."""
    for position in range(_parts(like).size):
        direction = np.zeros_like(like, order="C")
        _parts_view(direction)[position] = 1
        yield direction


def _taped(f: Any, arguments: list[Any], position: int, direction: np.ndarray, start: np.ndarray) -> np.ndarray:
    with GradientTape() as tape:
        tape.watch(arguments[position])
        result = f(*arguments)
    found = tape.gradient(result, arguments[position], convert_to_tensor(direction))
    return np.zeros_like(start) if found is None else np.asarray(convert_to_tensor(found))
