"""Public names of tf.contrib.predictor."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.predictor import from_estimator as from_estimator
from stoker._src.contrib.predictor import from_saved_model as from_saved_model
