"""Public names of tf.contrib.nn."""

from stoker._src.ops.sorting import nth_element as nth_element
