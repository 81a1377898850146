"""Ranges of tensors, observed by running the float model on samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np

from stoker._src.lite.flatbuffer import write_model
from stoker._src.lite.interpreter import Interpreter, OpResolverType
from stoker._src.lite.model import Model, Operator, Subgraph, Tensor
from stoker._src.lite.options import RepresentativeDataset
from stoker._src.lite.passes.editing import plain
from stoker._src.lite.quantization import recurrent
from stoker._src.lite.versions import assign_versions

Ranges = dict[Tensor, tuple[float, float]]


def observe_ranges(model: Model, dataset: Any) -> Ranges:
    """The smallest and largest value of each float tensor of the signatures, and of the loops and branches they run, over all samples.

    Args:
        model: the float model.
        dataset: a `RepresentativeDataset`, or a callable that returns an iterable. A sample is a list with an array for each input of the
            model, or a dictionary of arrays by the names of inputs. A pair of a key and a sample is one for the signature with that key.

    Raises:
        ValueError: there are no samples, or a sample does not fit the inputs.
    """
    if isinstance(dataset, RepresentativeDataset):
        dataset = dataset.input_gen
    if not callable(dataset):
        raise ValueError(f"representative_dataset is a callable that returns samples, not {dataset!r}.")
    assign_versions(model)
    observation = _Observation(model)
    for sample in _samples(dataset()):
        subgraph, sample = _of_signature(sample, model)
        runner = observation.runner(subgraph)
        details = runner.interpreter.get_input_details()
        for arrays in _rows(_ordered(sample, details, model, subgraph), details):
            runner.run(_checked(arrays, details))
        observation.samples += 1
    if not observation.samples:
        raise ValueError("The representative dataset has no samples.")
    return observation.found


# Kernels store infinite results as the largest finite number.
_BOUND = 1e38
# Beyond this distance a change of the argument does not change the result of these functions.
_REACH = {"SOFTMAX": 16.0, "EXP": 16.0, "LOGISTIC": 12.0, "TANH": 8.0}
# Ops that look for the largest value.
_LARGEST = frozenset(("REDUCE_MAX", "ARG_MAX"))
_CHOICES = frozenset(("SELECT", "SELECT_V2"))


def _limits(code: str, value: np.ndarray) -> tuple[Any, float]:
    """The numbers beyond which the argument of a function makes no difference.

    The large negative numbers of masked positions would otherwise take the whole range, and leave no steps for the others.
    """
    reach = _REACH[code]
    if code == "SOFTMAX":
        return value.max(-1, keepdims=True) - reach, math.inf
    return (value.max() - reach, math.inf) if code == "EXP" else (-reach, reach)


def _telling_addends(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The addends of the argument of a softmax, the wider one without what only lowers masked positions further.

    A position that is lower by the whole range of the other addend and `_REACH` still counts for nothing.
    """
    if np.ptp(one) < np.ptp(other):
        other, one = _telling_addends(other, one)
        return one, other
    wide = np.broadcast_to(one, np.broadcast_shapes(one.shape, other.shape))
    total = wide + other
    counts = total >= total.max(-1, keepdims=True) - _REACH["SOFTMAX"]
    # An addend that is the same for a whole row changes nothing.
    counts &= wide.max(-1, keepdims=True) > wide.min(-1, keepdims=True)
    lowest = wide[counts].min() if counts.any() else wide.max()
    return np.maximum(one, lowest - np.ptp(other) - _REACH["SOFTMAX"]), other


