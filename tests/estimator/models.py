"""A small model and its data, for tests of Estimators."""

from __future__ import annotations

import numpy as np

import stoker.compat.v1 as tf

ROWS = 24
X = np.linspace(-1, 1, ROWS * 2).reshape(ROWS, 2).astype(np.float32)
Y = X @ np.array([[2.0], [-1.0]], np.float32) + 0.5


def model_fn(features, labels, mode, params):
    """A linear regression by gradient descent."""
    predictions = tf.layers.dense(features["x"], 1, kernel_initializer=tf.zeros_initializer())
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"value": predictions, "twice": 2 * predictions})
    loss = tf.losses.mean_squared_error(labels, predictions)
    if mode == tf.estimator.ModeKeys.EVAL:
        error = tf.metrics.mean_absolute_error(labels, predictions)
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops={"error": error})
    optimizer = tf.train.GradientDescentOptimizer(params["rate"])
    step = tf.train.get_global_step()
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, global_step=step))


def data():
    """All rows, in batches of eight."""
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(8)


def endless():
    """The same, again and again."""
    return data().repeat()


def estimator(folder, **config):
    """An Estimator of the model in a directory."""
    config = {"save_checkpoints_steps": 5, "log_step_count_steps": 5, "save_summary_steps": 5, **config}
    return tf.estimator.Estimator(
        model_fn, str(folder), params={"rate": 0.1}, config=tf.estimator.RunConfig(tf_random_seed=1, **config)
    )


def losses(steps, kernel=None, bias=0.0):
    """The losses of gradient descent in NumPy, and the weights at the end."""
    kernel = np.zeros((2, 1)) if kernel is None else kernel
    found = []
    for step in range(steps):
        x, y = (each.reshape(3, 8, -1)[step % 3] for each in (X, Y))
        wrong = x @ kernel + bias - y
        found.append(float((wrong**2).mean()))
        kernel, bias = kernel - 0.1 * 2 * x.T @ wrong / 8, bias - 0.1 * 2 * wrong.mean()
    return found, kernel, bias
