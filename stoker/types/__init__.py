"""Public names of tf.types."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.types import experimental as experimental
