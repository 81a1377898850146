"""`tf.make_template`: a function that creates its variables on the first call and reuses them afterwards."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

from stoker._src.base import forking
from stoker._src.base.export import export
from stoker._src.graph import context, scopes
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.variables.variable_scope import VariableScope, variable_scope


@export(v1="make_template")
def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """Wraps `func_` so that its `tf.get_variable` variables are created once and shared by all calls.

    Args:
        name_: the name of the variable scope, which is made unique.
        func_: the function. It must create its variables with `tf.get_variable` (or create local ones).
        create_scope_now_: whether to create the scope now instead of on the first call.
        unique_name_: the exact name of the scope. Two templates may share it.
        custom_getter_: a custom getter for the variables.
        **kwargs: keyword arguments for every call.

    Raises:
        ValueError: a unique name is given in eager mode.
    """
    if kwargs:
        func_ = functools.partial(func_, **kwargs)
    if context.executing_eagerly() and unique_name_ is not None:
        raise ValueError("unique_name_ cannot be used when eager execution is enabled.")
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_)


class Template(Trackable):
    """A function and the variable scope that its calls share. Created by `make_template`."""

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Any = None,
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        self._func, self._name, self._unique_name, self._custom_getter = func, name, unique_name, custom_getter
        self._stack = traceback.format_stack()[:-2]
        self._scope: VariableScope | None = None
        self._variables_created = False
        self._first = forking.rlock()
        if create_scope_now:
            # The name scope is that of the first call.
            with self._new_scope(auxiliary_name_scope=False) as self._scope:
                pass

    def _new_scope(self, auxiliary_name_scope: bool = True) -> variable_scope:
        return variable_scope(
            self._unique_name,
            default_name=self._name,
            custom_getter=self._custom_getter,
            auxiliary_name_scope=auxiliary_name_scope,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._first:
            if not self._variables_created:
                return self._first_call(args, kwargs)
        # A template nested in a shared template must share too, so this is True and not AUTO_REUSE.
        with variable_scope(self._scope, reuse=not context.executing_eagerly() or None):
            return self._call(args, kwargs)

    def _first_call(self, args: Any, kwargs: Any) -> Any:
        if self._scope is not None:
            opened = variable_scope(self._scope)
        else:
            opened = self._new_scope()
        with opened as scope:
            if self._scope is None:
                self._scope = scope
            result = self._call(args, kwargs)
            self._variables_created = True
            return result

    def _call(self, args: Any, kwargs: Any) -> Any:
        try:
            return self._func(*args, **kwargs)
        except Exception as error:
            made = "".join(self._stack)
            if error.args and isinstance(error.args[0], str):
                error.args = (f"{error.args[0]}\n\noriginally defined at:\n{made}", *error.args[1:])
            raise

    @property
    def name(self) -> str:
        """The name given to this template."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The wrapped function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope of the variables, or None before the first call."""
        return self._scope

    var_scope = variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """The name of the scope with a trailing slash, or None before the first call."""
        name = None if self._scope is None else self._scope.name
        return name if not name or name.endswith("/") else name + "/"

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        prefix = self.variable_scope_name or ""
        own = {variable.op.name.removeprefix(prefix): variable for variable in self.variables}
        return {**super()._trackable_children(save_type, **kwargs), **own}

    def _collected(self, key: str) -> list[Any]:
        if self._scope is None:
            return []
        return context.get_default_graph().get_collection(key, self.variable_scope_name)

    @property
    def variables(self) -> list[Any]:
        """Global and local variables created by this template."""
        return self.global_variables + self.local_variables

    weights = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """Trainable variables created by this template."""
        return self._collected(GraphKeys.TRAINABLE_VARIABLES)

    trainable_weights = trainable_variables

    @property
    def non_trainable_variables(self) -> list[Any]:
        """Non-trainable variables created by this template."""
        trainable = {id(variable) for variable in self.trainable_variables}
        return [variable for variable in self.variables if id(variable) not in trainable]

    non_trainable_weights = non_trainable_variables

    @property
    def global_variables(self) -> list[Any]:
        """Global variables created by this template."""
        return self._collected(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """Local variables created by this template."""
        return self._collected(GraphKeys.LOCAL_VARIABLES)


@export(v1="op_scope")
def op_scope(values: Any, name: str | None, default_name: str | None = None) -> Any:
    """Deprecated form of `name_scope`, with the values first."""
    return scopes.NameScope(name, default_name=default_name, values=values)
