"""Public names of tf.contrib.slim.nets.inception."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.nets.inception import inception_v1 as inception_v1
from stoker._src.contrib.slim.nets.inception import inception_v1_arg_scope as inception_v1_arg_scope
from stoker._src.contrib.slim.nets.inception import inception_v1_base as inception_v1_base
from stoker._src.contrib.slim.nets.inception import inception_v3 as inception_v3
from stoker._src.contrib.slim.nets.inception import inception_v3_arg_scope as inception_v3_arg_scope
from stoker._src.contrib.slim.nets.inception import inception_v3_base as inception_v3_base
