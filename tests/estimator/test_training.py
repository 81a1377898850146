"""`train_and_evaluate`, exporters and early stopping."""

from __future__ import annotations

import os

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.estimator import models


def _receiver():
    return tf.estimator.export.ServingInputReceiver(
        *[{"x": tf.placeholder(tf.float32, [None, 2])}] * 2,
    )


@pytest.fixture(scope="module")
def alternated(tmp_path_factory):
    """(Estimator, metrics, exports, steps of evaluations) of training with evaluations after each checkpoint."""
    estimator = models.estimator(tmp_path_factory.mktemp("model"))
    seen = []

    class Seen(tf.train.SessionRunHook):
        def end(self, session):
            seen.append(int(session.run(tf.train.get_global_step())))

    exporters = [
        tf.estimator.LatestExporter("latest", _receiver, exports_to_keep=1),
        tf.estimator.FinalExporter("final", _receiver),
        tf.estimator.BestExporter(serving_input_receiver_fn=_receiver),
    ]
    spec = tf.estimator.EvalSpec(models.data, steps=None, exporters=exporters, throttle_secs=0, hooks=[Seen()])
    metrics, exports = tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(models.endless, max_steps=12), spec
    )
    return estimator, metrics, exports, seen


def test_evaluations_follow_checkpoints(alternated):
    """Each checkpoint but the first is evaluated; the result is that of the last one."""
    _, metrics, _, seen = alternated
    assert seen == [5, 10, 12]
    _, kernel, bias = models.losses(12)
    np.testing.assert_allclose(metrics["loss"], ((models.X @ kernel + bias - models.Y) ** 2).mean(), rtol=1e-5)


def test_exporters_write_below_the_model_directory(alternated):
    """The latest export replaces earlier ones, the final one is written once, the best ones when the loss fell."""
    estimator, _, exports, _ = alternated
    folder = os.path.join(estimator.model_dir, "export")
    kept = {name: sorted(os.listdir(os.path.join(folder, name))) for name in os.listdir(folder)}
    assert {name: len(found) for name, found in kept.items()} == {"latest": 1, "final": 1, "best_exporter": 3}
    assert [os.path.basename(os.path.dirname(path)) for path in map(os.fsdecode, exports)] == [
        "latest",
        "final",
        "best_exporter",
    ]


def test_best_exporter_knows_earlier_runs(alternated):
    """Metrics in event files of earlier runs are compared, so that a worse model is not exported."""
    estimator, metrics, _, _ = alternated
    exporter = tf.estimator.BestExporter(serving_input_receiver_fn=_receiver)
    worse = {"loss": metrics["loss"] * 2, "global_step": 20}
    folder = os.path.join(estimator.model_dir, "export", "best_exporter")
    assert exporter.export(estimator, folder, None, worse, False) is None


def test_metrics_end_training(alternated, tmp_path):
    """Hooks stop when a metric of an evaluation is below a threshold, or has not fallen for a number of steps."""
    estimator = alternated[0]
    experimental = tf.estimator.experimental
    for hook, stops in (
        (experimental.stop_if_lower_hook(estimator, "loss", 1e6, run_every_secs=None, run_every_steps=1), True),
        (experimental.stop_if_higher_hook(estimator, "loss", 1e6, run_every_secs=None, run_every_steps=1), False),
        (experimental.stop_if_no_decrease_hook(estimator, "loss", 2, run_every_secs=None, run_every_steps=1), False),
        (experimental.stop_if_no_increase_hook(estimator, "loss", 2, run_every_secs=None, run_every_steps=1), True),
        (experimental.make_early_stopping_hook(estimator, lambda: True, run_every_secs=None, run_every_steps=1), True),
    ):
        assert bool(vars(hook)["_should_stop_fn"]()) is stops


def test_an_early_stop_ends_training(tmp_path):
    """A predicate that becomes true stops training at that step."""
    estimator = models.estimator(tmp_path)
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) == 4

    hook = tf.estimator.experimental.make_early_stopping_hook(
        estimator, should_stop, run_every_secs=None, run_every_steps=1
    )
    estimator.train(models.endless, steps=50, hooks=[hook])
    assert 3 <= estimator.get_variable_value("global_step") <= 5
    assert "signal_early_stopping/STOP" in estimator.get_variable_names()


def test_evaluation_in_memory_uses_the_trained_variables(tmp_path):
    """Evaluations at the start, at intervals and at the end have the losses of those steps, without checkpoints."""
    estimator = models.estimator(tmp_path)
    hook = tf.estimator.experimental.InMemoryEvaluatorHook(estimator, models.data, every_n_iter=2)
    estimator.train(models.endless, steps=5, hooks=[hook])
    found = {}
    for name in os.listdir(estimator.eval_dir()):
        for event in tf.train.summary_iterator(os.path.join(estimator.eval_dir(), name)):
            for value in event.summary.value:
                if value.tag == "loss":
                    found[event.step] = value.simple_value
    expected = {}
    for step in (0, 2, 4, 5):
        _, kernel, bias = models.losses(step)
        expected[step] = ((models.X @ kernel + bias - models.Y) ** 2).mean()
    assert sorted(found) == sorted(expected)
    np.testing.assert_allclose([found[step] for step in sorted(found)], list(expected.values()), rtol=1e-5)


def test_metrics_are_added(alternated):
    """`add_metrics` evaluates the same model with more metrics."""

    def more(labels, predictions):
        return {"worst": tf.metrics.mean(tf.reduce_max(tf.abs(labels - predictions)))}

    estimator = tf.estimator.add_metrics(alternated[0], more)
    metrics = estimator.evaluate(models.data, name="more")
    assert sorted(metrics) == ["error", "global_step", "loss", "worst"]
    assert metrics["worst"] >= metrics["error"]
