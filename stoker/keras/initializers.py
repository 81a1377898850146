"""Public names of tf.keras.initializers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.initializers import deserialize as deserialize
from stoker._src.keras.initializers import get as get
from stoker._src.keras.initializers import serialize as serialize
from stoker._src.ops.variables.initializers_v2 import ConstantV2 as Constant
from stoker._src.ops.variables.initializers_v2 import ConstantV2 as constant
from stoker._src.ops.variables.initializers_v2 import GlorotNormalV2 as GlorotNormal
from stoker._src.ops.variables.initializers_v2 import GlorotNormalV2 as glorot_normal
from stoker._src.ops.variables.initializers_v2 import GlorotUniformV2 as GlorotUniform
from stoker._src.ops.variables.initializers_v2 import GlorotUniformV2 as glorot_uniform
from stoker._src.ops.variables.initializers_v2 import HeNormalV2 as HeNormal
from stoker._src.ops.variables.initializers_v2 import HeNormalV2 as he_normal
from stoker._src.ops.variables.initializers_v2 import HeUniformV2 as HeUniform
from stoker._src.ops.variables.initializers_v2 import HeUniformV2 as he_uniform
from stoker._src.ops.variables.initializers_v2 import IdentityV2 as Identity
from stoker._src.ops.variables.initializers_v2 import IdentityV2 as identity
from stoker._src.ops.variables.initializers_v2 import InitializerV2 as Initializer
from stoker._src.ops.variables.initializers_v2 import LecunNormalV2 as LecunNormal
from stoker._src.ops.variables.initializers_v2 import LecunNormalV2 as lecun_normal
from stoker._src.ops.variables.initializers_v2 import LecunUniformV2 as LecunUniform
from stoker._src.ops.variables.initializers_v2 import LecunUniformV2 as lecun_uniform
from stoker._src.ops.variables.initializers_v2 import OnesV2 as Ones
from stoker._src.ops.variables.initializers_v2 import OnesV2 as ones
from stoker._src.ops.variables.initializers_v2 import OrthogonalV2 as Orthogonal
from stoker._src.ops.variables.initializers_v2 import OrthogonalV2 as orthogonal
from stoker._src.ops.variables.initializers_v2 import RandomNormalV2 as RandomNormal
from stoker._src.ops.variables.initializers_v2 import RandomNormalV2 as random_normal
from stoker._src.ops.variables.initializers_v2 import RandomUniformV2 as RandomUniform
from stoker._src.ops.variables.initializers_v2 import RandomUniformV2 as random_uniform
from stoker._src.ops.variables.initializers_v2 import TruncatedNormalV2 as TruncatedNormal
from stoker._src.ops.variables.initializers_v2 import TruncatedNormalV2 as truncated_normal
from stoker._src.ops.variables.initializers_v2 import VarianceScalingV2 as VarianceScaling
from stoker._src.ops.variables.initializers_v2 import VarianceScalingV2 as variance_scaling
from stoker._src.ops.variables.initializers_v2 import ZerosV2 as Zeros
from stoker._src.ops.variables.initializers_v2 import ZerosV2 as zeros
