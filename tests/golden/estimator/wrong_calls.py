"""Wrong calls of tf.estimator, each with the exception of TensorFlow 1.15; RunConfigs for values of TF_CONFIG.

PYTHON_WITH_TENSORFLOW_1_15 wrong_calls.py > wrong_calls.json
"""

import json
import os
import re
import sys
import tempfile

FUNCTION = re.compile("<function .* at 0x[0-9a-f]+>")


def spec_calls(tf):
    """(name, function) of constructors of EstimatorSpec and the export outputs that fail, in a graph of their own."""
    keys, spec, export = tf.estimator.ModeKeys, tf.estimator.EstimatorSpec, tf.estimator.export

    def one():
        return tf.constant(1.0)

    def loss():
        return tf.constant(1.0, name="loss")

    op = tf.no_op
    return [
        ("mode", lambda: spec("training", loss=loss())),
        ("train_without_op", lambda: spec(keys.TRAIN, loss=loss())),
        ("train_without_loss", lambda: spec(keys.TRAIN, train_op=op())),
        ("eval_without_loss", lambda: spec(keys.EVAL)),
        ("predict_without_predictions", lambda: spec(keys.PREDICT)),
        ("loss_shape", lambda: spec(keys.EVAL, loss=tf.constant([1.0, 2.0], name="losses"))),
        ("loss_number", lambda: spec(keys.EVAL, loss="a")),
        ("op_type", lambda: spec(keys.TRAIN, loss=loss(), train_op="op")),
        ("predictions_type", lambda: spec(keys.PREDICT, predictions={"a": 1.0})),
        ("predictions_single", lambda: spec(keys.PREDICT, predictions=1.0)),
        ("metrics_type", lambda: spec(keys.EVAL, loss=loss(), eval_metric_ops=[1])),
        ("metrics_value", lambda: spec(keys.EVAL, loss=loss(), eval_metric_ops={"a": (1.0,)})),
        ("metrics_pair", lambda: spec(keys.EVAL, loss=loss(), eval_metric_ops={"a": (one(), 3)})),
        ("hooks", lambda: spec(keys.TRAIN, loss=loss(), train_op=op(), training_hooks=["hook"])),
        ("hooks_alone", lambda: spec(keys.TRAIN, loss=loss(), train_op=op(), training_hooks=3)),
        ("eval_hooks", lambda: spec(keys.EVAL, loss=loss(), evaluation_hooks=[3])),
        ("scaffold", lambda: spec(keys.TRAIN, loss=loss(), train_op=op(), scaffold=3)),
        ("outputs_type", lambda: spec(keys.PREDICT, predictions={"a": one()}, export_outputs=[1])),
        ("outputs_value", lambda: spec(keys.PREDICT, predictions={"a": one()}, export_outputs={"a": one()})),
        (
            "outputs_default",
            lambda: spec(
                keys.PREDICT,
                predictions={"a": one()},
                export_outputs={"a": export.PredictOutput(one()), "b": export.PredictOutput(one())},
            ),
        ),
        ("classes_type", lambda: export.ClassificationOutput(classes=one())),
        ("scores_type", lambda: export.ClassificationOutput(scores=tf.constant("a"))),
        ("no_classes", lambda: export.ClassificationOutput()),
        ("value_type", lambda: export.RegressionOutput(tf.constant("a"))),
        ("value_missing", lambda: export.RegressionOutput(None)),
        ("outputs_names", lambda: export.PredictOutput({1: one()})),
        ("outputs_tensor", lambda: export.PredictOutput({"a": 1})),
        ("receiver_features", lambda: export.ServingInputReceiver(None, {"a": tf.placeholder(tf.string)})),
        ("receiver_feature_type", lambda: export.ServingInputReceiver({"a": 1}, {"a": tf.placeholder(tf.string)})),
        ("receiver_feature_key", lambda: export.ServingInputReceiver({1.5: one()}, {"a": tf.placeholder(tf.string)})),
        ("receiver_tensors", lambda: export.ServingInputReceiver({"a": one()}, {"a": 1})),
        ("receiver_key", lambda: export.ServingInputReceiver({"a": one()}, {1: one()})),
        ("receiver_others", lambda: export.ServingInputReceiver({"a": one()}, {"a": one()}, [1])),
        ("tensor_receiver", lambda: export.TensorServingInputReceiver({"a": one()}, {"a": one()})),
        ("raw_receiver", lambda: export.build_raw_serving_input_receiver_fn({})()),
    ]


def config_calls(tf):
    config = tf.estimator.RunConfig
    return [
        ("both_intervals", lambda: config(save_checkpoints_steps=1, save_checkpoints_secs=1)),
        ("negative_steps", lambda: config(save_checkpoints_steps=-1)),
        ("negative_secs", lambda: config(save_checkpoints_secs=-1)),
        ("negative_summary", lambda: config(save_summary_steps=-1)),
        ("negative_kept", lambda: config(keep_checkpoint_max=-1)),
        ("negative_hours", lambda: config(keep_checkpoint_every_n_hours=0)),
        ("negative_log", lambda: config(log_step_count_steps=0)),
        ("seed", lambda: config(tf_random_seed=1.5)),
        ("session", lambda: config(session_config={})),
        ("device_fn", lambda: config(device_fn=3)),
        ("device_fn_args", lambda: config(device_fn=lambda x: "")),
        ("protocol", lambda: config(protocol="tcp")),
        ("delay", lambda: config(experimental_max_worker_delay_secs=1.5)),
        ("timeout", lambda: config(session_creation_timeout_secs=0)),
        ("empty_dir", lambda: config(model_dir="")),
        ("replace_unknown", lambda: config().replace(tf_random_seeds=3)),
        ("replace_fixed", lambda: config().replace(cluster_spec=3)),
        ("replace_both", lambda: config().replace(save_checkpoints_steps=1, save_checkpoints_secs=1)),
        ("train_input", lambda: tf.estimator.TrainSpec(3)),
        ("train_steps", lambda: tf.estimator.TrainSpec(lambda: 1, max_steps=0)),
        ("train_hooks", lambda: tf.estimator.TrainSpec(lambda: 1, hooks=[1])),
        ("eval_input", lambda: tf.estimator.EvalSpec(3)),
        ("eval_steps", lambda: tf.estimator.EvalSpec(lambda: 1, steps=0)),
        ("eval_name", lambda: tf.estimator.EvalSpec(lambda: 1, name=3)),
        ("eval_exporters", lambda: tf.estimator.EvalSpec(lambda: 1, exporters=[3])),
        ("eval_delay", lambda: tf.estimator.EvalSpec(lambda: 1, start_delay_secs=-1)),
        ("eval_throttle", lambda: tf.estimator.EvalSpec(lambda: 1, throttle_secs=-1)),
        ("eval_hooks", lambda: tf.estimator.EvalSpec(lambda: 1, hooks=[1])),
        ("vocab_axis", lambda: tf.estimator.VocabInfo("a", 1, 1, "b", axis=2)),
        ("warm_start", lambda: tf.estimator.WarmStartSettings("")),
        ("numpy_shuffle", lambda: tf.estimator.inputs.numpy_input_fn({"x": [1]})),
        ("numpy_dict", lambda: tf.estimator.inputs.numpy_input_fn([1], shuffle=False)()),
        ("pandas_shuffle", lambda: tf.estimator.inputs.pandas_input_fn(None)),
        ("early_secs", lambda: tf.estimator.experimental.make_early_stopping_hook(3, lambda: True)),
    ]


def estimator_calls(tf, folder):
    """Calls of an Estimator, which `folder` has no checkpoint for."""

    def model(features, labels, mode, params):
        return None

    def features_only(features, mode):
        loss = tf.reduce_sum(features)
        op = tf.assign_add(tf.train.get_global_step(), 1)
        metrics = {"global_step": tf.metrics.mean(loss)} if mode == "eval" else None
        return tf.estimator.EstimatorSpec(mode, predictions=loss, loss=loss, train_op=op, eval_metric_ops=metrics)

    def data():
        return tf.constant([1.0])

    def labelled():
        return tf.constant([1.0]), tf.constant([1.0])

    class Other(tf.estimator.Estimator):
        def train(self):
            pass

    make = tf.estimator.Estimator
    ready = make(model, folder)
    plain = make(features_only, folder)
    config = tf.estimator.RunConfig(model_dir=folder)
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn
    return [
        ("no_model_fn", lambda: make(None)),
        ("no_features", lambda: make(lambda x, mode: None, folder)),
        ("odd_argument", lambda: make(lambda features, other: None, folder)),
        ("params", lambda: make(lambda features: None, folder, params={"a": 1})),
        ("config", lambda: make(model, folder, config=3)),
        ("directories", lambda: make(model, folder + "/other", config=config)),
        ("override", lambda: Other(model, folder)),
        ("warm_start", lambda: make(model, folder, warm_start_from=3)),
        ("steps_and_max", lambda: ready.train(data, steps=1, max_steps=1)),
        ("train_steps", lambda: ready.train(data, steps=0)),
        ("train_max", lambda: ready.train(data, max_steps=-1)),
        ("train_hooks", lambda: ready.train(data, hooks=[3])),
        ("train_listeners", lambda: ready.train(data, saving_listeners=[3])),
        ("spec", lambda: ready.train(data, steps=1)),
        ("labels", lambda: plain.train(labelled, steps=1)),
        ("eval_steps", lambda: ready.evaluate(data, steps=0)),
        ("eval_global_step", lambda: plain.evaluate(data, steps=1)),
        ("three", lambda: plain.evaluate(lambda: (1, 2, 3))),
        ("predict_keys", lambda: list(plain.predict(data, predict_keys=["a"]))),
        ("names", ready.get_variable_names),
        ("value", lambda: ready.get_variable_value("a")),
        ("export_receiver", lambda: plain.export_saved_model(folder + "/x", None)),
        ("export_untrained", lambda: plain.export_saved_model(folder + "/x", receiver({}))),
        ("export_modes", lambda: plain.experimental_export_all_saved_models(folder + "/x", {})),
        ("train_and_evaluate", lambda: tf.estimator.train_and_evaluate(3, 4, 5)),
        ("train_and_evaluate_train", lambda: tf.estimator.train_and_evaluate(plain, 4, 5)),
        (
            "train_and_evaluate_eval",
            lambda: tf.estimator.train_and_evaluate(plain, tf.estimator.TrainSpec(data, max_steps=1), 5),
        ),
        ("memory_hook", lambda: tf.estimator.experimental.InMemoryEvaluatorHook(plain, 3)),
        ("memory_steps", lambda: tf.estimator.experimental.InMemoryEvaluatorHook(plain, data, every_n_iter=0)),
        (
            "early_stopping",
            lambda: tf.estimator.experimental.make_early_stopping_hook(
                plain, lambda: 1, run_every_secs=1, run_every_steps=1
            ),
        ),
        ("add_metrics", lambda: tf.estimator.add_metrics(plain, lambda other: {})),
    ]


