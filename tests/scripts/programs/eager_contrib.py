"""An eager program with tf.contrib.eager."""

import os
import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
tfe = tf.contrib.eager
tf.enable_eager_execution()
tf.set_random_seed(1)
print(tf.executing_eagerly())
x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
print(x, x.numpy().sum(), tf.matmul(x, x).numpy().tolist())
w = tfe.Variable(2.0, name="w")
b = tfe.Variable(0.5, name="b")


def loss_fn(xs, ys):
    return tf.reduce_mean(tf.square(xs * w + b - ys))


grad_fn = tfe.implicit_gradients(loss_fn)
opt = tf.train.GradientDescentOptimizer(0.05)
xs, ys = tf.constant([1.0, 2.0, 3.0]), tf.constant([3.0, 5.0, 7.0])
for i in range(4):
    opt.apply_gradients(grad_fn(xs, ys))
    print("%.4f %.4f %.4f" % (loss_fn(xs, ys).numpy(), w.numpy(), b.numpy()))
f = tfe.gradients_function(lambda a, c: a * a * c, params=[0, 1])
print(["%.1f" % g.numpy() for g in f(3.0, 4.0)])
vg = tfe.value_and_gradients_function(lambda a: a**3)
print(vg(2.0)[0].numpy(), ["%.1f" % t.numpy() for t in vg(2.0)[1]])
ivg = tfe.implicit_value_and_gradients(loss_fn)
v, gvs = ivg(xs, ys)
print("%.4f" % v.numpy(), [var.name for _, var in gvs])
with tf.GradientTape(persistent=True) as tape:
    z = w * w
    u = z * 3
print(tape.gradient(u, w).numpy(), tape.gradient(z, [w])[0].numpy())


class Model(tf.keras.Model):
    def __init__(self):
        super(Model, self).__init__()
        self.d1 = tf.keras.layers.Dense(4, activation="relu", kernel_initializer=tf.constant_initializer(0.1))
        self.d2 = tf.layers.Dense(2, kernel_initializer=tf.constant_initializer(0.2))

    def call(self, inputs):
        return self.d2(self.d1(inputs))


m = Model()
ds = tf.data.Dataset.from_tensor_slices((np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1]))).batch(2)
acc, mean = tf.keras.metrics.Accuracy(), tf.keras.metrics.Mean()
opt = tf.train.AdamOptimizer(0.1)
step = tf.train.get_or_create_global_step()
for epoch in range(2):
    for batch, (im, la) in enumerate(tfe.Iterator(ds)):
        with tf.GradientTape() as tape:
            logits = m(im)
            loss = tf.losses.sparse_softmax_cross_entropy(labels=la, logits=logits)
        opt.apply_gradients(zip(tape.gradient(loss, m.variables), m.variables), global_step=step)
        mean.update_state(loss)
        acc.update_state(la, tf.argmax(logits, axis=1))
    print("%.4f %.4f" % (mean.result().numpy(), acc.result().numpy()), step.numpy())
ck = tfe.Checkpoint(model=m, optimizer=opt, step=step) if hasattr(tfe, "Checkpoint") else None
path = ck.save("./ck")
m.d2.kernel.assign_add(tf.ones_like(m.d2.kernel))
ck.restore(path)
print(np.round(m.d2.kernel.numpy()[0], 4).tolist(), path)


@tfe.defun
def fn(a):
    return a * 2 + 1


print(fn(tf.constant(3)).numpy(), tfe.py_func(lambda t: t + 1, [tf.constant(1.0)], tf.float32).numpy())
saver = tfe.Saver([w, b])
p = saver.save("./sv")
w.assign(9.0)
saver.restore(p)
print("%.4f" % w.numpy())
if tfe.executing_eagerly() if hasattr(tfe, "executing_eagerly") else True:
    print(tf.random_uniform([2], seed=3).numpy().shape)
