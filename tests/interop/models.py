"""Ten small models in the style of published TensorFlow 1 code, for tests and scripts: from a checkpoint to torch.

Each function builds its graph in the current one and returns a `Model`: the tensors to feed, what to compare, the loss, and values to feed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import stoker.compat.v1 as tf


@dataclass
class Model:
    inputs: dict[str, Any]
    output: Any
    loss: Any
    feeds: dict[str, np.ndarray]


def _random(seed: int) -> np.random.RandomState:
    return np.random.RandomState(seed)


def lenet() -> Model:
    """LeNet-5: convolutions, max pooling, dense layers, sparse cross entropy."""
    image = tf.placeholder(tf.float32, [None, 16, 16, 1], "image")
    label = tf.placeholder(tf.int64, [None], "label")
    x = tf.layers.conv2d(image, 4, 5, padding="same", activation=tf.nn.relu, name="conv1")
    x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.conv2d(x, 6, 5, activation=tf.nn.relu, name="conv2")
    x = tf.layers.max_pooling2d(x, 2, 2, padding="same")
    x = tf.layers.dense(tf.layers.flatten(x), 12, activation=tf.nn.tanh, name="fc1")
    logits = tf.layers.dense(x, 10, name="fc2")
    loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
    random = _random(1)
    feeds = {"image": random.rand(4, 16, 16, 1).astype("f"), "label": random.randint(0, 10, 4)}
    return Model({"image": image, "label": label}, tf.nn.softmax(logits), loss, feeds)


def resnet() -> Model:
    """A residual network in training form: fused batch normalization, strided shortcuts, weight decay."""
    image = tf.placeholder(tf.float32, [None, 8, 8, 3], "image")
    label = tf.placeholder(tf.int32, [None], "label")

    def block(x: Any, channels: int, stride: int, name: str) -> Any:
        with tf.variable_scope(name):
            shortcut = tf.layers.conv2d(x, channels, 1, stride, use_bias=False, name="shortcut")
            y = tf.layers.batch_normalization(x, training=True, name="bn1")
            y = tf.layers.conv2d(tf.nn.relu(y), channels, 3, stride, padding="same", use_bias=False, name="conv1")
            y = tf.layers.batch_normalization(y, training=True, name="bn2")
            y = tf.layers.conv2d(tf.nn.relu(y), channels, 3, padding="same", use_bias=False, name="conv2")
            return shortcut + y

    x = tf.layers.conv2d(tf.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]]), 4, 3, name="stem")
    x = block(block(x, 4, 1, "block1"), 8, 2, "block2")
    x = tf.reduce_mean(tf.nn.relu(x), [1, 2])
    logits = tf.layers.dense(x, 5, name="logits")
    decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)) + 1e-3 * decay
    random = _random(2)
    feeds = {"image": random.randn(4, 8, 8, 3).astype("f"), "label": random.randint(0, 5, 4).astype("i")}
    return Model({"image": image, "label": label}, logits, loss, feeds)


def lstm_language_model() -> Model:
    """The PTB model: embedding, stacked LSTM cells over dynamic_rnn with lengths, tied logits, masked loss."""
    words = tf.placeholder(tf.int32, [None, 6], "words")
    targets = tf.placeholder(tf.int32, [None, 6], "targets")
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    table = tf.get_variable("embedding", [11, 5])
    cells = [tf.nn.rnn_cell.BasicLSTMCell(5) for _ in range(2)]
    outputs, _ = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.MultiRNNCell(cells), tf.nn.embedding_lookup(table, words), lengths, dtype=tf.float32
    )
    logits = tf.matmul(tf.reshape(outputs, [-1, 5]), table, transpose_b=True) + tf.get_variable("bias", [11])
    logits = tf.reshape(logits, [tf.shape(words)[0], 6, 11])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    mask = tf.sequence_mask(lengths, 6, tf.float32)
    loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
    random = _random(3)
    feeds = {
        "words": random.randint(0, 11, (3, 6)).astype("i"),
        "targets": random.randint(0, 11, (3, 6)).astype("i"),
        "lengths": np.array([4, 5, 2], "i"),
    }
    return Model({"words": words, "targets": targets, "lengths": lengths}, logits, loss, feeds)


def transformer() -> Model:
    """One encoder block: multi-head attention with a causal mask, layer normalization by hand, GELU by erf."""
    tokens = tf.placeholder(tf.int32, [None, None], "tokens")
    width, heads = 8, 2

    def norm(x: Any, name: str) -> Any:
        with tf.variable_scope(name):
            mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
            scale = tf.get_variable("scale", [width], initializer=tf.ones_initializer())
            offset = tf.get_variable("offset", [width], initializer=tf.zeros_initializer())
            return (x - mean) * tf.rsqrt(variance + 1e-6) * scale + offset

    def split(x: Any) -> Any:
        shape = tf.shape(x)
        return tf.transpose(tf.reshape(x, [shape[0], shape[1], heads, width // heads]), [0, 2, 1, 3])

    table = tf.get_variable("tokens", [13, width])
    places = tf.get_variable("places", [16, width])
    steps = tf.shape(tokens)[1]
    x = tf.gather(table, tokens) * width**0.5 + tf.slice(places, [0, 0], [steps, -1])
    y = norm(x, "norm1")
    q, k, v = (split(tf.layers.dense(y, width, use_bias=False, name=name)) for name in "qkv")
    scores = tf.matmul(q, k, transpose_b=True) / tf.sqrt(tf.cast(tf.shape(k)[-1], tf.float32))
    mask = tf.matrix_band_part(tf.ones([steps, steps]), -1, 0)
    weights = tf.nn.softmax(scores * mask - 1e9 * (1.0 - mask))
    joined = tf.reshape(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3]), [tf.shape(x)[0], steps, width])
    x += tf.layers.dense(joined, width, name="joined")
    y = tf.layers.dense(norm(x, "norm2"), 2 * width, name="inner")
    y = 0.5 * y * (1.0 + tf.erf(y / np.float32(np.sqrt(2.0))))
    x += tf.layers.dense(y, width, name="outer")
    logits = tf.tensordot(norm(x, "norm3"), table, [[2], [1]])
    hot = tf.one_hot(tokens[:, 1:], 13)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=hot, logits=logits[:, :-1]))
    return Model({"tokens": tokens}, logits, loss, {"tokens": _random(4).randint(0, 13, (3, 7)).astype("i")})


def dcgan() -> Model:
    """Generator with transposed convolutions and discriminator with leaky ReLUs, by hand; the generator's loss."""
    noise = tf.placeholder(tf.float32, [None, 6], "noise")
    x = tf.layers.dense(noise, 2 * 2 * 8, name="project")
    x = tf.reshape(x, [-1, 2, 2, 8])
    x = tf.nn.relu(tf.layers.batch_normalization(x, training=True, name="g_bn"))
    x = tf.nn.relu(tf.layers.conv2d_transpose(x, 4, 5, 2, padding="same", name="g_up1"))
    image = tf.tanh(tf.layers.conv2d_transpose(x, 3, 4, 2, padding="same", name="g_up2"))
    y = tf.layers.conv2d(image, 4, 5, 2, padding="same", name="d_down1")
    y = tf.maximum(0.2 * y, y)
    y = tf.nn.leaky_relu(tf.layers.conv2d(y, 8, 5, 2, padding="same", name="d_down2"))
    score = tf.layers.dense(tf.layers.flatten(y), 1, name="d_score")
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=score, labels=tf.ones_like(score)))
    return Model({"noise": noise}, image, loss, {"noise": _random(5).randn(4, 6).astype("f")})


