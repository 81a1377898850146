"""Public names of tf.keras.preprocessing."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.keras.preprocessing import image as image
from stoker.compat.v1.keras.preprocessing import sequence as sequence
from stoker.compat.v1.keras.preprocessing import text as text
