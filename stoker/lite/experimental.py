"""Public names of tf.lite.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.lite.interpreter import load_delegate as load_delegate
from stoker._src.lite.interpreter import OpResolverType as OpResolverType
