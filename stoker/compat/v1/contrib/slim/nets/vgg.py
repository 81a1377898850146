"""Public names of tf.contrib.slim.nets.vgg."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.nets.vgg import vgg_16 as vgg_16
from stoker._src.contrib.slim.nets.vgg import vgg_16 as vgg_d
from stoker._src.contrib.slim.nets.vgg import vgg_19 as vgg_19
from stoker._src.contrib.slim.nets.vgg import vgg_19 as vgg_e
from stoker._src.contrib.slim.nets.vgg import vgg_a as vgg_a
from stoker._src.contrib.slim.nets.vgg import vgg_arg_scope as vgg_arg_scope
