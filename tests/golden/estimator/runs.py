"""Trains, evaluates and uses Estimators, and records what TensorFlow 1.15 gets.

    PYTHON_WITH_TENSORFLOW_1_15 runs.py

writes `runs.json` (losses, metrics, predictions, names of variables) and `starts.npz` (values of variables before training). The same
function runs in a test, from the same start: random initial values of 1.15 depend on the number of ops in its graphs.
"""

import json
import os
import sys
import tempfile

import numpy as np

STEPS = 5
BATCH = 8
ROWS = 40


def table():
    """Forty rows of a small table, with categories, numbers and labels."""
    random = np.random.RandomState(7)
    age = random.randint(17, 80, ROWS).astype(np.float32)
    work = random.choice(["private", "state", "self"], ROWS)
    town = np.array(["town%d" % n for n in random.randint(0, 12, ROWS)])
    hours = random.rand(ROWS).astype(np.float32)
    petals = random.rand(ROWS, 4).astype(np.float32)
    weight = random.randint(1, 4, ROWS).astype(np.float32)
    features = {"age": age, "work": work, "town": town, "hours": hours, "petals": petals, "weight": weight}
    kind = np.floor(petals.sum(1) * 1.5).astype(np.int64) % 3
    labels = {
        "rich": ((age > 40) & (hours > 0.4)).astype(np.int64),
        "kind": kind,
        "named": np.array(["setosa", "versicolor", "virginica"])[kind],
        "price": (age * 0.1 + hours).astype(np.float32),
        "pair": np.stack([age * 0.01, hours], 1).astype(np.float32),
        "several": (petals[:, :3] > 0.5).astype(np.int64),
        "count": random.poisson(2.0, ROWS).astype(np.float32),
        "fraction": hours,
    }
    return features, labels


def columns(tf):
    """The columns of a wide and of a deep model."""
    column = tf.feature_column
    age, hours = column.numeric_column("age"), column.numeric_column("hours")
    buckets = column.bucketized_column(age, [25, 40, 60])
    work = column.categorical_column_with_vocabulary_list("work", ["private", "state", "self"])
    town = column.categorical_column_with_hash_bucket("town", 10)
    crossed = column.crossed_column([buckets, "work"], 20)
    wide = [buckets, work, town, crossed]
    deep = [age, hours, column.indicator_column(work), column.embedding_column(town, 3)]
    return wide, deep


class Params(dict):
    """Hyperparameters that hold a module, which cannot be copied."""

    def __deepcopy__(self, memo):
        return self


def custom_model(features, labels, mode, params):
    """A model function as programs write them."""
    tf = params["tf"]

    def seeded(seed):
        return tf.glorot_uniform_initializer(seed=seed)

    hidden = tf.layers.dense(features["petals"], 6, tf.nn.relu, kernel_initializer=seeded(1))
    logits = tf.layers.dense(hidden, 3, kernel_initializer=seeded(2))
    classes = tf.argmax(logits, 1)
    predictions = {"classes": classes, "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"classify": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.metrics.accuracy(labels, classes)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    optimizer = tf.train.AdamOptimizer(params["rate"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def head_model(features, labels, mode, params):
    """A model function with a head."""
    tf, head = params["tf"], params["head"]
    size = head.logits_dimension
    sizes = {None: size}
    logits = {
        name: tf.layers.dense(features["petals"], size, kernel_initializer=tf.glorot_uniform_initializer(seed=3))
        for name, size in sorted(sizes.items())
    }

    def train_op_fn(loss):
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())

    return head.create_estimator_spec(
        features=features,
        mode=mode,
        labels=labels,
        logits=logits if isinstance(size, dict) else logits[None],
        train_op_fn=train_op_fn,
    )


