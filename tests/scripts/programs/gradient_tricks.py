"""Overridden, reversed, accumulated and second gradients."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops


@tf.RegisterGradient("QuantGrad")
def _quant(op, grad):
    return tf.clip_by_value(grad, -0.5, 0.5)


@ops.RegisterGradient("GuidedRelu")
def _guided(op, grad):
    return tf.where(0.0 < grad, tf.nn.relu(grad) * tf.cast(op.outputs[0] > 0, tf.float32), tf.zeros(tf.shape(grad)))


class FlipGradientBuilder(object):
    def __init__(self):
        self.num_calls = 0

    def __call__(self, x, l=1.0):
        grad_name = "FlipGradient%d" % self.num_calls

        @ops.RegisterGradient(grad_name)
        def _flip(op, grad):
            return [tf.negative(grad) * l]

        g = tf.get_default_graph()
        with g.gradient_override_map({"Identity": grad_name}):
            y = tf.identity(x)
        self.num_calls += 1
        return y


flip = FlipGradientBuilder()


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


def py_func(func, inp, Tout, name=None, grad=None):
    rnd = "PyFuncGrad%d" % np.random.RandomState(0).randint(0, 1e8)
    tf.RegisterGradient(rnd)(grad)
    g = tf.get_default_graph()
    with g.gradient_override_map({"PyFunc": rnd, "PyFuncStateless": rnd}):
        return tf.py_func(func, inp, Tout, stateful=True, name=name)


x = tf.constant([-1.0, 0.5, 2.0])
g = tf.get_default_graph()
with g.gradient_override_map({"Round": "QuantGrad", "Relu": "GuidedRelu"}):
    r = tf.round(x * 3)
    h = tf.nn.relu(x)
f = flip(x, 2.0)
sq = py_func(lambda v: np.square(v), [x], tf.float32, "MySquare", lambda op, gr: gr * 20)
w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
y = tf.reduce_sum(tf.matmul(w, w) ** 2)
hess = tf.hessians(tf.reduce_sum(x**3), x)[0]
g1 = tf.gradients(y, w)[0]
hv = tf.gradients(tf.reduce_sum(g1 * tf.stop_gradient(w)), w)[0]
a = tf.constant(2.0)
b = a * 3
grads = {
    "quant": tf.gradients(r * 5, x)[0],
    "guided": tf.gradients(h * [1.0, -1.0, 2.0], x)[0],
    "flip": tf.gradients(f**2, x)[0],
    "custom": tf.gradients(log1pexp(tf.constant(100.0)), [x])[0] if False else log1pexp(x),
    "py": tf.gradients(sq, x)[0],
    "hess": hess,
    "hv": hv,
    "stop": tf.gradients(a * b, [a, b], stop_gradients=[a, b]),
    "ys": tf.gradients([x * 2, x**2], x, grad_ys=[tf.ones(3), tf.ones(3) * 3])[0],
    "agg": tf.gradients(tf.add_n([x, x * x]), x, aggregation_method=tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N)[0],
    "cond": tf.gradients(tf.cond(x[0] > 0, lambda: x * 2, lambda: x * 5), x)[0],
    "while": tf.gradients(tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * v), [0, x])[1], x)[0],
    "sparse": tf.gradients(tf.gather(w, [0, 0]), w)[0],
    "scan": tf.gradients(tf.scan(lambda s, e: s * e, x), x)[0],
    "map": tf.gradients(tf.map_fn(lambda e: e**3, x), x)[0],
    "none": tf.gradients(x, [w], unconnected_gradients=tf.UnconnectedGradients.ZERO)[0],
}
print(tf.gradients(x, w), type(grads["sparse"]).__name__)
# Gradient penalty
xi = tf.placeholder(tf.float32, [None, 3])
d = tf.layers.dense(tf.tanh(xi), 1, kernel_initializer=tf.glorot_uniform_initializer(seed=3), name="d")
gp = tf.reduce_mean((tf.norm(tf.gradients(d, xi)[0], axis=1) - 1) ** 2)
gpg = tf.gradients(gp, tf.trainable_variables("d"))
# accumulation
acc = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for v in tf.trainable_variables("d")]
opt = tf.train.GradientDescentOptimizer(0.1)
gv = opt.compute_gradients(tf.reduce_mean(d), tf.trainable_variables("d"))
zero = [v.assign(tf.zeros_like(v)) for v in acc]
accum = [a_.assign_add(g_[0]) for a_, g_ in zip(acc, gv)]
step = opt.apply_gradients([(acc[i] / 2, g_[1]) for i, g_ in enumerate(gv)])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for k in sorted(grads):
        print(k, np.array(sess.run(grads[k])).tolist() if k != "sparse" else "")
    feed = {xi: np.arange(6).reshape(2, 3) / 5.0}
    print(
        np.round(sess.run(gp, feed), 5), [None if v is None else np.round(sess.run(v, feed), 5).tolist() for v in gpg]
    )
    sess.run(zero)
    sess.run(accum, feed)
    sess.run(accum, feed)
    sess.run(step)
    print(np.round(sess.run(tf.trainable_variables("d")[0]), 5).tolist())
