"""Public names of tf.contrib.estimator."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.estimator.extensions import add_metrics as add_metrics
from stoker._src.estimator.extensions import InMemoryEvaluatorHook as InMemoryEvaluatorHook
from stoker._src.estimator.receivers import build_raw_supervised_input_receiver_fn as build_raw_supervised_input_receiver_fn
