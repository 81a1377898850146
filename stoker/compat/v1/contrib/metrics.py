"""Public names of tf.contrib.metrics."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.math.counting import confusion_matrix as confusion_matrix
