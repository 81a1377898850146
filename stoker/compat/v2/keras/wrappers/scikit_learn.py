"""Public names of tf.keras.wrappers.scikit_learn."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.wrappers import KerasClassifier as KerasClassifier
from stoker._src.keras.wrappers import KerasRegressor as KerasRegressor
