"""`tf.raw_ops`: every op definition as a function that takes its inputs and attributes by keyword.

The functions are made from the definitions when this module is imported, which is after every op is defined: the
package of ops loads all of its modules.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable

import stoker._src.ops  # noqa: F401  (defines every op)
from stoker._src.base.export import export_constant
from stoker._src.graph.definition import MISSING, OpDefinition, all_definitions


def _signature(definition: OpDefinition) -> inspect.Signature:
    """Inputs and attributes in the order of TensorFlow's wrappers: first what must be given."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    required = [arg.name for arg in definition.inputs]
    optional = []
    for name, spec in definition.attrs.items():
        if name in definition.inferred:
            continue
        if spec.default is MISSING:
            required.append(name)
        else:
            optional.append(inspect.Parameter(name, kind, default=spec.default))
    parameters = [inspect.Parameter(name, kind) for name in required]
    return inspect.Signature([*parameters, *optional, inspect.Parameter("name", kind, default=None)])


def raw_op(definition: OpDefinition) -> Callable[..., typing.Any]:
    """The function `tf.raw_ops.<name>` of a definition.

    It raises TypeError for positional arguments, as TensorFlow's does, and for arguments the op does not have.
    """
    signature = _signature(definition)

    def call(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        if args:
            raise TypeError(
                f"{definition.name} only takes keyword args (possible keys: {list(signature.parameters)}). "
                "Please pass these args as kwargs instead."
            )
        name = kwargs.pop("name", None)
        unknown = [key for key in kwargs if key not in signature.parameters]
        if unknown:
            raise TypeError(f"{definition.name}() got an unexpected keyword argument {unknown[0]!r}")
        return definition(name=name, **kwargs)

    call.__name__ = call.__qualname__ = definition.name
    call.__doc__ = f"The op {definition.name}. Arguments go by keyword."
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def __getattr__(name: str) -> typing.Any:
    """Reached only for names that are no op."""
    raise AttributeError(f"There is no op {name!r} in tf.raw_ops.")


for _name, _definition in all_definitions().items():
    globals()[_name] = raw_op(_definition)
    export_constant(__name__, _name, f"raw_ops.{_name}")
