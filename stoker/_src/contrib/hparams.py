"""`tf.contrib.training.HParams`: named hyperparameters with types, which text and JSON can change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export

# name, name[index], then "=", then a list in brackets or anything up to a comma
_SETTING = re.compile(
    r"(?P<name>[a-zA-Z][\w\.]*)(?P<index>\[\s*\d+\s*\])?\s*=\s*((?P<value>[^,\[]*)|\[(?P<values>[^\]]*)\])($|,\s*)"
)


def _from_text(name: str, kind: type, text: str, whole: str) -> Any:
    """Returns the value that a text means for a hyperparameter of a type.

    Raises:
        ValueError: it means none.
    """
    if kind is bool:
        if text in ("true", "True", "1"):
            return True
        if text in ("false", "False", "0"):
            return False
    else:
        try:
            return kind(text)
        except ValueError:
            pass
    raise ValueError(f"Could not parse hparam '{name}' of type '{kind.__name__}' with value '{text}' in {whole}")


def _converted(name: str, kind: type, value: Any) -> Any:
    """Returns a value as one of a type, if no information is lost.

    Raises:
        ValueError: it would be lost.
    """
    if kind is type(None) or type(value) is kind:
        return value
    is_number = isinstance(value, (int, float)) or hasattr(value, "__float__")
    fits = (
        kind is not bool
        and not isinstance(value, bool)
        and not (issubclass(kind, int) and not hasattr(value, "__index__"))
        and not (issubclass(kind, float) and not is_number)
        and not (kind is str and not isinstance(value, str))
    )
    if not fits:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return kind(value)


@export(v1="contrib.training.HParams")
class HParams:
    """Hyperparameters as attributes.

        hparams = tf.contrib.training.HParams(learning_rate=0.1, units=[8, 4])
        hparams.parse("learning_rate=0.2,units=[6,3]")

    A hyperparameter keeps its type: a number, text, a boolean, or a list of one of these.

    Args:
        hparam_def: not supported.
        model_structure: an object that is kept with the hyperparameters.
        kwargs: the hyperparameters.

    Raises:
        NotImplementedError: `hparam_def`.
        ValueError: a name is reserved, or a list is empty.
    """

    _HAS_DYNAMIC_ATTRIBUTES = True

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None:
            raise NotImplementedError("HParams from an HParamDef message are not supported.")
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter.

        Raises:
            ValueError: the name is taken, or the value is an empty list.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a hyperparameter.

        Raises:
            KeyError: there is none of this name.
            ValueError: the value has another type.
        """
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_converted(name, kind, each) for each in value])
        else:
            if is_list:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _converted(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter if there is one of this name."""
        if name in self._hparam_types:
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Changes hyperparameters as a text says: `name=value` or `name=[value, value]`, with commas between.

        Returns:
            This object.

        Raises:
            ValueError: the text cannot be read, names an unknown hyperparameter, or has a value of another type.
        """
        place = 0
        while place < len(values):
            found = _SETTING.match(values, place)
            if not found:
                raise ValueError(f"Malformed hyperparameter value: {values[place:]}")
            place = found.end()
            name = found["name"]
            if name not in self._hparam_types:
                raise ValueError(f"Unknown hyperparameter type for {name}")
            self._set_from_text(name, found, values)
        return self

    def _set_from_text(self, name: str, found: re.Match[str], whole: str) -> None:
        kind, is_list = self._hparam_types[name]
        if found["values"] is not None and found["index"] is None:
            parts = [part.strip() for part in re.split(r"[ ,]", found["values"]) if part.strip()]
            self.set_hparam(name, [_from_text(name, kind, part, whole) for part in parts])
        elif is_list or found["index"] is not None:
            raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
        else:
            setattr(self, name, _from_text(name, kind, found["value"], whole))

    def override_from_dict(self, values_dict: dict[str, Any]) -> HParams:
        """Changes hyperparameters. Returns this object."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_model_structure(self, model_structure: Any) -> None:
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        return self._model_structure

    def to_json(
        self,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
        default: Callable[[Any], Any] | None = None,
    ) -> str:
        """Returns the hyperparameters as JSON. Functions are left out; `default` writes what JSON does not have."""
        values = {name: value for name, value in self.values().items() if not callable(value) or default is not None}
        return json.dumps(values, indent=indent, separators=separators, sort_keys=sort_keys, default=default)

    def parse_json(self, values_json: str) -> HParams:
        """Changes hyperparameters as a JSON object says. Returns this object."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """Returns the hyperparameters by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a hyperparameter, or `default` if there is none of this name.

        Raises:
            ValueError: `default` has another type than the hyperparameter.
        """
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, is_list = self._hparam_types[key]
            if is_list != isinstance(default, list):
                raise ValueError(f"Type of default for hparam '{key}' differs: one is a list and the other is not.")
            try:
                for each in default if is_list else [default]:
                    _converted(key, kind, each)
            except ValueError as error:
                raise ValueError(
                    f"Hparam '{key}' of type '{kind}' is incompatible with default={default}. {error}"
                ) from None
        return getattr(self, key)

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"
