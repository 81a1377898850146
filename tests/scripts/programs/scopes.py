"""Variable scopes: getters, reuse, partitioners, templates, names."""

import numpy as np
import tensorflow as tf

calls = []


def getter(getter, name, *args, **kwargs):
    calls.append(name)
    v = getter(name, *args, **kwargs)
    return tf.identity(v, name=name.replace("/", "_") + "_half") if name.endswith("w") else v


def leaky(x, alpha=0.2):
    with tf.name_scope(None, "leaky", [x]) as s:
        return tf.maximum(x, alpha * x, name=s)


with tf.variable_scope(
    "a", custom_getter=getter, regularizer=tf.contrib.layers.l2_regularizer(0.1), initializer=tf.ones_initializer()
) as sa:
    w = tf.get_variable("w", [2, 2])
    b = tf.get_variable("b", [2], regularizer=None, initializer=tf.zeros_initializer())
    with tf.variable_scope("inner", reuse=tf.AUTO_REUSE):
        c1, c2 = tf.get_variable("c", []), tf.get_variable("c", [])
        print(c1 is c2, tf.get_variable_scope().name, tf.get_variable_scope().reuse)
with tf.variable_scope(sa, reuse=True):
    print(tf.get_variable("b", [2]).name, tf.get_variable_scope().original_name_scope)
with tf.variable_scope(sa, auxiliary_name_scope=False):
    print(tf.constant(1, name="k").name)
for bad in (lambda: tf.get_variable("a/b", [2]), lambda: tf.get_variable("z", [2])):
    try:
        with tf.variable_scope("", reuse=None if bad.__code__.co_consts[1] == "a/b" else True):
            bad()
    except ValueError as e:
        print(str(e).split(".")[0][:80])
with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(3, axis=0)):
    pv = tf.get_variable("emb", [7, 2], initializer=tf.constant_initializer(2.0))
    print([v.name for v in pv], pv.shape, pv._get_partitions() if hasattr(pv, "_get_partitions") else "")
emb = tf.nn.embedding_lookup(pv, [0, 3, 6], partition_strategy="div")
template = tf.make_template("tmpl", lambda x: x * tf.get_variable("s", [], initializer=tf.constant_initializer(3.0)))
t1, t2 = template(1.0), template(2.0)
with tf.name_scope("outer"):
    with tf.variable_scope("v") as v1:
        n1 = tf.get_variable("x", [1])
        o1 = tf.add(n1, 1.0)
    with tf.variable_scope("v", reuse=True):
        o2 = tf.add(tf.get_variable("x"), 1.0)
    with tf.name_scope("outer2/"):
        o3 = tf.constant(0.0)
print(n1.name, o1.name, o2.name, o3.name, t2.name, leaky(o1).name, [v.name for v in tf.trainable_variables()])
print([l.name for l in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)], calls)
with tf.variable_scope(None, default_name="blk"):
    d1 = tf.layers.dense(o1[None], 2)
with tf.variable_scope(None, default_name="blk"):
    d2 = tf.layers.dense(o1[None], 2, name="fc")
l1 = tf.layers.Dense(3, name="shared", kernel_initializer=tf.initializers.identity())
y1, y2 = l1(d1), l1(d2)
print(d1.name, d2.name, y1.name, y2.name, [v.name for v in l1.trainable_weights], l1.get_weights if False else "")
with tf.variable_scope("r", use_resource=True):
    rv = tf.get_variable("rv", [2], dtype=tf.float64, initializer=tf.initializers.random_uniform(seed=1))
    print(type(rv).__name__, rv.dtype, rv.handle.dtype)
print(w.name, w.op.type, b.op.type, tf.contrib.framework.get_variables("a"), tf.model_variables())
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(*sess.run([emb, t1, t2, tf.losses.get_regularization_loss(), rv]))
