"""Public names of tf.keras."""

from stoker.keras import initializers as initializers
from stoker.keras import layers as layers
from stoker.keras import regularizers as regularizers
