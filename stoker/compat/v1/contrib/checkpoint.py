"""Public names of tf.contrib.checkpoint."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.train.checkpoints.manager import CheckpointManager as CheckpointManager
