"""Public names of tf.user_ops."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.array.user_ops import my_fact as my_fact
