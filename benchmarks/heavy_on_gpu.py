"""Steps as large as a GPU's owner runs them: stoker, PyTorch and JAX on the same model, in milliseconds per step.

    python benchmarks/heavy_on_gpu.py [--seconds S] [--sides SIDE,...] [MODEL ...]

Four layers of BERT over 16 texts of 128 words, a network of bottleneck blocks over 32 images of 128 by 128 pixels, and two layers of LSTM with
1,000 units over 35 words. Every side is fed NumPy arrays and hands the loss back at each step; TF32 is on.
"""

import argparse
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, os.path.dirname(__file__))

import counterpart_jax
import counterpart_torch
import torch
from counterpart_larger import MODELS, normalized_convolutions
from counterpart_models import Kernel, R, by_time, dense, dense_shapes, lstm

import stoker.compat.v1 as tf

TEXTS, WORDS, UNITS, LAYERS, HEADS, VOCABULARY = 16, 128, 768, 4, 12, 30000
IMAGES, PIXELS, STAGES = 32, 128, ((64, 1), (128, 2), (256, 2), (512, 2))
SENTENCES, LENGTH, CELLS, ENTRIES = 20, 35, 1000, 10000
TEXT = R(0).randint(0, VOCABULARY, (TEXTS, WORDS)), R(1).randint(0, VOCABULARY, (TEXTS, WORDS))
PICTURES = R(0).randn(IMAGES, PIXELS, PIXELS, 3).astype("f"), R(1).randint(0, 10, IMAGES)
SPEECH = R(0).randint(0, ENTRIES, (SENTENCES, LENGTH)), R(1).randint(0, ENTRIES, (SENTENCES, LENGTH))
SIDES = "stoker", "torch", "jax"


