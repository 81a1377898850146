"""Public names of tf.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.ragged.type_specs import Optional as Optional
