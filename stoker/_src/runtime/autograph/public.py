"""The public names of `tf.autograph`."""

from __future__ import annotations

import ast
import enum
import functools
import os
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.runtime.autograph import convert
from stoker._src.runtime.autograph.rewrite import NotConvertible, Options


@export("autograph.experimental.Feature")
class Feature(enum.Enum):
    """Optional parts of the conversion.

    NAME_SCOPES puts the ops of each converted function into a name scope with the function's name. EQUALITY_OPERATORS makes `==`
    and `!=` compare the values of tensors even where they do not do so by default (1.x). Most others are always on:
    assertions, built-in functions, control dependencies. LISTS is never on: lists stay Python lists, and a loop in
    the graph collects values in a `tf.TensorArray`.
    """

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


def options_for(features: Any, recursive: bool = True) -> Options:
    """Returns the options for one Feature, several, or None.

    Raises:
        TypeError: they are not Features.
    """
    asked = () if features is None else (features,) if isinstance(features, Feature) else tuple(features)
    for feature in asked:
        if not isinstance(feature, Feature):
            raise TypeError(f"expected tf.autograph.experimental.Feature, found {feature!r}")

    def wants(feature: Feature) -> bool:
        return Feature.ALL in asked or feature in asked

    return Options(recursive, scoped=wants(Feature.NAME_SCOPES), equality=wants(Feature.EQUALITY_OPERATORS))


class ConversionError(Exception):
    """`to_graph` or `to_code` got an object that cannot be converted."""


def _plain(entity: Any) -> FunctionType:
    function = entity.__func__ if isinstance(entity, MethodType) else entity
    if not isinstance(function, FunctionType):
        raise ConversionError(
            f"converting {entity}: ValueError: Cannot apply autograph to a function that doesn't expose a __code__ object. If "
            "this is a @tf.function, try passing f.python_function instead."
        )
    return function


def _to_graph(entity: Any, options: Options) -> Any:
    function = _plain(entity)
    try:
        code = convert.converted_code(function, options)
    except NotConvertible as error:
        raise ConversionError(f"converting {entity}: {error}") from None
    if code is None:
        raise ConversionError(f"converting {entity}: OSError: could not get source code")
    made = convert.with_code(function, code, options)
    made.__name__ = f"tf__{function.__name__}" if function.__name__.isidentifier() else function.__name__
    return MethodType(made, entity.__self__) if isinstance(entity, MethodType) else made


def _to_code(entity: Any, options: Options) -> str:
    function = _plain(entity)
    try:
        tree, _ = convert.rewritten_tree(function, options)
    except (NotConvertible, OSError) as error:
        raise ConversionError(f"converting {entity}: {type(error).__name__}: {error}") from None
    if isinstance(tree, ast.FunctionDef):
        tree.name = f"tf__{tree.name}"
    return ast.unparse(tree) + "\n"


@export(v2="autograph.to_graph")
def to_graph(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> Any:
    """Returns the function with its control flow converted, as `tf.function` traces it.

    Args:
        entity: a Python function or method.
        recursive: whether to convert the functions that it calls too.
        experimental_optional_features: one Feature or several.

    Raises:
        ConversionError: there is no source, or `entity` is not a Python function.
    """
    return _to_graph(entity, options_for(experimental_optional_features, recursive))


@export(v1="autograph.to_graph")
def to_graph_v1(
    entity: Any,
    recursive: bool = True,
    arg_values: Any = None,
    arg_types: Any = None,
    experimental_optional_features: Any = None,
) -> Any:
    """Like the 2.x function. `arg_values` and `arg_types` are ignored, as in TensorFlow."""
    del arg_values, arg_types
    return _to_graph(entity, options_for(experimental_optional_features, recursive))


@export(v2="autograph.to_code")
def to_code(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """Returns the source that a function is converted to, for inspection. `ag__` holds the operators.

    Raises:
        ConversionError: there is no source, or `entity` is not a Python function.
    """
    return _to_code(entity, options_for(experimental_optional_features, recursive))


@export(v1="autograph.to_code")
def to_code_v1(
    entity: Any,
    recursive: bool = True,
    arg_values: Any = None,
    arg_types: Any = None,
    indentation: str = "  ",
    experimental_optional_features: Any = None,
) -> str:
    """Like the 2.x function, indented by `indentation`. `arg_values` and `arg_types` are ignored, as in TensorFlow."""
    del arg_values, arg_types
    lines = _to_code(entity, options_for(experimental_optional_features, recursive)).split("\n")
    return "\n".join(indentation * ((len(line) - len(line.lstrip())) // 4) + line.lstrip() for line in lines)


@export("autograph.trace")
def trace(*args: Any) -> None:
    """Prints while a function is traced."""
    print(*args)


@export("autograph.set_verbosity")
def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Sets how much conversion logs: 0 only failures, 1 or more each function. AUTOGRAPH_VERBOSITY sets it too.

    Args:
        level: the verbosity.
        alsologtostdout: whether to print instead of using the log.
    """
    convert.verbosity = level
    convert.also_to_stdout = alsologtostdout


if os.environ.get("AUTOGRAPH_VERBOSITY", "").isdecimal():
    set_verbosity(int(os.environ["AUTOGRAPH_VERBOSITY"]))


@export("autograph.experimental.do_not_convert")
def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Decorator that keeps `tf.function` from converting a function and the functions it calls."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def unconverted(*args: Any, **kwargs: Any) -> Any:
        with context.converting(False):
            return func(*args, **kwargs)

    return unconverted


@export("autograph.experimental.set_loop_options")
def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Sets options of a loop, as the first statement of its body in a converted function. It has no effect elsewhere.

    Args:
        parallel_iterations: recorded in the graph; iterations run one after the other.
        swap_memory: no effect; values that the gradient needs are not moved.
        maximum_iterations: a limit on the number of iterations.
        shape_invariants: pairs (variable, TensorShape) for variables whose shape changes between iterations.
    """
    del parallel_iterations, swap_memory, maximum_iterations, shape_invariants
