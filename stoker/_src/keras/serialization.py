"""Configurations: Keras describes layers, losses, optimizers and so on as {"class_name": ..., "config": ...} and finds them by public name."""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from stoker._src.base import settings
from stoker._src.base.dtypes import DType
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import TensorShape

_custom: dict[str, Any] = {}
_scoped = threading.local()


@export("keras.utils.get_custom_objects")
def get_custom_objects() -> dict[str, Any]:
    """The dictionary of the program's own classes and functions, which configurations may name."""
    return _custom


@export("keras.utils.custom_object_scope")
@contextmanager
def custom_object_scope(*args: Any) -> Iterator[None]:
    """Adds dictionaries of classes and functions to the custom objects for a while."""
    before = getattr(_scoped, "objects", {})
    _scoped.objects = dict(before)
    for objects in args:
        _scoped.objects.update(objects)
    try:
        yield
    finally:
        _scoped.objects = before


CustomObjectScope = custom_object_scope
export_constant(__name__, "CustomObjectScope", "keras.utils.CustomObjectScope")


def find(kind: str, name: str, custom_objects: Any = None) -> Any:
    """The class or function that a configuration names: the program's own, or that of the public module `tf.keras.<kind>`.

    Raises:
        ValueError: there is none.
    """
    for objects in (custom_objects or {}, getattr(_scoped, "objects", {}), _custom):
        if name in objects:
            return objects[name]
    package = "stoker" if settings.tensor_equality else "stoker.compat.v1"  # importing the latter selects 1.x behaviour
    for module in (f"keras.{kind}", "keras"):
        found = getattr(importlib.import_module(f"{package}.{module}"), name, None)
        if callable(found):
            return found
    what = kind.rstrip("s") if kind != "losses" else "loss function"
    raise ValueError(f"Unknown {what}: {name}")


@export("keras.utils.serialize_keras_object")
def serialize(instance: Any) -> Any:
    """The configuration of an object: its name and arguments, or only the name of a function.

    Raises:
        ValueError: it has neither a configuration nor a name.
    """
    if instance is None:
        return None
    if hasattr(instance, "get_config") and not isinstance(instance, type):
        return {"class_name": class_name(instance), "config": instance.get_config()}
    if hasattr(instance, "__name__"):
        return instance.__name__
    raise ValueError(f"Cannot serialize {instance!r}: it has no method get_config.")


def class_name(instance: Any) -> str:
    return getattr(type(instance), "_keras_name", type(instance).__name__)


def deserialize(identifier: Any, kind: str, custom_objects: Any = None) -> Any:
    """The object that a configuration describes, or the function or class of a name.

    Raises:
        ValueError: the configuration is malformed, or names something unknown.
    """
    if isinstance(identifier, dict):
        if "class_name" not in identifier or "config" not in identifier:
            raise ValueError(f"Improper config format: {identifier}")
        made = find(kind, identifier["class_name"], custom_objects)
        config = dict(identifier["config"])
        if hasattr(made, "from_config"):
            takes = "custom_objects" in inspect.signature(made.from_config).parameters
            if takes:
                return made.from_config(config, custom_objects=custom_objects)
            with custom_object_scope(custom_objects or {}):
                return made.from_config(config)
        return made(**config)
    if isinstance(identifier, str):
        return find(kind, identifier, custom_objects)
    raise ValueError(f"Could not interpret {kind.rstrip('s')} identifier: {identifier}")


export_constant(__name__, "deserialize_keras_object", "keras.utils.deserialize_keras_object")


def deserialize_keras_object(
    identifier: Any, module_objects: Any = None, custom_objects: Any = None, printable_module_name: str = "object"
) -> Any:
    """The object that a configuration describes. `module_objects` names classes and functions by name."""
    objects = {**(module_objects or {}), **(custom_objects or {})}
    return deserialize(identifier, f"{printable_module_name}s", objects)


def instance_of(identifier: Any, kind: str) -> Any:
    """An object from an object, a class, a name or a configuration; None for None.

    Raises:
        ValueError: it cannot be interpreted.
    """
    if identifier is None:
        return None
    found = deserialize(identifier, kind) if isinstance(identifier, (str, dict)) else identifier
    if not callable(found):
        raise ValueError(f"Could not interpret {kind.rstrip('s')} identifier: {identifier}")
    return found() if isinstance(found, type) else found


def plain(value: Any) -> Any:
    """An argument as JSON can hold it."""
    if isinstance(value, (DType, np.dtype)):
        return value.name
    if isinstance(value, TensorShape):
        return tuple(value.as_list())
    if isinstance(value, (list, tuple)):
        return type(value)(plain(each) for each in value) if type(value) in (list, tuple) else tuple(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "get_config") or (callable(value) and hasattr(value, "__name__")):
        return serialize(value)
    return value
