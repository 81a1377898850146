"""Public names of tf.keras.preprocessing."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.keras.preprocessing import image as image
from stoker.keras.preprocessing import sequence as sequence
from stoker.keras.preprocessing import text as text
