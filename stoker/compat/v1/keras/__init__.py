"""Public names of tf.keras."""

from stoker.compat.v1.keras import initializers as initializers
from stoker.compat.v1.keras import layers as layers
from stoker.compat.v1.keras import regularizers as regularizers
