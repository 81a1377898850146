"""Public names of tf.contrib.slim.nets.resnet_v2."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.nets.residual import bottleneck_v2 as bottleneck
from stoker._src.contrib.slim.nets.residual import resnet_arg_scope as resnet_arg_scope
from stoker._src.contrib.slim.nets.residual import resnet_v2 as resnet_v2
from stoker._src.contrib.slim.nets.residual import resnet_v2_101 as resnet_v2_101
from stoker._src.contrib.slim.nets.residual import resnet_v2_152 as resnet_v2_152
from stoker._src.contrib.slim.nets.residual import resnet_v2_200 as resnet_v2_200
from stoker._src.contrib.slim.nets.residual import resnet_v2_50 as resnet_v2_50
from stoker._src.contrib.slim.nets.residual import resnet_v2_block as resnet_v2_block
