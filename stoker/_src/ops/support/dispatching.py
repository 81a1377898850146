"""Functions that also take tensors of another kind than Tensor, such as sparse or ragged ones.

    @export("stack")
    @dispatched
    def stack(values, axis=0, name="stack"): ...

    stack.also_takes(RaggedTensor, form, lists=True)

A dispatched function looks at its arguments for a kind that has a form registered, and calls `form(original, arguments)` with the arguments by name;
otherwise it calls the original. A function that works element by element is marked `@elementwise` instead: all of these share the forms
registered with `elementwise.also_takes`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Form = Callable[[Function, dict[str, Any]], Any]


class _Forms:
    """The forms of one function by the kind of tensor they take, and the kinds that are looked for inside lists."""

    def __init__(self) -> None:
        self.by_kind: dict[type, Form] = {}
        self.in_lists: set[type] = set()

    def also_takes(self, kind: type, form: Form, *, lists: bool = False) -> None:
        """Registers `form` for arguments of type `kind`; with `lists`, also for lists that hold one."""
        self.by_kind[kind] = form
        if lists:
            self.in_lists.add(kind)

    def find(self, value: Any) -> Form | None:
        form = self.by_kind.get(type(value))
        if form is None and self.in_lists and isinstance(value, (list, tuple)):
            return next((self.by_kind[type(item)] for item in value if type(item) in self.in_lists), None)
        return form


def dispatched(original: Function, shared: _Forms | None = None) -> Any:
    """The function with a table of forms of its own: see `also_takes`, which becomes an attribute of it."""
    forms = _Forms()
    tables = (forms,) if shared is None else (forms, shared)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()) if kwargs else args:
            for table in tables:
                form = table.find(value)
                if form is not None:
                    return form(original, signature.bind(*args, **kwargs).arguments)
        return original(*args, **kwargs)

    function.also_takes = forms.also_takes  # type: ignore[attr-defined]
    return function


class _Elementwise(_Forms):
    """The decorator `elementwise`, and the forms that all functions decorated with it share."""

    def __call__(self, original: Function) -> Any:
        return dispatched(original, shared=self)


elementwise = _Elementwise()
