"""Public names of tf.contrib.staging."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.resources.staging_areas import StagingArea as StagingArea
