"""A program of slim: records on disk, a decoder, a network in arg scopes, training, evaluation, losses and metrics.

    python tests/golden/contrib/slim_program.py     # under TensorFlow 1.15: writes slim_program.json beside this file

The same function runs under stoker in tests/contrib/test_slim.py.
"""

from __future__ import annotations

import json
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def _write_records(tf, path):
    random = np.random.RandomState(0)
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(24):
            label = i % 3
            image = random.rand(6, 6, 1) * 0.3
            image[:, label * 2 : label * 2 + 2] += 0.7
            pixels = (image * 255).astype(np.uint8)
            features = {
                "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels.tobytes()])),
                "image/format": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"raw"])),
                "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                "box/ymin": tf.train.Feature(float_list=tf.train.FloatList(value=[0.1, 0.2])),
                "box/xmin": tf.train.Feature(float_list=tf.train.FloatList(value=[0.3, 0.4])),
                "box/ymax": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, 0.6])),
                "box/xmax": tf.train.Feature(float_list=tf.train.FloatList(value=[0.7, 0.8])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def _dataset(tf, path):
    slim = tf.contrib.slim
    features = {
        "image/encoded": tf.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.FixedLenFeature((), tf.string, default_value="raw"),
        "image/class/label": tf.FixedLenFeature([], tf.int64, default_value=tf.zeros([], dtype=tf.int64)),
    }
    for side in ("ymin", "xmin", "ymax", "xmax"):
        features["box/" + side] = tf.VarLenFeature(tf.float32)
    handlers = {
        "image": slim.tfexample_decoder.Image(shape=[6, 6, 1], channels=1),
        "label": slim.tfexample_decoder.Tensor("image/class/label"),
        "boxes": slim.tfexample_decoder.BoundingBox(prefix="box/"),
    }
    decoder = slim.tfexample_decoder.TFExampleDecoder(features, handlers)
    return slim.dataset.Dataset(
        data_sources=path, reader=tf.TFRecordReader, decoder=decoder, num_samples=24, items_to_descriptions={"image": "stripes"}, num_classes=3
    )  # fmt: skip


def _batch(tf, dataset, epochs=None):
    provider = tf.contrib.slim.dataset_data_provider.DatasetDataProvider(dataset, shuffle=False, num_epochs=epochs)
    image, label, boxes = provider.get(["image", "label", "boxes"])
    images, labels, boxes = tf.train.batch([tf.cast(image, tf.float32) / 255.0, label, tf.reshape(boxes, [2, 4])], 8)
    return images, labels, boxes


def _network(tf, images, is_training):
    slim = tf.contrib.slim
    ramp = lambda shape, dtype=None, partition_info=None: tf.reshape(tf.linspace(-0.3, 0.4, int(np.prod(shape))), shape)  # noqa: E731
    norm = {"is_training": is_training, "decay": 0.8}
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected], weights_initializer=ramp, weights_regularizer=slim.l2_regularizer(0.01)
    ):
        with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params=norm):
            net = slim.repeat(images, 2, slim.conv2d, 4, [3, 3], scope="conv")
        net = slim.max_pool2d(net, [2, 2], scope="pool")
        net = slim.dropout(net, 1.0, is_training=is_training)
        return slim.fully_connected(slim.flatten(net), 3, activation_fn=None, scope="logits")


def run(tf, folder):
    """Trains for 12 steps, evaluates 3 batches, and returns what happened as data of JSON."""
    slim = tf.contrib.slim
    path, logs = os.path.join(folder, "data.tfrecord"), os.path.join(folder, "logs")
    _write_records(tf, path)
    losses = []
    with tf.Graph().as_default():
        images, labels, boxes = _batch(tf, _dataset(tf, path))
        logits = _network(tf, images, True)
        slim.losses.softmax_cross_entropy(logits, slim.one_hot_encoding(labels, 3))
        total = slim.losses.get_total_loss()
        train_op = slim.learning.create_train_op(
            total, tf.train.MomentumOptimizer(0.05, 0.9), clip_gradient_norm=1.0, gradient_multipliers={"logits/biases": 2.0}, summarize_gradients=True
        )  # fmt: skip
        slim.summaries.add_scalar_summary(total, "total", print_summary=False)
        sizes = slim.model_analyzer.analyze_vars(slim.get_model_variables())

        def step(session, op, global_step, arguments):
            loss, stop = slim.learning.train_step(session, op, global_step, arguments)
            losses.append(float(loss))
            return loss, stop

        last = slim.learning.train(
            train_op,
            logs,
            train_step_fn=step,
            number_of_steps=12,
            log_every_n_steps=0,
            save_summaries_secs=600,
            save_interval_secs=600,
        )
        with tf.Session() as session, slim.queues.QueueRunners(session):
            box = session.run(boxes)[0]
    checkpoint = tf.train.latest_checkpoint(logs)
    stored = dict(tf.train.list_variables(checkpoint))
    with tf.Graph().as_default():
        images, labels, _ = _batch(tf, _dataset(tf, path))
        predictions = tf.argmax(_network(tf, images, False), 1)
        values, updates = slim.metrics.aggregate_metric_map(
            {
                "accuracy": slim.metrics.streaming_accuracy(predictions, labels),
                "recall": slim.metrics.streaming_recall(predictions, labels),
                "mean": slim.metrics.streaming_mean(predictions),
                "correlation": slim.metrics.streaming_pearson_correlation(
                    tf.cast(predictions, tf.float32), tf.cast(labels, tf.float32)
                ),
                "covariance": slim.metrics.streaming_covariance(
                    tf.cast(predictions, tf.float32), tf.cast(labels, tf.float32)
                ),
            }
        )
        names = sorted(values)
        found = slim.evaluation.evaluate_once("", checkpoint, os.path.join(folder, "eval"), num_evals=3, eval_op=[updates[name] for name in names], final_op=[values[name] for name in names])  # fmt: skip
        metrics = dict(zip(names, map(float, found)))
    return {
        "losses": losses,
        "last": float(last),
        "sizes": list(sizes),
        "box": box.tolist(),
        "stored": stored,
        "metrics": metrics,
    }


if __name__ == "__main__":
    import tempfile

    import tensorflow

    made = run(tensorflow, tempfile.mkdtemp())
    with open(os.path.join(HERE, "slim_program.json"), "w") as file:
        json.dump(made, file, indent=1, sort_keys=True)
