"""Public names of tf.contrib.opt."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.external_optimizer import ExternalOptimizerInterface as ExternalOptimizerInterface
from stoker._src.contrib.external_optimizer import ScipyOptimizerInterface as ScipyOptimizerInterface
from stoker._src.contrib.opt import AdaMaxOptimizer as AdaMaxOptimizer
from stoker._src.contrib.opt import AdamWOptimizer as AdamWOptimizer
from stoker._src.contrib.opt import clip_gradients_by_global_norm as clip_gradients_by_global_norm
from stoker._src.contrib.opt import DecoupledWeightDecayExtension as DecoupledWeightDecayExtension
from stoker._src.contrib.opt import extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay
from stoker._src.contrib.opt import LARSOptimizer as LARSOptimizer
from stoker._src.contrib.opt import LazyAdamOptimizer as LazyAdamOptimizer
from stoker._src.contrib.opt import MomentumWOptimizer as MomentumWOptimizer
from stoker._src.contrib.opt import MovingAverageOptimizer as MovingAverageOptimizer
from stoker._src.contrib.opt import NadamOptimizer as NadamOptimizer
from stoker._src.contrib.opt import VariableClippingOptimizer as VariableClippingOptimizer
