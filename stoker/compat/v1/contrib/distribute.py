"""Public names of tf.contrib.distribute."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.distribute import DistributeConfig as DistributeConfig
