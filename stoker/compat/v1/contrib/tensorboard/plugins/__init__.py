"""Public names of tf.contrib.tensorboard.plugins."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.contrib.tensorboard.plugins import projector as projector
