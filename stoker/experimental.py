"""Public names of tf.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.control_flow.optionals import Optional as Optional
