"""Public names of tf.compat."""

from stoker._src.base.shapes import dimension_value as dimension_value
