"""Public names of tf.contrib.layers."""

from stoker._src.ops.counting import bucketize as bucketize
