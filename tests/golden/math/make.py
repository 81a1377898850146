"""Writes values.npz with TensorFlow: `python tests/golden/math/make.py` in an environment that has it (made with 2.21)."""

from pathlib import Path

import numpy as np
import tensorflow as tf
from cases import BINARY, CASTS, NAMES, UNARY, castable, numbers, pairs

if __name__ == "__main__":
    values = {}
    for name, kinds in UNARY.items():
        for dtype in kinds:
            values[f"{name}-{dtype}"] = getattr(tf.raw_ops, name)(x=tf.constant(numbers(dtype))).numpy()
    for name, kinds in BINARY.items():
        first, second = NAMES.get(name, ("x", "y"))
        for dtype in kinds:
            x, y = pairs(name, dtype)
            arguments = {first: tf.constant(x), second: tf.constant(y)}
            values[f"{name}-{dtype}"] = getattr(tf.raw_ops, name)(**arguments).numpy()
    for source, target in CASTS:
        values[f"Cast-{source}-{target}"] = tf.cast(tf.constant(castable(source, target)), target).numpy()
    np.savez_compressed(Path(__file__).parent / "values.npz", **values)
