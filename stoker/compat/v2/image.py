"""Public names of tf.image."""

from stoker._src.ops.array_patches import extract_patches as extract_patches
