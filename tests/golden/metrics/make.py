"""Writes values.npz: what TensorFlow 2.21 gives for cases.py."""

from pathlib import Path

import cases
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
np.savez_compressed(Path(__file__).parent / "values.npz", **cases.values(tf))
