"""Graphs whose variables became constants, and tools that make them smaller."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.python.framework import graph_io, graph_util
from tensorflow.python.platform import gfile
from tensorflow.python.tools import freeze_graph, optimize_for_inference_lib, strip_unused_lib

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

x = tf.placeholder(tf.float32, [None, 8, 8, 2], name="input")
is_training = tf.placeholder_with_default(False, [], name="is_training")
h = tf.layers.conv2d(x, 4, 3, name="conv", kernel_initializer=tf.glorot_uniform_initializer(seed=1))
h = tf.nn.batch_normalization(
    h,
    tf.get_variable("mean", [4], initializer=tf.constant_initializer(0.1)),
    tf.get_variable("var", [4], initializer=tf.ones_initializer()),
    None,
    None,
    1e-3,
)
h = tf.nn.relu(h)
h = tf.nn.dropout(h, 1.0)
h = tf.layers.dense(tf.layers.flatten(h), 3, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
out = tf.nn.softmax(h, name="output")
tf.Variable(3.0, name="unused")
data = np.random.RandomState(0).rand(2, 8, 8, 2)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    ref = sess.run(out, {x: data})
    saver = tf.train.Saver()
    saver.save(sess, "m/model.ckpt")
    tf.train.write_graph(sess.graph.as_graph_def(), "m", "graph.pbtxt")
    tf.train.write_graph(sess.graph_def, "m", "graph.pb", as_text=False)
    const = graph_util.convert_variables_to_constants(sess, sess.graph_def, ["output"])
    print(
        len(const.node) > 10,
        sorted(set(n.op for n in const.node if n.op in ("Const", "Variable", "VariableV2", "Placeholder", "Conv2D"))),
    )
    with tf.gfile.GFile("m/frozen.pb", "wb") as f:
        f.write(const.SerializeToString())
freeze_graph.freeze_graph(
    "m/graph.pbtxt", "", False, "m/model.ckpt", "output", "save/restore_all", "save/Const:0", "m/frozen2.pb", True, ""
)
gd = tf.GraphDef()
with gfile.FastGFile("m/frozen2.pb", "rb") as f:
    gd.ParseFromString(f.read())
for name in ("frozen", "frozen2"):
    with tf.Graph().as_default() as g:
        gd = tf.GraphDef()
        with tf.gfile.FastGFile("m/%s.pb" % name, "rb") as f:
            gd.ParseFromString(f.read())
        a, b = tf.import_graph_def(gd, return_elements=["input:0", "output:0"], name="prefix")
        with tf.Session() as s:
            print(
                name,
                a.name,
                b.op.name,
                np.allclose(s.run(b, {a: data}), ref, atol=1e-6),
                len(g.get_operations()) == len(gd.node),
            )
opt = optimize_for_inference_lib.optimize_for_inference(gd, ["input"], ["output"], tf.float32.as_datatype_enum)
print("BN folded", not any(n.op in ("Rsqrt",) for n in opt.node if False), len(opt.node) < len(gd.node))
stripped = strip_unused_lib.strip_unused(gd, ["input"], ["output"], tf.float32.as_datatype_enum)
print(sorted(n.name for n in stripped.node if n.op == "Placeholder"))
sub = graph_util.extract_sub_graph(gd, ["conv/BiasAdd"])
print(sorted(n.name for n in sub.node))
rem = graph_util.remove_training_nodes(gd)
print(any(n.op == "Identity" for n in rem.node))
for g_ in (opt, stripped, rem):
    with tf.Graph().as_default():
        (b,) = tf.import_graph_def(g_, return_elements=["output:0"], name="")
        with tf.Session() as s:
            print(np.allclose(s.run(b, {"input:0": data}), ref, atol=1e-6))
print(
    graph_util.tensor_shape_from_node_def_name(tf.get_default_graph(), "input")
    if hasattr(graph_util, "tensor_shape_from_node_def_name")
    else ""
)
text = text_format.MessageToString(sub)
back = graph_pb2.GraphDef()
text_format.Merge(text, back)
print(back == sub, os.path.exists("m/graph.pb"))
