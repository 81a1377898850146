"""tf.metrics: values, updates, names and collections as TensorFlow's."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"
_spec = importlib.util.spec_from_file_location("metric_cases", GOLDEN / "cases.py")
assert _spec is not None and _spec.loader is not None
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)


@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", cases.metrics(tf))
def test_metric_is_as_in_tensorflow(name, weights):
    """Over three batches the value, the update and the variables' names are TensorFlow's."""
    if weights and name == "mean_cosine_distance":
        pytest.skip("its weights have another shape")
    columns, make = cases.metrics(tf)[name]
    names, results = cases.run(tf, columns, make, weights)
    label = f"{name}|{'weighted' if weights else 'plain'}"
    with np.load(GOLDEN / "values.npz") as expected:
        assert names[2:] == expected[f"{label}|names"].tolist()[2:]
        for i, result in enumerate(results):
            found = expected[f"{label}|{i}"]
            assert result.dtype == found.dtype and result.shape == found.shape
            np.testing.assert_allclose(result, found, rtol=2e-5, atol=1e-6, err_msg=f"{name} {i}")


def test_metrics_join_collections():
    """Value and update op join the collections that are asked for."""
    value, update = tf.metrics.mean([1.0], metrics_collections=["values"], updates_collections=["updates"])
    assert tf.get_collection("values") == [value] and tf.get_collection("updates") == [update]
    assert value.op.name == "mean/value" and update.op.name == "mean/update_op"
    assert tf.global_variables() == [] and tf.trainable_variables() == []


def test_metrics_start_anew():
    """Initializing the local variables forgets what was gathered."""
    fed = tf.placeholder(tf.float32)
    value, update = tf.metrics.mean(fed)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(value) == 0
        session.run(update, {fed: 4.0})
        assert session.run(update, {fed: 2.0}) == 3
        session.run(tf.local_variables_initializer())
        assert session.run(update, {fed: 7.0}) == 7


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.metrics.mean(np.zeros([2, 3]), weights=np.zeros([3, 3])),
        lambda: tf.metrics.auc([True], [0.5], curve="other"),
        lambda: tf.metrics.auc([True], [0.5], summation_method="other"),
        lambda: tf.metrics.auc([True], [0.5], thresholds=[2.0]),
        lambda: tf.metrics.sensitivity_at_specificity([True], [0.5], 2.0),
        lambda: tf.metrics.accuracy(np.zeros([2, 3]), np.zeros([4, 3])),
    ],
)
def test_bad_arguments_are_refused(make):
    """Arguments that do not fit raise ValueError."""
    with pytest.raises(ValueError):
        make()


def test_scores_are_checked_when_run():
    """Scores outside of [0, 1] raise InvalidArgumentError."""
    scores = tf.placeholder(tf.float32, [2])
    _, update = tf.metrics.auc([True, False], scores)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="predictions must be"):
            session.run(update, {scores: [0.5, 1.5]})


def test_metrics_refuse_eager_mode(eager):
    """Without a graph there is nowhere to keep the state."""
    with pytest.raises(RuntimeError, match="eager"):
        tf.metrics.mean([1.0])


def test_sparse_labels_at_k():
    """Each row of sparse labels has its own number of them; a row without any has no average precision."""
    labels = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 1]], tf.constant([3, 0, 3, 2], tf.int64), [2, 3])
    scores = tf.constant([[0.5, 0.1, 0.2, 0.4], [0.1, 0.5, 0.2, 0.3]])
    metrics = [
        tf.metrics.recall_at_k(labels, scores, 1)[1],
        tf.metrics.precision_at_k(labels, scores, 2)[1],
        tf.metrics.average_precision_at_k(labels, scores, 3)[1],
        tf.metrics.average_precision_at_k(tf.sparse_slice(labels, [0, 0], [2, 1]), scores, 3)[1],
    ]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        found = session.run(metrics)
    np.testing.assert_allclose(found, [1 / 3, 2 / 4, (1 + 1 / 3) / 2, np.nan])


@pytest.mark.parametrize("labels, predictions, weights, expected", [
    ((4,), (4, 1), None, 0.5), ((4, 1), (4,), None, 0.5), ((4, 1), (4, 1), (4,), 0.6), ((4,), (4,), (4, 1), 0.6), ((4,), (4,), (), 0.5),
    ((2, 3), (1, 2, 3), None, "error"), ((2, 3), (2, 3), (3,), "error"), ((2, 3), (2, 3), (2,), 5 / 9),
])  # fmt: skip
def test_shapes_that_are_known_late_are_matched_when_it_runs(labels, predictions, weights, expected):
    """A last dimension of size 1 too many is dropped, and weights that cannot be broadcast are refused (TensorFlow's numbers)."""
    count = int(np.prod(labels))
    given = [tf.placeholder(tf.float32) for _ in range(3)]
    _, update = tf.metrics.mean_squared_error(*given[:2], None if weights is None else given[2])
    feeds = {given[0]: np.zeros(labels), given[1]: (np.arange(count) % 2).reshape(predictions)}
    if weights is not None:
        feeds[given[2]] = np.arange(1, int(np.prod(weights)) + 1).reshape(weights)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        if expected == "error":
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(update, feeds)
        else:
            assert session.run(update, feeds) == pytest.approx(expected)


def test_classes_chosen_twice_count_once():
    """Classes that `predictions_idx` names twice in a row are one true or false positive."""
    labels, chosen = tf.constant([[1], [2]], tf.int64), tf.constant([[1, 1, 0], [3, 3, 3]], tf.int64)
    metrics = [tf.metrics.precision_at_top_k(labels, chosen)[1], tf.metrics.recall_at_top_k(labels, chosen)[1]]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(metrics) == [1 / 3, 1 / 2]


def test_state_of_mean_per_class_accuracy():
    """`total` holds the examples of each class, `count` those predicted right, weighted."""
    _, update = tf.metrics.mean_per_class_accuracy([0, 1, 1, 1], [0, 1, 1, 0], 3, weights=[1.0, 2.0, 3.0, 4.0])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_allclose(session.run(update), [1, 5 / 9, 0])
        found = {variable.op.name: session.run(variable).tolist() for variable in tf.local_variables()}
    assert found == {"mean_accuracy/total": [1, 9, 0], "mean_accuracy/count": [1, 5, 0]}


@pytest.mark.parametrize("weights", [0.5, np.float32(0.5), (0.5, 0.5, 0.5)])
def test_one_weight_serves_all_of_mean_iou(weights):
    """A scalar weight counts for every example."""
    value, update = tf.metrics.mean_iou([0, 1, 2], [0, 1, 1], 3, weights=weights)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_allclose(session.run(update), [[0.5, 0, 0], [0, 0.5, 0], [0, 0.5, 0]])
        assert session.run(value) == pytest.approx(0.5)
