"""Public names of tf.contrib.slim.nets.resnet_v1."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.nets.residual import bottleneck_v1 as bottleneck
from stoker._src.contrib.slim.nets.residual import resnet_arg_scope as resnet_arg_scope
from stoker._src.contrib.slim.nets.residual import resnet_v1 as resnet_v1
from stoker._src.contrib.slim.nets.residual import resnet_v1_101 as resnet_v1_101
from stoker._src.contrib.slim.nets.residual import resnet_v1_152 as resnet_v1_152
from stoker._src.contrib.slim.nets.residual import resnet_v1_200 as resnet_v1_200
from stoker._src.contrib.slim.nets.residual import resnet_v1_50 as resnet_v1_50
from stoker._src.contrib.slim.nets.residual import resnet_v1_block as resnet_v1_block
