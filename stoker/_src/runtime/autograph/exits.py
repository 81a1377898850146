"""Replaces `return`, `break` and `continue` by assignments to flags, so that only structured statements remain.

    while x > 0:                       break_ = False
        if x == 3:                     while not break_ and x > 0:
            break             ->           if x == 3:
        x -= 1                                 break_ = True
                                           else:
                                               x -= 1

Statements after one that may exit move into the branch that does not exit, or behind `if not <flag>`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import TypeVar

from stoker._src.runtime.autograph import names

Block = list[ast.stmt]
Node = TypeVar("Node", bound=ast.AST)

RETURN_VALUE = "retval_"  # TensorFlow's name, which appears in messages


def is_loop_directive(statement: ast.stmt) -> bool:
    """Whether the statement is `tf.autograph.experimental.set_loop_options(...)`, however it was imported."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    function = statement.value.func
    return "set_loop_options" in (getattr(function, "attr", None), getattr(function, "id", None))


def without_exits(body: Block, new_name: Callable[[str], str]) -> Block:
    """Returns the body of a function with its exits replaced by flags. `new_name` makes an unused name from a preferred one."""
    exits = _Exits(new_name)
    if not _escapes(body[:-1]) and (isinstance(body[-1], ast.Return) or not _escapes(body[-1:])):
        return exits.block(body, keep_return=True)
    exits.returned, exits.value = new_name("do_return"), new_name(RETURN_VALUE)
    if not _leaves(body):
        body = [*body, ast.copy_location(ast.Return(ast.copy_location(ast.Constant(None), body[-1])), body[-1])]
    start = _set(exits.returned, False, body[0])
    end = ast.copy_location(ast.Return(ast.Name(exits.value, ast.Load())), body[-1])
    return [start, *exits.block(body), end]


