"""Public names of tf.saved_model.builder."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.saved_model.builder import SavedModelBuilder as SavedModelBuilder
