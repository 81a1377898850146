"""Proximal policy optimization with discrete and with continuous actions."""

import numpy as np
import tensorflow as tf


class DiagGaussianPd(object):
    def __init__(self, flat):
        mean, logstd = tf.split(axis=len(flat.shape) - 1, num_or_size_splits=2, value=flat)
        self.mean, self.logstd, self.std = mean, logstd, tf.exp(logstd)

    def neglogp(self, x):
        return (
            0.5 * tf.reduce_sum(tf.square((x - self.mean) / self.std), axis=-1)
            + 0.5 * np.log(2.0 * np.pi) * tf.to_float(tf.shape(x)[-1])
            + tf.reduce_sum(self.logstd, axis=-1)
        )

    def entropy(self):
        return tf.reduce_sum(self.logstd + 0.5 * np.log(2.0 * np.pi * np.e), axis=-1)

    def sample(self):
        return self.mean + self.std * tf.random_normal(tf.shape(self.mean), seed=3)


class CategoricalPd(object):
    def __init__(self, logits):
        self.logits = logits

    def neglogp(self, x):
        one_hot = tf.one_hot(x, self.logits.get_shape().as_list()[-1])
        return tf.nn.softmax_cross_entropy_with_logits_v2(logits=self.logits, labels=one_hot)

    def entropy(self):
        a0 = self.logits - tf.reduce_max(self.logits, axis=-1, keepdims=True)
        ea0 = tf.exp(a0)
        z0 = tf.reduce_sum(ea0, axis=-1, keepdims=True)
        p0 = ea0 / z0
        return tf.reduce_sum(p0 * (tf.log(z0) - a0), axis=-1)

    def sample(self):
        u = tf.random_uniform(tf.shape(self.logits), dtype=self.logits.dtype, seed=4)
        return tf.argmax(self.logits - tf.log(-tf.log(u)), axis=-1)


def ortho_init(scale=1.0):
    def _ortho_init(shape, dtype, partition_info=None):
        shape = tuple(shape)
        flat_shape = shape
        a = np.random.RandomState(7).normal(0.0, 1.0, flat_shape)
        u = v = a
        q = a
        return (scale * q.reshape(shape)[: shape[0], : shape[1]]).astype(np.float32)

    return _ortho_init


def fc(x, scope, nh, init_scale=1.0, init_bias=0.0):
    with tf.variable_scope(scope):
        nin = x.get_shape()[1].value
        w = tf.get_variable("w", [nin, nh], initializer=ortho_init(init_scale))
        b = tf.get_variable("b", [nh], initializer=tf.constant_initializer(init_bias))
        return tf.matmul(x, w) + b


class Model(object):
    def __init__(self, ob, nact, sess, discrete):
        self.sess = sess
        self.X = tf.placeholder(tf.float32, [None, ob], name="Ob")
        with tf.variable_scope("ppo2_model", reuse=tf.AUTO_REUSE):
            h = tf.tanh(fc(self.X, "pi_fc1", 16, np.sqrt(2)))
            pi = fc(h, "pi", nact, 0.01)
            self.vf = fc(h, "vf", 1)[:, 0]
            if discrete:
                self.pd = CategoricalPd(pi)
                self.A = tf.placeholder(tf.int32, [None])
            else:
                logstd = tf.get_variable(name="pi/logstd", shape=[1, nact], initializer=tf.zeros_initializer())
                self.pd = DiagGaussianPd(tf.concat([pi, pi * 0.0 + logstd], axis=1))
                self.A = tf.placeholder(tf.float32, [None, nact])
        self.a = self.pd.sample()
        self.ADV, self.R, self.OLDNEG, self.OLDV = (tf.placeholder(tf.float32, [None]) for _ in range(4))
        self.LR, self.CLIP = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        neglogpac = self.pd.neglogp(self.A)
        self.neglogp0 = self.pd.neglogp(self.a)
        entropy = tf.reduce_mean(self.pd.entropy())
        vclip = self.OLDV + tf.clip_by_value(self.vf - self.OLDV, -self.CLIP, self.CLIP)
        vf_loss = 0.5 * tf.reduce_mean(tf.maximum(tf.square(self.vf - self.R), tf.square(vclip - self.R)))
        ratio = tf.exp(self.OLDNEG - neglogpac)
        pg_loss = tf.reduce_mean(
            tf.maximum(-self.ADV * ratio, -self.ADV * tf.clip_by_value(ratio, 1.0 - self.CLIP, 1.0 + self.CLIP))
        )
        approxkl = 0.5 * tf.reduce_mean(tf.square(neglogpac - self.OLDNEG))
        clipfrac = tf.reduce_mean(tf.to_float(tf.greater(tf.abs(ratio - 1.0), self.CLIP)))
        loss = pg_loss - entropy * 0.01 + vf_loss * 0.5
        params = tf.trainable_variables("ppo2_model")
        trainer = tf.train.AdamOptimizer(learning_rate=self.LR, epsilon=1e-5)
        gv = trainer.compute_gradients(loss, params)
        grads, var = zip(*gv)
        grads, _ = tf.clip_by_global_norm(grads, 0.5)
        self._train = trainer.apply_gradients(list(zip(grads, var)))
        self.stats = [pg_loss, vf_loss, entropy, approxkl, clipfrac]
        sess.run(tf.global_variables_initializer())


for discrete in (True, False):
    tf.reset_default_graph()
    rng = np.random.RandomState(0)
    with tf.Session() as sess:
        m = Model(5, 3, sess, discrete)
        print([v.name for v in tf.trainable_variables()])
        for u in range(4):
            obs = rng.randn(32, 5)
            a, v, neg = sess.run([m.a, m.vf, m.neglogp0], {m.X: obs})
            ret = obs[:, 0] + (a == 1) if discrete else obs[:, 0] - np.square(a).sum(1)
            adv = ret - v
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            for _ in range(3):
                st = sess.run(
                    m.stats + [m._train],
                    {m.X: obs, m.A: a, m.ADV: adv, m.R: ret, m.LR: 3e-3, m.CLIP: 0.2, m.OLDNEG: neg, m.OLDV: v},
                )[:-1]
            print(" ".join("%.5f" % s for s in st))
