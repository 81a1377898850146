"""Adds to values.npz what TensorFlow gives for cases.py: run with 1.15 first, then with 2.21 and tf_keras."""

from pathlib import Path

import cases
import numpy as np
import tensorflow as tf

path = Path(__file__).parent / "values.npz"
if tf.__version__.startswith("1."):
    values = cases.contrib_values(tf)
else:
    with np.load(path) as file:
        values = {key: file[key] for key in file.files}
    values.update(cases.v2_values(tf))
    values.update(cases.v1_values(tf.compat.v1))
np.savez_compressed(path, **values)
