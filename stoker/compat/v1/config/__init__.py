"""Public names of tf.config."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.config import experimental as experimental
from stoker._src.runtime.def_function import functions_run_eagerly as functions_run_eagerly
from stoker._src.runtime.def_function import run_functions_eagerly as experimental_run_functions_eagerly
from stoker._src.runtime.def_function import run_functions_eagerly as run_functions_eagerly
