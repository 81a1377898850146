"""Functions that also accept other kinds of tensors, such as sparse or ragged ones.

    @export("stack")
    @dispatched
    def stack(values, axis=0, name="stack"): ...

    stack.also_takes(RaggedTensor, form, lists=True)

A dispatched function searches its arguments for a kind of tensor that has a registered form, and calls `form(original, arguments)` with the
arguments by name. If there is none, it calls the original. Functions that work element by element are marked `@elementwise` instead. They all
share the forms registered with `elementwise.also_takes`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Form = Callable[[Function, dict[str, Any]], Any]


class _Forms:
    """The forms of one function by kind of tensor, and the kinds that may be inside lists."""

    def __init__(self) -> None:
        self.by_kind: dict[type, Form] = {}
        self.in_lists: set[type] = set()

    def also_takes(self, kind: type, form: Form, *, lists: bool = False) -> None:
        """Registers `form` for arguments of type `kind` and, with `lists`, for lists that contain one."""
        self.by_kind[kind] = form
        if lists:
            self.in_lists.add(kind)

    def find(self, value: Any) -> Form | None:
        form = self.by_kind.get(type(value))
        if form is None and self.in_lists and isinstance(value, (list, tuple)):
            return next((self.by_kind[type(item)] for item in value if type(item) in self.in_lists), None)
        return form


def dispatched(original: Function, shared: _Forms | None = None) -> Any:
    """Gives a function its own table of forms. `also_takes` becomes an attribute of the function."""
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
    """The decorator `elementwise`, with the forms that all decorated functions share."""

    def __call__(self, original: Function) -> Any:
        return dispatched(original, shared=self)


elementwise = _Elementwise()
