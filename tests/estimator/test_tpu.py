"""`TPUEstimator` without a TPU."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.estimator import models

tpu = tf.contrib.tpu


def _model_fn(features, labels, mode, params):
    """The model of the other tests, as a program for TPUs states it."""
    sizes.append((mode, params["batch_size"], params["use_tpu"]))
    spec = models.model_fn(features, labels, mode, params)
    if mode == tf.estimator.ModeKeys.TRAIN:
        call = (lambda step, loss: [tf.identity(step), tf.identity(loss)], [tf.train.get_global_step(), spec.loss])
        train_op = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(params["rate"])).minimize(
            spec.loss, global_step=tf.train.get_global_step()
        )
        return tpu.TPUEstimatorSpec(mode, loss=spec.loss, train_op=train_op, host_call=call)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(labels, predictions):
            return {"error": tf.metrics.mean_absolute_error(labels, predictions)}

        metrics = (metric_fn, {"labels": labels, "predictions": spec.predictions})
        return tpu.TPUEstimatorSpec(mode, loss=spec.loss, eval_metrics=metrics)
    return tpu.TPUEstimatorSpec(mode, predictions=spec.predictions)


sizes: list[tuple[str, int, bool]] = []


def _input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(({"x": models.X}, models.Y)).repeat(4)
    return data.apply(tf.contrib.data.batch_and_drop_remainder(params["batch_size"]))


def test_a_program_for_tpus_runs_without_one(tmp_path):
    """Input and model functions get the size of a batch of their mode; losses, metrics and predictions are those of the model."""
    sizes.clear()
    config = tpu.RunConfig(model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(iterations_per_loop=3, num_shards=8))
    estimator = tpu.TPUEstimator(
        _model_fn,
        config=config,
        params={"rate": 0.1},
        use_tpu=False,
        train_batch_size=8,
        eval_batch_size=24,
        predict_batch_size=12,
    )
    estimator.train(_input_fn, max_steps=5)
    _, kernel, bias = models.losses(5)
    wrong = models.X @ kernel + bias - models.Y
    metrics = estimator.evaluate(_input_fn, steps=1)
    np.testing.assert_allclose(metrics["error"], abs(wrong).mean(), rtol=1e-5)
    np.testing.assert_allclose(metrics["loss"], (wrong**2).mean(), rtol=1e-5)
    first = next(estimator.predict(_input_fn))
    np.testing.assert_allclose(first["value"], (models.X @ kernel + bias)[0], rtol=1e-4)
    assert sizes == [("train", 8, False), ("eval", 24, False), ("infer", 12, False)]


def test_a_tpu_is_refused(tmp_path):
    """`use_tpu=True` says that there is none."""
    config = tpu.RunConfig(model_dir=str(tmp_path))
    with pytest.raises(NotImplementedError, match="use_tpu=False"):
        tpu.TPUEstimator(_model_fn, config=config, train_batch_size=8)