CLUSTER = {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4"]}
MASTER = {"master": ["h:1"], "worker": ["h:2"], "ps": ["h:4"]}
TF_CONFIGS = {
    "none": None,
    "empty": {},
    "chief": {"cluster": CLUSTER, "task": {"type": "chief", "index": 0}},
    "worker": {"cluster": CLUSTER, "task": {"type": "worker", "index": 1}},
    "ps": {"cluster": CLUSTER, "task": {"type": "ps", "index": 0}},
    "evaluator": {"cluster": CLUSTER, "task": {"type": "evaluator", "index": 0}},
    "master": {"cluster": MASTER, "task": {"type": "master", "index": 0}},
    "master_worker": {"cluster": MASTER, "task": {"type": "worker", "index": 0}},
    "model_dir": {"model_dir": "/tmp/given", "service": {"key": "value"}},
    "session_master": {"cluster": CLUSTER, "task": {"type": "chief", "index": 0}, "session_master": "grpc://s"},
    "eval_session_master": {"cluster": CLUSTER, "task": {"type": "evaluator", "index": 0}, "eval_session_master": "g"},
    "local_worker": {"cluster": {"worker": ["h:1"]}, "task": {"type": "worker", "index": 0}},
    "no_chief": {"cluster": {"worker": ["h:1", "h:2"]}, "task": {"type": "worker", "index": 0}},
    "no_task": {"cluster": CLUSTER},
    "no_index": {"cluster": CLUSTER, "task": {"type": "chief"}},
    "bad_index": {"cluster": CLUSTER, "task": {"type": "worker", "index": 7}},
    "negative_index": {"cluster": CLUSTER, "task": {"type": "worker", "index": -1}},
    "bad_type": {"cluster": CLUSTER, "task": {"type": "boss", "index": 0}},
    "two_chiefs": {"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}},
    "chief_and_master": {"cluster": {"chief": ["a:1"], "master": ["b:1"]}, "task": {"type": "chief", "index": 0}},
    "evaluator_in_cluster": {
        "cluster": {**CLUSTER, "evaluator": ["e:1"]},
        "task": {"type": "evaluator", "index": 0},
    },
    "task_only": {"task": {"type": "worker", "index": 0}},
    "task_only_index": {"task": {"type": "worker", "index": 1}},
    "service": {"service": "a"},
    "session_master_type": {"cluster": CLUSTER, "task": {"type": "chief", "index": 0}, "session_master": ""},
}
PROPERTIES = (
    "task_type task_id is_chief master evaluation_master num_ps_replicas num_worker_replicas global_id_in_cluster model_dir service"
).split()


def outcome(function):
    """How a call ends: the class and message of its exception, or None."""
    try:
        function()
    except Exception as error:
        return [type(error).__name__, FUNCTION.sub("FUNCTION", str(error))]
    return None


def config_of(tf, value):
    """The properties of RunConfig() for a value of TF_CONFIG."""
    os.environ.pop("TF_CONFIG", None)
    if value is not None:
        os.environ["TF_CONFIG"] = json.dumps(value)
    try:
        config = tf.estimator.RunConfig()
        return {
            **{name: getattr(config, name) for name in PROPERTIES},
            "cluster": config.cluster_spec.as_dict(),
            "session": str(config.session_config),
        }
    except Exception as error:
        return [type(error).__name__, str(error)]
    finally:
        os.environ.pop("TF_CONFIG", None)


def everything(tf):
    found = {}
    for name, function in spec_calls(tf):
        with tf.Graph().as_default():
            found[f"spec/{name}"] = outcome(function)
    for name, function in config_calls(tf):
        found[f"config/{name}"] = outcome(function)
    with tempfile.TemporaryDirectory() as folder:
        for name, function in estimator_calls(tf, folder):
            kind = outcome(function)
            found[f"estimator/{name}"] = kind and [kind[0], kind[1].replace(folder, "FOLDER")]
    for name, value in TF_CONFIGS.items():
        found[f"tf_config/{name}"] = config_of(tf, value)
    return found


if __name__ == "__main__":
    import tensorflow

    json.dump(everything(tensorflow), sys.stdout, indent=1, sort_keys=True)
    print()
