"""Public names of tf.config."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.config import experimental as experimental
from stoker._src.runtime.def_function import functions_run_eagerly as functions_run_eagerly
from stoker._src.runtime.def_function import run_functions_eagerly as run_functions_eagerly
