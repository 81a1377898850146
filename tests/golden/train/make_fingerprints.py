"""Writes what TensorFlow's sdca_fprint gives for strings of many lengths: python make_fingerprints.py OUTPUT.json."""

import json
import sys

import tensorflow.compat.v1 as tf

LENGTHS = (
    0,
    1,
    3,
    4,
    7,
    8,
    9,
    15,
    16,
    17,
    24,
    32,
    33,
    63,
    64,
    127,
    128,
    129,
    143,
    144,
    145,
    160,
    255,
    256,
    272,
    400,
    500,
)

tf.disable_v2_behavior()
strings = [bytes((size * 7 + 3 * j * j + j) % 256 for j in range(size)) for size in LENGTHS]
with tf.Session() as session, open(sys.argv[1], "w") as sink:
    prints = session.run(tf.train.sdca_fprint(strings)).tolist()
    json.dump([[text.hex(), *words] for text, words in zip(strings, prints)], sink, indent=0)
