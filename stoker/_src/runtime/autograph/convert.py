"""Converts a function: finds its source, rewrites it, and compiles it under the user's file name and line numbers.

Results are cached by code object. Only the user's functions are converted: not this package, the standard library or
installed packages, and not functions without source.
"""

from __future__ import annotations

import ast
import copy
import functools
import linecache
import os
import site
import sysconfig
import warnings
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.graph.source_lines import is_ours
from stoker._src.runtime.autograph import rewrite, user_errors
from stoker._src.runtime.autograph.operators import Operators
from stoker._src.runtime.autograph.rewrite import OPERATORS, NotConvertible, Options

_SUSPENDS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_INSTALLED = tuple(
    os.path.join(path, "")
    for path in {
        *(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    }
)


Definitions = dict[int, list[tuple[Any, str]]]

DEFAULT = Options()
verbosity = 0  # tf.autograph.set_verbosity
also_to_stdout = False

_codes: dict[tuple[CodeType, str, Options], CodeType | None] = {}
_trees: dict[str, tuple[str, Definitions]] = {}


@functools.cache
def _operators(options: Options) -> Operators:
    return Operators(lambda function: converted(function, options))


def log(level: int, message: str) -> None:
    """Logs a line if the user's verbosity is at least `level`."""
    if verbosity >= level:
        print(message) if also_to_stdout else tf_logging.info(message)


def converted(function: Any, options: Options = DEFAULT) -> Any:
    """Returns `function` with its control flow converted, or `function` itself if there is nothing to convert."""
    if isinstance(function, FunctionType):
        return _converted_function(function, options)
    if isinstance(function, MethodType):
        inner = converted(function.__func__, options)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        inner = converted(function.func, options)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, type) or not callable(function):
        return function
    call = type(function).__call__
    inner = converted(call, options) if isinstance(call, FunctionType) else call
    return function if inner is call else MethodType(inner, function)


def _converted_function(function: FunctionType, options: Options) -> FunctionType:
    code = function.__code__
    if not _is_users(code):
        return function
    key = (code, code.co_filename, options)
    if key not in _codes:
        try:
            _codes[key] = converted_code(function, options)
            log(1, f"AutoGraph converted {function}")
        except NotConvertible as error:
            _codes[key] = None
            tf_logging.warning(
                f"AutoGraph could not transform {function} and will run it as-is.\nCause: {error}\nTo silence this warning, "
                "decorate the function with @tf.autograph.experimental.do_not_convert"
            )
    made = _codes[key]
    return function if made is None else with_code(function, made, options)


def _is_users(code: CodeType) -> bool:
    name = code.co_filename
    if code.co_flags & _SUSPENDS or OPERATORS in code.co_freevars:
        return False
    return not is_ours(name) and not name.startswith(_INSTALLED) and not name.startswith("<frozen")


