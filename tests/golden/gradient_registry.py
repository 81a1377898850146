"""Writes gradient_registry.json: what TensorFlow 2 says about the gradient of every op that stoker defines.

    PYTHONPATH=. python tests/golden/gradient_registry.py names > NAMES      (under stoker's interpreter)
    python tests/golden/gradient_registry.py record < NAMES                  (under TensorFlow's)

"yes": a gradient is registered; "stops": it is registered that there is none; "raises": asking raises LookupError; "absent":
there is no such op.
"""

import json
import sys
from pathlib import Path

STATES = Path(__file__).with_suffix(".json")


class Node:
    """As much of an operation as the registry asks for."""

    inputs = (None,)
    _gradient_function = None

    def __init__(self, kind: str) -> None:
        self.type = self.name = kind

    def get_attr(self, name: str):
        raise ValueError(name)


def record(names: list[str]) -> None:
    import tensorflow  # noqa: F401
    from tensorflow.python.framework import op_def_registry, ops

    states = {}
    for name in names:
        if op_def_registry.get(name) is None:
            states[name] = "absent"
            continue
        try:
            states[name] = "stops" if ops.get_gradient_function(Node(name)) is None else "yes"
        except LookupError:
            states[name] = "raises"
    STATES.write_text(json.dumps(states, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "names":
        import stoker._src.ops  # noqa: F401
        from stoker._src.graph.definition import all_definitions

        print(*sorted(all_definitions()), sep="\n")
    else:
        record(sys.stdin.read().split())
