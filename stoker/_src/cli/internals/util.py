"""Helpers of `tensorflow.python.util`: decorators, inspection, deprecation, containers by identity."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterator, MutableMapping, MutableSet
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.deprecation import deprecated

# ---- tf_inspect: Python's own, which sees through decorators by itself ---------------------------------------------

getargspec = getfullargspec = inspect.getfullargspec
_INSPECT = frozenset(
    """currentframe getcallargs getdoc getfile getframeinfo getmembers getmodule getmro getsource getsourcefile getsourcelines
    isbuiltin isclass isframe isfunction isgenerator isgeneratorfunction ismethod ismodule isroutine signature stack""".split()
)


def __getattr__(name: str) -> Any:
    if name in _INSPECT:
        return getattr(inspect, name)
    raise AttributeError(f"there is no helper {name!r}")


# ---- tf_export, deprecation ---------------------------------------------------------------------------------------


def tf_export(*names: str, **options: Any) -> Callable[[Any], Any]:
    """No-op: it declares public names in TensorFlow's own source."""
    return lambda item: item


estimator_export = keras_export = tf_export


def kwarg_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Rejects positional arguments."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise TypeError(f"{function.__name__} only takes keyword args. Please pass these args as kwargs instead.")
        return function(**kwargs)

    return wrapper


keyword_args_only = kwarg_only


def deprecated_args(date: str | None, instructions: str, *names: Any, **options: Any) -> Callable[[Any], Any]:
    """Marks arguments as deprecated. The first call that passes one of them by name logs a warning."""
    listed = {name if isinstance(name, str) else name[0] for name in names}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        told: set[str] = set()

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for name in listed & kwargs.keys() - told:
                told.add(name)
                when = f"after {date}" if date else "in a future version"
                tf_logging.warning(
                    "%s: argument %s is deprecated and will be removed %s. %s",
                    function.__qualname__,
                    name,
                    when,
                    instructions,
                )
            return function(*args, **kwargs)

        return wrapper

    return decorate


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable[[Any], Any]:
    """Marks argument values as deprecated. Passing one of them logs a warning."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        told: set[str] = set()

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind_partial(*args, **kwargs).arguments
            for name, value in deprecated_kwargs.items():
                if name in given and given[name] == value and not (warn_once and name in told):
                    told.add(name)
                    when = f"after {date}" if date else "in a future version"
                    tf_logging.warning(
                        "%s: %s=%s is deprecated and will be removed %s. %s",
                        function.__qualname__,
                        name,
                        value,
                        when,
                        instructions,
                    )
            return function(*args, **kwargs)

        return wrapper

    return decorate


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True) -> Any:
    """Returns `func_or_class` under an old name. Using it logs a warning that mentions the name."""
    return deprecated(None, f"Please use {name} instead of {deprecated_name}.", warn_once)(func_or_class)


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """Returns the value of an argument that also has an old name.

    Raises:
        ValueError: both are given.
    """
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.")
    return old_value


def rewrite_argument_docstring(old_doc: str, old_argument: str, new_argument: str) -> str:
    """Replaces an argument's name in a docstring where it is quoted or described."""
    return old_doc.replace(f"`{old_argument}`", f"`{new_argument}`").replace(f"{old_argument}:", f"{new_argument}:")


def deprecated_endpoints(*args: str) -> Callable[[Any], Any]:
    """No-op: it declares old public names in TensorFlow's own source."""
    return lambda item: item


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Suppresses deprecation warnings inside the context."""
    level = tf_logging.get_verbosity()
    tf_logging.set_verbosity(tf_logging.ERROR)
    try:
        yield
    finally:
        tf_logging.set_verbosity(level)


# ---- tf_decorator, tf_contextlib, function_utils, tf_should_use ----------------------------------------------------

contextmanager = contextlib.contextmanager


def make_decorator(
    target: Any,
    decorator_func: Any,
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Any:
    """Returns `decorator_func` with the name, docstring and signature of the function it wraps."""
    made = functools.wraps(target)(decorator_func)
    made.__doc__ = decorator_doc or made.__doc__
    return made


def unwrap(maybe_tf_decorator: Any) -> tuple[list[Any], Any]:
    """Returns the decorators around a function, outermost first, and the function."""
    decorators = []
    while hasattr(maybe_tf_decorator, "__wrapped__"):
        decorators.append(maybe_tf_decorator)
        maybe_tf_decorator = maybe_tf_decorator.__wrapped__
    return decorators, maybe_tf_decorator


def fn_args(fn: Any) -> tuple[str, ...]:
    """Returns the names of a function's arguments, without `self` and without those that a partial has bound."""
    names = [
        parameter.name
        for parameter in inspect.signature(fn).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    given = fn.keywords if isinstance(fn, functools.partial) else {}
    return tuple(name for name in names if name not in given)


def has_kwargs(fn: Any) -> bool:
    """Whether the function takes arbitrary keyword arguments."""
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in inspect.signature(fn).parameters.values())


def get_func_name(func: Any) -> str:
    """Returns a function's name, looking through decorators and partials."""
    func = inspect.unwrap(func)
    if isinstance(func, functools.partial):
        return get_func_name(func.func)
    return getattr(func, "__name__", type(func).__name__)


def get_func_code(func: Any) -> Any:
    """Returns a function's code object, or None."""
    func = inspect.unwrap(func)
    return getattr(func.func if isinstance(func, functools.partial) else func, "__code__", None)


def should_use_result(fn: Any = None, warn_in_eager: bool = False, error_in_function: bool = False) -> Any:
    """No-op: it marks functions whose result must be used in TensorFlow's own source."""
    return (lambda item: item) if fn is None else fn


# ---- all_util, decorator_utils, lazy_loader, object_identity -------------------------------------------------------


def remove_undocumented(module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None) -> None:
    """No-op: it hides names of TensorFlow's own modules."""


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """Returns the public names of a module."""
    return [name for name in dir(importlib.import_module(module_name)) if not name.startswith("_")]


class classproperty:
    """A property of the class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._func = func

    def __get__(self, owner_self: Any, owner_cls: Any) -> Any:
        return self._func(owner_cls)


class LazyLoader(types.ModuleType):
    """A module that is imported when one of its attributes is first accessed."""

    def __init__(self, local_name: str, parent_module_globals: dict[str, Any], name: str) -> None:
        super().__init__(name)
        self._local_name, self._parent_module_globals = local_name, parent_module_globals

    def __getattr__(self, item: str) -> Any:
        module = importlib.import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        return getattr(module, item)


class ObjectIdentityDictionary(MutableMapping[Any, Any]):
    """A dictionary that compares keys by identity."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._items: dict[int, tuple[Any, Any]] = {}
        self.update(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._items[id(key)][1]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[id(key)] = (key, value)

    def __delitem__(self, key: Any) -> None:
        del self._items[id(key)]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in list(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)


class ObjectIdentitySet(MutableSet[Any]):
    """A set that compares members by identity."""

    def __init__(self, items: Any = ()) -> None:
        self._items = {id(item): item for item in items}

    def __contains__(self, item: Any) -> bool:
        return id(item) in self._items

    def add(self, value: Any) -> None:
        self._items[id(value)] = value

    def discard(self, value: Any) -> None:
        self._items.pop(id(value), None)

    def update(self, items: Any) -> None:
        for item in items:
            self.add(item)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)
