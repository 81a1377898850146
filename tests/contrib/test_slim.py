"""`tf.contrib.slim` against TensorFlow 1.15 (tests/golden/contrib): data, training, evaluation, losses and metrics."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "contrib"
_spec = importlib.util.spec_from_file_location("contrib_slim_program", GOLDEN / "slim_program.py")
assert _spec is not None and _spec.loader is not None
program = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(program)


def test_a_program_trains_as_under_tensorflow(tmp_path):
    """Losses of twelve steps, boxes, the variables in the checkpoint and the metrics of its evaluation are those of 1.15."""
    found = program.run(tf, str(tmp_path))
    wanted = json.loads((GOLDEN / "slim_program.json").read_text())
    np.testing.assert_allclose(found["losses"], wanted["losses"], rtol=1e-4)
    assert found["last"] == found["losses"][-1]
    np.testing.assert_allclose(found["box"], wanted["box"])
    assert (found["stored"], found["sizes"]) == (wanted["stored"], wanted["sizes"])
    assert found["metrics"] == pytest.approx(wanted["metrics"], rel=1e-5)
    assert [each.name for each in (tmp_path / "eval").iterdir() if "tfevents" in each.name]


def test_checkpoints_are_evaluated_as_they_appear(tmp_path):
    """`evaluate_repeatedly` and `evaluation_loop` restore the newest checkpoint each time and end after a timeout."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.contrib.framework.model_variable("v", [], initializer=tf.constant_initializer(3.0))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "model"), global_step=1)

    def evaluated(loop):
        with tf.Graph().as_default():
            v = tf.contrib.framework.model_variable("v", [], initializer=tf.zeros_initializer())
            return loop(*tf.metrics.mean(v))

    training, slim = tf.contrib.training, tf.contrib.slim
    assert evaluated(
        lambda value, update: training.evaluate_repeatedly(
            str(tmp_path), eval_ops=update, final_ops=value, hooks=[training.StopAfterNEvalsHook(2)], eval_interval_secs=0, timeout=0
        )
    ) == 3.0  # fmt: skip
    assert evaluated(
        lambda value, update: slim.evaluation.evaluation_loop(
            "", str(tmp_path), str(tmp_path / "eval"), 2, eval_op=update, final_op=value, max_number_of_evaluations=1, eval_interval_secs=0
        )
    ) == 3.0  # fmt: skip
    assert training.wait_for_new_checkpoint(str(tmp_path), str(tmp_path / "model-1"), timeout=0) is None


def test_training_ends_with_its_input(tmp_path):
    """`tf.contrib.training.train` stops by a hook, and a training op checks its loss."""
    with tf.Graph().as_default():
        x = tf.contrib.framework.model_variable("x", [], initializer=tf.constant_initializer(4.0))
        op = tf.contrib.training.create_train_op(
            tf.square(x), tf.train.GradientDescentOptimizer(0.25), transform_grads_fn=tf.contrib.training.clip_gradient_norms_fn(2.0)
        )  # fmt: skip
        hook = tf.train.StopAtStepHook(3)
        loss = tf.contrib.training.train(op, None, hooks=[hook], save_checkpoint_secs=None, save_summaries_steps=None)
        assert loss == 9.0  # 4 -> 3.5 -> 3: each step is 0.25 times the clipped gradient of 2
        with pytest.raises(ValueError, match="logdir cannot be None"):
            tf.contrib.training.train(op, None)


