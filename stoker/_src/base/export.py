"""Public names, declared next to their definitions. `scripts/api_gen` generates the public modules from them.

@export("nn.relu", v1="nn.relu6")     tf.nn.relu in both namespaces, and one more name in 1.x
@export(v2="math.log", v1=("log", "math.log"))
export_constant(__name__, "float32", "float32", "dtypes.float32")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Names = str | Iterable[str]
Object = TypeVar("Object", bound=Callable[..., Any])

# namespace -> public dotted name -> (module, attribute)
EXPORTS: dict[str, dict[str, tuple[str, str]]] = {"v1": {}, "v2": {}}
# 1.x name -> the other 1.x name of the same thing
ALIASES: dict[str, str] = {}


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _register(namespace: str, name: str, module: str, attribute: str) -> None:
    table = EXPORTS[namespace]
    if table.get(name, (module, attribute)) != (module, attribute):
        raise ValueError(f"{namespace} name {name!r} is claimed by {table[name]} and by {(module, attribute)}")
    table[name] = (module, attribute)


def export(*names: str, v1: Names = (), v2: Names = ()) -> Callable[[Object], Object]:
    """Gives a function or class its public names: `names` in both namespaces, `v1` and `v2` in one of them."""

    def attach(item: Object) -> Object:
        export_constant(item.__module__, item.__qualname__, *names, v1=v1, v2=v2)
        return item

    return attach


def named(name: str, doc: str | None = None) -> Callable[[Object], Object]:
    """Sets the name and docstring of a function that is created by another function."""

    def attach(item: Object) -> Object:
        item.__name__ = item.__qualname__ = name
        if doc is not None:
            item.__doc__ = doc
        return item

    return attach


def export_constant(module: str, attribute: str, *names: str, v1: Names = (), v2: Names = ()) -> None:
    """Gives the attribute `attribute` of `module` its public names."""
    for name in (*names, *_names(v1)):
        _register("v1", name, module, attribute)
    for name in (*names, *_names(v2)):
        _register("v2", name, module, attribute)


def export_alias(name: str, of: str) -> None:
    """Gives what has the 1.x name `of`, wherever it is defined, the 1.x name `name`, too."""
    ALIASES[name] = of


def all_exports() -> dict[str, dict[str, tuple[str, str]]]:
    """Returns the public names with the aliases among them. Every module must have been imported before.

    Raises:
        ValueError: an alias stands for a name that nothing has.
    """
    tables = {namespace: dict(table) for namespace, table in EXPORTS.items()}
    for name, of in ALIASES.items():
        if of not in EXPORTS["v1"]:
            raise ValueError(f"{name!r} is an alias of {of!r}, which is no public name.")
        tables["v1"].setdefault(name, EXPORTS["v1"][of])
    return tables
