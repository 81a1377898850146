"""Public names of tf.types."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.types import experimental as experimental
