"""Public names of tf.summary.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.summary.recording import summary_scope as summary_scope
from stoker._src.summary.recording import write_raw_pb as write_raw_pb
from stoker._src.summary.writers import get_step as get_step
from stoker._src.summary.writers import set_step as set_step
