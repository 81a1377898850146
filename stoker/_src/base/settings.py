"""Process-wide choices between 1.x and 2.x behaviour, set by `graph/behavior.py`."""

use_resource_variables = True
tensor_equality = True
mixed_precision_rewrite = False
"""Whether sessions compute in 16 bits what they can where the graph says float32 (set by `tf.train.experimental`)."""
sessions_without_rewrite = False
"""Whether a session was made while that was off; it goes on as it is."""
control_flow_v2 = True
raise_faults = False
"""Whether a defect of ours is raised as it is, instead of as an InternalError that asks for a report (set by our tests)."""
