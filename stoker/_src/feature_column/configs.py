"""Columns as plain values (`get_config`) and back (`from_config`), in the form that TensorFlow writes.

A column is written as {"class_name": ..., "config": ...}, where the config has an entry for each field of the column's tuple.
"""

from __future__ import annotations

from typing import Any

from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.ops.variables import initializers

_CLASSES: dict[str, Any] = {}
_COLUMNS = ("categorical_column", "source_column")  # fields that hold another column
_FUNCTIONS = ("normalizer_fn",)


def register(column_class: Any) -> None:
    """Lets `deserialize_feature_column` find a class by its name."""
    _CLASSES[column_class.__name__] = column_class


def serialize_feature_column(fc: Any) -> Any:
    """A column as {"class_name": ..., "config": ...}. The name of a feature stands for itself.

    Raises:
        ValueError: `fc` is neither a column nor a name.
    """
    if isinstance(fc, str):
        return fc
    if not hasattr(fc, "get_config"):
        raise ValueError(f"Instance: {fc} is not a FeatureColumn")
    return {"class_name": type(fc).__name__, "config": fc.get_config()}


def deserialize_feature_column(config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
    """The column that `serialize_feature_column` described.

    Args:
        config: The description.
        custom_objects: Classes of columns and initializers, and functions, by name.
        columns_by_name: A dictionary that collects columns by name. A column that is in it is used again.

    Raises:
        ValueError: There is no class of this name, or the config does not have its fields.
    """
    if isinstance(config, str):
        return config
    name = config["class_name"]
    column_class = (custom_objects or {}).get(name, _CLASSES.get(name))
    if column_class is None:
        raise ValueError(f"Unknown feature_column_v2: {name}")
    made = column_class.from_config(config["config"], custom_objects=custom_objects, columns_by_name=columns_by_name)
    return made if columns_by_name is None else columns_by_name.setdefault(made.name, made)


def serialize_feature_columns(feature_columns: Any) -> list[Any]:
    """Each column as `serialize_feature_column` describes it."""
    return [serialize_feature_column(column) for column in feature_columns]


def deserialize_feature_columns(configs: Any, custom_objects: Any = None) -> list[Any]:
    """The columns of `serialize_feature_columns`. Columns of one name become one column."""
    columns_by_name: dict[str, Any] = {}
    return [deserialize_feature_column(config, custom_objects, columns_by_name) for config in configs]


def config_of(column: Any) -> dict[str, Any]:
    """The fields of a column's tuple as plain values."""
    return {field: _plain(field, value) for field, value in zip(column._fields, column)}


def column_from(column_class: Any, config: dict[str, Any], custom_objects: Any, columns_by_name: Any) -> Any:
    """The column whose fields `config` describes.

    Raises:
        ValueError: The config does not have exactly these fields, or names something unknown.
    """
    if set(config) != set(column_class._fields):
        raise ValueError(f"Invalid config: {config}, expected keys: {column_class._fields}")
    return column_class(
        **{field: _restored(field, value, custom_objects, columns_by_name) for field, value in config.items()}
    )


def _plain(field: str, value: Any) -> Any:
    if isinstance(value, DType):
        return value.name
    if field in _COLUMNS:
        return serialize_feature_column(value)
    if field == "keys":
        return tuple(serialize_feature_column(key) for key in value)
    if field == "initializer" and hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return value


def _restored(field: str, value: Any, custom_objects: Any, columns_by_name: Any) -> Any:
    if field == "dtype":
        return as_dtype(value)
    if field in _COLUMNS:
        return deserialize_feature_column(value, custom_objects, columns_by_name)
    if field == "keys":
        return tuple(deserialize_feature_column(key, custom_objects, columns_by_name) for key in value)
    if field == "initializer":
        return _initializer(value, custom_objects)
    if field in _FUNCTIONS and isinstance(value, str):
        return _named(value, custom_objects)
    return _with_tuples(value)


def _initializer(value: Any, custom_objects: Any) -> Any:
    if isinstance(value, str):
        return _named(value, custom_objects)
    if not isinstance(value, dict):
        return value
    name = value["class_name"]
    made_by = (custom_objects or {}).get(name) or getattr(initializers, name, None)
    if made_by is None:
        raise ValueError(f"Unknown initializer: {name}")
    return made_by.from_config(value["config"])


def _named(name: str, custom_objects: Any) -> Any:
    if name not in (custom_objects or {}):
        raise ValueError(f"Unknown function: {name}. Pass it in custom_objects.")
    return custom_objects[name]


def _with_tuples(value: Any) -> Any:
    """JSON has lists where the fields of a column have tuples."""
    return tuple(_with_tuples(each) for each in value) if isinstance(value, (list, tuple)) else value
