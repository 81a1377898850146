"""For every op a gradient where TensorFlow has one, and LookupError where it has none."""

import json
from pathlib import Path

import pytest

import stoker.compat.v1  # noqa: F401  (defines every op)
from stoker._src.graph.definition import all_definitions
from tests.golden import gradient_registry

STATES = json.loads(Path(gradient_registry.__file__).with_suffix(".json").read_text())

# TensorFlow registers functions for these that give no gradient to any input.
GIVE_NOTHING = {"ArgMax", "ArgMin", "Ceil", "Floor", "FloorDiv", "Rint", "Round", "TruncateDiv"}
# TensorFlow's functions for these cannot be called (they take other arguments than they are given).
BROKEN = {"SparseSparseMaximum", "SparseSparseMinimum", "QuantizeAndDequantizeV4Grad"}
# TensorFlow finds the gradient of a call in the function that was traced; here it belongs to the op.
CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
# The gradients of these came with tf.contrib, which TensorFlow 2 does not have.
OF_CONTRIB = {"GRUBlockCell", "LSTMBlockCell"}


def state(definition) -> str:
    if definition.gradient_fn is not None:
        return "yes"
    return "raises" if definition.differentiable else "stops"


@pytest.mark.parametrize("name", sorted(all_definitions()))
def test_state_of_the_gradient(name) -> None:
    """The op has a gradient, stops gradients or raises as TensorFlow's does."""
    expected = STATES.get(name, "absent")
    found = state(all_definitions()[name])
    if name in GIVE_NOTHING | BROKEN:
        assert (expected, found) == ("yes", "stops")
    elif name in CALLS | OF_CONTRIB:
        assert (expected, found) == ("raises", "yes")
    elif expected != "absent":
        assert found == expected
