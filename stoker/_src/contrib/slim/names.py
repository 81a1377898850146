"""Names that slim shares with `tf.contrib.layers` and `tf.losses`, whose definitions stand elsewhere."""

from __future__ import annotations

from stoker._src.base.export import export_constant
from stoker._src.ops.variables import regularizers

for _name in (
    "l1_regularizer l2_regularizer l1_l2_regularizer sum_regularizer apply_regularization variance_scaling_initializer "
    "xavier_initializer"
).split():
    export_constant(regularizers.__name__, _name, v1=f"contrib.slim.{_name}")
export_constant(regularizers.__name__, "xavier_initializer", v1="contrib.slim.xavier_initializer_conv2d")
