"""Runs TFLite models in tests."""

from __future__ import annotations

import numpy as np

from stoker._src.lite.interpreter import Interpreter


def run_model(model: bytes, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """What LiteRT computes, the second time: some kernels keep state between calls."""
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for _ in range(2):
        for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
