"""Public names of tf.contrib."""

from stoker.compat.v1.contrib import framework as framework
from stoker.compat.v1.contrib import util as util
