"""Rewrites a function's syntax tree: control flow becomes calls of `operators.py`.

    if x > 0:                def ag__main():
        y = x                    nonlocal y
    else:           ->           y = x
        y = -x               def ag__else():
                                 nonlocal y
                                 y = -x
                             ag__.if_(x > 0, ag__main, ag__else, ("y",), ())

Parts of the body become functions without arguments ("pieces") that share the variables of the original function. Called in plain
Python, they do exactly what the statement did. The operators find the variables in the pieces' closures. Generated nodes have the
user's line numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker._src.runtime.autograph import exits, names
from stoker._src.runtime.autograph.exits import at

OPERATORS = "ag__"
PIECES = ("ag__main", "ag__else", "ag__test", "ag__body")  # functions made from parts of the user's function
_NO_ARGUMENTS = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


class NotConvertible(Exception):
    """The reason why a function is not converted."""


@dataclass(frozen=True)
class Options:
    """The options of a conversion.

    Attributes:
        recursive: whether called functions are converted too.
        scoped: whether the ops of each function go into a name scope with its name.
        equality: whether `==` and `!=` always compare the values of tensors.
    """

    recursive: bool = True
    scoped: bool = False
    equality: bool = False


def rewritten(node: ast.FunctionDef | ast.Lambda, owner: str, options: Options) -> Any:
    """Returns the tree of a function with its control flow converted to calls. The given tree is modified.

    Args:
        node: the function, without its decorators.
        owner: the name of its class, or "".
        options: the options of the conversion.
    """
    return ast.fix_missing_locations(_Rewriter(owner, options).visit(node))


class _Scope:
    """Information about the function around the statements being visited."""

    def __init__(self, node: ast.FunctionDef) -> None:
        own = list(names.own_nodes(node.body))
        self.first_parameter = next(iter(names.parameters(node.args)), None)
        self.shared = {name for each in own if isinstance(each, ast.Nonlocal) for name in each.names}
        self.globals = {name for each in own if isinstance(each, ast.Global) for name in each.names}
        self.used = names.bound(node.body) | names.read(node.body) | set(names.parameters(node.args))
        # Nested functions may also assign variables of functions further out. Only names that this function binds or shares count.
        own = names.bound(node.body) | set(names.parameters(node.args)) | self.shared
        self.writers = {name: assigned & own for name, assigned in names.writers(node.body).items()}
        self.new: set[str] = set()

    def new_name(self, wish: str) -> str:
        """Returns a name that the function does not use: `wish`, with a number if necessary."""
        name, number = wish, 1
        while name in self.used or name in self.new:
            name, number = f"{wish}{number}", number + 1
        self.new.add(name)
        return name


class _Rewriter(ast.NodeTransformer):
    def __init__(self, owner: str, options: Options) -> None:
        self._owner = owner.lstrip("_")
        self._given = options
        self._scope: _Scope | None = None
        self._live: Any = None

    # -- functions -----------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.args = self._visit_defaults(node.args)
        if names.is_generator(node):
            return node
        outer = self._scope, self._live
        scope = self._scope = _Scope(node)
        docstring = [node.body[0]] if ast.get_docstring(node, clean=False) is not None else []
        body = node.body[len(docstring) :]
        declared = sorted(names.bound(body) - scope.globals - scope.shared - set(names.parameters(node.args)))
        body = exits.without_exits(body, scope.new_name) if body else []
        self._live = names.Liveness(body, frozenset(scope.globals | scope.shared))
        body = self._visit_block(body)
        if self._given.scoped and body:
            enter = ast.withitem(self._operator("scope", ast.Constant(node.name)))
            body = [at(ast.With([enter], body), node)]
        node.body = [*docstring, *self._declarations([*declared, *sorted(scope.new)], node), *body] or [ast.Pass()]
        self._scope, self._live = outer
        return node

    def _declarations(self, local: list[str], node: ast.FunctionDef) -> list[ast.stmt]:
        """Keeps every variable local to the function, even if all of its assignments have moved into pieces."""
        assert self._scope is not None
        made: list[ast.stmt] = _outer_names(ast.Global, self._scope.globals)
        made += _outer_names(ast.Nonlocal, self._scope.shared)
        if local:
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in local]
            made.append(ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], []))
        return [at(each, node) for each in made]

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.args = self._visit_defaults(node.args)
        node.body = self.visit(node.body)
        return node

    def _visit_defaults(self, args: ast.arguments) -> ast.arguments:
        args.defaults = [self.visit(each) for each in args.defaults]
        args.kw_defaults = [None if each is None else self.visit(each) for each in args.kw_defaults]
        return args

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node  # methods are converted when they are called

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_Global(self, node: ast.Global) -> Any:
        return at(ast.Pass(), node)  # declared at the top of each piece instead

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        return at(ast.Pass(), node)

    # -- statements ----------------------------------------------------------------------------------------------

    def _visit_block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            done.extend(made if isinstance(made, list) else [made])
        return done

    def visit_If(self, node: ast.If) -> Any:
        parts = [*node.body, *node.orelse]
        changed, live = self._changed(parts), self._live.after[node]
        symbols = self._symbols(changed & live, parts)
        passing: list[ast.expr] = [ast.Constant(name) for name in sorted(changed - live)]
        test = self.visit(node.test)
        main = self._piece("ag__main", node.body, node)
        other = self._piece("ag__else", node.orelse, node)
        pieces = _name("ag__main"), _name("ag__else")
        call = self._operator("if_", test, *pieces, symbols, ast.Tuple(passing, ast.Load()))
        return [main, other, at(ast.Expr(call), node)]

    def visit_While(self, node: ast.While) -> Any:
        symbols = self._loop_symbols(node, [ast.Expr(node.test), *node.body])
        options = self._options(node)
        test = self._piece("ag__test", [at(ast.Return(node.test), node.test)], node)
        body = self._piece("ag__body", node.body, node)
        call = self._operator("while_", _name("ag__test"), _name("ag__body"), symbols, options)
        return [test, body, at(ast.Expr(call), node)]

    def visit_For(self, node: ast.For) -> Any:
        symbols = self._loop_symbols(node, [node.target, *node.body])
        options = self._options(node)
        iterated = self.visit(node.iter)
        going_on = getattr(node, "going_on", None)
        test = [] if going_on is None else [self._piece("ag__test", [at(ast.Return(going_on), node)], node)]
        take = at(ast.Assign([node.target], _name("ag__item")), node.target)
        body = self._piece("ag__body", [take, *node.body], node, "ag__item")
        going_on = ast.Constant(None) if going_on is None else _name("ag__test")
        call = self._operator("for_", iterated, _name("ag__body"), going_on, symbols, options)
        return [*test, body, at(ast.Expr(call), node)]

    def visit_Assert(self, node: ast.Assert) -> Any:
        if not __debug__:  # python -O
            return at(ast.Pass(), node)
        message = ast.Constant(None) if node.msg is None else _thunk(self.visit(node.msg))
        return at(ast.Expr(self._operator("assert_", self.visit(node.test), message)), node)

    def _loop_symbols(self, node: ast.While | ast.For, parts: list[Any]) -> ast.expr:
        return self._symbols(self._changed(parts) & (self._live.around[node] | self._live.after[node]), parts)

    def _changed(self, parts: list[Any]) -> frozenset[str]:
        assert self._scope is not None
        return names.changed(parts, self._scope.writers)

    def _symbols(self, variables: Iterable[str], parts: list[Any]) -> ast.expr:
        """Returns the symbols that the operator passes between pieces: names of variables, and attributes and items of objects."""
        made: list[ast.expr] = [ast.Constant(name) for name in sorted(variables)]
        for text, place in sorted(names.places(parts).items()):
            container = _thunk(ast.parse(ast.unparse(place.value), mode="eval").body)
            if isinstance(place, ast.Attribute):
                private = self._owner and place.attr.startswith("__") and not place.attr.endswith("__")
                attribute = ast.Constant(f"_{self._owner}{place.attr}" if private else place.attr)
                made.append(self._operator("Attribute", ast.Constant(text), container, attribute))
            else:
                key = _thunk(ast.parse(ast.unparse(place.slice), mode="eval").body)
                made.append(self._operator("Item", ast.Constant(text), container, key))
        return ast.Tuple(made, ast.Load())

    def _options(self, node: ast.While | ast.For) -> ast.expr:
        """Returns the `set_loop_options` call, which is evaluated before the loop.

        Raises:
            NotConvertible: the call is not at the start of the loop.
        """
        first, rest = node.body[0], node.body[1:]
        if any(exits.is_loop_directive(each) for each in names.own_nodes(rest) if isinstance(each, ast.stmt)):
            raise NotConvertible('"set_loop_options" must be the first statement in the loop block')
        if not exits.is_loop_directive(first):
            return ast.Constant(None)
        given: Any = first
        node.body = rest or [at(ast.Pass(), first)]
        call = self._operator("loop_options", *map(self.visit, given.value.args))
        call.keywords = [ast.keyword(each.arg, self.visit(each.value)) for each in given.value.keywords]
        return _thunk(call)

    def _piece(self, name: str, body: list[ast.stmt], place: ast.stmt, argument: str | None = None) -> ast.stmt:
        """Returns a function of these statements that binds the variables of the enclosing function."""
        assert self._scope is not None
        bound = self._changed(body)
        inside: list[ast.stmt] = _outer_names(ast.Global, bound & self._scope.globals)
        inside += _outer_names(ast.Nonlocal, bound - self._scope.globals)
        inside = [at(each, place) for each in inside]
        inside += self._visit_block(body) or [at(ast.Pass(), place)]
        args = _NO_ARGUMENTS
        if argument is not None:
            args = ast.arguments(posonlyargs=[], args=[ast.arg(argument)], kwonlyargs=[], kw_defaults=[], defaults=[])
        made: Any = ast.FunctionDef(name=name, args=args, body=inside, decorator_list=[], lineno=place.lineno)
        return at(made, place)

    # -- expressions ---------------------------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if any(map(_binds, node.values[1:])):
            return self.generic_visit(node)
        first, *rest = [self.visit(each) for each in node.values]
        operator = "and_" if isinstance(node.op, ast.And) else "or_"
        return at(self._operator(operator, first, *map(_thunk, rest)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return at(self._operator("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if _binds(node.body) or _binds(node.orelse):
            return self.generic_visit(node)
        text = ast.Constant(ast.unparse(node.test))
        test, body, otherwise = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        return at(self._operator("choose", test, _thunk(body), _thunk(otherwise), text), node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Rewrites `a < b < c` as `a < b and b < c`, with b evaluated once."""
        if self._given.equality and isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and len(node.ops) == 1:
            operator = "equal" if isinstance(node.ops[0], ast.Eq) else "not_equal"
            return at(self._operator(operator, self.visit(node.left), self.visit(node.comparators[0])), node)
        if len(node.ops) == 1 or any(map(_binds, node.comparators[1:])):
            return self.generic_visit(node)
        left, *others = [self.visit(each) for each in (node.left, *node.comparators)]
        return self._chain(left, node.ops, others, node)

    def _chain(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr], place: ast.expr) -> ast.expr:
        if len(ops) == 1:
            return at(ast.Compare(left, ops, others), place)
        first = at(ast.Compare(_name("ag__left"), ops[:1], [_name("ag__middle")]), place)
        following = self._chain(_name("ag__middle"), ops[1:], others[1:], place)
        both = at(self._operator("and_", first, _thunk(following)), place)
        pair = [ast.arg("ag__left"), ast.arg("ag__middle")]
        args = ast.arguments(posonlyargs=[], args=pair, kwonlyargs=[], kw_defaults=[], defaults=[])
        return at(ast.Call(ast.Lambda(args, both), [left, others[0]], []), place)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._scope is not None:
            # A piece has no first argument, so `super()` needs explicit arguments.
            node.args = [_name("__class__"), _name(self._scope.first_parameter or "self")]
            return node
        if self._given.recursive:
            node.func = at(self._operator("call", node.func), node.func)
        return node

    def _operator(self, name: str, *args: ast.expr) -> ast.Call:
        return ast.Call(ast.Attribute(_name(OPERATORS), name, ast.Load()), list(args), [])


def _binds(node: ast.expr) -> bool:
    """Whether an expression assigns (`:=`). It cannot become a separate function then."""
    return any(isinstance(each, ast.NamedExpr) for each in names.own_nodes([node]))


def _outer_names(kind: type[ast.Global] | type[ast.Nonlocal], found: Iterable[str]) -> list[ast.stmt]:
    listed = sorted(found)
    return [kind(listed)] if listed else []


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _thunk(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(_NO_ARGUMENTS, value)
