"""`Dataset.from_generator`: elements that Python code yields."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stoker._src.base import dtypes, forking, nest
from stoker._src.data import structure
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorSpec, SparseTensorValue
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.ops.control_flow.python_functions import py_func
from stoker._src.ops.dataset import sources
from stoker._src.ops.dataset.values import fits


class _Running:
    """The generators that are being iterated over, by number."""

    def __init__(self, generator: Callable[..., Any]) -> None:
        self._generator = generator
        self._numbers = itertools.count()
        self._open: dict[int, Iterator[Any]] = {}
        self._lock = forking.lock()

    def start(self, *args: Any) -> np.int64:
        iterator = iter(self._generator(*args))
        with self._lock:
            number = next(self._numbers)
            self._open[number] = iterator
        return np.int64(number)

    def next(self, number: Any) -> Any:
        return next(self._open[int(number)])

    def finish(self, number: Any) -> np.int64:
        with self._lock:
            iterator = self._open.pop(int(number), None)
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
        return np.int64(0)


def _converted(value: Any, spec: TensorSpec) -> np.ndarray:
    """Returns a component that was yielded as an array.

    Raises:
        TypeError: it has another dtype than declared.
        ValueError: it has another shape than declared.
    """
    try:
        given = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        if spec.dtype == dtypes.string:
            array = np.array(value, dtype=object)
        else:
            if given.size and given.dtype.kind in "fc" and spec.dtype.is_integer:
                raise TypeError("a fraction is not an integer")
            array = given.astype(spec.dtype.as_numpy_dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`generator` yielded an element that could not be converted to the expected type. The expected type was "
            f"{spec.dtype.name}, but the yielded element was {value}."
        ) from error
    if not fits(array.shape, spec.static_shape):
        raise ValueError(
            f"`generator` yielded an element of shape {array.shape} where an element of shape {spec.shape} was expected."
        )
    return array


def _flat_value(value: Any, spec: Any) -> list[np.ndarray]:
    """Returns the arrays that make up a yielded component."""
    if isinstance(spec, SparseTensorSpec):
        parts = value if isinstance(value, SparseTensorValue) else (value.indices, value.values, value.dense_shape)
        return [_converted(part, each) for part, each in zip(parts, spec._component_specs)]
    return [_converted(value, spec)]


def _component_specs(spec: Any) -> list[Any]:
    return list(spec._component_specs) if isinstance(spec, SparseTensorSpec) else [spec]


def generator_dataset(
    generator: Any, output_types: Any, output_shapes: Any, args: Any, output_signature: Any, name: str | None
) -> tuple[Tensor, Any]:
    """Returns the dataset's variant and the spec of its elements. See `Dataset.from_generator`."""
    if not callable(generator):
        raise TypeError("`generator` must be a Python callable.")
    if output_signature is not None:
        if output_types is not None or output_shapes is not None:
            raise TypeError(
                "The `output_types` argument can not be used together with the `output_signature` argument."
            )
        spec = output_signature
    elif output_types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` argument or the `output_types` argument."
        )
    else:
        types = _tuples(output_types)
        spec = structure.from_legacy(types, None if output_shapes is None else _tuples(output_shapes))
    leaves = nest.flatten(spec)
    for leaf in leaves:
        if not isinstance(leaf, (TensorSpec, SparseTensorSpec)):
            raise NotImplementedError(f"from_generator for components of type {type(leaf).__name__} is missing.")
    parts = [part for leaf in leaves for part in _component_specs(leaf)]
    running = _Running(generator)
    arguments = [convert_to_tensor(each) for each in (() if args is None else args)]

    def following(number: Any) -> list[np.ndarray]:
        element = running.next(number)
        try:
            flat = nest.flatten_up_to(spec, _matching(element, spec))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"`generator` yielded an element that did not match the expected structure. The expected structure was "
                f"{structure.legacy_types(spec)}, but the yielded element was {element}."
            ) from error
        return [array for value, leaf in zip(flat, leaves) for array in _flat_value(value, leaf)]

    def next_element(number: Tensor) -> Any:
        found = py_func(following, [number], [part.dtype for part in parts])
        flat = iter(found if isinstance(found, (list, tuple)) else [found])
        values = []
        for leaf in leaves:
            tensors = [next(flat) for _ in _component_specs(leaf)]
            for tensor, part in zip(tensors, _component_specs(leaf)):
                tensor.set_shape(part.shape)
            values.append(SparseTensor(*tensors) if isinstance(leaf, SparseTensorSpec) else tensors[0])
        return nest.pack_sequence_as(spec, values)

    def number_of(function: Callable[..., Any], inputs: list[Any]) -> Tensor:
        number = py_func(function, inputs, dtypes.int64)
        number.set_shape([])
        return number

    number = TensorSpec([], dtypes.int64)
    begin = structure.traced(lambda: number_of(running.start, arguments), "init")
    after = structure.traced(next_element, "next", number)
    end = structure.traced(lambda given: number_of(running.finish, [given]), "finalize", number)
    variant = sources.GENERATOR_DATASET(
        begin.captured,
        after.captured,
        end.captured,
        init_func=begin.ref,
        next_func=after.ref,
        finalize_func=end.ref,
        **structure.types_and_shapes(spec),
        name=name,
    )
    return variant, spec


def _tuples(value: Any) -> Any:
    """Returns a structure of types or shapes with tuples for lists of them."""
    if isinstance(value, dict):
        return type(value)((key, _tuples(item)) for key, item in value.items())
    if isinstance(value, list) and value and all(isinstance(item, (dtypes.DType, type, str)) for item in value):
        return tuple(value)
    return value


def _matching(element: Any, spec: Any) -> Any:
    """Returns a yielded element in the form of `spec`: a list may stand for a tuple."""
    return (
        tuple(element)
        if isinstance(spec, tuple) and isinstance(element, list) and not hasattr(spec, "_fields")
        else element
    )
