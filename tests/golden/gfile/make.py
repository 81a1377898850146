"""Writes what TensorFlow's `gfile` answers to every case: python make.py OUTPUT.json, where TensorFlow is installed."""

import json
import sys

import tensorflow.compat.v1 as tf
from cases import outcomes

with open(sys.argv[1], "w") as sink:
    json.dump(outcomes(tf.io.gfile, tf.gfile), sink, indent=0)
    sink.write("\n")
