"""Quantization of weights alone: to 8 bits with arithmetic in floating point ("dynamic range"), or to half precision."""

from __future__ import annotations

import numpy as np

from stoker._src.lite.model import Model, Operator, Subgraph, Tensor
from stoker._src.lite.quantization.arrays import symmetric_weights
from stoker._src.lite.quantization.schemes import BIASES, DATA, WEIGHTS
from stoker._src.lite.versions import is_available

# With fewer elements than this, the saved space is not worth the error.
_FEWEST = 1024
# The position of the weights of ops with hybrid kernels, and the dimension with one scale per slice (None for a single scale).
_HYBRID: dict[str, dict[int, int | None]] = {
    "CONV_2D": {1: 0},
    "DEPTHWISE_CONV_2D": {1: 3},
    "TRANSPOSE_CONV": {1: 0},
    "FULLY_CONNECTED": {1: 0},
    "BATCH_MATMUL": {1: None},
    "SVDF": {1: None, 2: None},
    "RNN": {1: None, 2: None},
    "UNIDIRECTIONAL_SEQUENCE_RNN": {1: None, 2: None},
    "BIDIRECTIONAL_SEQUENCE_RNN": {1: None, 2: None, 5: None, 6: None},
    "LSTM": dict.fromkeys((*range(1, 9), 16)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": dict.fromkeys((*range(1, 9), 16)),
    "BIDIRECTIONAL_SEQUENCE_LSTM": dict.fromkeys((*range(1, 9), 16, *range(18, 26), 33)),
    "EMBEDDING_LOOKUP": {1: None},
}
# The weights of these must all be of one type.
_ALL_OR_NONE = frozenset(code for code in _HYBRID if "LSTM" in code or "RNN" in code or code == "SVDF")
# The size in bytes of an additional op and tensor in a file.
_OVERHEAD = 256


def quantize_weights(model: Model, runtime: str | None = None) -> None:
    """Stores large weights in 8 bits. Kernels quantize the other argument at run time, and results are floating point.

    Weights stay as they are where the oldest `runtime` has no kernel for them.
    """
    for subgraph in model.subgraphs:
        _quantize_tables(subgraph)
        uses = subgraph.consumers()
        done: dict[tuple[Tensor, int | None], Tensor] = {}
        for operator in subgraph.operators:
            places = _HYBRID.get(operator.code)
            if places is None or not _is_float(operator):
                continue
            candidates = {
                place: axis
                for place, axis in places.items()
                if place < len(operator.inputs) and _is_weight(operator.inputs[place])
            }
            large = [place for place in candidates if operator.inputs[place].data.size >= _FEWEST]  # type: ignore[union-attr]
            chosen = candidates if large and operator.code in _ALL_OR_NONE else large
            for place in chosen:
                tensor, axis = operator.inputs[place], candidates[place]
                assert tensor is not None
                if not all(each.code == operator.code and each.inputs.index(tensor) == place for each in uses[tensor]):
                    continue
                for each in (axis, None):
                    if (tensor, each) not in done:
                        done[tensor, each] = symmetric_weights(tensor, each)
                    operator.inputs[place] = done[tensor, each]
                    if operator.code == "FULLY_CONNECTED":
                        # Kernels with a scale for each unit use all 8 bits for inputs that are not around zero, if asked to.
                        operator.options.asymmetricQuantizeInputs = each is not None
                    if runtime is None or is_available(operator, runtime):
                        break
                    operator.inputs[place] = tensor


def _quantize_tables(subgraph: Subgraph) -> None:
    """Stores lookup tables in 8 bits. The rows that are looked up are dequantized."""
    uses = subgraph.consumers()
    done: dict[Tensor, Tensor] = {}
    operators = []
    for operator in subgraph.operators:
        operators.append(operator)
        table = operator.inputs[0] if operator.code == "GATHER" else None
        if not _is_weight(table) or table.data.size < _FEWEST:  # type: ignore[union-attr]
            continue
        assert table is not None
        if any(each.code != "GATHER" or each.inputs[0] is not table for each in uses[table]):
            continue
        if table not in done:
            done[table] = symmetric_weights(table, None)
        operator.inputs[0] = done[table]
        (result,) = operator.outputs
        picked = Tensor(f"{result.name}/integer", "INT8", result.shape, None, done[table].quantization)
        operator.outputs = [picked]
        operators.append(Operator("DEQUANTIZE", [picked], [result]))
    subgraph.operators = operators


def _is_float(operator: Operator) -> bool:
    if operator.outputs[0].type != "FLOAT32":
        return False
    values = operator.inputs[DATA.get(operator.code, 0)]
    return operator.code == "EMBEDDING_LOOKUP" or values is None or values.type == "FLOAT32"


def _is_weight(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.data is not None and tensor.type == "FLOAT32" and tensor.quantization is None


def store_as_half(model: Model) -> None:
    """Stores large float constants in half precision. An op restores them when the model runs, or a delegate uses them as they are."""
    for subgraph in model.subgraphs:
        chosen = _worth_half(subgraph)
        halves: dict[Tensor, Tensor] = {}
        added: list[Operator] = []
        for operator in subgraph.operators:
            for place, tensor in enumerate(operator.inputs):
                if tensor is None or tensor not in chosen:
                    continue
                if tensor not in halves:
                    halves[tensor] = _restored(tensor, added)
                operator.inputs[place] = halves[tensor]
        _insert_first(subgraph, added)


def _worth_half(subgraph: Subgraph) -> set[Tensor]:
    """The constants to store in half precision: those that are large enough, and the biases of these weights, however small.

    XNNPACK computes a product only if weights and bias have the same precision.
    """
    together = {
        tensor: [tensor]
        for operator in subgraph.operators
        for tensor in operator.inputs
        if tensor and _is_weight(tensor)
    }
    for operator in subgraph.operators:
        places = (WEIGHTS.get(operator.code), BIASES.get(operator.code))
        pair = [operator.inputs[place] for place in places if place is not None and place < len(operator.inputs)]
        groups = [together[each] for each in pair if each in together]
        if len(groups) == 2 and groups[0] is not groups[1]:
            groups[0].extend(groups[1])
            together.update(dict.fromkeys(groups[1], groups[0]))
    return {
        tensor
        for tensor, group in together.items()
        if any(each.data.size * 2 > _OVERHEAD for each in group) and all(_fits_half(each) for each in group)  # type: ignore[union-attr]
    }


def _fits_half(tensor: Tensor) -> bool:
    assert tensor.data is not None
    return bool(np.abs(tensor.data).max(initial=0.0) <= np.finfo(np.float16).max)


def _restored(tensor: Tensor, added: list[Operator]) -> Tensor:
    assert tensor.data is not None
    half = Tensor(tensor.name, "FLOAT16", tensor.shape, tensor.data.astype(np.float16))
    restored = Tensor(f"{tensor.name}/float32", "FLOAT32", tensor.shape)
    added.append(Operator("DEQUANTIZE", [half], [restored]))
    return restored


def _insert_first(subgraph: Subgraph, operators: list[Operator]) -> None:
    # The subgraph that runs once comes first.
    place = next((n for n, each in enumerate(subgraph.operators) if each.code != "CALL_ONCE"), len(subgraph.operators))
    subgraph.operators[place:place] = operators
