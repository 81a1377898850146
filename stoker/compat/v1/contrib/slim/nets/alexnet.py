"""Public names of tf.contrib.slim.nets.alexnet."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.nets.alexnet import alexnet_v2 as alexnet_v2
from stoker._src.contrib.slim.nets.alexnet import alexnet_v2_arg_scope as alexnet_v2_arg_scope