def cases(tf):
    """name -> (function from a directory and a config to an Estimator, the name of its labels)."""
    wide, deep = columns(tf)
    petals = [tf.feature_column.numeric_column("petals", shape=[4])]
    names = ["setosa", "versicolor", "virginica"]
    e, c = tf.estimator, tf.contrib.estimator
    reduction = tf.losses.Reduction.MEAN

    def canned(kind, labels, *args, **kwargs):
        return lambda **given: getattr(e, kind)(*args, **dict(kwargs, **given)), labels

    def headed(head, labels):
        return lambda **given: e.Estimator(head_model, params=Params(tf=tf, head=head), **given), labels

    both = {"flower": "kind", "cost": "price"}
    old_pair = [c.multi_class_head(3, name="flower"), c.regression_head(name="cost")]
    pair = [e.MultiClassHead(3, name="flower"), e.RegressionHead(name="cost")]
    combined = {"linear_feature_columns": wide, "dnn_feature_columns": deep, "dnn_hidden_units": [8, 4]}
    return {
        "custom": (lambda **given: e.Estimator(custom_model, params=Params(tf=tf, rate=0.01), **given), "kind"),
        "linear_binary": canned("LinearClassifier", "rich", wide),
        "linear_classes": canned("LinearClassifier", "kind", petals, n_classes=3, optimizer="Adagrad"),
        "linear_weighted": canned("LinearClassifier", "rich", wide, weight_column="weight", loss_reduction=reduction),
        "linear_price": canned("LinearRegressor", "price", wide + petals),
        "linear_mean": canned("LinearRegressor", "price", wide, sparse_combiner="mean"),
        "dnn_classes": canned("DNNClassifier", "kind", [10, 10], petals, n_classes=3),
        "dnn_named": canned("DNNClassifier", "named", [4], petals, n_classes=3, label_vocabulary=names),
        "dnn_binary": canned("DNNClassifier", "rich", [8], deep, optimizer="Adam"),
        "dnn_norm": canned("DNNClassifier", "kind", [6], petals, n_classes=3, batch_norm=True),
        "dnn_price": canned("DNNRegressor", "pair", [6, 3], deep, label_dimension=2, activation_fn=tf.nn.tanh),
        "dnn_rms": canned("DNNRegressor", "price", [6], deep, optimizer=lambda: tf.train.RMSPropOptimizer(0.01)),
        "wide_deep": canned("DNNLinearCombinedClassifier", "rich", **combined),
        "wide_deep_classes": canned("DNNLinearCombinedClassifier", "kind", n_classes=3, **combined),
        "wide_deep_price": canned("DNNLinearCombinedRegressor", "price", loss_reduction=reduction, **combined),
        "only_deep": canned(
            "DNNLinearCombinedRegressor", "price", dnn_feature_columns=deep, dnn_hidden_units=[4], dnn_optimizer="SGD"
        ),
        "baseline_binary": canned("BaselineClassifier", "rich"),
        "baseline_classes": canned("BaselineClassifier", "kind", n_classes=3),
        "baseline_price": canned("BaselineRegressor", "price", weight_column="weight"),
        "head_binary": canned("DNNEstimator", "rich", c.binary_classification_head(thresholds=[0.3]), [4], deep),
        "head_classes": canned("LinearEstimator", "kind", c.multi_class_head(3), petals),
        "head_several": canned("DNNEstimator", "several", c.multi_label_head(3, thresholds=[0.4]), [4], petals),
        "head_price": canned("LinearEstimator", "price", c.regression_head(weight_column="weight"), wide),
        "head_count": canned("LinearEstimator", "count", c.poisson_regression_head(), petals),
        "head_fraction": canned("LinearEstimator", "fraction", c.logistic_regression_head(), petals),
        "head_combined": canned("DNNLinearCombinedEstimator", "kind", c.multi_class_head(3, name="flower"), **combined),
        "head_multi": canned("DNNEstimator", both, c.multi_head(old_pair, head_weights=[1.0, 0.5]), [4], petals),
        "head_baseline": canned("BaselineEstimator", "kind", c.multi_class_head(3)),
        "object_binary": headed(e.BinaryClassHead(thresholds=[0.3]), "rich"),
        "object_classes": headed(e.MultiClassHead(3, weight_column="weight"), "kind"),
        "object_named": headed(e.MultiClassHead(3, label_vocabulary=names), "named"),
        "object_several": headed(
            e.MultiLabelHead(3, thresholds=[0.4], classes_for_class_based_metrics=[0, 2]), "several"
        ),
        "object_price": headed(e.RegressionHead(weight_column="weight"), "price"),
        "object_pair": headed(e.RegressionHead(label_dimension=2), "pair"),
        "object_count": headed(e.PoissonRegressionHead(), "count"),
        "object_fraction": headed(e.LogisticRegressionHead(), "fraction"),
        "object_multi": headed(e.MultiHead(pair, head_weights=[1.0, 0.5]), both),
    }


def plain(value):
    """A value as JSON has it."""
    value = np.asarray(value)
    if value.dtype.kind in "SO":
        return [each.decode() for each in value.ravel()]
    return value.tolist()


def run(tf, case, folder, start=None):
    """Runs a case in `folder`, from the values `start` if they are given. Returns what it gives, and the values it started with."""
    make, labels_of = cases(tf)[case]
    features, labels = table()
    wanted = {name: labels[of] for name, of in labels_of.items()} if isinstance(labels_of, dict) else labels[labels_of]
    if start:
        with tf.Graph().as_default(), tf.Session() as session:
            for name, value in start.items():
                tf.get_variable(name, initializer=value)
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, os.path.join(folder, "model.ckpt-0"), write_meta_graph=False)
    config = tf.estimator.RunConfig(save_checkpoints_steps=100, tf_random_seed=1, log_step_count_steps=100)
    losses = []

    class Losses(tf.train.SessionRunHook):
        def begin(self):
            self.loss = tf.get_collection(tf.GraphKeys.LOSSES)[-1]

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(self.loss)

        def after_run(self, run_context, run_values):
            losses.append(float(run_values.results))

    def data(count=ROWS):
        return tf.data.Dataset.from_tensor_slices((features, wanted)).take(count).batch(BATCH)

    estimator = make(model_dir=folder, config=config)
    estimator.train(data, steps=STEPS, hooks=[Losses()])
    metrics = estimator.evaluate(data)
    predictions = [
        {name: plain(value) for name, value in sorted((str(k), v) for k, v in each.items())}
        for each in estimator.predict(lambda: data(3))
    ]
    first = os.path.join(folder, "model.ckpt-0")
    values = {name: tf.train.load_variable(first, name) for name, _ in tf.train.list_variables(first)}
    found = {
        "losses": losses,
        "metrics": {name: plain(value) for name, value in metrics.items()},
        "predictions": predictions,
        "variables": estimator.get_variable_names(),
    }
    return found, values


if __name__ == "__main__":
    import tensorflow

    here = os.path.dirname(os.path.abspath(__file__))
    chosen = sys.argv[1:] or sorted(cases(tensorflow))
    recorded, starts = {}, {}
    for case in chosen:
        with tempfile.TemporaryDirectory() as place:
            recorded[case], values = run(tensorflow, case, place)
            print(case, recorded[case], file=sys.stderr)
            starts.update({case + "|" + name: value for name, value in values.items()})
    if not sys.argv[1:]:
        with open(os.path.join(here, "runs.json"), "w") as file:
            json.dump(recorded, file, indent=1, sort_keys=True)
            file.write("\n")
        np.savez_compressed(os.path.join(here, "starts.npz"), **starts)
