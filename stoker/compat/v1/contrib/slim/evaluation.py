"""Public names of tf.contrib.slim.evaluation."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.evaluation import evaluate_once as evaluate_once
from stoker._src.contrib.slim.evaluation import evaluation_loop as evaluation_loop
from stoker._src.train.checkpoints.state import checkpoints_iterator as checkpoints_iterator
from stoker._src.train.checkpoints.state import wait_for_new_checkpoint as wait_for_new_checkpoint
