"""Public names of tf.keras."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.keras import experimental as experimental
from stoker.keras import initializers as initializers
from stoker.keras import layers as layers
from stoker.keras import regularizers as regularizers
