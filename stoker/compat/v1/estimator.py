"""Public names of tf.estimator."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.train.checkpoints.initializers import VocabInfo as VocabInfo
