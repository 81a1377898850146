"""Public names of tf.keras.layers.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.keras.layers.experimental import preprocessing as preprocessing
from stoker._src.keras.layers.core import EinsumDense as EinsumDense
