"""Writes a 1.x SavedModel: python one.py FOLDER. `one_tf1` was written by TensorFlow 1.15, `one_tf2` by 2.21.

y = x @ [[1], [2]], the ids of words in a vocabulary that is an asset, and a local variable that the main op sets to 5.
"""

import os
import shutil
import sys
import tempfile

import tensorflow as tensorflow

tf = tensorflow.compat.v1
tf.disable_v2_behavior()


def write(folder):
    with tempfile.TemporaryDirectory() as temporary:
        vocabulary = os.path.join(temporary, "words.txt")
        with open(vocabulary, "w") as file:
            file.write("one\ntwo\n")
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [None, 2], name="x")
            weight = tf.get_variable("w", initializer=[[1.0], [2.0]])
            y = tf.matmul(x, weight, name="y")
            words = tf.placeholder(tf.string, [None], name="words")
            initializer = tf.lookup.TextFileInitializer(vocabulary, tf.string, -2, tf.int64, -1)
            ids = tf.identity(tf.lookup.StaticHashTable(initializer, -1).lookup(words), name="ids")
            local = tf.get_variable("local", initializer=0, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
            main = tf.group(tf.tables_initializer(), tf.assign(local, 5), name="main")
            session.run(tf.global_variables_initializer())
            builder = tf.saved_model.Builder(folder)
            builder.add_meta_graph_and_variables(
                session,
                ["serve"],
                {
                    "serving_default": tf.saved_model.predict_signature_def({"x": x}, {"y": y}),
                    "ids": tf.saved_model.predict_signature_def({"words": words}, {"ids": ids}),
                },
                assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
                main_op=main,
            )
            builder.save()


if __name__ == "__main__":
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    write(sys.argv[1])
