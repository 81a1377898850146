"""Writes `keras3`: a model of Keras 3 as tf.saved_model.save writes it, and what it computes.

    python tests/golden/saved_model/keras3.py

Runs under TensorFlow 2 with Keras 3. The graph of such a model restores copies of its variables; the objects restore the variables.
"""

import os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

HERE = Path(__file__).resolve().parent / "keras3"

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input([4], name="x"), keras.layers.Dense(3, "relu"), keras.layers.BatchNormalization()])
x = np.random.RandomState(0).randn(5, 4).astype(np.float32)
tf.saved_model.save(model, str(HERE))
np.savez(HERE / "values.npz", x=x, y=model(x, training=False))
