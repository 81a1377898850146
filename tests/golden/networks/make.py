"""Writes values.npz: what TensorFlow 2.21 with tf_keras (TF_USE_LEGACY_KERAS=1) gives for cases.py."""

from pathlib import Path

import cases
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
found = {}
for name, build in cases.NETWORKS.items():
    names, initial, losses, final = cases.train(tf, build)
    found[f"{name}|names"] = np.array(names)
    found[f"{name}|losses"] = losses
    for variable, first, last in zip(names, initial, final):
        found[f"{name}|initial|{variable.replace('/', '@')}"] = first
        found[f"{name}|final|{variable.replace('/', '@')}"] = last
np.savez_compressed(Path(__file__).parent / "values.npz", **found)