class _Exits:
    """The flags in effect at the current position of the walk."""

    def __init__(self, new_name: Callable[[str], str]) -> None:
        self.new_name = new_name
        self.returned = self.value = self.broken = self.continued = ""

    def block(self, body: Block, keep_return: bool = False) -> Block:
        done: Block = []
        for position, statement in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(statement, ast.Return):
                return [*done, *([statement] if keep_return else self._return(statement))]
            if isinstance(statement, (ast.Break, ast.Continue)):
                flag = self.broken if isinstance(statement, ast.Break) else self.continued
                return [*done, _set(flag, True, statement)]
            leaving = _escapes([statement])
            if isinstance(statement, ast.If) and leaving:
                if _leaves(statement.body):
                    statement.orelse = [*statement.orelse, *rest]
                    return [*done, *self._statement(statement)]
                if _leaves(statement.orelse):
                    statement.body = [*statement.body, *rest]
                    return [*done, *self._statement(statement)]
            done.extend(self._statement(statement))
            if leaving and rest:
                guarded = self.block(rest)
                return [*done, at(ast.If(self._none_set(leaving), guarded, []), rest[0])]
        return done

    def _return(self, statement: ast.Return) -> Block:
        value = statement.value or ast.copy_location(ast.Constant(None), statement)
        target = ast.Name(self.value, ast.Store())
        return [at(ast.Assign([target], value), statement), _set(self.returned, True, statement)]

    def _none_set(self, leaving: set[str]) -> ast.expr:
        flags = {"return": self.returned, "break": self.broken, "continue": self.continued}
        tests: list[ast.expr] = [
            ast.UnaryOp(ast.Not(), ast.Name(flags[kind], ast.Load())) for kind in flags if kind in leaving
        ]
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)

    def _statement(self, node: ast.stmt) -> Block:
        if isinstance(node, (ast.While, ast.For)):
            return self._loop(node)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(node, (ast.If, ast.With, ast.Try, ast.TryStar)) and getattr(node, name, None):
                inner = getattr(node, name)
                # The `else` of a `try` runs only if its body completed without an exit.
                leaving = _escapes(node.body) if name == "orelse" and not isinstance(node, ast.If) else set()
                guard = self._none_set(leaving) if leaving else None
                inner = self.block(inner)
                setattr(node, name, inner if guard is None else [at(ast.If(guard, inner, []), inner[0])])
        if isinstance(node, (ast.Try, ast.TryStar)):
            for handler in node.handlers:
                handler.body = self.block(handler.body)
        if isinstance(node, ast.Match):
            for case in node.cases:
                case.body = self.block(case.body)
        return [node]

    def _loop(self, node: ast.While | ast.For) -> Block:
        kinds = _escapes(node.body)
        outer = self.broken, self.continued
        before: Block = []
        if "break" in kinds:
            self.broken = self.new_name("break_")
            before.append(_set(self.broken, False, node))
        if "continue" in kinds:
            self.continued = self.new_name("continue_")
        directives = [node.body[0]] if is_loop_directive(node.body[0]) else []
        start = [_set(self.continued, False, node)] if "continue" in kinds else []
        body = self.block(node.body[len(directives) :])
        node.body = [*directives, *start, *body] or [at(ast.Pass(), node)]
        leaving = kinds - {"continue"}
        if isinstance(node, ast.While) and names.bound([node.test]):
            before += self._test_as_statement(node, leaving)
        elif leaving and isinstance(node, ast.While):
            node.test = at(ast.BoolOp(ast.And(), [self._none_set(leaving), node.test]), node.test)
        elif leaving:
            node.going_on = self._none_set(leaving)  # type: ignore[attr-defined]
        guard = self._none_set(leaving) if leaving else None
        self.broken, self.continued = outer
        otherwise = self.block(node.orelse)
        node.orelse = []
        if otherwise and guard is not None:
            otherwise = [at(ast.If(guard, otherwise, []), otherwise[0])]
        return [*before, node, *otherwise]

    def _test_as_statement(self, node: ast.While, leaving: set[str]) -> Block:
        """Moves a test that assigns (`:=`) before the loop and to the end of its body, so that its last assignment also takes effect."""
        flag = self.new_name("going_on")
        first, again = (
            at(ast.Assign([ast.Name(flag, ast.Store())], test), node.test)
            for test in (copy.deepcopy(node.test), node.test)
        )
        if leaving:
            guard, stop = self._none_set(leaving), _set(flag, False, node)
            node.body.append(at(ast.If(guard, [again], [stop]), node.test))
        else:
            node.body.append(again)
        node.test = at(ast.Name(flag, ast.Load()), again)
        return [first]


def _escapes(body: Block) -> set[str]:
    """Returns the kinds of exits that these statements may take."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            found.add(type(node).__name__.lower())
        elif isinstance(node, (ast.While, ast.For, ast.AsyncFor)):
            found |= _escapes(node.body) & {"return"} | _escapes(node.orelse)
        elif isinstance(node, (ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar)):
            for name in ("body", "orelse", "finalbody"):
                found |= _escapes(getattr(node, name, []))
            for handler in getattr(node, "handlers", []):
                found |= _escapes(handler.body)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                found |= _escapes(case.body)
    return found


def _leaves(body: Block) -> bool:
    """Whether these statements never complete normally. (A `with` may suppress the exception that ended its body.)"""
    return any(
        _leaves(node.body) and _leaves(node.orelse)
        if isinstance(node, ast.If)
        else isinstance(node, (ast.Return, ast.Break, ast.Continue))
        for node in body
    )


def _set(name: str, value: bool, place: ast.stmt) -> ast.stmt:
    return at(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), place)


def at(node: Node, place: ast.AST) -> Node:
    """Gives `node` the first line of `place`. If `place` was generated and has no line, `node` gets the line of its parent later."""
    if not hasattr(place, "lineno"):
        return node
    node.lineno = node.end_lineno = place.lineno  # type: ignore[attr-defined]
    node.col_offset, node.end_col_offset = place.col_offset, place.col_offset  # type: ignore[attr-defined]
    return node
