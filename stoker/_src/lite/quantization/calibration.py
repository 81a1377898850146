"""Ranges of tensors, observed by running the float model on samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from stoker._src.lite.flatbuffer import write_model
from stoker._src.lite.interpreter import Interpreter, OpResolverType
from stoker._src.lite.model import Model, Tensor
from stoker._src.lite.options import RepresentativeDataset
from stoker._src.lite.versions import assign_versions

Ranges = dict[Tensor, tuple[float, float]]


def observe_ranges(model: Model, dataset: Any) -> Ranges:
    """The smallest and largest value of each float tensor of the model's main subgraph, over all samples.

    Args:
        model: the float model.
        dataset: a `RepresentativeDataset`, or a callable that returns an iterable. A sample is a list with an array for each input of the
            model, or a dictionary of arrays by the names of inputs.

    Raises:
        ValueError: there is no sample, or one does not fit the inputs.
    """
    if isinstance(dataset, RepresentativeDataset):
        dataset = dataset.input_gen
    if not callable(dataset):
        raise ValueError(f"representative_dataset is a callable that returns samples, not {dataset!r}.")
    assign_versions(model)
    interpreter = Interpreter(
        model_content=write_model(model),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
    )
    watched = [
        (number, tensor)
        for number, tensor in enumerate(model.main.tensors)
        if tensor.type == "FLOAT32" and not tensor.is_constant
    ]
    found: dict[Tensor, tuple[float, float]] = {}
    samples = 0
    shapes: list[tuple[int, ...]] | None = None
    details = interpreter.get_input_details()
    for sample in _samples(dataset()):
        values = _arrays(sample, details, model)
        if shapes != [value.shape for value in values]:
            shapes = [value.shape for value in values]
            for detail, value in zip(details, values, strict=True):
                if tuple(detail["shape"]) != value.shape or samples:
                    interpreter.resize_tensor_input(detail["index"], value.shape)
            interpreter.allocate_tensors()
        for detail, value in zip(details, values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        for number, tensor in watched:
            value = _read(interpreter, number)
            if value is not None and value.size:
                low, high = float(value.min()), float(value.max())
                if not (math.isfinite(low) and math.isfinite(high)):
                    raise ValueError(
                        f"The tensor '{tensor.name}' is not finite for sample {samples} of the representative dataset."
                    )
                before = found.get(tensor, (low, high))
                found[tensor] = (min(low, before[0]), max(high, before[1]))
        samples += 1
    if not samples:
        raise ValueError("The representative dataset has no samples.")
    return found


def _read(interpreter: Interpreter, number: int) -> Any:
    try:
        return interpreter.get_tensor(number)
    except ValueError:
        return None  # not computed by this run: the branch that was not taken


def _samples(iterable: Any) -> Iterable[Any]:
    if not isinstance(iterable, Iterable):
        raise ValueError(f"representative_dataset must return an iterable of samples, not {iterable!r}.")
    return iterable


def _arrays(sample: Any, details: list[dict[str, Any]], model: Model) -> list[np.ndarray]:
    """The arrays of a sample in the order of the inputs."""
    names = [detail["name"] for detail in details]
    if isinstance(sample, Mapping):
        inputs = model.main.inputs
        by_name = {name: number for number, name in enumerate(names)}
        for signature in model.signatures:
            if signature.subgraph is model.main:
                by_name |= {key: inputs.index(tensor) for key, tensor in signature.inputs.items() if tensor in inputs}
        unknown = [name for name in sample if name not in by_name]
        if unknown or len(sample) != len(details):
            raise ValueError(f"A sample has the inputs {sorted(map(str, sample))}, and the model {names}.")
        ordered: list[Any] = [None] * len(details)
        for name, value in sample.items():
            ordered[by_name[name]] = value
    else:
        ordered = list(sample) if isinstance(sample, (list, tuple)) else [sample]
        if len(ordered) != len(details):
            raise ValueError(f"A sample has {len(ordered)} arrays, and the model {len(details)} inputs: {names}.")
    arrays = []
    for detail, value in zip(details, ordered, strict=True):
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        if array.dtype != detail["dtype"] and detail["dtype"] not in (np.bytes_, np.object_):
            raise ValueError(
                f"A sample has {array.dtype} for the input '{detail['name']}', which is {np.dtype(detail['dtype'])}."
            )
        signature = detail["shape_signature"]
        if array.ndim != len(signature) or any(
            wanted not in (-1, size) for wanted, size in zip(signature, array.shape, strict=True)
        ):
            raise ValueError(
                f"A sample has the shape {list(array.shape)} for the input '{detail['name']}', which has {signature.tolist()}."
            )
        arrays.append(array)
    return arrays
