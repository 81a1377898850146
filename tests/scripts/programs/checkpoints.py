"""Savers of parts, imported meta graphs, readers of checkpoints."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.contrib.framework.python.framework import checkpoint_utils
from tensorflow.python import pywrap_tensorflow
from tensorflow.python.tools.inspect_checkpoint import print_tensors_in_checkpoint_file

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

tf.set_random_seed(0)
with tf.variable_scope("net"):
    w1 = tf.get_variable("w1", initializer=np.arange(6, dtype=np.float32).reshape(2, 3))
    b1 = tf.get_variable("b1", [3], initializer=tf.constant_initializer(0.5))
v2 = tf.Variable(7, name="counter", trainable=False)
x = tf.placeholder(tf.float32, [None, 2], name="x")
y = tf.add(tf.matmul(x, w1), b1, name="y")
tf.add_to_collection("outputs", y)
saver = tf.train.Saver({"renamed/w": w1, "b": b1})
full = tf.train.Saver(max_to_keep=2, keep_checkpoint_every_n_hours=10000, pad_step_number=True)
full.export_meta_graph("only.meta", collection_list=["outputs"])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(saver.save(sess, "part/p.ckpt", write_meta_graph=False))
    for i in range(4):
        sess.run(tf.assign_add(v2, 1))
        print(full.save(sess, "./full/model", global_step=i))
    print(full.last_checkpoints)
print(sorted(os.listdir("part")), sorted(os.listdir("full")))
print(open("full/checkpoint").read())
reader = pywrap_tensorflow.NewCheckpointReader("full/model-00000003")
m = reader.get_variable_to_shape_map()
for k in sorted(m):
    print(k, m[k], reader.get_variable_to_dtype_map()[k], reader.get_tensor(k).tolist())
print(
    tf.train.list_variables("part/p.ckpt"),
    tf.train.load_variable("part/p.ckpt", "b").tolist(),
    checkpoint_utils.list_variables("part"),
)
print_tensors_in_checkpoint_file("full/model-00000003", tensor_name="", all_tensors=True, all_tensor_names=False)
print_tensors_in_checkpoint_file("full/model-00000003", tensor_name="net/b1", all_tensors=False)
tf.reset_default_graph()
imported = tf.train.import_meta_graph("full/model-00000003.meta", clear_devices=True)
with tf.Session() as sess:
    imported.restore(sess, tf.train.latest_checkpoint("full"))
    g = tf.get_default_graph()
    print(
        sess.run(tf.get_collection("outputs")[0], {g.get_tensor_by_name("x:0"): [[1.0, 2.0]]}),
        [v.name for v in tf.global_variables()],
    )
    logits = tf.layers.dense(
        tf.stop_gradient(g.get_tensor_by_name("y:0")), 2, name="head", kernel_initializer=tf.ones_initializer()
    )
    uninit = [v for v in tf.global_variables() if not sess.run(tf.is_variable_initialized(v))]
    print([v.name for v in uninit], sess.run(tf.report_uninitialized_variables()).tolist())
    sess.run(tf.variables_initializer(uninit))
    print(sess.run(logits, {"x:0": [[1.0, 0.0]]}))
    imported.recover_last_checkpoints(["full/model-00000002"])
    for name in ("missing", "full/none"):
        try:
            imported.restore(sess, name)
        except (tf.errors.NotFoundError, ValueError) as e:
            print(type(e).__name__, str(e).splitlines()[0][:90])
tf.reset_default_graph()
with tf.variable_scope("net"):
    w = tf.get_variable("w1", [2, 3])
    other = tf.get_variable("extra", [2], initializer=tf.zeros_initializer())
with tf.Session() as sess:
    try:
        tf.train.Saver().restore(sess, "full/model-00000003")
    except tf.errors.NotFoundError as e:
        print("NotFound", "net/extra" in str(e))
    avail = dict(tf.train.list_variables("full/model-00000003"))
    restore = [v for v in tf.global_variables() if v.op.name in avail and avail[v.op.name] == v.shape.as_list()]
    sess.run(tf.global_variables_initializer())
    tf.train.Saver(restore).restore(sess, "full/model-00000003")
    print(sess.run(w).tolist())
    init_op, feed = tf.contrib.framework.assign_from_checkpoint("full/model-00000003", {"net/w1": w})
    sess.run(init_op, feed)

    os.makedirs("sh")
    os.makedirs("v1")
    tf.train.Saver(sharded=True, name="mysaver").save(sess, "sh/m")
    try:
        tf.train.Saver([]).save(sess, "x")
    except ValueError as e:
        print(e)
    tf.train.Saver([w], write_version=tf.train.SaverDef.V1).save(sess, "v1/m")
print(sorted(os.listdir("sh")), sorted(os.listdir("v1")), tf.train.checkpoint_exists("sh/m"))
