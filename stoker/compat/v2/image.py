"""Public names of tf.image."""

from stoker._src.ops.array_patches import extract_patches as extract_patches
from stoker._src.ops.random_sampling import random_crop as random_crop
