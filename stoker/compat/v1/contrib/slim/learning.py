"""Public names of tf.contrib.slim.learning."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.learning import create_train_op as create_train_op
from stoker._src.contrib.slim.learning import train as train
from stoker._src.contrib.slim.learning import train_step as train_step
from stoker._src.contrib.training_loops import add_gradients_summaries as add_gradients_summaries
from stoker._src.contrib.training_loops import clip_gradient_norms as clip_gradient_norms
from stoker._src.contrib.training_loops import multiply_gradients as multiply_gradients
