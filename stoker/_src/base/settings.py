"""Process-wide choices between 1.x and 2.x behaviour, set by `runtime/behavior.py`."""

use_resource_variables = True
tensor_equality = True
control_flow_v2 = True
