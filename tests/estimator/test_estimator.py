"""Training, evaluation, prediction and export with a custom model function."""

from __future__ import annotations

import logging
import os

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.estimator import models


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(Estimator, log lines of its training, steps at which a listener saw checkpoints), after twelve steps."""
    folder = tmp_path_factory.mktemp("model")
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger, before = logging.getLogger("tensorflow"), tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.INFO)
    logger.addHandler(handler)
    saved: list[int] = []

    class Listener(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            saved.append(global_step_value)

    try:
        estimator = models.estimator(folder)
        assert estimator.train(models.endless, steps=12, saving_listeners=[Listener()]) is estimator
    finally:
        logger.removeHandler(handler)
        tf.logging.set_verbosity(before)
    return estimator, lines, saved


def test_training_logs_losses_and_saves_checkpoints(trained):
    """The log has TensorFlow's lines with the losses of gradient descent; checkpoints appear at the start, at intervals and at the end."""
    estimator, lines, saved = trained
    expected, kernel, _bias = models.losses(12)
    assert saved == [0, 5, 10, 12]
    shown = [line for line in lines if line.startswith("loss = ")]
    assert [line.split(",")[1].split(" (")[0] for line in shown] == [" step = 1", " step = 6", " step = 11"]
    np.testing.assert_allclose(
        [float(line.split(",")[0].removeprefix("loss = ")) for line in shown], expected[::5], rtol=1e-5
    )
    assert "Calling model_fn." in lines and "Done calling model_fn." in lines
    final = next(line for line in lines if line.startswith("Loss for final step: "))
    np.testing.assert_allclose(float(final.removeprefix("Loss for final step: ")[:-1]), expected[-1], rtol=1e-5)
    assert estimator.get_variable_names() == ["dense/bias", "dense/kernel", "global_step"]
    np.testing.assert_allclose(estimator.get_variable_value("dense/kernel"), kernel, rtol=1e-5)
    assert os.path.basename(estimator.latest_checkpoint()) == "model.ckpt-12"
    with open(os.path.join(estimator.model_dir, "checkpoint")) as file:
        assert file.readline() == 'model_checkpoint_path: "model.ckpt-12"\n'


def _summaries(folder):
    """step -> the tags of its summaries, over all event files of a directory."""
    found: dict[int, set[str]] = {}
    for name in os.listdir(folder):
        if name.startswith("events"):
            for event in tf.train.summary_iterator(os.path.join(folder, name)):
                for value in event.summary.value:
                    found.setdefault(event.step, set()).add(value.tag)
    return found


def test_training_writes_summaries(trained):
    """The loss is a summary at the intervals of the config, and the step rate is one."""
    found = _summaries(trained[0].model_dir)
    assert found == {1: {"loss"}, 6: {"loss", "global_step/sec"}, 11: {"loss", "global_step/sec"}}


def test_evaluation_returns_and_writes_metrics(trained):
    """Metrics are those of all rows; `loss` is the mean over batches; the event file of the evaluation has them and the checkpoint."""
    estimator = trained[0]
    metrics = estimator.evaluate(models.data, name="all")
    _, kernel, bias = models.losses(12)
    wrong = models.X @ kernel + bias - models.Y
    assert sorted(metrics) == ["error", "global_step", "loss"]
    assert metrics["global_step"] == 12
    np.testing.assert_allclose(metrics["error"], abs(wrong).mean(), rtol=1e-5)
    np.testing.assert_allclose(metrics["loss"], (wrong**2).mean(), rtol=1e-5)
    assert _summaries(estimator.eval_dir("all")) == {12: {"error", "loss", "checkpoint_path"}}


def test_evaluation_of_some_batches_of_an_older_checkpoint(trained):
    """`steps` ends an evaluation early, and `checkpoint_path` chooses the checkpoint."""
    estimator = trained[0]
    path = os.path.join(estimator.model_dir, "model.ckpt-5")
    metrics = estimator.evaluate(models.endless, steps=1, checkpoint_path=path, name="old")
    _, kernel, bias = models.losses(5)
    wrong = (models.X @ kernel + bias - models.Y)[:8]
    np.testing.assert_allclose(metrics["loss"], (wrong**2).mean(), rtol=1e-5)
    assert metrics["global_step"] == 5


def test_predictions_come_one_by_one_or_in_batches(trained):
    """`predict` yields dictionaries of examples or of batches, of all predictions or of some, and leaves the default graph alone."""
    estimator = trained[0]
    _, kernel, bias = models.losses(12)
    expected = models.X @ kernel + bias
    graph = tf.get_default_graph()
    single = []
    for each in estimator.predict(models.data):
        assert tf.get_default_graph() is graph
        single.append(each)
    assert len(single) == models.ROWS and sorted(single[0]) == ["twice", "value"]
    np.testing.assert_allclose([each["value"] for each in single], expected, rtol=1e-4, atol=1e-6)
    batches = list(estimator.predict(models.data, predict_keys=["twice"], yield_single_examples=False))
    assert [each["twice"].shape for each in batches] == [(8, 1)] * 3 and list(batches[0]) == ["twice"]
    # A prediction that is not used up closes its session.
    some = estimator.predict(models.endless)
    next(some)
    some.close()


