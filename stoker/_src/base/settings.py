"""Process-wide choices between 1.x and 2.x behaviour, set by `runtime/behavior.py`."""

use_resource_variables = True
tensor_equality = True
mixed_precision_rewrite = False
"""Whether sessions may compute in float16 on GPUs where the graph says float32 (set by `tf.train.experimental`)."""
control_flow_v2 = True
