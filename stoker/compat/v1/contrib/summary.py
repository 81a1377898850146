"""Public names of tf.contrib.summary."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.summary.writers import flush as flush
