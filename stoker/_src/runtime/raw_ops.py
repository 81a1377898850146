"""`tf.raw_ops`: every op definition as a function that takes its inputs and attributes by keyword.

The functions are generated from the definitions when this module is imported. All ops are defined by then, because the
`ops` package loads all of its modules.
"""

from __future__ import annotations

import functools
import inspect
import typing

import stoker._src.ops  # noqa: F401  (defines every op)
from stoker._src.base.export import export_constant
from stoker._src.graph.attributes import MISSING
from stoker._src.graph.definition import OpDefinition, all_definitions

# Arguments whose Python name differs from the op's.
_REDUCTION = {"reduction_indices": "axis"}
_PYTHON_NAMES: dict[str, dict[str, str]] = {
    **dict.fromkeys(("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"), _REDUCTION),
    "ExpandDims": {"dim": "axis"},
    "Select": {"t": "x", "e": "y"},
    "Split": {"split_dim": "axis"},
    "SplitV": {"split_dim": "axis"},
    "Squeeze": {"squeeze_dims": "axis"},
    "Where": {"input": "condition"},
}


def _signature(definition: OpDefinition) -> inspect.Signature:
    """Returns inputs and attributes in the order of TensorFlow's wrappers: required ones first."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = _PYTHON_NAMES.get(definition.name, {})
    required = [named.get(arg.name, arg.name) for arg in definition.inputs]
    optional = []
    for name, spec in definition.attrs.items():
        if name in definition.inferred:
            continue
        if spec.default is MISSING:
            required.append(name)
        else:
            optional.append(inspect.Parameter(named.get(name, name), kind, default=spec.default))
    parameters = [inspect.Parameter(name, kind) for name in required]
    return inspect.Signature([*parameters, *optional, inspect.Parameter("name", kind, default=None)])


class RawOp:
    """The function `tf.raw_ops.<name>` of a definition. Its signature and docstring are computed on demand."""

    def __init__(self, definition: OpDefinition) -> None:
        self._definition = definition
        self.__name__ = self.__qualname__ = definition.name

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        return _signature(self._definition)

    @property
    def __doc__(self) -> str:
        return f"The op {self.__name__}{self.__signature__}. Arguments go by keyword."

    def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """Calls the op.

        Raises:
            TypeError: arguments are positional, which TensorFlow rejects too, or the op does not have them.
        """
        keys = self.__signature__.parameters
        if args:
            raise TypeError(
                f"{self.__name__} only takes keyword args (possible keys: {list(keys)}). "
                "Please pass these args as kwargs instead."
            )
        name = kwargs.pop("name", None)
        unknown = [key for key in kwargs if key not in keys]
        if unknown:
            raise TypeError(f"{self.__name__}() got an unexpected keyword argument {unknown[0]!r}")
        own = {python: op for op, python in _PYTHON_NAMES.get(self.__name__, {}).items()}
        return self._definition(name=name, **{own.get(key, key): value for key, value in kwargs.items()})


def __getattr__(name: str) -> typing.Any:
    """Handles only names that are not ops."""
    raise AttributeError(f"There is no op {name!r} in tf.raw_ops.")


for _name, _definition in all_definitions().items():
    globals()[_name] = RawOp(_definition)
    export_constant(__name__, _name, f"raw_ops.{_name}")
