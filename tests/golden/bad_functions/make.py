"""Bad calls of public functions, and what TensorFlow raises for them: {call: {mode: "phase class"}}, "" for a value.

    python tests/golden/bad_functions/make.py    # under an interpreter that has TensorFlow 2.21 and tf_keras

The calls are those of `calls.txt`: a good call of each function with one argument put wrong. They run in a graph of
constants (static), in a graph of tensors whose sizes are not known (fed), and eagerly.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
CALLS = (FOLDER / "calls.txt").read_text().splitlines()
MODES = ("static", "fed", "eager")


class Names(dict):
    """What a call's text may say: `tf`, `v1`, and makers of arguments."""

    def __init__(self, module: Any, mode: str) -> None:
        super().__init__(tf=module, v1=module.compat.v1, nan=float("nan"), inf=float("inf"))
        self.module, self.mode, self.feeds = module, mode, {}
        self.update(
            f=lambda *shape: self.tensor(_numbers(shape)),
            d=lambda *shape: self.tensor(_numbers(shape).astype(np.float64)),
            z=lambda *shape: self.tensor(_numbers(shape).astype(np.complex64)),
            m=lambda size: self.tensor(np.eye(size, dtype=np.float32)),
            s=lambda *shape: self.tensor(np.full(shape, b"x", object)),
            c=lambda value, dtype: self.tensor(np.array(value, dtype)),
            sp=lambda places, values, sizes: module.SparseTensor(places, values, sizes),
            var=self.variable,
            cell=lambda size: module.compat.v1.nn.rnn_cell.GRUCell(size),
        )

    def tensor(self, value: np.ndarray) -> Any:
        dtype = self.module.string if value.dtype == object else self.module.as_dtype(value.dtype)
        if self.mode != "fed":
            return self.module.constant(value, dtype)
        made = self.module.compat.v1.placeholder(dtype, [None] * value.ndim)
        self.feeds[made] = value
        return made

    def variable(self, *shape: int) -> Any:
        if self.mode == "eager":
            return self.module.Variable(_numbers(shape))
        return self.module.compat.v1.get_variable("variable", initializer=_numbers(shape), use_resource=True)


def _numbers(shape: tuple[int, ...]) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7 / 8 + 0.0625).astype(np.float32)


def outcome(module: Any, text: str, mode: str) -> str:
    """ "phase class" of the error that a call ends in, "" where there is none."""
    names, v1, phase = Names(module, mode), module.compat.v1, "build"
    try:
        if mode == "eager":
            phase = "run"
            eval(text, names)
            return ""
        with module.Graph().as_default() as graph, v1.Session(graph=graph) as session:
            result = eval(text, names)
            phase = "run"
            parts = module.nest.flatten(result, expand_composites=True)
            if any(isinstance(part, (module.Tensor, module.Operation, module.Variable)) for part in parts):
                session.run([v1.global_variables_initializer(), v1.local_variables_initializer()], names.feeds)
                session.run([part for part in parts if not isinstance(part, str)], names.feeds)
    except Exception as error:
        kind = "TypeError" if type(error).__name__ == "OperatorNotAllowedInGraphError" else type(error).__name__
        return f"{phase} {kind}"
    return ""


def outcomes(module: Any, text: str) -> dict[str, str]:
    return {mode: outcome(module, text, mode) for mode in MODES}


def main() -> None:
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", TF_USE_LEGACY_KERAS="1")
    import tensorflow

    found = {text: outcomes(tensorflow, text) for text in CALLS}
    lines = ",\n".join(f"{json.dumps(text)}: {json.dumps(each)}" for text, each in found.items())
    (FOLDER / "tensorflow.json").write_text("{\n" + lines + "\n}\n")
    print(f"{len(found)} calls")


if __name__ == "__main__":
    main()
