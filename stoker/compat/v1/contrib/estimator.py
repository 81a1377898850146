"""Public names of tf.contrib.estimator."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.estimator.canned.class_heads import binary_classification_head as binary_classification_head
from stoker._src.estimator.canned.class_heads import multi_class_head as multi_class_head
from stoker._src.estimator.canned.class_heads import multi_label_head as multi_label_head
from stoker._src.estimator.canned.logits import call_logit_fn as call_logit_fn
from stoker._src.estimator.canned.logits import dnn_logit_fn_builder as dnn_logit_fn_builder
from stoker._src.estimator.canned.logits import linear_logit_fn_builder as linear_logit_fn_builder
from stoker._src.estimator.canned.number_heads import logistic_regression_head as logistic_regression_head
from stoker._src.estimator.canned.number_heads import multi_head as multi_head
from stoker._src.estimator.canned.number_heads import poisson_regression_head as poisson_regression_head
from stoker._src.estimator.canned.number_heads import regression_head as regression_head
from stoker._src.estimator.extensions import add_metrics as add_metrics
from stoker._src.estimator.extensions import InMemoryEvaluatorHook as InMemoryEvaluatorHook
from stoker._src.estimator.receivers import build_raw_supervised_input_receiver_fn as build_raw_supervised_input_receiver_fn
