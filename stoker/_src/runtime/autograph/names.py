"""Finds the names that a part of a function binds and reads, and which of them are read later.

The analysis covers one function's own scope. Nested functions, lambdas and classes count as readers of their free variables;
comprehensions count as part of the scope.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Names = frozenset[str]
NOTHING: Names = frozenset()
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields the nodes that belong to this scope. Nested functions and classes are included but not entered."""
    for node in nodes:
        yield node
        yield from own_nodes(_own_children(node))


def _own_children(node: ast.AST) -> Iterable[ast.AST]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return outer_expressions(node)
    return _defaults(node.args) if isinstance(node, ast.Lambda) else ast.iter_child_nodes(node)


def outer_expressions(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.expr]:
    """Returns the expressions that a definition evaluates in the enclosing scope."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
    return [*node.decorator_list, *_defaults(node.args)]


def _defaults(args: ast.arguments) -> list[ast.expr]:
    return [*args.defaults, *(default for default in args.kw_defaults if default is not None)]


def parameters(args: ast.arguments) -> list[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return [arg.arg for arg in every if arg is not None]


def is_generator(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await)) for each in own_nodes(node.body))


# ---- bound and read ---------------------------------------------------------------------------------------------


def bound(nodes: Iterable[ast.AST]) -> Names:
    """Returns the names of this scope that the nodes bind or delete, at any depth."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, Comprehension):
            found |= {each.target.id for each in own_nodes([node]) if isinstance(each, ast.NamedExpr)}
        else:
            found |= _bound_here(node) | bound(_own_children(node))
    return frozenset(found)