def with_code(function: FunctionType, code: CodeType, options: Options) -> FunctionType:
    """Returns `function` with other code, and the same globals, defaults and closure."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[OPERATORS] = CellType(_operators(options))
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__qualname__, made.__doc__, made.__module__ = function.__qualname__, function.__doc__, function.__module__
    made.__annotations__ = function.__annotations__
    return made


# ---- source -----------------------------------------------------------------------------------------------------


def source_tree(function: FunctionType) -> tuple[Any, str]:
    """Returns a copy of a function's syntax tree without decorators, and the name of its class ("" if there is none).

    Raises:
        NotConvertible: the source does not identify a single function.
        OSError: there is no source.
    """
    code = function.__code__
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not source:
        raise OSError(f"could not get the source code of {function}")
    known = _trees.get(code.co_filename)
    if known is None or known[0] != source:
        try:
            known = _trees[code.co_filename] = source, _by_line(_quietly(ast.parse, source))
        except (SyntaxError, ValueError) as error:
            raise NotConvertible(f"could not parse the source code of {function}: {error}") from None
    found = [each for each in known[1].get(code.co_firstlineno, ()) if _is_definition(each[0], code)]
    if len(found) > 1:
        found = [each for each in found if _spans(each[0], code)]
    if len(found) != 1:
        raise NotConvertible(f"could not find {function} in the source code: {len(found)} definitions fit")
    node, owner = found[0]
    node = copy.deepcopy(node)
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
    return node, owner


def _quietly(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Suppresses compiler warnings, because the compiler already issued them when the program was imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def _by_line(tree: ast.Module) -> Definitions:
    """Returns the functions of a file by their first line, with the names of the enclosing classes."""
    found: Definitions = {}
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, owner = stack.pop()
        owner = node.name if isinstance(node, ast.ClassDef) else owner
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            found.setdefault(first, []).append((node, owner))
        stack.extend((child, owner) for child in ast.iter_child_nodes(node))
    return found


def _is_definition(node: Any, code: CodeType) -> bool:
    """Whether a function in the source may be the one that `code` belongs to: the name and the parameters agree."""
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    count = code.co_argcount + code.co_kwonlyargcount
    args = [arg.arg for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    return name == code.co_name and args == list(code.co_varnames[:count])


def _spans(node: Any, code: CodeType) -> bool:
    """Whether all of `code` lies within `node`. This distinguishes several lambdas on one line."""
    start, end = (node.body.lineno, node.body.col_offset), (node.body.end_lineno, node.body.end_col_offset)
    places = [
        (line, column, last_line, last_column)
        for line, last_line, column, last_column in code.co_positions()
        if None not in (line, last_line, column, last_column) and last_column
    ]
    return bool(places) and all(start <= place[:2] and place[2:] <= end for place in places)


# ---- code -------------------------------------------------------------------------------------------------------


def rewritten_tree(function: FunctionType, options: Options) -> tuple[Any, str]:
    node, owner = source_tree(function)
    return rewrite.rewritten(node, owner, options), owner


def converted_code(function: FunctionType, options: Options) -> CodeType | None:
    """Returns the code of the converted function; None if there is no source.

    Raises:
        NotConvertible: the function cannot be converted.
    """
    code = function.__code__
    try:
        node, owner = rewritten_tree(function, options)
    except OSError:
        return None
    # The function is compiled inside a factory whose parameters are the function's free variables, and inside a class of
    # the same name as its own, so that `self.__private` is mangled correctly.
    _forget_defaults(node.args)
    inner: list[ast.stmt] = [ast.Expr(node) if isinstance(node, ast.Lambda) else node]
    if owner:
        inner = [ast.ClassDef(name=owner, bases=[], keywords=[], body=inner, decorator_list=[])]
    own = owner or code.co_name
    if own.isidentifier() and own not in code.co_freevars:  # the name must refer to the same variable inside as outside
        inner.insert(0, ast.Global([own]))
    around = [ast.arg(name) for name in (*code.co_freevars, OPERATORS) if name != "__class__" or not owner]
    args = ast.arguments(posonlyargs=[], args=around, kwonlyargs=[], kw_defaults=[], defaults=[])
    factory: Any = ast.FunctionDef(name="factory", args=args, body=inner, decorator_list=[])
    module = ast.fix_missing_locations(ast.Module([factory], []))
    try:
        compiled = _quietly(
            compile,
            module,
            code.co_filename,
            "exec",
            dont_inherit=True,
            flags=code.co_flags & annotations.compiler_flag,
        )
    except (SyntaxError, ValueError) as error:
        raise NotConvertible(f"could not compile what {function} becomes: {error}") from None
    made = next(each for each in _inside(compiled) if each.co_name == code.co_name)
    return _named(made, code)


def _forget_defaults(args: ast.arguments) -> None:
    """Removes defaults and annotations, because the converted function takes them from the original."""
    args.defaults = [ast.Constant(None) for _ in args.defaults]
    args.kw_defaults = [None if default is None else ast.Constant(None) for default in args.kw_defaults]
    for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]:
        if arg is not None:
            arg.annotation = None


def _inside(code: CodeType) -> list[CodeType]:
    """Returns the code objects nested in another one, outermost first."""
    level = [each for each in code.co_consts if isinstance(each, CodeType)]
    return level + [deeper for each in level for deeper in _inside(each)]


def _named(code: CodeType, function: CodeType, prefix: str = "") -> CodeType:
    """Renames the code after the user's function, as tracebacks and reprs show it.

    Args:
        code: the code of the function, or code nested in it.
        function: the user's code that it corresponds to or is a part of.
        prefix: the prefix of qualified names of code inside the function; "" for the function itself.
    """
    part = bool(prefix) and (code.co_name in rewrite.PIECES or code.co_name.startswith("<"))
    user = code if prefix and not part else function
    told = user if code.co_name in rewrite.PIECES or not prefix else code
    inner = prefix or f"{code.co_qualname}.<locals>."
    qualified = told.co_qualname.replace(inner, f"{function.co_qualname}.<locals>.", 1)
    for piece in rewrite.PIECES:
        qualified = qualified.replace(f"{piece}.<locals>.", "")
    made = code.replace(
        co_consts=tuple(_named(each, user, inner) if isinstance(each, CodeType) else each for each in code.co_consts),
        co_name=told.co_name,
        co_qualname=qualified,
    )
    user_errors.CONVERTED.add(made)
    if part:
        user_errors.PIECES[made] = user.co_name
    return made
