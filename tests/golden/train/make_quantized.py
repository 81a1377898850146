"""Writes what TensorFlow 1.15's do_quantize_training_on_graphdef makes of a graph: python make_quantized.py OUTPUT.json."""

import base64
import json
import sys

import tensorflow as tf

tf = tf.compat.v1
with tf.Graph().as_default() as graph:
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    y = tf.nn.relu(tf.matmul(x, w, name="first"), name="relu")
    z = tf.nn.relu6(tf.matmul(y, tf.tanh(w, name="tanh"), name="second"), name="relu6")
    tf.gradients(tf.matmul(z, tf.constant([[1.0], [2.0]]), name="third"), w)
given = graph.as_graph_def()
made = tf.train.do_quantize_training_on_graphdef(given, 6)
nodes = sorted(
    [
        node.name,
        node.op,
        list(node.input),
        {k: base64.b64encode(v.SerializeToString()).decode() for k, v in node.attr.items()},
    ]
    for node in made.node
)
with open(sys.argv[1], "w") as sink:
    json.dump({"given": base64.b64encode(given.SerializeToString()).decode(), "nodes": nodes}, sink, indent=0)