def _targets(node: Comprehension) -> set[str]:
    return {
        each.id
        for generator in node.generators
        for each in ast.walk(generator.target)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def _bound_here(node: ast.AST) -> set[str]:
    """Returns the names that one node binds, without its children."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return {node.id}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        return {node.name}
    if isinstance(node, ast.MatchMapping) and node.rest:
        return {node.rest}
    return set()


def _surely_bound(node: ast.AST) -> Names:
    """Returns the names that a node binds whenever it is evaluated. A `:=` after `and`, for example, may not be evaluated."""
    if isinstance(node, Comprehension):
        return NOTHING
    if isinstance(node, ast.BoolOp):
        children: Iterable[ast.AST] = node.values[:1]
    elif isinstance(node, ast.IfExp):
        children = [node.test]
    elif isinstance(node, ast.Compare):
        children = [node.left, node.comparators[0]]
    else:
        children = _own_children(node)
    return frozenset(_bound_here(node)).union(*map(_surely_bound, children))


def read(nodes: Iterable[ast.AST | None]) -> Names:
    """Returns the names of this scope that the nodes need: read, deleted, updated, or captured by nested functions."""
    found: set[str] = set()
    for node in nodes:
        if node is None:
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Store):
                found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            found |= read(_defaults(node.args) if isinstance(node, ast.Lambda) else outer_expressions(node))
            found |= captured(node)
        elif isinstance(node, Comprehension):
            found |= read(ast.iter_child_nodes(node)) - _targets(node)
        else:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
            found |= read(ast.iter_child_nodes(node))
    return frozenset(found)


def places(nodes: Iterable[ast.AST]) -> dict[str, ast.Attribute | ast.Subscript]:
    """Returns the attributes and items (`a.b`, `a["k"]`, `a[i]`) that the nodes assign, by their source text.

    Attributes and items of objects that the nodes themselves create are excluded, because no other code refers to them yet.
    """
    nodes = list(nodes)
    changed = bound(nodes)
    found: dict[str, ast.Attribute | ast.Subscript] = {}
    for node in own_nodes(nodes):
        if (
            isinstance(node, (ast.Attribute, ast.Subscript))
            and isinstance(node.ctx, ast.Store)
            and _is_simple(node)
            and not changed & read([node])
        ):
            found[ast.unparse(node)] = node
    return found


def _is_simple(node: ast.expr) -> bool:
    """Whether reading the expression twice gives the same object: names, their attributes, and items with plain keys."""
    if isinstance(node, ast.Attribute):
        return _is_simple(node.value)
    if isinstance(node, ast.Subscript):
        return _is_simple(node.value) and isinstance(node.slice, (ast.Constant, ast.Name))
    return isinstance(node, ast.Name)


def captured(scope: Scope) -> Names:
    """Returns the free variables of a function, lambda or class."""
    body = [scope.body] if isinstance(scope, ast.Lambda) else scope.body
    own: set[str] = set() if isinstance(scope, ast.ClassDef) else set(parameters(scope.args))
    outer: set[str] = set()
    for node in own_nodes(body):
        if isinstance(node, ast.Nonlocal):
            outer |= set(node.names)
    return (read(body) - own - bound(body)) | outer


def changed(nodes: Iterable[ast.AST], writers: dict[str, Names]) -> Names:
    """Returns the names that the nodes bind, directly or through a function of this scope that they may call."""
    nodes = list(nodes)
    return bound(nodes).union(*(writers[name] for name in read(nodes) if name in writers))


def writers(body: list[ast.stmt]) -> dict[str, Names]:
    """Returns, for each function defined in this scope, the variables of the scope that it assigns, directly or through calls."""
    made = [node for node in own_nodes(body) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    found: dict[str, Names] = {}
    for _ in range(len(made) + 1):
        before = dict(found)
        for node in made:
            own = {name for each in own_nodes(node.body) if isinstance(each, ast.Nonlocal) for name in each.names}
            called = NOTHING.union(*(before[name] for name in captured(node) if name in before))
            found[node.name] = found.get(node.name, NOTHING) | own | called
        if found == before:
            break
    return {name: assigned for name, assigned in found.items() if assigned}


# ---- read later -------------------------------------------------------------------------------------------------


class Liveness:
    """Finds the names that are live after each compound statement of a function, and at the start of each loop.

    Statements are structured (`exits.py` has replaced `return`, `break` and `continue`), so one backward walk is enough, and
    two over the body of a loop. A name is also live where a function that captures it is live.

    Attributes:
        after: names that are live after a statement, by statement.
        around: for loops, names that are live when an iteration starts or the test runs.
    """

    def __init__(self, body: list[ast.stmt], at_exit: Names) -> None:
        self.after: dict[ast.stmt, Names] = {}
        self.around: dict[ast.stmt, Names] = {}
        self._takers = _takers(body)
        self._always: Names = NOTHING  # names that enclosing exception handlers need
        self._block(body, at_exit)

    def _block(self, body: list[ast.stmt], live: Names) -> Names:
        for statement in reversed(body):
            live = self._with_taken(live | self._always)
            self.after[statement] = live
            live = self._statement(statement, live)
        return self._with_taken(live | self._always)

    def _with_taken(self, live: Names) -> Names:
        while True:
            more = live.union(*(self._takers[name] for name in live if name in self._takers))
            if more == live:
                return live
            live = more

    def _statement(self, node: ast.stmt, live: Names) -> Names:
        if isinstance(node, ast.If):
            inside = self._block(node.body, live) | self._block(node.orelse, live)
            return read([node.test]) | (inside - _surely_bound(node.test))
        if isinstance(node, (ast.While, ast.For)):
            return self._loop(node, live)
        if isinstance(node, (ast.Try, ast.TryStar)):
            return self._try(node, live)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            given = bound(item.optional_vars for item in node.items if item.optional_vars is not None)
            return (self._block(node.body, live) - given) | read(node.items)
        if isinstance(node, ast.Match):
            inner = NOTHING.union(*(self._block(case.body, live) | read([case.guard]) for case in node.cases))
            return live | inner | read([node.subject]) | read(case.pattern for case in node.cases)
        return (live - _surely_bound(node)) | read([node])

    def _loop(self, node: ast.While | ast.For, live: Names) -> Names:
        test = node.test if isinstance(node, ast.While) else getattr(node, "going_on", None)
        target = [node.target] if isinstance(node, ast.For) else []
        around = live | read([test])
        for _ in range(2):
            around |= (self._block(node.body, around) - bound(target)) | read(target)
        self.around[node] = around
        return around | (read([node.iter]) if isinstance(node, ast.For) else NOTHING)

    def _try(self, node: ast.Try | ast.TryStar, live: Names) -> Names:
        finishing = self._block(node.finalbody, live)
        handling = NOTHING.union(
            *(self._block(handler.body, finishing) | read([handler.type]) for handler in node.handlers)
        )
        before = self._always
        self._always = before | handling | finishing
        entry = self._block(node.body, self._block(node.orelse, finishing))
        self._always = before
        return entry | handling | finishing


def _takers(body: list[ast.stmt]) -> dict[str, Names]:
    """Returns, for each name that may hold a function defined here, the names that the function captures."""
    found: dict[str, Names] = {}
    for node in own_nodes(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = found.get(node.name, NOTHING) | captured(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            taken = NOTHING.union(*map(captured, _kept_lambdas(node.value)))
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in bound(targets) if taken else ():
                found[name] = found.get(name, NOTHING) | taken
    return found


def _kept_lambdas(value: ast.expr) -> list[ast.Lambda]:
    """Returns the lambdas that a value is or contains. (A lambda passed to a call is assumed to be used only by that call.)"""
    if isinstance(value, ast.Lambda):
        return [value]
    if isinstance(value, ast.Call):
        return []
    return [
        each for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr) for each in _kept_lambdas(child)
    ]
