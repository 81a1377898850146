"""Public names of tf.keras."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.keras import experimental as experimental
from stoker.compat.v2.keras import initializers as initializers
from stoker.compat.v2.keras import layers as layers
from stoker.compat.v2.keras import regularizers as regularizers
