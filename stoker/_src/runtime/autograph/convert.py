"""From a function to its converted form: its source is found, rewritten and compiled under the user's file and lines.

What is converted once is kept for the code object. Only functions of the user are converted: not this package, the standard
library or what is installed beside it, nor functions without source.
"""

from __future__ import annotations

import ast
import copy
import functools
import linecache
import os
import site
import sysconfig
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


DEFAULT = Options()
verbosity = 0  # tf.autograph.set_verbosity
also_to_stdout = False

_codes: dict[tuple[CodeType, str, Options], CodeType | None] = {}
_trees: dict[str, tuple[str, ast.Module]] = {}


@functools.cache
def _operators(options: Options) -> Operators:
    return Operators(lambda function: converted(function, options))


def log(level: int, message: str) -> None:
    """A line of the log, where the user asked for this much."""
    if verbosity >= level:
        print(message) if also_to_stdout else tf_logging.info(message)


def converted(function: Any, options: Options = DEFAULT) -> Any:
    """`function` with its control flow on tensors; itself where there is nothing to convert."""
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
    """`function` with other code: the same globals, defaults and closure."""
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
    """The syntax tree of a function (a copy, without its decorators), and the class that it stands in ("").

    Raises:
        NotConvertible: the source tells no single function.
        OSError: there is no source.
    """
    code = function.__code__
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not source:
        raise OSError(f"could not get the source code of {function}")
    known = _trees.get(code.co_filename)
    if known is None or known[0] != source:
        try:
            known = _trees[code.co_filename] = source, ast.parse(source)
        except (SyntaxError, ValueError) as error:
            raise NotConvertible(f"could not parse the source code of {function}: {error}") from None
    found = _definitions(known[1], code, "")
    if len(found) > 1:
        found = [each for each in found if _spans(each[0], code)]
    if len(found) != 1:
        raise NotConvertible(f"could not find {function} in the source code: {len(found)} definitions fit")
    node, owner = found[0]
    node = copy.deepcopy(node)
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
    return node, owner


def _definitions(node: ast.AST, code: CodeType, owner: str) -> list[tuple[Any, str]]:
    """The functions of a tree that start where `code` does, with the names of their classes."""
    found = []
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.ClassDef) else owner
        if _is_definition(child, code):
            found.append((child, inside))
        found.extend(_definitions(child, code, inside))
    return found


def _is_definition(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        return first == code.co_firstlineno and node.name == code.co_name
    if not isinstance(node, ast.Lambda) or node.lineno != code.co_firstlineno or code.co_name != "<lambda>":
        return False
    count = code.co_argcount + code.co_kwonlyargcount
    return [arg.arg for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]] == list(
        code.co_varnames[:count]
    )


def _spans(node: Any, code: CodeType) -> bool:
    """Whether all of `code` lies between the ends of `node`: tells apart the lambdas of one line."""
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
    """The code of the converted function; None where there is no source.

    Raises:
        NotConvertible: the function cannot be converted.
    """
    code = function.__code__
    try:
        node, owner = rewritten_tree(function, options)
    except OSError:
        return None
    # The function is compiled inside of another one, whose arguments stand for the variables it takes from around it, and in a
    # class of the same name, which decides what `self.__private` means.
    inner: ast.stmt = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    if owner:
        inner = ast.ClassDef(name=owner, bases=[], keywords=[], body=[inner], decorator_list=[])
    around = [ast.arg(name) for name in (*code.co_freevars, OPERATORS) if name != "__class__" or not owner]
    args = ast.arguments(posonlyargs=[], args=around, kwonlyargs=[], kw_defaults=[], defaults=[])
    factory: Any = ast.FunctionDef(name="factory", args=args, body=[inner], decorator_list=[])
    module = ast.fix_missing_locations(ast.Module([factory], []))
    try:
        compiled = compile(module, code.co_filename, "exec", dont_inherit=True, flags=_future_flags(code))
    except (SyntaxError, ValueError) as error:
        raise NotConvertible(f"could not compile what {function} becomes: {error}") from None
    made = next(each for each in _inside(compiled) if each.co_name == code.co_name)
    return _named(made, code, top=True)


def _future_flags(code: CodeType) -> int:
    return code.co_flags & 0x1000000  # from __future__ import annotations


def _inside(code: CodeType) -> list[CodeType]:
    """The code objects inside of one, outermost first."""
    level = [each for each in code.co_consts if isinstance(each, CodeType)]
    return level + [deeper for each in level for deeper in _inside(each)]


def _named(code: CodeType, function: CodeType, *, top: bool = False) -> CodeType:
    """The code with its pieces under the name of the user's function, as tracebacks show it."""
    part = not top and (code.co_name in rewrite.PIECES or code.co_name.startswith("<"))
    user = function if top or part else code
    renamed = user if code.co_name in rewrite.PIECES else code
    made = code.replace(
        co_consts=tuple(_named(each, user) if isinstance(each, CodeType) else each for each in code.co_consts),
        co_name=renamed.co_name,
        co_qualname=function.co_qualname if top else renamed.co_qualname,
    )
    user_errors.CONVERTED.add(made)
    if part:
        user_errors.PIECES[made] = user.co_name
    return made
