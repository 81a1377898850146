"""Public names of tf.saved_model.utils."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.saved_model.signatures import build_tensor_info as build_tensor_info
from stoker._src.saved_model.signatures import get_tensor_from_tensor_info as get_tensor_from_tensor_info
