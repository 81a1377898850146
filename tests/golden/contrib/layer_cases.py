"""Calls of `tf.contrib.layers`, and what each of them makes: variables, collections and values.

    python tests/golden/contrib/layer_cases.py     # under TensorFlow 1.15: writes layers.json.gz beside this file

The same functions run under stoker in tests/contrib/test_layers.py.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def _images(tf, channels=3, size=8):
    return tf.constant(_values("images", [2, size, size, channels]))


def _rows(tf, width=5):
    return tf.constant(_values("rows", [4, width]))


def _values(name, shape):
    """Numbers between -1 and 1 that depend on the name and the shape only."""
    return np.random.RandomState(zlib.crc32(name.encode()) % 2**31).uniform(-1, 1, shape).astype(np.float32)


def _with_scopes(tf):
    layers, arg_scope = tf.contrib.layers, tf.contrib.framework.arg_scope
    with arg_scope(
        [layers.conv2d, layers.fully_connected],
        activation_fn=tf.nn.relu,
        weights_regularizer=layers.l2_regularizer(0.01),
    ):
        with arg_scope(
            [layers.conv2d], normalizer_fn=layers.batch_norm, normalizer_params={"is_training": True, "decay": 0.9}
        ):
            net = layers.conv2d(_images(tf), 4, [3, 3], scope="first")
            net = layers.conv2d(net, 4, 3, stride=2, scope="second", normalizer_fn=None)
        net = layers.max_pool2d(net, [2, 2], scope="pool")
        return layers.fully_connected(layers.flatten(net), 3, activation_fn=None, scope="logits")


def _sequence(tf, **kwargs):
    ids = tf.constant([[1, 2, 0], [3, 3, 1]])
    return tf.contrib.layers.embed_sequence(ids, vocab_size=5, embed_dim=4, **kwargs)


def _sparse(tf):
    return tf.SparseTensor(
        np.array([[0, 0], [0, 1], [2, 0]], np.int64), np.array([1, 3, 2], np.int64), np.array([4, 2], np.int64)
    )


def _table(tf):
    return tf.constant(_values("table", [5, 4]))


def _optimized(tf, **kwargs):
    x = tf.contrib.layers.fully_connected(_rows(tf), 2, scope="net")
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_mean(tf.square(x - 0.3))
    kwargs = {"learning_rate": 0.1, "optimizer": "SGD", "summaries": [], **kwargs}
    with tf.control_dependencies([tf.contrib.layers.optimize_loss(loss, step, **kwargs)]):
        return tf.identity(loss)


CASES = {
    "conv2d": lambda tf: tf.contrib.layers.conv2d(_images(tf), 4, [3, 3]),
    "conv2d twice": lambda tf: tf.contrib.layers.conv2d(tf.contrib.layers.conv2d(_images(tf), 4, 3), 2, 1, activation_fn=None),
    "conv2d norm": lambda tf: tf.contrib.layers.conv2d(_images(tf), 4, 3, 2, "VALID", normalizer_fn=tf.contrib.layers.batch_norm),
    "conv2d rate": lambda tf: tf.contrib.layers.conv2d(_images(tf), 4, 3, rate=2, scope="a"),
    "conv2d without bias": lambda tf: tf.contrib.layers.conv2d(_images(tf), 4, 3, biases_initializer=None),
    "conv2d collections": lambda tf: tf.contrib.layers.conv2d(_images(tf), 4, 3, variables_collections={"weights": ["w"], "biases": ["b"]}, outputs_collections="o"),
    "conv1d": lambda tf: tf.contrib.layers.conv1d(tf.constant(_values("line", [2, 9, 3])), 4, 3),
    "conv3d": lambda tf: tf.contrib.layers.conv3d(tf.constant(_values("cube", [1, 4, 4, 4, 2])), 3, 3),
    "conv2d_transpose": lambda tf: tf.contrib.layers.conv2d_transpose(_images(tf, 3, 4), 4, 3, 2),
    "conv3d_transpose": lambda tf: tf.contrib.layers.conv3d_transpose(tf.constant(_values("cube", [1, 3, 3, 3, 2])), 3, 3, 2),
    "conv2d_in_plane": lambda tf: tf.contrib.layers.conv2d_in_plane(_images(tf), 3),
    "separable_conv2d": lambda tf: tf.contrib.layers.separable_conv2d(_images(tf), 4, 3, 2),
    "separable rate": lambda tf: tf.contrib.layers.separable_conv2d(_images(tf), 4, 3, 1, rate=2, normalizer_fn=tf.contrib.layers.batch_norm),
    "depthwise": lambda tf: tf.contrib.layers.separable_conv2d(_images(tf), None, 3, 2, stride=2),
    "fully_connected": lambda tf: tf.contrib.layers.fully_connected(_rows(tf), 3),
    "fully_connected rank 3": lambda tf: tf.contrib.layers.fully_connected(tf.constant(_values("line", [2, 9, 3])), 4, tf.nn.tanh, scope="fc"),
    "fully_connected norm": lambda tf: tf.contrib.layers.fully_connected(_rows(tf), 3, normalizer_fn=tf.contrib.layers.layer_norm),
    "linear relu relu6 elu": lambda tf: tf.contrib.layers.elu(tf.contrib.layers.relu6(tf.contrib.layers.relu(tf.contrib.layers.linear(_rows(tf), 3), 4), 4), 2),
    "batch_norm": lambda tf: tf.contrib.layers.batch_norm(_images(tf), decay=0.9),
    "batch_norm rows": lambda tf: tf.contrib.layers.batch_norm(_rows(tf), 0.9),
    "batch_norm not fused": lambda tf: tf.contrib.layers.batch_norm(_rows(tf), 0.9, scale=True, activation_fn=tf.nn.relu, fused=False),
    "batch_norm inference": lambda tf: tf.contrib.layers.batch_norm(_images(tf), is_training=False, scale=True, scope="bn"),
    "batch_norm in place": lambda tf: tf.contrib.layers.batch_norm(_images(tf), 0.9, updates_collections=None),
    "batch_norm flag": lambda tf: tf.contrib.layers.batch_norm(_images(tf), 0.9, is_training=tf.constant([True])[0]),
    "batch_norm debias": lambda tf: tf.contrib.layers.batch_norm(_rows(tf), 0.9, zero_debias_moving_mean=True, fused=False),
    "batch_norm weights": lambda tf: tf.contrib.layers.batch_norm(_rows(tf), 0.9, batch_weights=tf.constant([1.0, 2.0, 0.0, 1.0])),
    "batch_norm renorm": lambda tf: tf.contrib.layers.batch_norm(_rows(tf), 0.9, renorm=True, renorm_decay=0.9),
    "layer_norm": lambda tf: tf.contrib.layers.layer_norm(_images(tf)),
    "layer_norm axes": lambda tf: tf.contrib.layers.layer_norm(tf.constant(_values("line", [2, 9, 3])), begin_norm_axis=-1, begin_params_axis=-1, activation_fn=tf.nn.relu, scope="ln"),
    "instance_norm": lambda tf: tf.contrib.layers.instance_norm(_images(tf)),
    "group_norm": lambda tf: tf.contrib.layers.group_norm(_images(tf, 6), groups=3),
    "unit_norm": lambda tf: tf.contrib.layers.unit_norm(_rows(tf), 1),
    "bias_add": lambda tf: tf.contrib.layers.bias_add(_rows(tf), tf.nn.relu),
    "max_pool2d": lambda tf: tf.contrib.layers.max_pool2d(_images(tf), [3, 3], padding="SAME"),
    "avg_pool2d": lambda tf: tf.contrib.layers.avg_pool2d(_images(tf), 2, 1),
    "max_pool3d": lambda tf: tf.contrib.layers.max_pool3d(tf.constant(_values("cube", [1, 4, 4, 4, 2])), 2),
    "avg_pool3d": lambda tf: tf.contrib.layers.avg_pool3d(tf.constant(_values("cube", [1, 4, 4, 4, 2])), 2),
    "pool": lambda tf: tf.contrib.slim.pool(_images(tf), 2, "MAX", stride=2),
    "flatten": lambda tf: tf.contrib.layers.flatten(_images(tf)),
    "dropout": lambda tf: tf.contrib.layers.dropout(_rows(tf), 0.5, is_training=False),
    "dropout training": lambda tf: tf.cast(tf.contrib.layers.dropout(_rows(tf), 1.0), tf.float32),
    "one_hot": lambda tf: tf.contrib.layers.one_hot_encoding(tf.constant([1, 0, 2]), 3),
    "softmax": lambda tf: tf.contrib.layers.softmax(tf.constant(_values("line", [2, 9, 3]))),
    "spatial_softmax": lambda tf: tf.contrib.layers.spatial_softmax(_images(tf)),
    "spatial_softmax fixed": lambda tf: tf.contrib.layers.spatial_softmax(_images(tf), 0.5, "s"),
    "maxout": lambda tf: tf.contrib.layers.maxout(tf.constant(_values("line", [2, 9, 6])), 3),
    "repeat": lambda tf: tf.contrib.layers.repeat(_images(tf), 2, tf.contrib.layers.conv2d, 3, [3, 3], scope="block"),
    "repeat unnamed": lambda tf: tf.contrib.layers.repeat(_rows(tf), 2, tf.contrib.layers.fully_connected, 3),
    "stack": lambda tf: tf.contrib.layers.stack(_rows(tf), tf.contrib.layers.fully_connected, [4, 3], scope="fc"),
    "stack pairs": lambda tf: tf.contrib.layers.stack(_images(tf), tf.contrib.layers.conv2d, [(4, [3, 3]), (2, [1, 1])]),
    "scopes": _with_scopes,
    "images_to_sequence": lambda tf: tf.contrib.layers.images_to_sequence(_images(tf)),
    "sequence_to_images": lambda tf: tf.contrib.layers.sequence_to_images(tf.constant(_values("seq", [8, 4, 3])), 2),
    "embed_sequence": _sequence,
    "embed_sequence unique": lambda tf: _sequence(tf, unique=True, scope="e", trainable=False),
    "bow_encoder": lambda tf: tf.contrib.layers.bow_encoder(_sparse(tf), 5, 4),
    "bow dense": lambda tf: tf.contrib.layers.bow_encoder(tf.constant([[1, 2, 0], [3, 3, 1]]), 5, 4, sparse_lookup=False),
    "safe_embedding_lookup_sparse": lambda tf: tf.contrib.layers.safe_embedding_lookup_sparse(_table(tf), _sparse(tf)),
    "embedding_lookup_unique": lambda tf: tf.contrib.layers.embedding_lookup_unique(_table(tf), tf.constant([[1, 2, 1], [3, 3, 1]])),
    "dense_to_sparse": lambda tf: tf.sparse_tensor_to_dense(tf.contrib.layers.dense_to_sparse(tf.constant([[1, 0, 2], [0, 3, 0]]))),
    "legacy_fully_connected": lambda tf: tf.contrib.layers.legacy_fully_connected(_rows(tf), 3, tf.nn.relu),
    "optimize_loss": _optimized,
    "optimize_loss adam": lambda tf: _optimized(tf, optimizer="Adam", clip_gradients=0.5),
    "optimize_loss scaled": lambda tf: _optimized(tf, optimizer=tf.train.MomentumOptimizer(0.1, 0.9), gradient_multipliers={"net/weights:0": 0.5}, learning_rate=0.05, clip_gradients=5.0),
    "optimize_loss decay": lambda tf: _optimized(tf, optimizer=lambda rate: tf.train.GradientDescentOptimizer(rate), learning_rate_decay_fn=lambda rate, step: tf.train.exponential_decay(rate, step, 1, 0.5)),
    "variables": lambda tf: tf.contrib.framework.model_variable("m", [2, 3], regularizer=tf.contrib.layers.l2_regularizer(0.5)) + tf.contrib.framework.variable("v", [3], trainable=False, initializer=tf.zeros_initializer()),
}  # fmt: skip


def made_by(tf, name):
    """What the call makes, as data of JSON. Values are those of two runs, with the collected updates run between them."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(3)
        output = CASES[name](tf)
        variables = [[v.op.name, v.shape.as_list()] for v in tf.global_variables()]
        collections = {
            str(key): [getattr(item, "op", item).name for item in graph.get_collection(key)]
            for key in sorted(map(str, graph.get_all_collection_keys()))
            if key not in ("cond_context", "while_context", "variables", "regularization_losses") and all(hasattr(getattr(item, "op", item), "name") for item in graph.get_collection(key))
        }  # fmt: skip
        session.run(tf.global_variables_initializer())
        for v in tf.global_variables():
            if (
                v.dtype.base_dtype == tf.float32
                and v.shape.ndims
                and not v.op.name.startswith("OptimizeLoss")
                and not v.op.name.endswith(("biased", "local_step"))
            ):
                value = _values(v.op.name, v.shape.as_list())
                v.load(np.abs(value) + 0.5 if "variance" in v.op.name or "stddev" in v.op.name else value, session)
        first = session.run(output)
        session.run(graph.get_collection(tf.GraphKeys.UPDATE_OPS))
        second = session.run(output)
        states = {v.op.name: session.run(v).tolist() for v in tf.global_variables()}
        losses = [float(session.run(each)) for each in graph.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)]
    return {
        "variables": variables, "collections": collections, "shape": output.shape.as_list(), "losses": losses,
        "first": first.tolist(), "second": second.tolist(), "states": states,
    }  # fmt: skip


def rounded(item):
    if isinstance(item, float):
        return float(f"{item:.7g}")
    if isinstance(item, list):
        return [rounded(each) for each in item]
    return {key: rounded(value) for key, value in item.items()} if isinstance(item, dict) else item


if __name__ == "__main__":
    import tensorflow

    made = {name: rounded(made_by(tensorflow, name)) for name in CASES}
    text = json.dumps(made, separators=(",", ":"), sort_keys=True)
    with open(os.path.join(HERE, "layers.json.gz"), "wb") as file:
        file.write(gzip.compress(text.encode(), mtime=0))
