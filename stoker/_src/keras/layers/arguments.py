"""Arguments of layers as users write them: names of activations, initializers, regularizers and constraints become objects."""

from __future__ import annotations

from typing import Any

from stoker._src.keras import activations, constraints, initializers
from stoker._src.keras.base import default_data_format
from stoker._src.keras.serialization import instance_of


def resolved(arguments: dict[str, Any]) -> dict[str, Any]:
    """The `locals()` of a constructor as keyword arguments for the next one."""
    given = {name: value for name, value in arguments.items() if name not in ("self", "__class__", "kwargs")}
    given.update(arguments.get("kwargs", {}))
    for name, value in given.items():
        if name.endswith("initializer"):
            given[name] = initializers.get(value)
        elif name.endswith("regularizer"):
            given[name] = instance_of(value, "regularizers")
        elif name.endswith("constraint"):
            given[name] = constraints.get(value)
        elif name.endswith("activation"):
            given[name] = activations.get(value)
        elif name == "data_format" and value is None:
            given[name] = default_data_format()
    return given
