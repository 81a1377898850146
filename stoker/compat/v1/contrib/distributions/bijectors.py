"""Public names of tf.contrib.distributions.bijectors."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.distributions.bijectors import Affine as Affine
from stoker._src.contrib.distributions.bijectors import AffineScalar as AffineScalar
from stoker._src.contrib.distributions.bijectors import Bijector as Bijector
from stoker._src.contrib.distributions.bijectors import Chain as Chain
from stoker._src.contrib.distributions.bijectors import Exp as Exp
from stoker._src.contrib.distributions.bijectors import Identity as Identity
from stoker._src.contrib.distributions.bijectors import Inline as Inline
from stoker._src.contrib.distributions.bijectors import Invert as Invert
from stoker._src.contrib.distributions.bijectors import Permute as Permute
from stoker._src.contrib.distributions.bijectors import Sigmoid as Sigmoid
from stoker._src.contrib.distributions.bijectors import Softplus as Softplus
from stoker._src.contrib.distributions.bijectors import Square as Square
