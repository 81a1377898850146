"""Public names of tf.contrib.learn."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.contrib.learn import preprocessing as preprocessing
from stoker._src.estimator.spec import ModeKeys as ModeKeys
