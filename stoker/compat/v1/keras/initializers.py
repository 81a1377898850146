"""Public names of tf.keras.initializers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.initializers import deserialize as deserialize
from stoker._src.keras.initializers import get as get
from stoker._src.keras.initializers import RandomNormal as RandomNormal
from stoker._src.keras.initializers import RandomNormal as normal
from stoker._src.keras.initializers import RandomNormal as random_normal
from stoker._src.keras.initializers import RandomUniform as RandomUniform
from stoker._src.keras.initializers import RandomUniform as random_uniform
from stoker._src.keras.initializers import RandomUniform as uniform
from stoker._src.keras.initializers import serialize as serialize
from stoker._src.keras.initializers import TruncatedNormal as TruncatedNormal
from stoker._src.keras.initializers import TruncatedNormal as truncated_normal
from stoker._src.ops.variables.initializers import Constant as Constant
from stoker._src.ops.variables.initializers import Constant as constant
from stoker._src.ops.variables.initializers import GlorotNormal as GlorotNormal
from stoker._src.ops.variables.initializers import GlorotNormal as glorot_normal
from stoker._src.ops.variables.initializers import GlorotUniform as GlorotUniform
from stoker._src.ops.variables.initializers import GlorotUniform as glorot_uniform
from stoker._src.ops.variables.initializers import he_normal as he_normal
from stoker._src.ops.variables.initializers import he_uniform as he_uniform
from stoker._src.ops.variables.initializers import Identity as Identity
from stoker._src.ops.variables.initializers import Identity as identity
from stoker._src.ops.variables.initializers import Initializer as Initializer
from stoker._src.ops.variables.initializers import lecun_normal as lecun_normal
from stoker._src.ops.variables.initializers import lecun_uniform as lecun_uniform
from stoker._src.ops.variables.initializers import Ones as Ones
from stoker._src.ops.variables.initializers import Ones as ones
from stoker._src.ops.variables.initializers import Orthogonal as Orthogonal
from stoker._src.ops.variables.initializers import Orthogonal as orthogonal
from stoker._src.ops.variables.initializers import VarianceScaling as VarianceScaling
from stoker._src.ops.variables.initializers import VarianceScaling as variance_scaling
from stoker._src.ops.variables.initializers import Zeros as Zeros
from stoker._src.ops.variables.initializers import Zeros as zeros
