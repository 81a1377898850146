"""Public names of tf.contrib.training."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.buckets import bucket as bucket
from stoker._src.contrib.buckets import bucket_by_sequence_length as bucket_by_sequence_length
from stoker._src.contrib.hparams import HParams as HParams
from stoker._src.contrib.training import byte_size_load_fn as byte_size_load_fn
from stoker._src.contrib.training import GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy
from stoker._src.contrib.training import RandomStrategy as RandomStrategy
from stoker._src.contrib.training_loops import add_gradients_summaries as add_gradients_summaries
from stoker._src.contrib.training_loops import clip_gradient_norms as clip_gradient_norms
from stoker._src.contrib.training_loops import clip_gradient_norms_fn as clip_gradient_norms_fn
from stoker._src.contrib.training_loops import create_train_op as create_train_op
from stoker._src.contrib.training_loops import evaluate_once as evaluate_once
from stoker._src.contrib.training_loops import evaluate_repeatedly as evaluate_repeatedly
from stoker._src.contrib.training_loops import multiply_gradients as multiply_gradients
from stoker._src.contrib.training_loops import SummaryAtEndHook as SummaryAtEndHook
from stoker._src.contrib.training_loops import train as train
from stoker._src.estimator.evaluation import get_or_create_eval_step as get_or_create_eval_step
from stoker._src.estimator.evaluation import StopAfterNEvalsHook as StopAfterNEvalsHook
from stoker._src.train.checkpoints.state import checkpoints_iterator as checkpoints_iterator
from stoker._src.train.checkpoints.state import wait_for_new_checkpoint as wait_for_new_checkpoint
