"""Public names of tf.initializers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.resources.tables import tables_initializer as tables_initializer
from stoker._src.ops.variables.initializers import Constant as constant
from stoker._src.ops.variables.initializers import GlorotNormal as glorot_normal
from stoker._src.ops.variables.initializers import GlorotUniform as glorot_uniform
from stoker._src.ops.variables.initializers import he_normal as he_normal
from stoker._src.ops.variables.initializers import he_uniform as he_uniform
from stoker._src.ops.variables.initializers import Identity as identity
from stoker._src.ops.variables.initializers import lecun_normal as lecun_normal
from stoker._src.ops.variables.initializers import lecun_uniform as lecun_uniform
from stoker._src.ops.variables.initializers import Ones as ones
from stoker._src.ops.variables.initializers import Orthogonal as orthogonal
from stoker._src.ops.variables.initializers import RandomNormal as random_normal
from stoker._src.ops.variables.initializers import RandomUniform as random_uniform
from stoker._src.ops.variables.initializers import TruncatedNormal as truncated_normal
from stoker._src.ops.variables.initializers import UniformUnitScaling as uniform_unit_scaling
from stoker._src.ops.variables.initializers import VarianceScaling as variance_scaling
from stoker._src.ops.variables.initializers import Zeros as zeros
from stoker._src.ops.variables.variable_functions import global_variables_initializer as global_variables
from stoker._src.ops.variables.variable_functions import local_variables_initializer as local_variables
from stoker._src.ops.variables.variable_functions import variables_initializer as variables
