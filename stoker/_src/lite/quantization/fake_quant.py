"""Graphs trained with fake quantization: their FAKE_QUANT operators provide the ranges and are removed."""

from __future__ import annotations

import numpy as np

from stoker._src.lite.model import Model, Operator, Subgraph, Tensor
from stoker._src.lite.quantization.calibration import Ranges
from stoker._src.lite.quantization.plan import TrainedRange
from stoker._src.lite.quantization.schemes import BIASES, FIXED, PASSED, PASSING, SHARING


def take_ranges(model: Model) -> tuple[Ranges, dict[Tensor, TrainedRange]]:
    """Removes the FAKE_QUANT operators of the main subgraph. Returns the ranges of results, and those of weights."""
    subgraph = model.main
    ranges: Ranges = {}
    weights: dict[Tensor, TrainedRange] = {}
    replaced: dict[Tensor, Tensor] = {}
    producers = subgraph.producers()
    kept = []
    for operator in subgraph.operators:
        operator.inputs = [None if each is None else replaced.get(each, each) for each in operator.inputs]
        moved = _moved(operator)
        if moved is not None and operator.inputs[0] in weights:
            weights[moved] = weights[operator.inputs[0]]
            replaced[operator.outputs[0]] = moved
            continue
        if operator.code != "FAKE_QUANT":
            kept.append(operator)
            continue
        source, result = operator.inputs[0], operator.outputs[0]
        assert source is not None
        low, high = float(operator.options.min), float(operator.options.max)
        if source.is_constant:
            weights[source] = TrainedRange(low, high, bool(operator.options.narrowRange))
        else:
            ranges[source] = (low, high)
        if result in subgraph.outputs and source not in subgraph.inputs and producers.get(source) is not None:
            # The output keeps its name.
            source.name = result.name
        replaced[result] = source
    subgraph.operators = kept
    subgraph.outputs = [replaced.get(each, each) for each in subgraph.outputs]
    for signature in model.signatures:
        if signature.subgraph is subgraph:
            for key, tensor in signature.outputs.items():
                if tensor in replaced:
                    signature.outputs[key] = replaced[tensor]
    return ranges, weights


def _moved(operator: Operator) -> Tensor | None:
    """The result of an op that only rearranges a constant: weights are transposed after they are quantized."""
    if operator.code not in ("TRANSPOSE", "RESHAPE") or len(operator.inputs) < 2:
        return None
    source, how = operator.inputs[:2]
    if source is None or source.data is None or how is None or how.data is None:
        return None
    move = np.transpose if operator.code == "TRANSPOSE" else np.reshape
    data = np.ascontiguousarray(move(source.data, how.data.tolist()))
    return Tensor(operator.outputs[0].name, source.type, data.shape, data)


def fold_constants(model: Model) -> None:
    """Folds FAKE_QUANT of constants in a model that stays in floating point, because kernels apply it only to results."""
    for subgraph in model.subgraphs:
        kept = []
        folded: dict[Tensor, Tensor] = {}
        made: set[Tensor | None] = set()
        for operator in subgraph.operators:
            operator.inputs = [None if each is None else folded.get(each, each) for each in operator.inputs]
            source = operator.inputs[0] if operator.inputs else None
            moved = _moved(operator)
            if moved is not None and source in made:
                folded[operator.outputs[0]] = moved
                made.add(moved)
                continue
            if operator.code != "FAKE_QUANT" or source is None or source.data is None:
                kept.append(operator)
                continue
            options = operator.options
            smallest, largest = (1 if options.narrowRange else 0), 2**options.numBits - 1
            scale = (options.max - options.min) / (largest - smallest)
            zero = np.clip(np.round(smallest - options.min / scale), smallest, largest)
            stored = np.clip(np.round(source.data / scale + zero), smallest, largest)
            values = ((stored - zero) * scale).astype(np.float32)
            result = operator.outputs[0]
            folded[result] = Tensor(result.name, "FLOAT32", source.shape, values)
            made.add(folded[result])
        subgraph.operators = kept
        subgraph.outputs = [folded.get(each, each) for each in subgraph.outputs]


def spread(subgraph: Subgraph, ranges: Ranges) -> None:
    """Propagates ranges forwards and backwards through ops that only rearrange values."""
    for operators in (subgraph.operators, subgraph.operators[::-1]) * 2:
        for operator in operators:
            if operator.code in PASSING:
                source = operator.inputs[PASSED.get(operator.code, 0)]
                if source is None or source.type != "FLOAT32":
                    continue
                for result in operator.outputs:
                    if source in ranges and result.type == "FLOAT32":
                        ranges.setdefault(result, ranges[source])
                    elif result in ranges and not source.is_constant:
                        ranges.setdefault(source, ranges[result])
            elif operator.code in SHARING:
                known = [ranges[each] for each in operator.inputs if each is not None and each in ranges]
                if known and operator.outputs[0].type == "FLOAT32":
                    ranges.setdefault(
                        operator.outputs[0], (min(low for low, _ in known), max(high for _, high in known))
                    )
            elif operator.code in ("RELU", "RELU6", "RELU_N1_TO_1") and operator.inputs[0] in ranges:
                low, high = ranges[operator.inputs[0]]
                bounds = {"RELU": (0.0, high), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}[operator.code]
                ranges.setdefault(operator.outputs[0], (max(low, bounds[0]), min(high, bounds[1])))


def join_concatenations(subgraph: Subgraph, ranges: Ranges) -> None:
    """Gives the inputs and the output of a concatenation one common range."""
    producers = subgraph.producers()
    changed = True
    while changed:  # a tensor may be part of two concatenations
        changed = False
        for operator in subgraph.operators:
            if operator.code != "CONCATENATION" or operator.outputs[0].type != "FLOAT32":
                continue
            tensors = [_root(each, producers) for each in operator.inputs if each is not None and not each.is_constant]
            tensors = [each for each in [*tensors, operator.outputs[0]] if each in ranges]
            low, high = min(ranges[each][0] for each in tensors), max(ranges[each][1] for each in tensors)
            for each in tensors:
                changed |= ranges[each] != (low, high)
                ranges[each] = (low, high)


def _root(tensor: Tensor, producers: dict[Tensor, Operator]) -> Tensor:
    """The origin of a tensor that is only rearranged. Its scale is chosen there."""
    producer = producers.get(tensor)
    while producer is not None and producer.code in PASSING:
        source = producer.inputs[PASSED.get(producer.code, 0)]
        if source is None or source.is_constant:
            break
        tensor, producer = source, producers.get(source)
    return tensor


def missing(subgraph: Subgraph, ranges: Ranges) -> list[tuple[Tensor, str]]:
    """Tensors of real numbers without a range, with the op that reads or makes each. Results of custom ops need none."""
    found: dict[Tensor, str] = {}
    for operator in subgraph.operators:
        skipped = BIASES.get(operator.code)
        for place, tensor in enumerate(operator.inputs):
            if tensor is not None and tensor.type == "FLOAT32" and not tensor.is_constant and place != skipped:
                if tensor not in ranges:
                    found.setdefault(tensor, operator.code)
        if operator.code in FIXED:
            for tensor in operator.outputs:
                ranges.setdefault(tensor, (-1.0, 1.0))
        for tensor in operator.outputs:
            if tensor.type == "FLOAT32" and tensor not in ranges and operator.code != "CUSTOM":
                found.setdefault(tensor, operator.code)
    return list(found.items())
