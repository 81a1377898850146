"""Public names of tf.mixed_precision."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.mixed_precision import experimental as experimental
from stoker._src.train.optimizers.loss_scale import DynamicLossScale as DynamicLossScale
from stoker._src.train.optimizers.loss_scale import FixedLossScale as FixedLossScale
from stoker._src.train.optimizers.loss_scale import LossScale as LossScale
from stoker._src.train.optimizers.mixed_precision import disable_mixed_precision_graph_rewrite as disable_mixed_precision_graph_rewrite
from stoker._src.train.optimizers.mixed_precision import enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite
from stoker._src.train.optimizers.mixed_precision import MixedPrecisionLossScaleOptimizer as MixedPrecisionLossScaleOptimizer
