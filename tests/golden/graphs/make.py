"""Writes the GraphDefs and values of this folder. Run with TensorFlow 1.15: python make.py FOLDER.

Each program becomes NAME.pb (its graph, with 1.x control flow) and an entry of values.json: what to feed, what to fetch,
and the values that TensorFlow computed.
"""

import json
import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def cond(x):
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: (x * 2.0, tf.exp(x)), lambda: (x - 1.0, tf.sin(x)), name="branch")
    return [y[0], y[1], tf.gradients(y[1], x)[0]]


def nested_cond(x):
    def inside():
        return tf.cond(x[0] > 1.0, lambda: tf.square(x), lambda: tf.cond(x[1] > 3.0, lambda: -x, lambda: tf.tanh(x)))

    y = tf.cond(tf.reduce_sum(x) > 0, inside, lambda: x * 3.0)
    return [y, tf.gradients(y, x)[0]]


def case(x):
    y = tf.case([(x[0] > 2.0, lambda: x * 10.0), (x[0] > 1.0, lambda: x * 20.0)], default=lambda: x)
    return [y]


def same_predicate_twice(x):
    p = tf.reduce_sum(x) > 0
    y = tf.cond(p, lambda: x * 2.0, lambda: x)
    z = tf.cond(p, lambda: y + 1.0, lambda: tf.exp(y))
    return [z, tf.gradients(z, x)[0]]


def loop(x):
    _, y = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s * x + 1.0), [0, x], name="loop")
    return [y]


def loop_gradient(x):
    w = tf.Variable([0.5, 0.25, 2.0], name="w")
    _, y = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, tf.tanh(s * w) + x), [0, x])
    return [y, *tf.gradients(y, [x, w])]


def nested_loops(x):
    def outer(i, s):
        _, t = tf.while_loop(lambda j, t: j < i + 1, lambda j, t: (j + 1, t * tf.cos(x)), [0, s])
        return i + 1, t + x

    _, y = tf.while_loop(lambda i, s: i < 3, outer, [0, x])
    return [y, tf.gradients(y, x)[0]]


def cond_in_loop(x):
    def body(i, s):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: s * x, lambda: tf.sin(s) + x)

    _, y = tf.while_loop(lambda i, s: i < 5, body, [0, x])
    return [y, tf.gradients(y, x)[0]]


def loop_in_cond(x):
    def many():
        return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), [0, x])[1]

    y = tf.cond(tf.reduce_sum(x) > 0, many, lambda: -x)
    return [y, tf.gradients(y, x)[0]]


def tensor_array(x):
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    out = tf.TensorArray(tf.float32, size=3)
    _, out, _ = tf.while_loop(
        lambda i, out, s: i < 3,
        lambda i, out, s: (i + 1, out.write(i, s * ta.read(i)), s + ta.read(i) ** 2),
        [0, out, tf.constant(1.0)],
    )
    y = out.stack()
    return [y, tf.gradients(y, x)[0]]


def mapped(x):
    y = tf.map_fn(lambda v: v * v + 1.0, x)
    z = tf.scan(lambda a, v: a * v + y[0], x)
    return [y, z, tf.gradients(z, x)[0]]


def assign_in_cond(x):
    v = tf.Variable(1.0, name="v")
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.assign_add(v, 2.0), lambda: tf.assign(v, -1.0))
    with tf.control_dependencies([y]):
        return [tf.identity(y), v.read_value()]


def train_rnn(x):
    w = tf.Variable(np.linspace(-0.5, 0.5, 9).reshape(3, 3).astype("f"), name="w")
    _, h = tf.while_loop(lambda t, h: t < 3, lambda t, h: (t + 1, tf.tanh(tf.matmul(h, w) + x)), [0, tf.zeros([1, 3])])
    loss = tf.reduce_sum(h * h)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.control_dependencies([train]):
        return [tf.identity(loss), w.read_value()]


PROGRAMS = [
    cond, nested_cond, case, same_predicate_twice, loop, loop_gradient, nested_loops, cond_in_loop, loop_in_cond,
    tensor_array, mapped, assign_in_cond, train_rnn,
]  # fmt: skip
FEEDS = [[1.5, 2.0, 0.5], [-1.0, 0.25, -2.0], [0.5, 4.0, 1.0]]


def main(folder):
    values = {}
    for program in PROGRAMS:
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [3], name="x")
            fetches = program(x)
            has_variables = bool(tf.global_variables())
            init = tf.global_variables_initializer()
            runs = []
            with tf.Session() as session:
                for feed in FEEDS:
                    session.run(init)
                    found = session.run(fetches, {x: feed})
                    runs.append([np.asarray(f).tolist() for f in found])
            graph_def = graph.as_graph_def()
            for node in graph_def.node:
                node.ClearField("device")
                if "_output_shapes" in node.attr:
                    del node.attr["_output_shapes"]
            with open(os.path.join(folder, program.__name__ + ".pb"), "wb") as f:
                f.write(graph_def.SerializeToString())
            values[program.__name__] = {
                "fetches": [f.name for f in fetches],
                "init": init.name if has_variables else None,
                "values": runs,
            }
    with open(os.path.join(folder, "values.json"), "w") as f:
        json.dump({"feeds": FEEDS, "programs": values}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