def vae() -> Model:
    """A variational autoencoder; the noise of the code is fed, so that runs can be compared."""
    image = tf.placeholder(tf.float32, [None, 12], "image")
    noise = tf.placeholder(tf.float32, [None, 3], "noise")
    hidden = tf.layers.dense(image, 8, tf.nn.softplus, name="encoder")
    mean, deviation = tf.split(tf.layers.dense(hidden, 6, name="code"), 2, 1)
    code = mean + tf.exp(0.5 * deviation) * noise
    hidden = tf.layers.dense(code, 8, tf.nn.elu, name="decoder")
    logits = tf.layers.dense(hidden, 12, name="pixels")
    rebuilt = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=image, logits=logits), 1)
    divergence = -0.5 * tf.reduce_sum(1 + deviation - tf.square(mean) - tf.exp(deviation), 1)
    random = _random(6)
    feeds = {"image": random.rand(5, 12).astype("f"), "noise": random.randn(5, 3).astype("f")}
    return Model({"image": image, "noise": noise}, tf.sigmoid(logits), tf.reduce_mean(rebuilt + divergence), feeds)


def word2vec() -> Model:
    """Skip-gram with noise-contrastive estimation. The sampled classes are fed, so that runs can be compared."""
    centre = tf.placeholder(tf.int32, [None], "centre")
    context = tf.placeholder(tf.int64, [None, 1], "context")
    sampled = tf.placeholder(tf.int64, [6], "sampled")
    table = tf.get_variable("embeddings", [20, 4])
    weights = tf.get_variable("nce_weights", [20, 4], initializer=tf.truncated_normal_initializer(stddev=0.5))
    biases = tf.get_variable("nce_biases", [20], initializer=tf.zeros_initializer())
    embedded = tf.nn.embedding_lookup(table, centre)
    expected = 6.0 * tf.log((tf.cast(sampled, tf.float32) + 2) / (tf.cast(sampled, tf.float32) + 1)) / np.log(21.0)
    true = 6.0 * tf.log((tf.cast(context, tf.float32) + 2) / (tf.cast(context, tf.float32) + 1)) / np.log(21.0)
    loss = tf.reduce_mean(
        tf.nn.nce_loss(weights, biases, context, embedded, 6, 20, sampled_values=(sampled, true, expected))
    )
    norm = tf.sqrt(tf.reduce_sum(tf.square(table), 1, keepdims=True))
    similarity = tf.matmul(tf.nn.embedding_lookup(table / norm, centre), table / norm, transpose_b=True)
    random = _random(7)
    feeds = {
        "centre": random.randint(0, 20, 5).astype("i"),
        "context": random.randint(0, 20, (5, 1)),
        "sampled": random.choice(20, 6, replace=False),
    }
    return Model({"centre": centre, "context": context, "sampled": sampled}, similarity, loss, feeds)