class _Observation:
    """The observed ranges, and the interpreter of each subgraph."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.found: Ranges = {}
        self.unbounded: set[Tensor] = set()
        self.samples = 0
        self._runners: dict[Subgraph, _Runner] = {}

    def runner(self, subgraph: Subgraph) -> _Runner:
        if subgraph not in self._runners:
            self._runners[subgraph] = _Runner(self, subgraph)
        return self._runners[subgraph]

    def note(self, tensor: Tensor, value: np.ndarray) -> None:
        low, high = float(value.min()), float(value.max())
        unbounded = max(-low, high) > _BOUND
        if math.isnan(low) or math.isnan(high):
            unbounded = True
        if unbounded and any(tensor in each.inputs for each in self.model.entries):
            raise ValueError(
                f"The tensor '{tensor.name}' is not finite for sample {self.samples} of the representative dataset."
            )
        if unbounded or tensor in self.unbounded:
            # The scores of boxes that are suppressed, or results of loops that nobody reads. Without a range, the tensor stays floating point.
            self.unbounded.add(tensor)
            self.found.pop(tensor, None)
            return
        before = self.found.get(tensor, (low, high))
        self.found[tensor] = (min(low, before[0]), max(high, before[1]))


class _Runner:
    """Runs a subgraph by itself. LiteRT keeps only the tensors of a loop's last iteration, so loop bodies are run one iteration at a time."""

    def __init__(self, observation: _Observation, subgraph: Subgraph) -> None:
        self.observation, self.subgraph = observation, subgraph
        self.interpreter = Interpreter(
            model_content=write_model(Model(_reachable(subgraph))),
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        self.numbers = {tensor: number for number, tensor in enumerate(subgraph.tensors)}
        self.watched = [each for each in self.numbers if each.type == "FLOAT32" and not each.is_constant]
        readers, producers = subgraph.consumers(), subgraph.producers()
        self.arguments: dict[Tensor, list[Operator]] = {}
        """The readers of tensors that only functions with limits read, also through choices between tensors."""
        watched = set(self.watched)
        made = [tensor for operator in reversed(subgraph.operators) for tensor in operator.outputs]
        for tensor in (*made, *subgraph.inputs):
            found = readers.get(tensor, [])
            if tensor in watched and tensor not in subgraph.outputs and found and all(map(self.has_limits, found)):
                self.arguments[tensor] = found
        self.sums = [each for each in subgraph.operators if self.is_softened(each)]
        self.addends = {
            tensor
            for operator in self.sums
            for tensor in operator.inputs
            if tensor is not None
            and tensor not in subgraph.outputs
            and all(each in self.sums for each in readers[tensor])
        }
        """Tensors that only sums before a softmax read."""
        # LiteRT does not write results of loops and branches that nobody reads.
        flow = [each for each in subgraph.operators if each.subgraphs]
        unwritten = {each for operator in flow for each in operator.outputs if each not in readers}
        unwritten -= set(subgraph.outputs)
        self.watched = [
            each
            for each in self.watched
            if each not in self.addends | unwritten and producers.get(each) not in self.sums
        ]
        # A subgraph that shares variables or tables with others cannot run alone.
        alone = (each for each in subgraph.operators if each.code in ("WHILE", "IF"))
        self.inner = [each for each in alone if not _has_resources(each)]
        self.recurrent = [
            each for each in subgraph.operators if each.code == recurrent.CODE and not recurrent.obstacle(each)
        ]
        self.shapes: list[tuple[int, ...]] | None = None
        self.given: dict[Tensor, np.ndarray] = {}
        """The inputs of the last run. LiteRT reuses the memory of those that no operator reads."""

    def is_softened(self, operator: Operator) -> bool:
        """Whether an operator adds or subtracts two tensors for a softmax alone."""
        if operator.code not in ("ADD", "SUB") or not plain(operator):
            return False
        return {each.code for each in self.arguments.get(operator.outputs[0], ())} == {"SOFTMAX"}

    def has_limits(self, operator: Operator) -> bool:
        return (
            operator.code in _REACH
            or operator.code in _LARGEST
            or (operator.code in _CHOICES and operator.outputs[0] in self.arguments)
        )

    def telling(self, tensor: Tensor, value: np.ndarray) -> np.ndarray:
        """A value without differences that do not show in the results of its readers."""
        if tensor not in self.arguments:
            return value
        limits = [self.limits(each, value) for each in self.arguments[tensor]]
        low, high = limits[0]
        for other_low, other_high in limits[1:]:
            low, high = np.minimum(low, other_low), max(high, other_high)
        return np.clip(value, low, high)

    def limits(self, operator: Operator, value: np.ndarray) -> tuple[Any, float]:
        if operator.code in _REACH:
            return _limits(operator.code, value)
        if operator.code in _LARGEST:
            axes = operator.inputs[1]
            if axes is None or axes.data is None:
                return -math.inf, math.inf
            return float(value.max(tuple(axes.data.reshape(-1).tolist())).min()), math.inf
        result = self.value(operator.outputs[0])
        if result is None or not result.size:
            return -math.inf, math.inf
        chosen = self.telling(operator.outputs[0], result)
        return float(chosen.min()), float(chosen.max())

    def run(self, values: list[np.ndarray]) -> list[np.ndarray | None]:
        """The outputs for these inputs."""
        interpreter, inputs = self.interpreter, [self.numbers[each] for each in self.subgraph.inputs]
        if self.shapes != [value.shape for value in values]:
            for number, tensor, value in zip(inputs, self.subgraph.inputs, values, strict=True):
                if tensor.static_shape != value.shape or self.shapes is not None:
                    interpreter.resize_tensor_input(number, value.shape)
            self.shapes = [value.shape for value in values]
            interpreter.allocate_tensors()
        for number, value in zip(inputs, values, strict=True):
            interpreter.set_tensor(number, value)
        self.given = dict(zip(self.subgraph.inputs, values, strict=True))
        if self.recurrent:
            interpreter.reset_all_variables()
        interpreter.invoke()
        for tensor in self.watched:
            value = self.value(tensor)
            if value is not None and value.size:
                self.observation.note(tensor, self.telling(tensor, value))
        for operator in self.sums:
            self.note_addends(operator)
        for operator in self.recurrent:
            self.repeat(operator)
        for operator in self.inner:
            self.follow(operator)
        return [self.value(each) for each in self.subgraph.outputs]

    def note_addends(self, operator: Operator) -> None:
        """Notes the arguments and the result of a sum before a softmax."""
        values = [None if each is None else self.value(each) for each in operator.inputs]
        if not _complete(values) or not values[0].size or not values[1].size:
            return
        # Infinite masks are as good as large ones.
        sign = -1 if operator.code == "SUB" else 1
        one, other = _telling_addends(np.maximum(values[0], -_BOUND), np.maximum(sign * values[1], -_BOUND))
        for tensor, value in zip(operator.inputs, (one, sign * other), strict=True):
            if tensor in self.addends:
                self.observation.note(tensor, value)
        self.observation.note(operator.outputs[0], np.maximum(one + other, _limits("SOFTMAX", one + other)[0]))

    def repeat(self, operator: Operator) -> None:
        """Notes what happens inside a fused LSTM: the range of the cell under its state, and that before a projection under the weights of the
        projection."""
        data, state = operator.inputs[0], operator.inputs[recurrent.CELL_STATE]
        assert data is not None and state is not None
        value = self.value(data)
        if value is not None and value.size:
            cell, hidden = recurrent.observed(operator, value)
            self.observation.note(state, cell)
            weights = operator.inputs[recurrent.PROJECTION]
            if weights is not None:
                self.observation.note(weights, hidden)

    def follow(self, operator: Operator) -> None:
        """Runs the loop or the branch that an operator ran, to see inside it."""
        values = [None if each is None else self.value(each) for each in operator.inputs]
        first, second = (self.observation.runner(each) for each in operator.subgraphs[:2])
        if operator.code == "IF":
            taken, *values = values
            if taken is not None and _complete(values):
                (first if taken.reshape(-1)[0] else second).run(values)
            return
        while _complete(values):
            (again,) = first.run(values)
            if again is None or not again.reshape(-1)[0]:
                break
            values = second.run(values)

    def value(self, tensor: Tensor) -> np.ndarray | None:
        if tensor.is_constant:
            return tensor.data
        if tensor in self.given:
            return self.given[tensor]
        try:
            return self.interpreter.get_tensor(self.numbers[tensor])
        except ValueError:
            return None  # not computed by this run


def _complete(values: list[np.ndarray | None]) -> TypeGuard[list[np.ndarray]]:
    return all(value is not None for value in values)


def _reachable(subgraph: Subgraph) -> list[Subgraph]:
    """A subgraph, and those that its operators run."""
    found: dict[Subgraph, None] = {}
    waiting = [subgraph]
    while waiting:
        each = waiting.pop(0)
        if each not in found:
            found[each] = None
            waiting.extend(inner for operator in each.operators for inner in operator.subgraphs)
    return list(found)


def _has_resources(operator: Operator) -> bool:
    return any(
        each is not None and each.type in ("RESOURCE", "VARIANT")
        for subgraph in _reachable(operator.subgraphs[0]) + _reachable(operator.subgraphs[1])
        for each in subgraph.tensors
    )


def _samples(iterable: Any) -> Iterable[Any]:
    if not isinstance(iterable, Iterable):
        raise ValueError(f"representative_dataset must return an iterable of samples, not {iterable!r}.")
    return iterable


def _of_signature(sample: Any, model: Model) -> tuple[Subgraph, Any]:
    """The subgraph that a sample is for, and the sample without the key of its signature."""
    if not (isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str)):
        return model.main, sample
    found = {signature.key: signature.subgraph for signature in model.signatures}
    if sample[0] not in found:
        raise ValueError(f"A sample is for the signature '{sample[0]}', and the model has {sorted(found)}.")
    return found[sample[0]], sample[1]


