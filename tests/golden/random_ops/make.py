"""Writes values.npz: what TensorFlow 2.21 gives for the calls in cases.py. Run with TensorFlow, on one thread."""

from pathlib import Path

import cases
import numpy as np
import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)
values = {**cases.generator_draws(tf), **cases.eager_draws(tf), **cases.draw(tf.compat.v1)}
np.savez_compressed(
    Path(__file__).parent / "values.npz", **{key.replace("/", "|"): value for key, value in values.items()}
)
