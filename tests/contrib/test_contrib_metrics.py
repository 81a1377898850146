"""`tf.contrib.metrics`: what is not a metric of `tf.metrics` under another name."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf


def best_f1(labels, predictions, weights, thresholds):
    """By the definition."""
    scores = []
    for threshold in thresholds:
        above = predictions > threshold
        right = (weights * (above & labels)).sum()
        precision, recall = right / max((weights * above).sum(), 1e-9), right / (weights * labels).sum()
        scores.append(2 * precision * recall / max(precision + recall, 1e-9))
    return max(scores)


@pytest.mark.parametrize("weighted", [False, True])
def test_f1_score_is_the_best_at_any_threshold(weighted):
    """Counts add up over batches. Names and signature are those of 1.15."""
    random = np.random.RandomState(0)
    labels, predictions = random.randint(0, 2, (4, 20)), random.rand(4, 20).astype(np.float32)
    weights = random.rand(20).astype(np.float32) if weighted else None
    fed = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None])
    value, update = tf.contrib.metrics.f1_score(*fed, weights, num_thresholds=5)
    assert [value.name, update.name] == ["f1/Max:0", "f1/Max_1:0"]
    assert [v.name for v in tf.local_variables()] == [
        f"f1/{kind}:0" for kind in ("true_positives", "false_negatives", "false_positives")
    ]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for row in range(4):
            assert session.run(update, dict(zip(fed, (labels[row], predictions[row])))) > 0
        expected = best_f1(
            labels.ravel() == 1,
            predictions.ravel(),
            np.tile(np.ones(20) if weights is None else weights, 4),
            [-1, 0.25, 0.5, 0.75, 2],
        )
        assert session.run(value) == pytest.approx(expected, abs=1e-5)
