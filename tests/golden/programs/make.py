"""Writes values.npz: what TensorFlow 2.21 with tf_keras (TF_USE_LEGACY_KERAS=1) gives for cases.py."""

from pathlib import Path

import cases
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
found = {
    f"{name}|{key}": value for name, build in cases.PROGRAMS.items() for key, value in cases.train(tf, build).items()
}
np.savez_compressed(Path(__file__).parent / "values.npz", **found)
