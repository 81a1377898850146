"""Public names of tf.contrib.metrics."""

from stoker._src.ops.counting import confusion_matrix as confusion_matrix