def test_losses_have_predictions_first():
    """`tf.contrib.losses` equals `tf.losses` with its arguments in the other order; hinge losses are not reduced."""
    a, b = np.float32([[0.2, 0.7], [0.4, 0.1]]), np.float32([[0, 1], [1, 1]])
    with tf.Graph().as_default(), tf.Session() as session:
        old, new = tf.contrib.losses, tf.losses
        pairs = [
            (old.mean_squared_error(a, b), new.mean_squared_error(b, a)),
            (old.absolute_difference(a, b, [1.0, 0.0]), new.absolute_difference(b, a, [[1.0], [0.0]])),
            (old.log_loss(a, b), new.log_loss(b, a)),
            (old.sigmoid_cross_entropy(a, b), new.sigmoid_cross_entropy(b, a)),
            (old.softmax_cross_entropy(a, b), new.softmax_cross_entropy(b, a)),
            (old.sparse_softmax_cross_entropy(a, [1, 0]), new.sparse_softmax_cross_entropy([1, 0], a)),
            (old.cosine_distance(a, b, axis=1), new.cosine_distance(b, a, axis=1)),
        ]
        for first, second in session.run(pairs):
            assert first == second
        weighted = [old.softmax_cross_entropy(a, b, [1.0, 0.5]), old.mean_pairwise_squared_error(a, b, [1.0, 0.5])]
        np.testing.assert_allclose(session.run(weighted), [0.5892161, 0.1475], rtol=1e-6)  # the figures of 1.15
        np.testing.assert_allclose(session.run(old.hinge_loss(a, b)), [[1.2, 0.3], [0.6, 0.9]], rtol=1e-6)
        assert len(old.get_losses()) == 16


def test_streaming_metrics_have_predictions_first():
    """The metrics of contrib equal those of `tf.metrics`, and say so when there are too many arguments."""
    predictions, labels = np.float32([0.1, 0.8, 0.6, 0.3]), np.int64([0, 1, 1, 1])
    with tf.Graph().as_default(), tf.Session() as session:
        old, new = tf.contrib.metrics, tf.metrics
        pairs = [
            (old.streaming_auc(predictions, labels, None, 50, None, None, "PR"), new.auc(labels, predictions, num_thresholds=50, curve="PR")),
            (old.streaming_mean_squared_error(predictions, 1 - predictions), new.mean_squared_error(1 - predictions, predictions)),
            (old.streaming_recall_at_thresholds(predictions, labels, [0.5]), new.recall_at_thresholds(labels, predictions, [0.5])),
            (old.count([1.0, 2.0], weights=[0.5, 1.0]), (None, None)),
        ]  # fmt: skip
        session.run(tf.local_variables_initializer())
        for (_, first), (_, second) in pairs[:3]:
            np.testing.assert_array_equal(*session.run([first, second]))
        assert session.run(pairs[3][0][1]) == 1.5
        assert session.run(old.accuracy(tf.constant([1, 2]), tf.constant([1, 3]))) == 0.5
        with pytest.raises(TypeError, match="at most 6 arguments"):
            old.streaming_accuracy(1, 2, 3, 4, 5, 6, 7)


def test_handlers_make_items_of_features():
    """Shapes by features, sparse features as dense items, backups for empty items, and functions of features."""
    decoder = tf.contrib.slim.tfexample_decoder

    def feature(**kind):
        ((name, value),) = kind.items()
        lists = {"floats": ("float_list", tf.train.FloatList), "ints": ("int64_list", tf.train.Int64List)}
        return tf.train.Feature(**{lists[name][0]: lists[name][1](value=value)})

    features = {"v": feature(floats=range(6)), "h": feature(ints=[2]), "w": feature(ints=[3]), "ids": feature(ints=[1, 3]), "values": feature(floats=[5, 6])}  # fmt: skip
    example = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    kinds = {"v": tf.float32, "ids": tf.int64, "values": tf.float32, "empty": tf.float32}
    keys = {name: tf.VarLenFeature(kind) for name, kind in kinds.items()}
    keys.update(h=tf.FixedLenFeature([1], tf.int64), w=tf.FixedLenFeature([], tf.int64))
    handlers = {
        "table": decoder.Tensor("v", shape_keys=["h", "w"]),
        "dense": decoder.SparseTensor("ids", "values", shape=[5], densify=True),
        "backup": decoder.BackupHandler(decoder.Tensor("empty"), decoder.Tensor("v")),
        "twice": decoder.ItemHandlerCallback(["h"], lambda found: found["h"] * 2),
    }
    with tf.Graph().as_default(), tf.Session() as session:
        made = decoder.TFExampleDecoder(keys, handlers)
        assert made.list_items() == ["backup", "dense", "table", "twice"]
        found = dict(zip(handlers, session.run(made.decode(tf.constant(example), list(handlers))), strict=True))
    np.testing.assert_array_equal(found["table"], np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(found["dense"], [0, 5, 0, 6, 0])
    np.testing.assert_array_equal(found["backup"], np.arange(6))
    np.testing.assert_array_equal(found["twice"], [4])