def gelu(x, tanh):
    return 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def cross_entropy(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def bert():
    x, y = tf.placeholder(tf.int32, TEXT[0].shape), tf.placeholder(tf.int32, TEXT[1].shape)

    def normalized(h, name):
        with tf.variable_scope(name):
            gain = tf.get_variable("gain", [UNITS], initializer=tf.ones_initializer())
            shift = tf.get_variable("shift", [UNITS], initializer=tf.zeros_initializer())
        return tf.nn.batch_normalization(h, *tf.nn.moments(h, [-1], keep_dims=True), shift, gain, 1e-6)

    def split(h):
        return tf.transpose(tf.reshape(h, [TEXTS, WORDS, HEADS, UNITS // HEADS]), [0, 2, 1, 3])

    table = tf.get_variable("table", [VOCABULARY, UNITS], initializer=tf.truncated_normal_initializer(stddev=0.02))
    h = normalized(tf.nn.embedding_lookup(table, x) + tf.get_variable("places", [WORDS, UNITS]), "first")
    for i in range(LAYERS):
        q, k, v = (split(tf.layers.dense(h, UNITS)) for _ in range(3))
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (UNITS // HEADS) ** -0.5)
        mixed = tf.transpose(tf.matmul(tf.nn.dropout(weights, keep_prob=0.9), v), [0, 2, 1, 3])
        mixed = tf.layers.dense(tf.reshape(mixed, [TEXTS, WORDS, UNITS]), UNITS)
        h = normalized(h + tf.nn.dropout(mixed, keep_prob=0.9), "attention%d" % i)
        wide = tf.layers.dense(gelu(tf.layers.dense(h, 4 * UNITS), tf.tanh), UNITS)
        h = normalized(h + tf.nn.dropout(wide, keep_prob=0.9), "forward%d" % i)
    loss = cross_entropy(tf.reshape(y, [-1]), tf.matmul(tf.reshape(h, [-1, UNITS]), table, transpose_b=True))
    return [loss, tf.train.AdamOptimizer(1e-4).minimize(loss)], dict(zip((x, y), TEXT))


def bert_model(m, p, x, y):
    def normalized(name, h):
        mean, variance = m.moments(h, -1)
        return (h - mean) * m.rsqrt(variance + 1e-6) * p[f"{name}_gain"] + p[f"{name}_shift"]

    h = normalized("first", p["table"][x] + p["places"])
    for i in range(LAYERS):
        q, k, v = (dense(p, f"{c}{i}", h).reshape(TEXTS, WORDS, HEADS, UNITS // HEADS).swapaxes(1, 2) for c in "qkv")
        mixed = m.dropout(m.softmax(q @ k.swapaxes(2, 3) * (UNITS // HEADS) ** -0.5), 0.9) @ v
        mixed = dense(p, f"o{i}", mixed.swapaxes(1, 2).reshape(TEXTS, WORDS, UNITS))
        h = normalized(f"attention{i}", h + m.dropout(mixed, 0.9))
        wide = dense(p, f"g{i}", gelu(dense(p, f"f{i}", h), m.tanh))
        h = normalized(f"forward{i}", h + m.dropout(wide, 0.9))
    return m.xent(h.reshape(-1, UNITS) @ p["table"].T, y.reshape(-1))


def bert_shapes():
    shapes = {"table": (VOCABULARY, UNITS), "places": (WORDS, UNITS)}
    for i in range(LAYERS):
        shapes.update(dense_shapes(**{f"{c}{i}": (UNITS, UNITS) for c in "qkvo"}))
        shapes.update(dense_shapes(**{f"f{i}": (UNITS, 4 * UNITS), f"g{i}": (4 * UNITS, UNITS)}))
    for name in ("first", *(f"{part}{i}" for i in range(LAYERS) for part in ("attention", "forward"))):
        shapes.update({f"{name}_gain": (UNITS,), f"{name}_shift": (UNITS,)})
    return shapes


def bottlenecks():
    x, y = tf.placeholder(tf.float32, PICTURES[0].shape), tf.placeholder(tf.int32, PICTURES[1].shape)

    def conv(h, units, size, stride=1):
        h = tf.layers.conv2d(h, units, size, stride, "same", use_bias=False)
        return tf.layers.batch_normalization(h, training=True)

    h = tf.nn.relu(conv(x, 64, 7, 2))
    for units, blocks in STAGES:
        for i in range(blocks):
            stride = 2 if i == 0 and units > 64 else 1
            straight = conv(h, 4 * units, 1, stride) if i == 0 else h
            inner = tf.nn.relu(conv(tf.nn.relu(conv(h, units, 1)), units, 3, stride))
            h = tf.nn.relu(straight + conv(inner, 4 * units, 1))
    loss = cross_entropy(y, tf.layers.dense(tf.reduce_mean(h, [1, 2]), 10))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    return [loss, train], dict(zip((x, y), PICTURES))


def bottlenecks_model(m, p, x, y):
    conv, moved = normalized_convolutions(m, p)
    h = m.relu(conv("first", m.images(x), 2))
    for units, blocks in STAGES:
        for i in range(blocks):
            stride = 2 if i == 0 and units > 64 else 1
            straight = conv(f"straight{units}", h, stride) if i == 0 else h
            inner = m.relu(conv(f"b{units}_{i}", m.relu(conv(f"a{units}_{i}", h)), stride))
            h = m.relu(straight + conv(f"c{units}_{i}", inner))
    return m.xent(dense(p, "out", h.mean(m.space)), y), moved


def bottlenecks_shapes():
    shapes, channels = {}, 64

    def add(name, size, inputs, units):
        shapes[f"{name}_k"] = Kernel((size, size, inputs, units))
        shapes.update({f"{name}_{kind}": (units,) for kind in ("mean", "var", "gamma", "beta")})

    add("first", 7, 3, 64)
    for units, blocks in STAGES:
        for i in range(blocks):
            if i == 0:
                add(f"straight{units}", 1, channels, 4 * units)
            add(f"a{units}_{i}", 1, channels, units)
            add(f"b{units}_{i}", 3, units, units)
            add(f"c{units}_{i}", 1, units, 4 * units)
            channels = 4 * units
    return {**shapes, **dense_shapes(out=(channels, 10))}


def large_lstm():
    x, y = tf.placeholder(tf.int32, SPEECH[0].shape), tf.placeholder(tf.int32, SPEECH[1].shape)
    rows = tf.nn.embedding_lookup(tf.get_variable("table", [ENTRIES, CELLS]), x)
    cells = [tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(CELLS), output_keep_prob=0.5) for _ in range(2)]
    cell = tf.nn.rnn_cell.MultiRNNCell(cells)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.nn.dropout(rows, keep_prob=0.5), dtype=tf.float32)
    loss = cross_entropy(tf.reshape(y, [-1]), tf.layers.dense(tf.reshape(outputs, [-1, CELLS]), ENTRIES))
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(gradients, variables, strict=True))
    return [loss, train], dict(zip((x, y), SPEECH))


def large_lstm_model(m, p, x, y):
    def cell(states, item):
        (h,), after = item, []
        for i, state in enumerate(states):
            after.append(lstm(m, p[f"w{i}"], p[f"b{i}"], h, state))
            h = m.dropout(after[-1][1], 0.5)
        return after, h

    zero = m.zeros(SENTENCES, CELLS)
    _, outputs = m.scan(cell, [(zero, zero), (zero, zero)], (by_time(m.dropout(p["table"][x], 0.5)),))
    return m.xent(dense(p, "out", outputs.reshape(-1, CELLS)), by_time(y).reshape(-1))


def large_lstm_shapes():
    cells = {
        name: shape for i in range(2) for name, shape in ((f"w{i}", (2 * CELLS, 4 * CELLS)), (f"b{i}", (4 * CELLS,)))
    }
    return {"table": (ENTRIES, CELLS), **cells, **dense_shapes(out=(CELLS, ENTRIES))}


PROGRAMS = {program.__name__: program for program in (bert, bottlenecks, large_lstm)}
MODELS["bert"] = bert_model, bert_shapes(), "adam", 1e-4, list(TEXT)
MODELS["bottlenecks"] = bottlenecks_model, bottlenecks_shapes(), "momentum", 0.1, list(PICTURES)
MODELS["large_lstm"] = large_lstm_model, large_lstm_shapes(), "clipped descent", 1.0, list(SPEECH)


def milliseconds(step, seconds):
    for _ in range(8):
        step()
    steps, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        step()
        steps += 1
    return (time.perf_counter() - began) / steps * 1e3


def measured(name, side, seconds):
    if side == "torch":
        return milliseconds(counterpart_torch.torch_step(name), seconds)
    if side == "jax":
        import jax

        jax.config.update("jax_default_matmul_precision", "tensorfloat32")
        return milliseconds(counterpart_jax.jax_step(jax, name), seconds)
    with tf.Graph().as_default(), tf.Session() as session:
        fetches, feed = PROGRAMS[name]()
        session.run(tf.global_variables_initializer())
        return milliseconds(lambda: session.run(fetches, feed), seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="all of: " + ", ".join(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measurement")
    parser.add_argument("--sides", default=",".join(SIDES), help="what to measure, of: " + ", ".join(SIDES))
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    sides = args.sides.split(",")
    print(f"| model | {' | '.join(sides)} |\n|---|{'---:|' * len(sides)}", flush=True)
    for name in args.models or PROGRAMS:
        cells = []
        for side in sides:
            cells.append(f"{measured(name, side, args.seconds):.2f}")
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
