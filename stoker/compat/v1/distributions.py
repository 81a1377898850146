"""Public names of tf.distributions."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.distributions.base import Distribution as Distribution
from stoker._src.ops.distributions.base import FULLY_REPARAMETERIZED as FULLY_REPARAMETERIZED
from stoker._src.ops.distributions.base import NOT_REPARAMETERIZED as NOT_REPARAMETERIZED
from stoker._src.ops.distributions.base import ReparameterizationType as ReparameterizationType
from stoker._src.ops.distributions.continuous import Beta as Beta
from stoker._src.ops.distributions.continuous import Exponential as Exponential
from stoker._src.ops.distributions.continuous import Gamma as Gamma
from stoker._src.ops.distributions.continuous import Laplace as Laplace
from stoker._src.ops.distributions.continuous import Normal as Normal
from stoker._src.ops.distributions.continuous import StudentT as StudentT
from stoker._src.ops.distributions.continuous import Uniform as Uniform
from stoker._src.ops.distributions.discrete import Bernoulli as Bernoulli
from stoker._src.ops.distributions.discrete import Categorical as Categorical
from stoker._src.ops.distributions.discrete import Dirichlet as Dirichlet
from stoker._src.ops.distributions.discrete import DirichletMultinomial as DirichletMultinomial
from stoker._src.ops.distributions.discrete import Multinomial as Multinomial
from stoker._src.ops.distributions.divergence import kl_divergence as kl_divergence
from stoker._src.ops.distributions.divergence import RegisterKL as RegisterKL
