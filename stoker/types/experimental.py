"""Public names of tf.types.experimental."""

from stoker._src.runtime.def_function import ConcreteFunction as ConcreteFunction
