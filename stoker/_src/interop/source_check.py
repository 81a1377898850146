"""Restricts the code of a module. Graphs come from files, so nothing in them may become arbitrary code.

Names are derived from node names by `identifier`, comments keep only harmless characters, and string literals occur only as attributes with a
few allowed values. `check_module_source` checks every part of the code against these rules before it compiles it.
"""

from __future__ import annotations

import ast
import keyword
import re
from types import CodeType
from typing import Any

from stoker._src.base.errors import InternalError

_ALLOWED = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.Expr, ast.Return, ast.Call, ast.keyword, ast.Name, ast.Load,
    ast.Store, ast.Tuple, ast.List, ast.Constant, ast.Attribute, ast.UnaryOp, ast.USub, ast.Not, ast.Invert, ast.BinOp, ast.Add, ast.Sub,
    ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor, ast.MatMult, ast.Compare, ast.Lt, ast.LtE,
    ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.BoolOp, ast.And, ast.Or, ast.IfExp, ast.If, ast.While, ast.Break, ast.Pass, ast.Subscript,
    ast.Slice, ast.Starred, ast.Dict, ast.Lambda,
)  # fmt: skip
_TEXT = re.compile(
    r"SAME|VALID|REFLECT|SYMMETRIC|inf|-inf|nan|floor|trunc|sum|mean|prod|amax|amin|all|any|cumsum|cumprod|[a-zA-Z,.>\-]{1,64}"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
# Builtins that the code may call.
BUILTINS = {"len": len, "int": int, "bool": bool, "float": float, "list": list, "max": max, "min": min, "tuple": tuple}


def identifier(text: str) -> str:
    """A Python name for the name of a node, a variable or an input."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "value"
    if name[0].isdigit():
        name = "n" + name
    return name + "_" if keyword.iskeyword(name) or name in BUILTINS or name in ("self", "torch", "ops", "F") else name


def comment(text: str) -> str:
    """A node's name with only the characters that are safe in a comment."""
    return re.sub(r"[^\w./:\-]", "?", text, flags=re.ASCII)


def check_module_source(source: str, filename: str, known: set[str]) -> CodeType:
    """Compiles the code of a forward method after checking it.

    Raises:
        InternalError: the code contains something that the writer never writes.
    """
    tree = ast.parse(source, filename)
    stored, loaded = set(BUILTINS), set()
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            _refuse(f"holds {ast.dump(node)[:80]}")
        if isinstance(node, ast.Name):
            (stored if isinstance(node.ctx, ast.Store) else loaded).add(node.id)
        elif isinstance(node, ast.FunctionDef):
            stored.add(node.name)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
        elif isinstance(node, ast.Attribute):
            if node.attr.startswith("_") or not _IDENTIFIER.fullmatch(node.attr):
                _refuse(f"uses the attribute {node.attr}")
        elif isinstance(node, ast.Constant):
            _check_constant(node.value)
    foreign = loaded - stored - known
    if foreign:
        _refuse(f"uses the names {sorted(foreign)}")
    return compile(tree, filename, "exec")


def _check_constant(value: Any) -> None:
    if isinstance(value, str):
        if not _TEXT.fullmatch(value):
            _refuse(f"holds {value!r}")
    elif value is not None and value is not ... and not isinstance(value, (bool, int, float, complex)):
        _refuse(f"holds {value!r}")


def _refuse(problem: str) -> None:
    raise InternalError(None, None, f"The code of the module {problem}.")
