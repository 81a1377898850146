"""Public names of tf.keras.wrappers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.keras.wrappers import scikit_learn as scikit_learn
