"""Writes the GraphDefs and values of this folder. Run with TensorFlow 2: python make.py FOLDER.

Each program becomes NAME.pb (a graph whose control flow is in functions) and an entry of values.json.
"""

import json
import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.enable_control_flow_v2()


def cond(x):
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: tf.sin(x))
    return [y, tf.gradients(y, x)[0]]


def loop(x):
    _, y = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, tf.tanh(s * x) + x), [0, x])
    return [y, tf.gradients(y, x)[0]]


def switch(x):
    return [tf.switch_case(tf.cast(x[0], tf.int32), [lambda: x, lambda: x * 2.0], default=lambda: -x)]


def call(x):
    @tf.function
    def inner(a, b):
        return a * b, a - b

    y, z = inner(x, x + 1.0)
    return [y, z, tf.gradients(y, x)[0]]


def array(x):
    y = tf.map_fn(lambda v: v * v, x)
    return [y, tf.gradients(y, x)[0]]


def symbolic(x):
    """A function of 1.x, whose gradient is an op that names it."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.int32, tf.float32)
    def inner(a, count, b):
        return a * b + tf.sin(a), count + 1, a - b

    y, _, z = inner(x, 3, x + 1.0)
    return [y, z, tf.gradients(y + 2.0 * z, x)[0]]


def branch_in_map(x):
    y = tf.map_fn(lambda v: tf.cond(v > 0, lambda: v * v * tf.reduce_sum(x), lambda: tf.sin(v)), x)
    return [y, tf.gradients(y, x)[0]]


def branches_in_loops(x):
    def inner(j, z):
        return j + 1, z * tf.cos(x) + tf.cond(j > 0, lambda: z * z, lambda: x)

    def outer(i, s):
        def looped():
            return tf.while_loop(lambda j, z: j < 2, inner, [0, s])[1]

        return i + 1, tf.cond(tf.equal(i, 1), looped, lambda: s * x)

    _, y = tf.while_loop(lambda i, s: i < 3, outer, [0, x])
    return [y, tf.gradients(y, x)[0]]


PROGRAMS = [cond, loop, switch, call, array, symbolic, branch_in_map, branches_in_loops]
TWICE = [cond, loop, branch_in_map, branches_in_loops]  # those whose second derivatives are recorded, not written
FEEDS = [[1.5, 2.0, 0.5], [-1.0, 0.25, -2.0], [0.5, 4.0, 1.0]]


def main(folder):
    values = {}
    for program in PROGRAMS:
        with tf.Graph().as_default() as graph, tf.Session() as session:
            x = tf.placeholder(tf.float32, [3], name="x")
            fetches = program(x)
            with open(os.path.join(folder, program.__name__ + ".pb"), "wb") as f:
                f.write(graph.as_graph_def().SerializeToString())
            second = tf.gradients(fetches[1], x) if program in TWICE else []
            runs = [[np.asarray(f).tolist() for f in session.run(fetches + second, {x: feed})] for feed in FEEDS]
            entry = {"fetches": [f.name for f in fetches], "values": [run[: len(fetches)] for run in runs]}
            values[program.__name__] = dict(entry, second=[run[-1] for run in runs]) if second else entry
    with open(os.path.join(folder, "values.json"), "w") as f:
        json.dump({"feeds": FEEDS, "programs": values}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
