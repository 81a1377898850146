"""Public names of tf.types.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.runtime.functions.concrete_function import ConcreteFunction as ConcreteFunction
