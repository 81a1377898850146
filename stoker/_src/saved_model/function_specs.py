"""FunctionSpec messages: the parameters of a Python function, as a SavedModel describes them."""

from __future__ import annotations

import collections
import inspect
from typing import Any

from stoker._src.base.errors import DataLossError
from stoker._src.formats.protos import FunctionSpec
from stoker._src.runtime.functions.arguments import Parameters
from stoker._src.saved_model.structures import NotEncodableError, decoded, encoded

_Kind = inspect._ParameterKind
_EMPTY = inspect.Parameter.empty

# TensorFlow stores what `inspect.getfullargspec` returns.
FullArgSpec = collections.namedtuple(
    "FullArgSpec", ["args", "varargs", "varkw", "defaults", "kwonlyargs", "kwonlydefaults", "annotations"]
)


def spec_of(parameters: Parameters, jit_compile: bool | None = None) -> Any:
    """Returns the FunctionSpec of a function with these parameters."""
    by_kind: dict[_Kind, list[inspect.Parameter]] = collections.defaultdict(list)
    for parameter in parameters.signature.parameters.values():
        by_kind[parameter.kind].append(parameter)
    places = by_kind[_Kind.POSITIONAL_ONLY] + by_kind[_Kind.POSITIONAL_OR_KEYWORD]
    by_name = by_kind[_Kind.KEYWORD_ONLY]
    defaults = tuple(each.default for each in places if each.default is not _EMPTY)
    named = {each.name: each.default for each in by_name if each.default is not _EMPTY}
    described = FullArgSpec(
        args=[each.name for each in places],
        varargs=next((each.name for each in by_kind[_Kind.VAR_POSITIONAL]), None),
        varkw=next((each.name for each in by_kind[_Kind.VAR_KEYWORD]), None),
        defaults=tuple(map(_plain, defaults)) or None,
        kwonlyargs=[each.name for each in by_name],
        kwonlydefaults={name: _plain(value) for name, value in named.items()} or None,
        annotations={},
    )
    proto = FunctionSpec()
    proto.fullargspec.CopyFrom(encoded(described))
    proto.input_signature.CopyFrom(encoded(parameters.specs))
    if jit_compile is not None:
        proto.jit_compile = FunctionSpec.ON if jit_compile else FunctionSpec.OFF
    return proto


def _plain(value: Any) -> Any:
    """Returns a default value if a SavedModel can hold it, else None. No trace can depend on one that it cannot hold."""
    try:
        encoded(value)
    except NotEncodableError:
        return None
    return value


def parameters_of(proto: Any) -> Parameters:
    """Returns the parameters that a FunctionSpec describes.

    Raises:
        DataLossError: the message is damaged.
    """
    spec = decoded(proto.fullargspec)
    try:
        args = list(spec.args)[1 if proto.is_method else 0 :]
        defaults = list(spec.defaults or ())
        first = len(args) - len(defaults)
        parameters = [
            inspect.Parameter(name, _Kind.POSITIONAL_OR_KEYWORD, default=_EMPTY if i < first else defaults[i - first])
            for i, name in enumerate(args)
        ]
        if spec.varargs:
            parameters.append(inspect.Parameter(spec.varargs, _Kind.VAR_POSITIONAL))
        for name in spec.kwonlyargs or ():
            default = (spec.kwonlydefaults or {}).get(name, _EMPTY)
            parameters.append(inspect.Parameter(name, _Kind.KEYWORD_ONLY, default=default))
        if spec.varkw:
            parameters.append(inspect.Parameter(spec.varkw, _Kind.VAR_KEYWORD))
        return Parameters.of_signature(inspect.Signature(parameters), decoded(proto.input_signature))
    except (AttributeError, TypeError, ValueError) as error:
        raise DataLossError(None, None, f"the parameters of a function are damaged: {error}") from error
