"""Rewrites a graph definition for quantization-aware training."""

from __future__ import annotations

from typing import Any

import numpy as np
from tensorboard.compat.proto.graph_pb2 import GraphDef  # type: ignore[attr-defined]

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError, NotFoundError, OutOfRangeError
from stoker._src.base.export import export
from stoker._src.formats.tensor_proto import to_tensor_proto
from stoker._src.graph.definition import find_definition

_QUANTIZED_OPS = ("MatMul", "Conv2D")
# Activations with a known range: (minimum, maximum).
_RANGES = {"Relu6": (0.0, 6.0), "Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0)}
_NOT_NEGATIVE = ("Relu", "Relu6", "Sigmoid")
# Ops that return values of their first input, and therefore keep its range.
_PASSING = ("Identity", "Reshape", "ConcatV2", "MaxPool", "AvgPool")
_DECAY = 0.999


@export(v1="train.do_quantize_training_on_graphdef")
def do_quantize_training_on_graphdef(input_graph: Any, num_bits: int) -> Any:
    """Returns a copy of a graph definition in which matrix products and convolutions get quantized inputs.

    Every input of a MatMul or Conv2D (except those whose names start with "gradients") goes through a
    QuantizeAndDequantizeV2. If the input comes from an activation with a fixed range (Relu6, Sigmoid, Tanh), directly or through ops
    that keep the range, that range is used. Otherwise variables hold moving averages of the minimum and the maximum, with
    a decay of 0.999, which start at the first observed values.

    Args:
        input_graph: a GraphDef without quantized nodes.
        num_bits: 1 to 63.

    Raises:
        OutOfRangeError: `num_bits` is outside of this range.
        InvalidArgumentError: an input is not float32, or is not a node of the graph.
        NotFoundError: the graph contains an unknown op.
        TypeError: `num_bits` is not an integer.
    """
    if isinstance(num_bits, bool) or not isinstance(num_bits, (int, np.integer)):
        raise TypeError(f"num_bits must be an integer, not {num_bits!r}.")
    if not 1 <= num_bits <= 63:
        raise OutOfRangeError(None, None, f"num_bits should be in range [1, 63] but is: {num_bits}")
    result = GraphDef.FromString(input_graph.SerializeToString())
    nodes = {node.name: node for node in result.node}
    for node in result.node:
        if find_definition(node.op) is None and node.op not in {
            each.signature.name for each in result.library.function
        }:
            raise NotFoundError(None, None, f"Op type not registered '{node.op}' (node '{node.name}').")
        for source in node.input:
            if source.lstrip("^").partition(":")[0] not in nodes:
                raise InvalidArgumentError(None, None, f"Node '{node.name}': Unknown input node '{source}'")
    rewriter = _Rewriter(result, int(num_bits))
    for node in list(result.node):
        if node.op in _QUANTIZED_OPS and not node.name.startswith("gradients"):
            if node.attr["T"].type != dtypes.float32.as_datatype_enum:
                raise InvalidArgumentError(
                    None, None, f"Only float32 can be quantized for training; '{node.name}' is not."
                )
            for i, source in enumerate(node.input):
                if not source.startswith("^"):
                    node.input[i] = rewriter.quantized(source, _origin(source, nodes))
    return result


def _origin(source: str, nodes: dict[str, Any]) -> str:
    """Returns the op type that determines a tensor's range."""
    node = nodes[source.partition(":")[0]]
    while node.op in _PASSING:
        node = nodes[node.input[0].partition(":")[0]]
    return node.op


class _Rewriter:
    """Adds nodes to a graph definition. Each tensor is quantized once."""

    def __init__(self, graph: GraphDef, num_bits: int) -> None:
        self.graph, self.num_bits = graph, num_bits
        self._done: dict[str, str] = {}
        self._names: set[str] = set()

    def quantized(self, source: str, op: str) -> str:
        found = self._done.get(source)
        if found is not None:
            return found
        base = source.partition(":")[0]
        if base in self._names:  # another output of that op
            base = source.replace(":", "_")
        self._names.add(base)
        if op in _RANGES:
            low, high = _RANGES[op]
            bounds = [self._constant(f"{base}/InputMin", low), self._constant(f"{base}/InputMax", high)]
        else:
            bounds = self._observed(base, source)
        name = f"{base}/QuantizeAndDequantizeV2"
        node = self._add(name, "QuantizeAndDequantizeV2", [source, *bounds])
        node.attr["signed_input"].b = op not in _NOT_NEGATIVE
        node.attr["num_bits"].i = self.num_bits
        node.attr["range_given"].b = True
        node.attr["round_mode"].s = b"HALF_TO_EVEN"
        node.attr["narrow_range"].b = False
        self._done[source] = name
        return name

    def _observed(self, base: str, source: str) -> list[str]:
        """Returns the moving averages of a tensor's minimum and maximum."""
        decay = self._constant(f"{base}/Decay", _DECAY)
        axes = f"{base}/ReductionAxes"
        start = self._constant(f"{axes}/RangeStart", 0, np.int32)
        delta = self._constant(f"{axes}/RangeDelta", 1, np.int32)
        rank = self._add(f"{axes}/InputRank", "Rank", [source])
        along = self._add(f"{axes}/ReductionAxes", "Range", [start, rank.name, delta], kind=None)
        along.attr["Tidx"].type = dtypes.int32.as_datatype_enum
        for op in ("Min", "Max"):
            node = self._add(f"{base}/{op}", op, [source, along.name])
            node.attr["keep_dims"].b = False
            node.attr["Tidx"].type = dtypes.int32.as_datatype_enum
        return [self._average(f"{base}/{op}", decay) for op in ("Min", "Max")]

    def _average(self, value: str, decay: str) -> str:
        variable = self._add(f"{value}/Variable", "VariableV2", [], kind="dtype")
        variable.attr["shape"].shape.SetInParent()
        variable.attr["container"].s = variable.attr["shared_name"].s = b""
        ready = self._add(f"{value}/IsInitialized", "IsVariableInitialized", [variable.name], kind="dtype")
        switch = self._add(f"{value}/Switch", "Switch", [value, ready.name])
        one = self._constant(f"{value}/EMA/OneConst", 1.0)
        step = self._add(f"{value}/EMA/DecayComplement", "Sub", [one, decay])
        difference = self._add(f"{value}/EMA/ValueDiff", "Sub", [variable.name, f"{switch.name}:1"])
        change = self._add(f"{value}/EMA/UpdateValue", "Mul", [difference.name, step.name])
        moved = self._add(f"{value}/EMA/EMAValue", "Sub", [variable.name, change.name])
        merged = self._add(f"{value}/Merge", "Merge", [switch.name, moved.name])
        merged.attr["N"].i = 2
        assigned = self._add(f"{value}/AssignValue", "Assign", [variable.name, merged.name])
        assigned.attr["use_locking"].b = assigned.attr["validate_shape"].b = True
        return assigned.name

    def _constant(self, name: str, value: float, kind: Any = np.float32) -> str:
        node = self._add(name, "Const", [], kind=None)
        node.attr["value"].tensor.CopyFrom(to_tensor_proto(np.asarray(value, kind), dtypes.as_dtype(kind)))
        node.attr["dtype"].type = node.attr["value"].tensor.dtype
        return name

    def _add(self, name: str, op: str, inputs: list[str], kind: str | None = "T") -> Any:
        node = self.graph.node.add(name=name, op=op, input=inputs)
        if kind is not None:
            node.attr[kind].type = dtypes.float32.as_datatype_enum
        return node
