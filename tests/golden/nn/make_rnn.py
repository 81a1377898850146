"""Records what TensorFlow's recurrent block ops compute: run with TensorFlow's Python, from this folder."""

import numpy as np
import rnn_cases
import tensorflow as tf


def call(op, inputs, attrs):
    values = getattr(tf.raw_ops, op)(**inputs, **attrs)
    return type(values)(*(value.numpy() for value in values))


np.savez_compressed("rnn_tf2.npz", **rnn_cases.results(call))
