"""Public names of tf.contrib.slim.nets."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.contrib.slim.nets import alexnet as alexnet
from stoker.compat.v1.contrib.slim.nets import inception as inception
from stoker.compat.v1.contrib.slim.nets import resnet_utils as resnet_utils
from stoker.compat.v1.contrib.slim.nets import resnet_v1 as resnet_v1
from stoker.compat.v1.contrib.slim.nets import resnet_v2 as resnet_v2
from stoker.compat.v1.contrib.slim.nets import vgg as vgg
