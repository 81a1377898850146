"""Losses with all their reductions and weights, written once for TensorFlow and for stoker."""

import numpy as np

_random = np.random.RandomState(5)
LABELS = _random.uniform(0, 1, (4, 3)).astype(np.float32)
PREDICTIONS = _random.uniform(0.05, 0.95, (4, 3)).astype(np.float32)
BINARY = (LABELS > 0.5).astype(np.float32)
ONE_HOT = np.eye(3, dtype=np.float32)[[0, 2, 1, 1]]
CLASSES = np.array([0, 2, 1, 1])
WEIGHTS = {
    "one": 1.0,
    "half": 0.5,
    "zero": 0.0,
    "rows": np.array([[1.0], [0.0], [2.0], [0.5]], np.float32),
    "all": _random.uniform(0, 1, (4, 3)).astype(np.float32) * (LABELS > 0.3),
    "columns": np.array([[1.0, 0.0, 3.0]], np.float32),
}


def _dense(losses):
    return {
        "absolute_difference": lambda p, **k: losses.absolute_difference(LABELS, p, **k),
        "mean_squared_error": lambda p, **k: losses.mean_squared_error(LABELS, p, **k),
        "huber_loss": lambda p, **k: losses.huber_loss(LABELS, p, delta=0.3, **k),
        "log_loss": lambda p, **k: losses.log_loss(LABELS, p, **k),
        "hinge_loss": lambda p, **k: losses.hinge_loss(BINARY, p, **k),
        "sigmoid": lambda p, **k: losses.sigmoid_cross_entropy(BINARY, p, label_smoothing=0.2, **k),
    }


def _rows(losses):
    return {
        "softmax": lambda p, **k: losses.softmax_cross_entropy(ONE_HOT, p, **k),
        "softmax_smooth": lambda p, **k: losses.softmax_cross_entropy(ONE_HOT, p, label_smoothing=0.1, **k),
        "sparse": lambda p, **k: losses.sparse_softmax_cross_entropy(CLASSES, p, **k),
    }


def values(tf):
    """Every loss and its gradient by the predictions, by name."""
    found = {}

    def note(name, make):
        with tf.Graph().as_default():
            predictions = tf.constant(PREDICTIONS)
            loss = make(predictions)
            gradient = tf.gradients(loss, predictions)[0]
            with tf.Session() as session:
                found[name], found[name + "/gradient"] = session.run([loss, gradient])

    for reduction in tf.losses.Reduction.all():
        for weights, value in WEIGHTS.items():
            for name, make in _dense(tf.losses).items():
                note(
                    f"{name}|{weights}|{reduction}",
                    lambda p, m=make, w=value, r=reduction: m(p, weights=w, reduction=r),
                )
        for weights, value in (("half", 0.5), ("rows", np.array([1.0, 0.0, 2.0, 0.5], np.float32))):
            for name, make in _rows(tf.losses).items():
                note(
                    f"{name}|{weights}|{reduction}",
                    lambda p, m=make, w=value, r=reduction: m(p, weights=w, reduction=r),
                )
        for weights in ("half", "rows"):
            note(
                f"cosine|{weights}|{reduction}",
                lambda p, w=weights, r=reduction: tf.losses.cosine_distance(LABELS, p, 1, WEIGHTS[w], reduction=r),
            )
    for weights in ("one", "zero", "rows"):
        note(
            f"pairwise|{weights}",
            lambda p, w=weights: tf.losses.mean_pairwise_squared_error(LABELS, p, weights=WEIGHTS[w]),
        )
    return found
