"""Records what TensorFlow 1.15 computes for the cells of `tf.contrib.rnn`: run with its Python, from this folder."""

import cases
import numpy as np
import tensorflow as tf

np.savez_compressed("values.npz", **cases.all_results(tf))