def wide_and_deep() -> Model:
    """A linear model on bucketized and crossed columns beside a deep one on embeddings, as one logit."""
    age = tf.placeholder(tf.float32, [None, 1], "age")
    job = tf.placeholder(tf.int64, [None, 1], "job")
    city = tf.placeholder(tf.int64, [None, 1], "city")
    label = tf.placeholder(tf.float32, [None, 1], "label")
    features = {"age": age, "job": job, "city": city}
    column = tf.feature_column
    number = column.numeric_column("age")
    buckets = column.bucketized_column(number, [20.0, 30.0, 45.0])
    jobs = column.categorical_column_with_identity("job", 7)
    cities = column.categorical_column_with_identity("city", 9, default_value=0)
    wide = column.linear_model(features, [buckets, column.indicator_column(jobs)])
    deep = column.input_layer(
        features, [number, column.embedding_column(jobs, 3), column.embedding_column(cities, 2, combiner="sum")]
    )
    for units in (6, 4):
        deep = tf.layers.dense(deep, units, tf.nn.relu)
    logits = wide + tf.layers.dense(deep, 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    random = _random(8)
    feeds = {
        "age": (random.rand(6, 1) * 60).astype("f"),
        "job": random.randint(0, 7, (6, 1)),
        "city": random.randint(0, 9, (6, 1)),
        "label": random.randint(0, 2, (6, 1)).astype("f"),
    }
    return Model({**features, "label": label}, tf.sigmoid(logits), loss, feeds)


def u_net() -> Model:
    """Down with convolutions and average pooling, up with bilinear resizing, skips by concatenation."""
    image = tf.placeholder(tf.float32, [None, 8, 8, 1], "image")
    mask = tf.placeholder(tf.float32, [None, 8, 8, 1], "mask")
    down1 = tf.layers.conv2d(image, 3, 3, padding="same", activation=tf.nn.relu, name="down1")
    pooled = tf.layers.average_pooling2d(down1, 2, 2)
    down2 = tf.layers.conv2d(pooled, 4, 3, padding="same", activation=tf.nn.relu, dilation_rate=2, name="down2")
    bottom = tf.layers.separable_conv2d(tf.layers.max_pooling2d(down2, 2, 2), 6, 3, padding="same", name="bottom")
    up2 = tf.concat([tf.image.resize_bilinear(bottom, tf.shape(down2)[1:3]), down2], 3)
    up2 = tf.layers.conv2d(up2, 4, 3, padding="same", activation=tf.nn.relu, name="up2")
    up1 = tf.concat([tf.image.resize_nearest_neighbor(up2, [8, 8]), down1], -1)
    logits = tf.layers.conv2d(up1, 1, 1, name="logits")
    probability = tf.sigmoid(logits)
    overlap = tf.reduce_sum(probability * mask, [1, 2, 3])
    total = tf.reduce_sum(probability, [1, 2, 3]) + tf.reduce_sum(mask, [1, 2, 3])
    loss = tf.reduce_mean(1 - (2 * overlap + 1) / (total + 1))
    random = _random(9)
    feeds = {"image": random.randn(2, 8, 8, 1).astype("f"), "mask": (random.rand(2, 8, 8, 1) > 0.5).astype("f")}
    return Model({"image": image, "mask": mask}, probability, loss, feeds)


def seq2seq() -> Model:
    """A GRU encoder in both directions, and a decoder that is a while loop with attention and a TensorArray."""
    source = tf.placeholder(tf.int32, [None, 5], "source")
    target = tf.placeholder(tf.int32, [None, 4], "target")
    table = tf.get_variable("table", [9, 4])
    forward, backward = tf.nn.rnn_cell.GRUCell(3, name="forward"), tf.nn.rnn_cell.GRUCell(3, name="backward")
    states, last = tf.nn.bidirectional_dynamic_rnn(forward, backward, tf.gather(table, source), dtype=tf.float32)
    memory, state = tf.concat(states, 2), tf.concat(last, 1)
    cell = tf.nn.rnn_cell.GRUCell(6, name="decoder")
    projection = tf.layers.Dense(9, name="projection")
    steps = tf.TensorArray(tf.float32, 4)

    def body(i: Any, state: Any, steps: Any) -> Any:
        weights = tf.nn.softmax(tf.einsum("bth,bh->bt", memory, state))
        seen = tf.reduce_sum(memory * weights[:, :, None], 1)
        previous = tf.gather(target, tf.maximum(i - 1, 0), axis=1)
        given = tf.cond(i > 0, lambda: tf.gather(table, previous), lambda: tf.zeros([tf.shape(source)[0], 4]))
        out, state = cell(tf.concat([given, seen], 1), state)
        return i + 1, state, steps.write(i, projection(out))

    _, _, steps = tf.while_loop(lambda i, state, steps: i < 4, body, [0, state, steps])
    logits = tf.transpose(steps.stack(), [1, 0, 2])
    logits.set_shape([None, 4, 9])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits))
    random = _random(10)
    feeds = {"source": random.randint(0, 9, (3, 5)).astype("i"), "target": random.randint(0, 9, (3, 4)).astype("i")}
    return Model({"source": source, "target": target}, logits, loss, feeds)


MODELS = [lenet, resnet, lstm_language_model, transformer, dcgan, vae, word2vec, wide_and_deep, u_net, seq2seq]
