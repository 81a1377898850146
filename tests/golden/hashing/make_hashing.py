"""Write hashing.npz: hashes by real TensorFlow 2.21 of strings that the test makes again from the same seed.

Run with a Python that has tensorflow-cpu 2.21:  python make_hashing.py
"""

import os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

generator = np.random.RandomState(1)
strings = [generator.bytes(size) for size in range(301) for _ in range(10)]
largest = 2**63 - 1
key = [123, 2**40 + 5]

letters = tf.sparse.from_dense([[b"a", b"bb"]])
words = tf.sparse.from_dense([[b"x", b"yy", b"zzz"]])
numbers = tf.sparse.from_dense(np.int64([[5, -6]]))


def crossed(columns, **options):
    return tf.sparse.cross_hashed(columns, **options).values.numpy()


np.savez_compressed(
    Path(__file__).parent / "hashing.npz",
    fast=tf.strings.to_hash_bucket_fast(strings, largest).numpy(),
    strong=tf.strings.to_hash_bucket_strong(strings, largest, key).numpy(),
    old=tf.strings.to_hash_bucket(strings, largest).numpy(),
    few=tf.strings.to_hash_bucket_fast(strings[:500], 7).numpy(),
    fingerprint=tf.fingerprint(tf.constant(strings[:500])).numpy(),
    rows_of_numbers=tf.fingerprint(np.arange(12, dtype=np.int32).reshape(2, 3, 2)).numpy(),
    rows_of_strings=tf.fingerprint(tf.constant([[b"a", b"bb"], [b"", b"ccc"]])).numpy(),
    cross_all=crossed([letters, words], num_buckets=0),
    cross_keyed=crossed([letters, words], num_buckets=1000, hash_key=77),
    cross_numbers=crossed([letters, numbers, words], num_buckets=10**6),
    cross_single=crossed([letters], num_buckets=0),
)
