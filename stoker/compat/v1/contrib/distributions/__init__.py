"""Public names of tf.contrib.distributions."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.contrib.distributions import bijectors as bijectors
from stoker._src.contrib.distributions.bijectors import softplus_inverse as softplus_inverse
from stoker._src.contrib.distributions.composed import Independent as Independent
from stoker._src.contrib.distributions.composed import Mixture as Mixture
from stoker._src.contrib.distributions.composed import MixtureSameFamily as MixtureSameFamily
from stoker._src.contrib.distributions.composed import QuantizedDistribution as QuantizedDistribution
from stoker._src.contrib.distributions.composed import TransformedDistribution as TransformedDistribution
from stoker._src.contrib.distributions.multivariate import MultivariateNormalDiag as MultivariateNormalDiag
from stoker._src.contrib.distributions.multivariate import MultivariateNormalDiagWithSoftplusScale as MultivariateNormalDiagWithSoftplusScale
from stoker._src.contrib.distributions.multivariate import MultivariateNormalFullCovariance as MultivariateNormalFullCovariance
from stoker._src.contrib.distributions.multivariate import MultivariateNormalTriL as MultivariateNormalTriL
from stoker._src.contrib.distributions.scalars import Binomial as Binomial
from stoker._src.contrib.distributions.scalars import Cauchy as Cauchy
from stoker._src.contrib.distributions.scalars import Chi2 as Chi2
from stoker._src.contrib.distributions.scalars import Deterministic as Deterministic
from stoker._src.contrib.distributions.scalars import ExpRelaxedOneHotCategorical as ExpRelaxedOneHotCategorical
from stoker._src.contrib.distributions.scalars import fill_triangular as fill_triangular
from stoker._src.contrib.distributions.scalars import HalfNormal as HalfNormal
from stoker._src.contrib.distributions.scalars import Logistic as Logistic
from stoker._src.contrib.distributions.scalars import NormalWithSoftplusScale as NormalWithSoftplusScale
from stoker._src.contrib.distributions.scalars import OneHotCategorical as OneHotCategorical
from stoker._src.contrib.distributions.scalars import Poisson as Poisson
from stoker._src.contrib.distributions.scalars import RelaxedBernoulli as RelaxedBernoulli
from stoker._src.contrib.distributions.scalars import RelaxedOneHotCategorical as RelaxedOneHotCategorical
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
