"""Public names of tf.saved_model.loader."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.saved_model.files import maybe_saved_model_directory as maybe_saved_model_directory
from stoker._src.saved_model.loader import load as load
