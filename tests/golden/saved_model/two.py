"""Writes a SavedModel of objects: python two.py FOLDER. `two_tf2` was written by TensorFlow 2.21.

y = x @ [[1], [2]] + 3, and the ids of words in a vocabulary that is an asset.
"""

import os
import sys
import tempfile

import tensorflow as tf


class Model(tf.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.weight = tf.Variable([[1.0], [2.0]], name="w")
        self.items = [tf.Variable(3.0)]
        initializer = tf.lookup.TextFileInitializer(vocabulary, tf.string, -2, tf.int64, -1)
        self.table = tf.lookup.StaticHashTable(initializer, -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def compute(self, x):
        return {"y": tf.matmul(x, self.weight) + self.items[0]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def ids(self, words):
        return self.table.lookup(words)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, "words.txt")
        with open(path, "w") as file:
            file.write("one\ntwo\n")
        model = Model(path)
        tf.saved_model.save(model, sys.argv[1], signatures={"serving_default": model.compute, "ids": model.ids})
