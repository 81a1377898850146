"""Public names of tf.types.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.runtime.functions.concrete_function import ConcreteFunction as ConcreteFunction
from stoker._src.runtime.functions.def_function import PolymorphicFunction as GenericFunction
from stoker._src.runtime.functions.def_function import PolymorphicFunction as PolymorphicFunction