def test_a_second_estimator_continues_and_stops_at_max_steps(trained, tmp_path):
    """Another Estimator of the same directory starts at the last step; `max_steps` counts from zero and is not passed."""
    first = models.estimator(tmp_path)
    first.train(models.endless, steps=3)
    again = models.estimator(tmp_path)
    again.train(models.endless, max_steps=6)
    assert again.get_variable_value("global_step") == 6
    again.train(models.endless, max_steps=6)
    assert again.get_variable_value("global_step") == 6
    _, kernel, bias = models.losses(3)
    _, kernel, _ = models.losses(3, kernel, bias)
    np.testing.assert_allclose(again.get_variable_value("dense/kernel"), kernel, rtol=1e-5)


def test_warm_start_takes_values_of_a_checkpoint(trained, tmp_path):
    """Variables start with those of another model; the global step starts at zero."""
    estimator = tf.estimator.Estimator(
        models.model_fn, str(tmp_path), params={"rate": 0.0}, warm_start_from=trained[0].model_dir
    )
    estimator.train(models.endless, steps=1)
    np.testing.assert_array_equal(
        estimator.get_variable_value("dense/kernel"), trained[0].get_variable_value("dense/kernel")
    )
    assert estimator.get_variable_value("global_step") == 1


def test_exported_model_serves_raw_and_parsed_features(trained, tmp_path):
    """A SavedModel has the signatures of the outputs and gives the predictions of the Estimator."""
    estimator = trained[0]
    raw = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 2])})
    parsed = tf.estimator.export.build_parsing_serving_input_receiver_fn({"x": tf.FixedLenFeature([2], tf.float32)})
    extra = tmp_path / "notes.txt"
    extra.write_text("notes")
    expected = [each["value"] for each in estimator.predict(models.data)]
    path = estimator.export_saved_model(str(tmp_path / "raw"), raw, assets_extra={"a/notes.txt": str(extra)})
    assert isinstance(path, bytes) and os.path.basename(path).isdigit()
    assert (tmp_path / "raw" / os.fsdecode(os.path.basename(path)) / "assets.extra" / "a" / "notes.txt").exists()
    examples = [
        tf.train.Example(
            features=tf.train.Features(feature={"x": tf.train.Feature(float_list=tf.train.FloatList(value=row))})
        ).SerializeToString()
        for row in models.X
    ]
    for folder, name, value in (
        (path, "x", models.X),
        (estimator.export_saved_model(str(tmp_path / "parsed"), parsed), "examples", examples),
    ):
        with tf.Graph().as_default(), tf.Session() as session:
            model = tf.saved_model.loader.load(session, ["serve"], os.fsdecode(folder))
            signature = model.signature_def["serving_default"]
            fed, out = signature.inputs[name].name, signature.outputs["value"].name
            np.testing.assert_allclose(session.run(out, {fed: value}), expected, rtol=1e-5, atol=1e-6)


def test_all_modes_are_exported_as_one_model(trained, tmp_path):
    """The graphs of training, evaluation and serving share a SavedModel; those with labels have a loss and metrics."""
    estimator = trained[0]
    x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 1])
    labelled = tf.estimator.experimental.build_raw_supervised_input_receiver_fn({"x": x}, y)
    keys = tf.estimator.ModeKeys
    path = estimator.experimental_export_all_saved_models(
        str(tmp_path),
        {
            keys.TRAIN: labelled,
            keys.EVAL: labelled,
            keys.PREDICT: tf.estimator.export.build_raw_serving_input_receiver_fn({"x": x}),
        },
    )
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["eval"], os.fsdecode(path))
        signature = model.signature_def["eval"]
        assert sorted(signature.inputs) == ["label", "x"]
        assert sorted(signature.outputs) == ["loss", "metrics/error/update_op", "metrics/error/value", "predictions"]
        feeds = {signature.inputs["x"].name: models.X, signature.inputs["label"].name: models.Y}
        _, kernel, bias = models.losses(12)
        loss = ((models.X @ kernel + bias - models.Y) ** 2).mean()
        np.testing.assert_allclose(session.run(signature.outputs["loss"].name, feeds), loss, rtol=1e-5)
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["train"], os.fsdecode(path))
        assert "loss" in model.signature_def["train"].outputs


def test_arrays_are_inputs(trained):
    """`numpy_input_fn` gives all rows in order, in dictionaries or as they are, and ends after its epochs."""
    fn = tf.estimator.inputs.numpy_input_fn({"x": models.X}, models.Y, batch_size=10, num_epochs=2, shuffle=False)
    predictions = [each["value"] for each in trained[0].predict(fn)]
    expected = [each["value"] for each in trained[0].predict(models.data)]
    np.testing.assert_allclose(predictions, expected * 2, rtol=1e-5, atol=1e-6)
    shuffled = tf.estimator.inputs.numpy_input_fn({"x": models.X}, models.Y, batch_size=10, shuffle=True)
    found = trained[0].evaluate(shuffled, name="numpy")
    np.testing.assert_allclose(found["error"], trained[0].evaluate(models.data, name="data")["error"], rtol=1e-5)


def test_run_config_replaces_values():
    """`replace` returns a copy; one interval of checkpoints replaces the other."""
    config = tf.estimator.RunConfig(model_dir="/a", save_checkpoints_secs=5)
    other = config.replace(save_checkpoints_steps=7, tf_random_seed=3)
    assert (other.save_checkpoints_steps, other.save_checkpoints_secs, other.tf_random_seed) == (7, None, 3)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs, config.tf_random_seed) == (None, 5, None)
    assert other.model_dir == "/a"
