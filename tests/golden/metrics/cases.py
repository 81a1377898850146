"""Streaming metrics over three batches, written once for TensorFlow and for stoker."""

from functools import partial

import numpy as np

_random = np.random.RandomState(4)
BATCHES = 3
LABELS = _random.randint(0, 2, (BATCHES, 6)).astype(bool)
SCORES = np.clip(_random.uniform(0, 1, (BATCHES, 6)) * 0.6 + LABELS * 0.3, 0, 1).astype(np.float32)
WEIGHTS = _random.uniform(0, 2, (BATCHES, 6)).astype(np.float32)
CLASSES = _random.randint(0, 4, (BATCHES, 6)).astype(np.int64)
GUESSES = np.where(_random.uniform(size=(BATCHES, 6)) < 0.5, CLASSES, _random.randint(0, 4, (BATCHES, 6))).astype(
    np.int64
)
VALUES = _random.randn(BATCHES, 6, 3).astype(np.float32)
OTHERS = (VALUES + 0.3 * _random.randn(BATCHES, 6, 3)).astype(np.float32)
UNIT, UNIT_OTHER = (x / np.linalg.norm(x, axis=2, keepdims=True) for x in (VALUES, OTHERS))
LOGITS = _random.randn(BATCHES, 6, 5).astype(np.float32)
TOP = _random.randint(0, 5, (BATCHES, 6, 2)).astype(np.int64)
THRESHOLDS = [0.2, 0.5, 0.8]


def _with_thresholds(make, labels, scores, **kwargs):
    return make(labels, scores, THRESHOLDS, **kwargs)


def metrics(tf):
    """name -> (feeds by batch, function of the placeholders that makes the metric)."""
    m = tf.metrics
    binary = [LABELS, SCORES >= 0.5]
    scored = [LABELS, SCORES]
    found = {
        "mean": ([VALUES], m.mean),
        "accuracy": ([CLASSES, GUESSES], m.accuracy),
        "mean_tensor": ([VALUES], m.mean_tensor),
        "mean_absolute_error": ([VALUES, OTHERS], m.mean_absolute_error),
        "mean_squared_error": ([VALUES, OTHERS], m.mean_squared_error),
        "root_mean_squared_error": ([VALUES, OTHERS], m.root_mean_squared_error),
        "mean_relative_error": ([VALUES, OTHERS], lambda a, b, **k: m.mean_relative_error(a, b, tf.abs(a), **k)),
        "mean_cosine_distance": ([UNIT, UNIT_OTHER], lambda a, b, **k: m.mean_cosine_distance(a, b, dim=1, **k)),
        "percentage_below": ([VALUES], lambda a, **k: m.percentage_below(a, 0.2, **k)),
        "mean_iou": ([CLASSES, GUESSES], lambda a, b, **k: m.mean_iou(a, b, 4, **k)),
        "mean_per_class_accuracy": ([CLASSES, GUESSES], lambda a, b, **k: m.mean_per_class_accuracy(a, b, 4, **k)),
        "auc": (scored, m.auc),
        "auc_pr": (scored, lambda a, b, **k: m.auc(a, b, curve="PR", summation_method="careful_interpolation", **k)),
        "auc_minoring": (scored, lambda a, b, **k: m.auc(a, b, num_thresholds=20, summation_method="minoring", **k)),
        "auc_majoring": (
            scored,
            lambda a, b, **k: m.auc(a, b, curve="PR", num_thresholds=20, summation_method="majoring", **k),
        ),
        "sensitivity_at_specificity": (scored, lambda a, b, **k: m.sensitivity_at_specificity(a, b, 0.7, **k)),
        "specificity_at_sensitivity": (scored, lambda a, b, **k: m.specificity_at_sensitivity(a, b, 0.7, **k)),
        "recall_at_k": ([TOP, LOGITS], lambda a, b, **k: m.recall_at_k(a, b, 2, **k)),
        "recall_at_k_class": ([TOP, LOGITS], lambda a, b, **k: m.recall_at_k(a, b, 2, class_id=1, **k)),
        "precision_at_k": ([TOP, LOGITS], lambda a, b, **k: m.precision_at_k(a, b, 3, **k)),
        "precision_at_k_class": ([TOP, LOGITS], lambda a, b, **k: m.precision_at_k(a, b, 3, class_id=1, **k)),
        "average_precision_at_k": ([TOP, LOGITS], lambda a, b, **k: m.average_precision_at_k(a, b, 3, **k)),
        "recall_at_1": ([CLASSES, LOGITS], lambda a, b, **k: m.recall_at_k(a, b, 1, **k)),
    }
    for name in ("true_positives", "true_negatives", "false_positives", "false_negatives", "precision", "recall"):
        found[name] = (binary, getattr(m, name))
        at_thresholds = getattr(m, f"{name}_at_thresholds")
        found[f"{name}_at_thresholds"] = (scored, partial(_with_thresholds, at_thresholds))
    return found


def run(tf, columns, make, weights):
    """Variable names, and what value and update op give after each batch."""
    with tf.Graph().as_default():
        feeds = [tf.placeholder(tf.as_dtype(column.dtype), column.shape[1:]) for column in columns]
        extra = {}
        if weights:
            weight = tf.placeholder(tf.float32, [6])
            shaped = weight
            if columns[0].ndim == 3 and columns[0].dtype == np.float32:
                shaped = tf.tile(tf.expand_dims(weight, 1), [1, 3])
            extra = {"weights": shaped}
        value, update = make(*feeds, **extra)
        names = [variable.name for variable in tf.local_variables()]
        assert names == [variable.name for variable in tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)]
        results = []
        with tf.Session() as session:
            session.run(tf.local_variables_initializer())
            for batch in range(BATCHES):
                fed = {feed: column[batch] for feed, column in zip(feeds, columns)}
                if weights:
                    fed[weight] = WEIGHTS[batch]
                results.append(np.array(session.run(update, fed)))
                results.append(np.array(session.run(value)))
    return [value.op.name, update.op.name, *names], results


def values(tf):
    """All metrics, with and without weights (but a cosine distance, whose weights have another shape)."""
    found = {}
    for name, (columns, make) in metrics(tf).items():
        for weights in (False, True):
            if weights and name == "mean_cosine_distance":
                continue
            label = f"{name}|{'weighted' if weights else 'plain'}"
            names, results = run(tf, columns, make, weights)
            found[f"{label}|names"] = np.array(names)
            for i, result in enumerate(results):
                found[f"{label}|{i}"] = result
    return found
