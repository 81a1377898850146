"""Public names of tf.keras.layers.experimental.preprocessing."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.layers.preprocessing import CategoryEncoding as CategoryEncoding
from stoker._src.keras.layers.preprocessing import CenterCrop as CenterCrop
from stoker._src.keras.layers.preprocessing import IntegerLookup as IntegerLookup
from stoker._src.keras.layers.preprocessing import Normalization as Normalization
from stoker._src.keras.layers.preprocessing import Rescaling as Rescaling
from stoker._src.keras.layers.preprocessing import Resizing as Resizing
from stoker._src.keras.layers.preprocessing import StringLookup as StringLookup