def _ordered(sample: Any, details: list[dict[str, Any]], model: Model, subgraph: Subgraph) -> list[np.ndarray]:
    """The arrays of a sample in the order of the inputs."""
    names = [detail["name"] for detail in details]
    if isinstance(sample, Mapping):
        inputs = subgraph.inputs
        by_name = {name: number for number, name in enumerate(names)}
        for signature in model.signatures:
            if signature.subgraph is subgraph:
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
    return [np.asarray(value.numpy() if hasattr(value, "numpy") else value) for value in ordered]


def _rows(arrays: list[np.ndarray], details: list[dict[str, Any]]) -> Iterable[list[np.ndarray]]:
    """A batch for a model that takes one example at a time, as single examples."""
    shapes = [detail["shape_signature"].tolist() for detail in details]
    count = next((array.shape[0] for array in arrays if array.ndim), 1)
    single = all(shape[:1] == [1] for shape in shapes)
    if count <= 1 or not single or [list(each.shape) for each in arrays] != [[count, *shape[1:]] for shape in shapes]:
        return [arrays]
    return ([array[place : place + 1] for array in arrays] for place in range(count))


def _checked(arrays: list[np.ndarray], details: list[dict[str, Any]]) -> list[np.ndarray]:
    """The arrays, whose types and shapes are those of the inputs."""
    for detail, array in zip(details, arrays, strict=True):
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
    return arrays
