"""Public names of tf.estimator.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.estimator.canned.logits import call_logit_fn as call_logit_fn
from stoker._src.estimator.early_stopping import make_early_stopping_hook as make_early_stopping_hook
from stoker._src.estimator.early_stopping import make_stop_at_checkpoint_step_hook as make_stop_at_checkpoint_step_hook
from stoker._src.estimator.early_stopping import stop_if_higher_hook as stop_if_higher_hook
from stoker._src.estimator.early_stopping import stop_if_lower_hook as stop_if_lower_hook
from stoker._src.estimator.early_stopping import stop_if_no_decrease_hook as stop_if_no_decrease_hook
from stoker._src.estimator.early_stopping import stop_if_no_increase_hook as stop_if_no_increase_hook
from stoker._src.estimator.extensions import InMemoryEvaluatorHook as InMemoryEvaluatorHook
from stoker._src.estimator.receivers import build_raw_supervised_input_receiver_fn as build_raw_supervised_input_receiver_fn
