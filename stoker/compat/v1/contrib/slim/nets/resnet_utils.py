"""Public names of tf.contrib.slim.nets.resnet_utils."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.nets.residual import Block as Block
from stoker._src.contrib.slim.nets.residual import conv2d_same as conv2d_same
from stoker._src.contrib.slim.nets.residual import resnet_arg_scope as resnet_arg_scope
from stoker._src.contrib.slim.nets.residual import stack_blocks_dense as stack_blocks_dense
from stoker._src.contrib.slim.nets.residual import subsample as subsample
