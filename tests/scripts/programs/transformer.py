"""A small BERT: variables from a checkpoint, an optimizer of its own, warm-up and decay of the learning rate."""

import collections
import copy
import json
import math
import os
import re
import tempfile

import numpy as np
import six
import tensorflow as tf

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


class BertConfig(object):
    def __init__(
        self,
        vocab_size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        max_position_embeddings=16,
        type_vocab_size=2,
        initializer_range=0.02,
    ):
        self.__dict__.update({k: v for k, v in locals().items() if k != "self"})

    @classmethod
    def from_json_file(cls, f):
        with tf.gfile.GFile(f, "r") as reader:
            return cls(**json.loads(reader.read()))

    def to_json_string(self):
        return json.dumps(copy.deepcopy(self.__dict__), indent=2, sort_keys=True)


def gelu(x):
    return x * 0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


def gelu_erf(x):
    return x * (0.5 * (1.0 + tf.erf(x / tf.sqrt(2.0))))


def get_shape_list(tensor, expected_rank=None, name=None):
    if name is None:
        name = tensor.name
    shape = tensor.shape.as_list()
    dyn = tf.shape(tensor)
    return [dyn[i] if s is None else s for i, s in enumerate(shape)]


SEED = [10]


def create_initializer(r=0.02):
    SEED[0] += 1
    return tf.truncated_normal_initializer(stddev=r, seed=SEED[0])


def layer_norm(x, name=None):
    return tf.contrib.layers.layer_norm(inputs=x, begin_norm_axis=-1, begin_params_axis=-1, scope=name)


def attention(a, mask, config):
    b, n, h = get_shape_list(a)
    size = config.hidden_size // config.num_attention_heads

    def proj(name):
        t = tf.layers.dense(
            tf.reshape(a, [-1, config.hidden_size]),
            config.hidden_size,
            name=name,
            kernel_initializer=create_initializer(),
        )
        return tf.transpose(tf.reshape(t, [b, n, config.num_attention_heads, size]), [0, 2, 1, 3])

    q, k, v = proj("query"), proj("key"), proj("value")
    scores = tf.multiply(tf.matmul(q, k, transpose_b=True), 1.0 / math.sqrt(float(size)))
    adder = (1.0 - tf.cast(tf.expand_dims(mask, [1]), tf.float32)) * -10000.0
    probs = tf.nn.softmax(scores + adder)
    ctx = tf.einsum("bhqk,bhkd->bqhd", probs, v)
    return tf.reshape(ctx, [b, n, h])


def model(config, ids, mask, types, scope=None):
    with tf.variable_scope(scope, default_name="bert"):
        with tf.variable_scope("embeddings"):
            table = tf.get_variable(
                "word_embeddings", [config.vocab_size, config.hidden_size], initializer=create_initializer()
            )
            out = tf.gather(table, ids)
            tt = tf.get_variable("token_type_embeddings", [2, config.hidden_size], initializer=create_initializer())
            out += tf.reshape(tf.matmul(tf.one_hot(tf.reshape(types, [-1]), 2), tt), tf.shape(out))
            pos = tf.get_variable(
                "position_embeddings",
                [config.max_position_embeddings, config.hidden_size],
                initializer=create_initializer(),
            )
            n = get_shape_list(ids)[1]
            with tf.control_dependencies([tf.assert_less_equal(n, config.max_position_embeddings)]):
                out += tf.expand_dims(tf.slice(pos, [0, 0], [n, -1]), 0)
            out = layer_norm(out)
        b, f = get_shape_list(ids)
        m = tf.ones([b, f, 1], tf.float32) * tf.cast(tf.reshape(mask, [b, 1, f]), tf.float32)
        with tf.variable_scope("encoder"):
            for i in range(config.num_hidden_layers):
                with tf.variable_scope("layer_%d" % i):
                    with tf.variable_scope("attention"):
                        with tf.variable_scope("self"):
                            att = attention(out, m, config)
                        with tf.variable_scope("output"):
                            att = tf.layers.dense(att, config.hidden_size, kernel_initializer=create_initializer())
                            att = layer_norm(att + out)
                    with tf.variable_scope("intermediate"):
                        inter = tf.layers.dense(
                            att,
                            config.intermediate_size,
                            activation=gelu if i else gelu_erf,
                            kernel_initializer=create_initializer(),
                        )
                    with tf.variable_scope("output"):
                        out = layer_norm(
                            tf.layers.dense(inter, config.hidden_size, kernel_initializer=create_initializer()) + att
                        )
        with tf.variable_scope("pooler"):
            return (
                out,
                table,
                tf.layers.dense(
                    tf.squeeze(out[:, 0:1, :], axis=1),
                    config.hidden_size,
                    activation=tf.tanh,
                    kernel_initializer=create_initializer(),
                ),
            )


def get_assignment_map_from_checkpoint(tvars, init_checkpoint):
    initialized_variable_names = {}
    name_to_variable = collections.OrderedDict()
    for var in tvars:
        m = re.match("^(.*):\\d+$", var.name)
        name_to_variable[m.group(1) if m else var.name] = var
    assignment_map = collections.OrderedDict()
    for x in tf.train.list_variables(init_checkpoint):
        (name, var) = (x[0], x[1])
        if name not in name_to_variable:
            continue
        assignment_map[name] = name
        initialized_variable_names[name] = 1
        initialized_variable_names[name + ":0"] = 1
    return assignment_map, initialized_variable_names


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    def __init__(
        self,
        learning_rate,
        weight_decay_rate=0.0,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        exclude_from_weight_decay=None,
        name="AdamWeightDecayOptimizer",
    ):
        super(AdamWeightDecayOptimizer, self).__init__(False, name)
        self.learning_rate, self.weight_decay_rate, self.beta_1, self.beta_2, self.epsilon = (
            learning_rate,
            weight_decay_rate,
            beta_1,
            beta_2,
            epsilon,
        )
        self.exclude = exclude_from_weight_decay

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for grad, param in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = re.match("^(.*):\\d+$", param.name).group(1)
            m = tf.get_variable(
                name=param_name + "/adam_m",
                shape=param.shape.as_list(),
                dtype=tf.float32,
                trainable=False,
                initializer=tf.zeros_initializer(),
            )
            v = tf.get_variable(
                name=param_name + "/adam_v",
                shape=param.shape.as_list(),
                dtype=tf.float32,
                trainable=False,
                initializer=tf.zeros_initializer(),
            )
            next_m = tf.multiply(self.beta_1, m) + tf.multiply(1.0 - self.beta_1, grad)
            next_v = tf.multiply(self.beta_2, v) + tf.multiply(1.0 - self.beta_2, tf.square(grad))
            update = next_m / (tf.sqrt(next_v) + self.epsilon)
            if not any(re.search(r, param_name) for r in self.exclude or []):
                update += self.weight_decay_rate * param
            assignments.extend([param.assign(param - self.learning_rate * update), m.assign(next_m), v.assign(next_v)])
        return tf.group(*assignments, name=name)


def create_optimizer(loss, init_lr, num_train_steps, num_warmup_steps):
    global_step = tf.train.get_or_create_global_step()
    lr = tf.train.polynomial_decay(
        tf.constant(value=init_lr, shape=[], dtype=tf.float32),
        global_step,
        num_train_steps,
        end_learning_rate=0.0,
        power=1.0,
        cycle=False,
    )
    gi = tf.cast(global_step, tf.int32)
    wi = tf.constant(num_warmup_steps, dtype=tf.int32)
    is_warmup = tf.cast(gi < wi, tf.float32)
    lr = (1.0 - is_warmup) * lr + is_warmup * init_lr * tf.cast(gi, tf.float32) / tf.cast(wi, tf.float32)
    opt = AdamWeightDecayOptimizer(lr, 0.01, exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"])
    tvars = tf.trainable_variables()
    (grads, _) = tf.clip_by_global_norm(tf.gradients(loss, tvars), clip_norm=1.0)
    train_op = opt.apply_gradients(zip(grads, tvars), global_step=global_step)
    with tf.control_dependencies([train_op]):
        return tf.group(train_op, [tf.assign_add(global_step, 1)]), lr


config = BertConfig(30)
print(config.to_json_string())
rng = np.random.RandomState(0)
ids, mask, types = rng.randint(0, 30, (4, 10)), (rng.rand(4, 10) > 0.2).astype(int), rng.randint(0, 2, (4, 10))
for stage in range(2):
    tf.reset_default_graph()
    SEED[0] = 10 + stage * 100
    pi, pm, pt, pl = (tf.placeholder(tf.int32, [None, 10]) for _ in range(4))
    seq, table, pooled = model(config, pi, pm, pt)
    logits = tf.matmul(tf.reshape(seq, [-1, 16]), table, transpose_b=True)
    lp = tf.nn.log_softmax(logits, axis=-1)
    loss = -tf.reduce_mean(tf.reduce_sum(lp * tf.one_hot(tf.reshape(pl, [-1]), 30), axis=-1))
    tvars = tf.trainable_variables()
    if stage:
        amap, names = get_assignment_map_from_checkpoint(tvars, "./bert.ckpt")
        tf.train.init_from_checkpoint("./bert.ckpt", amap)
        for var in tvars:
            print(
                "  name = %s, shape = %s%s" % (var.name, var.shape, ", *INIT_FROM_CKPT*" if var.name in names else "")
            )
    train, lr = create_optimizer(loss, 1e-2, 20, 3)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(6):
            r = sess.run(lr)
            l, p, _ = sess.run([loss, pooled, train], {pi: ids, pm: mask, pt: types, pl: ids})
            print("%.5f %.5f %.5f" % (l, r, p.sum()))
        if not stage:
            tf.train.Saver(tvars[:-2]).save(sess, "./bert.ckpt")
