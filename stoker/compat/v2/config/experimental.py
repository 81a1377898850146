"""Public names of tf.config.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.runtime.devices import enable_tensor_float_32_execution as enable_tensor_float_32_execution
from stoker._src.runtime.devices import tensor_float_32_execution_enabled as tensor_float_32_execution_enabled
