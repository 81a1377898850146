"""Public names of tf.app."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.app import flags as flags
from stoker._src.base.app import run as run
