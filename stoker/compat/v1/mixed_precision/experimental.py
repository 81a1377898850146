"""Public names of tf.mixed_precision.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.train.optimizers.loss_scale import DynamicLossScale as DynamicLossScale
from stoker._src.train.optimizers.loss_scale import FixedLossScale as FixedLossScale
from stoker._src.train.optimizers.loss_scale import LossScale as LossScale
