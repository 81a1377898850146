"""Public names of tf.contrib.tensorboard."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.contrib.tensorboard import plugins as plugins
