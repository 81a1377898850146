"""Public names of tf.initializers."""

from stoker._src.ops.variables import global_variables_initializer as global_variables
from stoker._src.ops.variables import local_variables_initializer as local_variables
from stoker._src.ops.variables import variables_initializer as variables
