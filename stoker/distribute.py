"""Public names of tf.distribute."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.distributed.server import Server as Server
