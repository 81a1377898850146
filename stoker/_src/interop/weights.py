"""`stoker.from_torch_state` copies the weights of a torch module back into variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.graph import Graph
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.support.values import to_numpy
from stoker._src.runtime.session import get_default_session


@export("from_torch_state")
def from_torch_state(
    module_or_state_dict: Any, variables: Any, map: Any = None, session: Any = None, *, strict: bool = True
) -> list[str]:
    """Assigns the parameters and buffers of a torch module to variables.

    All shapes and dtypes are checked before the first variable changes.

    Args:
        module_or_state_dict: a torch.nn.Module, or the result of its `state_dict()`.
        variables: a list of variables, a dict from names to variables, an object with `variables` (a tf.Module, a layer), or a Session or
            Graph for all its global variables.
        map: the source of each variable: a dict from variable names to keys of the state, or a function of the name that returns
            a key. Instead of a key it may give a pair (key, function) to convert the tensor, for example
            `("fc.weight", torch.t)` for the weight of a torch.nn.Linear; or None to leave the variable as it is. Without a map, a module
            of `to_torch` knows its variables; for others the key is the name itself, or the name with dots instead of slashes.
        session: the session that holds the variables. The default is the default session. Variables of eager mode need none.
        strict: whether to raise an error if a variable has no value in the state. Otherwise the variable is left unchanged.

    Returns:
        The keys of the state that were not used.

    Raises:
        KeyError: the state has no value for a variable.
        ValueError: a shape differs. The message names both sides.
        TypeError: a dtype differs.
    """
    state, known = _state(module_or_state_dict)
    session = _session(variables, session)
    chosen: list[tuple[Any, np.ndarray]] = []
    taken = set()
    for name, variable in _named(variables).items():
        found = _key(name, map, known, state)
        if found is None:
            continue
        key, convert = found
        if key not in state:
            if strict:
                raise KeyError(f"The variable {name} has no value: the state has no {key!r}. It has {_some(state)}.")
            continue
        taken.add(key)
        chosen.append((variable, _checked(name, variable, key, convert(state[key]))))
    for variable, value in chosen:
        variable.load(value, session)
    return [key for key in state if key not in taken]


def _state(source: Any) -> tuple[Mapping[str, Any], dict[str, str]]:
    """The state, and its keys by variable name if the module knows them."""
    if isinstance(source, torch.nn.Module):
        names = getattr(source, "variable_names", {})
        return source.state_dict(), {name: key for key, name in names.items()}
    if isinstance(source, Mapping):
        return source, {}
    raise TypeError(f"Expected a torch.nn.Module or a state_dict, got {type(source).__name__}.")


def _session(variables: Any, session: Any) -> Any:
    if session is None and hasattr(variables, "run") and isinstance(getattr(variables, "graph", None), Graph):
        return variables
    return get_default_session() if session is None else session


def _named(variables: Any) -> dict[str, Any]:
    if isinstance(variables, Mapping):
        return {str(name): variable for name, variable in variables.items()}
    return {variable.name.removesuffix(":0"): variable for variable in _listed(variables)}


def _listed(variables: Any) -> list[Any]:
    if isinstance(variables, (list, tuple)):
        return list(variables)
    if hasattr(variables, "assign"):
        return [variables]
    if hasattr(variables, "run"):
        variables = variables.graph
    if isinstance(variables, Graph):
        return variables.get_collection(GraphKeys.GLOBAL_VARIABLES)
    return list(variables.variables)


def _key(name: str, map: Any, known: dict[str, str], state: Any) -> tuple[str, Callable[[Any], Any]] | None:
    if map is not None:
        missing = object()
        found = map.get(name, missing) if isinstance(map, Mapping) else map(name)
        if found is not missing:
            if found is None:
                return None
            return (found, _as_it_is) if isinstance(found, str) else (found[0], found[1])
    if name in known:
        return known[name], _as_it_is
    return (name if name in state else name.replace("/", ".")), _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _some(state: Any) -> str:
    keys = list(state)
    return ", ".join(keys[:6]) + (f" and {len(keys) - 6} more" if len(keys) > 6 else "")


def _checked(name: str, variable: Any, key: str, value: Any) -> np.ndarray:
    array = to_numpy(value.detach().contiguous()) if isinstance(value, torch.Tensor) else np.asarray(value)
    expected = Shape(variable.shape.as_list()) if variable.shape.rank is not None else Shape(None)
    if not expected.compatible(Shape(array.shape)):
        hint = ""
        if array.ndim == 2 and expected.compatible(Shape(array.shape[::-1])):
            hint = f" Transposed it would fit: map {name!r} to ({key!r}, torch.t)."
        raise ValueError(
            f"The variable {name} has shape {expected}, but {key} of the state has shape {Shape(array.shape)}.{hint}"
        )
    dtype = as_dtype(array.dtype)
    if dtype is not variable.dtype.base_dtype:
        raise TypeError(
            f"The variable {name} is {variable.dtype.base_dtype.name}, but {key} of the state is {dtype.name}."
        )
    return array
