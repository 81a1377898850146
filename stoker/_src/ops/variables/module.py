"""`tf.Module`: a named container of variables and other modules."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.graph.scopes import NameScopeV2
from stoker._src.graph.trackable import STATE_ATTRIBUTE
from stoker._src.graph.tracked_structures import AutoTrackable
from stoker._src.ops.variables import variables

_IDENTIFIER = re.compile(r"[a-zA-Z_][a-zA-Z_0-9]*")
_OWN = frozenset(("_name", "_scope_name", "_name_scope", STATE_ATTRIBUTE))


def _snake_case(name: str) -> str:
    """`MyNetV2` -> `my_net_v2`."""
    return re.sub(r"((?<=[a-z0-9])[A-Z]|(?!^)(?<!_)[A-Z](?=[a-z]))", r"_\1", name).lower()


@export("Module")
class Module(AutoTrackable):
    """Collects the variables in its attributes: direct ones, those in lists, tuples and dictionaries, and those of other modules.

    Args:
        name: a Python identifier; by default the class's name in snake case.

    Raises:
        ValueError: the name is not an identifier.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _snake_case(type(self).__name__)
        if not _IDENTIFIER.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a valid class name)."
            )
        self._name = name
        with NameScopeV2(name) as scope:
            self._scope_name = scope

    @property
    def name(self) -> str:
        return self._name

    @property
    def name_scope(self) -> NameScopeV2:
        """The module's name scope, a context manager."""
        return NameScopeV2(self._scope_name)

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables of this module, sorted by attribute name, then those of its submodules."""
        return tuple(self._flatten(lambda leaf: isinstance(leaf, variables.Variable)))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple[Any, ...]:
        """All nested modules."""
        return tuple(self._flatten(lambda leaf: isinstance(leaf, Module)))

    def _flatten(self, wanted: Callable[[Any], bool], seen: set[int] | None = None) -> Iterator[Any]:
        """The wanted objects among the attributes, each once. Modules are visited last."""
        seen = {id(self)} if seen is None else seen
        inner = []
        for value in (vars(self)[key] for key in sorted(vars(self).keys() - _OWN)):
            for leaf in nest.flatten(value):
                if id(leaf) in seen:
                    continue
                if wanted(leaf):
                    seen.add(id(leaf))
                    yield leaf
                if isinstance(leaf, Module):
                    seen.add(id(leaf))
                    inner.append(leaf)
        for module in inner:
            yield from module._flatten(wanted, seen)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates a method to enter the module's name scope."""

        @functools.wraps(method)
        def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped
