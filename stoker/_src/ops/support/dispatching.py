"""Public functions that also take tensors of another kind than Tensor, such as sparse or ragged ones.

A function named here looks for a tensor of that kind among its arguments; where there is one its form for that kind is called,
else the function itself. It is replaced in its own module, before the public modules take their names from there.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from stoker._src.base.export import EXPORTS

_Form = Callable[..., Any]
# By the module and name of a function: its forms by the kind they are for, and the kinds looked for inside of lists.
_FORMS: dict[tuple[str, str], tuple[dict[type, _Form], set[type]]] = {}


def also_takes(kind: type, name: str, form: _Form, *, lists: bool = False) -> None:
    """Makes the public function `name`, in both namespaces, call `form(original, arguments)` where it is given a `kind`.

    Args:
        kind: the class of tensors.
        name: the function's public name.
        form: called with the function as it was and its arguments by name.
        lists: whether a list with such a tensor counts, too.

    Raises:
        LookupError: no such function is loaded.
    """
    found = {EXPORTS[namespace][name] for namespace in ("v1", "v2") if name in EXPORTS[namespace]}
    if not found:
        raise LookupError(f"There is no public function {name!r}: its module is not loaded.")
    for target in found:
        if target not in _FORMS:
            module = importlib.import_module(target[0])
            _FORMS[target] = forms, inside = {}, set()
            setattr(module, target[1], _dispatching(getattr(module, target[1]), forms, inside))
        forms, inside = _FORMS[target]
        forms.setdefault(kind, form)
        if lists:
            inside.add(kind)


def _dispatching(original: _Form, forms: dict[type, _Form], inside: set[type]) -> _Form:
    signature = inspect.signature(original)

    def form_for(value: Any) -> _Form | None:
        found = forms.get(type(value))
        if found is None and inside and isinstance(value, (list, tuple)):
            return next((forms[type(item)] for item in value if type(item) in inside), None)
        return found

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            form = form_for(value)
            if form is not None:
                break
        else:
            for value in kwargs.values():
                form = form_for(value)
                if form is not None:
                    break
            else:
                return original(*args, **kwargs)
        return form(original, signature.bind(*args, **kwargs).arguments)

    return function
