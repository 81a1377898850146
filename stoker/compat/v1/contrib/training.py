"""Public names of tf.contrib.training."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.hparams import HParams as HParams
from stoker._src.contrib.training import byte_size_load_fn as byte_size_load_fn
from stoker._src.contrib.training import GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy
