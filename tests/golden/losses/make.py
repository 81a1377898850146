"""Writes values.npz: what TensorFlow 2.21 gives for cases.py."""

from pathlib import Path

import cases
import numpy as np
import tensorflow.compat.v1 as tf

found = {key.replace("/", "@"): value for key, value in cases.values(tf).items()}
np.savez_compressed(Path(__file__).parent / "values.npz", **found)
