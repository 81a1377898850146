"""Q-learning with functions around Session.run, as in OpenAI's baselines."""

import collections
import functools
import multiprocessing
import os

import numpy as np
import tensorflow as tf
import tensorflow.contrib.layers as layers

_PLACEHOLDER_CACHE = {}
ALREADY_INITIALIZED = set()


def get_session():
    return tf.get_default_session()


def make_session(num_cpu=None):
    if num_cpu is None:
        num_cpu = int(os.getenv("RCALL_NUM_CPU", multiprocessing.cpu_count()))
    return tf.InteractiveSession(
        config=tf.ConfigProto(inter_op_parallelism_threads=num_cpu, intra_op_parallelism_threads=num_cpu)
    )


def initialize():
    new = set(tf.global_variables()) - ALREADY_INITIALIZED
    get_session().run(tf.variables_initializer(new))
    ALREADY_INITIALIZED.update(new)


def function(inputs, outputs, updates=None, givens=None):
    if isinstance(outputs, list):
        return _Function(inputs, outputs, updates, givens=givens)
    elif isinstance(outputs, (dict, collections.OrderedDict)):
        f = _Function(inputs, outputs.values(), updates, givens=givens)
        return lambda *a, **k: type(outputs)(zip(outputs.keys(), f(*a, **k)))
    f = _Function(inputs, [outputs], updates, givens=givens)
    return lambda *args, **kwargs: f(*args, **kwargs)[0]


class _Function(object):
    def __init__(self, inputs, outputs, updates, givens):
        self.inputs = inputs
        updates = updates or []
        self.update_group = tf.group(*updates)
        self.outputs_update = list(outputs) + [self.update_group]
        self.givens = {} if givens is None else givens

    def __call__(self, *args, **kwargs):
        feed_dict = {}
        for inpt, value in zip(self.inputs, args):
            feed_dict[inpt] = value
        for inpt in self.givens:
            feed_dict[inpt] = feed_dict.get(inpt, self.givens[inpt])
        for inpt in self.inputs:
            name = inpt.name.split(":")[0]
            if name in kwargs:
                feed_dict[inpt] = kwargs[name]
        return get_session().run(self.outputs_update, feed_dict=feed_dict)[:-1]


def scope_vars(scope, trainable_only=False):
    return tf.get_collection(
        tf.GraphKeys.TRAINABLE_VARIABLES if trainable_only else tf.GraphKeys.GLOBAL_VARIABLES,
        scope=scope if isinstance(scope, str) else scope.name,
    )


def absolute_scope_name(relative):
    return tf.get_variable_scope().name + "/" + relative


def huber_loss(x, delta=1.0):
    return tf.where(tf.abs(x) < delta, tf.square(x) * 0.5, delta * (tf.abs(x) - 0.5 * delta))


def q_func(inpt, num_actions, scope, reuse=False):
    with tf.variable_scope(scope, reuse=reuse):
        out = inpt
        out = layers.fully_connected(
            out, num_outputs=16, activation_fn=None, weights_initializer=layers.xavier_initializer(seed=1)
        )
        out = layers.layer_norm(out, center=True, scale=True)
        out = tf.nn.relu(out)
        adv = layers.fully_connected(
            out, num_outputs=num_actions, activation_fn=None, weights_initializer=layers.xavier_initializer(seed=2)
        )
        value = layers.fully_connected(
            out, num_outputs=1, activation_fn=None, weights_initializer=layers.xavier_initializer(seed=3)
        )
        return value + adv - tf.expand_dims(tf.reduce_mean(adv, 1), 1)


def build_act(n):
    with tf.variable_scope("deepq", reuse=None):
        obs = tf.placeholder(tf.float32, [None, 4], "observation")
        stochastic_ph = tf.placeholder(tf.bool, (), name="stochastic")
        update_eps_ph = tf.placeholder(tf.float32, (), name="update_eps")
        eps = tf.get_variable("eps", (), initializer=tf.constant_initializer(0))
        q = q_func(obs, n, scope="q_func")
        det = tf.argmax(q, axis=1)
        bs = tf.shape(obs)[0]
        rand = tf.random_uniform(tf.stack([bs]), minval=0, maxval=n, dtype=tf.int64, seed=5)
        choose = tf.random_uniform(tf.stack([bs]), minval=0, maxval=1, dtype=tf.float32, seed=6) < eps
        sto = tf.where(choose, rand, det)
        out = tf.cond(stochastic_ph, lambda: sto, lambda: det)
        upd = eps.assign(tf.cond(update_eps_ph >= 0, lambda: update_eps_ph, lambda: eps))
        _act = function(
            [obs, stochastic_ph, update_eps_ph], out, updates=[upd], givens={update_eps_ph: -1.0, stochastic_ph: True}
        )
        return lambda ob, stochastic=True, update_eps=-1: _act(ob, stochastic, update_eps)


def build_train(n, optimizer, clip=10, gamma=0.99):
    act = build_act(n)
    with tf.variable_scope("deepq", reuse=True):
        obs = tf.placeholder(tf.float32, [None, 4], "obs_t")
        a = tf.placeholder(tf.int32, [None], name="action")
        r = tf.placeholder(tf.float32, [None], name="reward")
        obs1 = tf.placeholder(tf.float32, [None, 4], "obs_tp1")
        done = tf.placeholder(tf.float32, [None], name="done")
        w = tf.placeholder(tf.float32, [None], name="weight")
        q_t = q_func(obs, n, scope="q_func", reuse=True)
        q_vars = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope=tf.get_variable_scope().name + "/q_func")
    with tf.variable_scope("deepq"):
        q1 = q_func(obs1, n, scope="target_q_func")
        t_vars = scope_vars(absolute_scope_name("target_q_func"))
        q1o = q_func(obs1, n, scope="q_func", reuse=True)
        best = tf.reduce_sum(q1 * tf.one_hot(tf.argmax(q1o, 1), n), 1)
        td = tf.reduce_sum(q_t * tf.one_hot(a, n), 1) - tf.stop_gradient(r + gamma * (1.0 - done) * best)
        err = tf.reduce_mean(w * huber_loss(td))
        grads = optimizer.compute_gradients(err, var_list=q_vars)
        for i, (g, v) in enumerate(grads):
            if g is not None:
                grads[i] = (tf.clip_by_norm(g, clip), v)
        opt = optimizer.apply_gradients(grads)
        expr = tf.group(
            *[b.assign(x) for x, b in zip(sorted(q_vars, key=lambda v: v.name), sorted(t_vars, key=lambda v: v.name))]
        )
        train = function([obs, a, r, obs1, done, w], td, updates=[opt])
        update_target = function([], [], updates=[expr])
        print([v.name for v in q_vars], len(t_vars))
        return act, train, update_target, {"q_values": function([obs], q_t)}


rng = np.random.RandomState(0)
with make_session(1).as_default():
    act, train, update_target, debug = build_train(3, tf.train.AdamOptimizer(learning_rate=5e-3))
    initialize()
    update_target()
    for t in range(20):
        o = rng.randn(8, 4)
        action = act(o, update_eps=1.0 - t / 20.0)
        td = train(o, action, o[:, 0], rng.randn(8, 4), (rng.rand(8) > 0.8).astype(float), np.ones(8))
        if t % 5 == 0:
            update_target()
            print(action.tolist(), "%.5f" % np.abs(td).mean())
    print(np.round(debug["q_values"](np.ones((1, 4))), 4).tolist(), act(np.ones((2, 4)), stochastic=False))
