"""Public names of tf.contrib.slim.model_analyzer."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.tools import analyze_ops as analyze_ops
from stoker._src.contrib.slim.tools import analyze_vars as analyze_vars
from stoker._src.contrib.slim.tools import tensor_description as tensor_description
