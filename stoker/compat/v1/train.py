"""Public names of tf.train."""

from stoker._src.train.adagrad import AdadeltaOptimizer as AdadeltaOptimizer
from stoker._src.train.adagrad import AdagradDAOptimizer as AdagradDAOptimizer
from stoker._src.train.adagrad import AdagradOptimizer as AdagradOptimizer
from stoker._src.train.adagrad import ProximalAdagradOptimizer as ProximalAdagradOptimizer
from stoker._src.train.adam import AdamOptimizer as AdamOptimizer
from stoker._src.train.descent import GradientDescentOptimizer as GradientDescentOptimizer
from stoker._src.train.descent import MomentumOptimizer as MomentumOptimizer
from stoker._src.train.descent import ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer
from stoker._src.train.ftrl import FtrlOptimizer as FtrlOptimizer
from stoker._src.train.optimizer import Optimizer as Optimizer
from stoker._src.train.rmsprop import RMSPropOptimizer as RMSPropOptimizer
