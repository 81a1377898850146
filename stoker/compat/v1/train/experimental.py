"""Public names of tf.train.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.train.checkpoints.checkpoint import PythonState as PythonState
from stoker._src.train.optimizers.loss_scale import DynamicLossScale as DynamicLossScale
from stoker._src.train.optimizers.loss_scale import FixedLossScale as FixedLossScale
from stoker._src.train.optimizers.loss_scale import LossScale as LossScale
from stoker._src.train.optimizers.mixed_precision import disable_mixed_precision_graph_rewrite as disable_mixed_precision_graph_rewrite
from stoker._src.train.optimizers.mixed_precision import enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite
from stoker._src.train.optimizers.mixed_precision import MixedPrecisionLossScaleOptimizer as MixedPrecisionLossScaleOptimizer
