"""Public names of tf.saved_model.main_op."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.saved_model.builder import main_op as main_op
from stoker._src.saved_model.builder import main_op_with_restore as main_op_with_restore
