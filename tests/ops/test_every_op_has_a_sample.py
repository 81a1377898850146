"""That the tables of samples leave no op out."""

import re
from pathlib import Path

from stoker._src.graph.definition import Trait, all_definitions

# Ops without outputs, one whose outputs are dead in part (graph/interchange/test_lone_switches.py), and those whose quantized input NumPy cannot feed: programs drive them (of scripts/op_comparison, and in
# quantization/test_quantized.py).
WITHOUT_ARRAYS = {
    "ControlTrigger", "Dequantize", "NoOp",
    "QuantizeDownAndShrinkRange", "QuantizedAdd", "QuantizedAvgPool", "QuantizedBiasAdd", "QuantizedConcat", "QuantizedConv2D", "QuantizedMatMul",
    "QuantizedMaxPool", "QuantizedMul", "QuantizedRelu", "QuantizedRelu6", "QuantizedReluX", "QuantizedReshape", "RequantizationRange", "Requantize", "Switch",
}  # fmt: skip
EFFECTS = Trait.STATEFUL | Trait.READS | Trait.WRITES | Trait.BLOCKING | Trait.SOURCE


def _takes_handles(definition) -> bool:
    args = (*definition.inputs, *definition.outputs)
    return any(arg.is_ref or (arg.dtype is not None and arg.dtype.name in ("resource", "variant")) for arg in args)


def test_every_pure_op_has_a_sample() -> None:
    """Each op that is a function of arrays stands in a table that check_sample drives."""
    tables = "".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    sampled = set(re.findall(r'Sample\(\s*"(\w+)"', tables))
    pure = {
        name
        for name, definition in all_definitions().items()
        if not definition.traits & EFFECTS and not _takes_handles(definition)
    }
    assert pure - sampled == WITHOUT_ARRAYS
