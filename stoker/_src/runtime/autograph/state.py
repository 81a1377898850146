"""The variables that a converted statement passes between pieces.

A piece is a function that shares variables with the function it was cut from. A variable is therefore a cell of its closure, and an
unbound variable is an empty cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CellType, FunctionType
from typing import Any


class Undefined:
    """The value of an unbound variable."""

    def __repr__(self) -> str:
        return "<undefined>"


UNDEFINED = Undefined()


class Variable:
    """A local variable, accessed through its cell."""

    def __init__(self, name: str, cell: CellType) -> None:
        self.name = name
        self._cell = cell

    def get(self) -> Any:
        try:
            return self._cell.cell_contents
        except ValueError:
            return UNDEFINED

    def set(self, value: Any) -> None:
        if value is not UNDEFINED:
            self._cell.cell_contents = value
        elif self.get() is not UNDEFINED:
            del self._cell.cell_contents


class GlobalVariable:
    """A global variable of the module."""

    def __init__(self, name: str, module: dict[str, Any]) -> None:
        self.name = name
        self._module = module

    def get(self) -> Any:
        return self._module.get(self.name, UNDEFINED)

    def set(self, value: Any) -> None:
        if value is UNDEFINED:
            self._module.pop(self.name, None)
        else:
            self._module[self.name] = value


class Attribute:
    """`a.b`, called `name` in messages."""

    def __init__(self, name: str, container: Callable[[], Any], attribute: str) -> None:
        self.name = name
        self._container = container
        self._attribute = attribute

    def get(self) -> Any:
        try:
            return getattr(self._container(), self._attribute)
        except (AttributeError, NameError):
            return UNDEFINED

    def set(self, value: Any) -> None:
        if value is not UNDEFINED:
            setattr(self._container(), self._attribute, value)
        elif self.get() is not UNDEFINED:
            delattr(self._container(), self._attribute)


class Item:
    """`a[key]`, called `name` in messages."""

    def __init__(self, name: str, container: Callable[[], Any], key: Callable[[], Any]) -> None:
        self.name = name
        self._container = container
        self._key = key

    def get(self) -> Any:
        try:
            return self._container()[self._key()]
        except (LookupError, NameError):
            return UNDEFINED

    def set(self, value: Any) -> None:
        if value is not UNDEFINED:
            self._container()[self._key()] = value
        elif self.get() is not UNDEFINED:
            del self._container()[self._key()]


class State:
    """All variables of a statement."""

    def __init__(self, symbols: Iterable[Any], *pieces: Any) -> None:
        cells: dict[str, CellType] = {}
        module: dict[str, Any] = {}
        for piece in pieces:
            if isinstance(piece, FunctionType):
                cells.update(zip(piece.__code__.co_freevars, piece.__closure__ or ()))
                module = piece.__globals__
        self._variables = [
            _variable(symbol, cells, module) if isinstance(symbol, str) else symbol for symbol in symbols
        ]
        self.names = [variable.name for variable in self._variables]

    def get(self) -> list[Any]:
        return [variable.get() for variable in self._variables]

    def set(self, values: Iterable[Any]) -> None:
        for variable, value in zip(self._variables, values):
            variable.set(value)


def _variable(name: str, cells: dict[str, CellType], module: dict[str, Any]) -> Any:
    return Variable(name, cells[name]) if name in cells else GlobalVariable(name, module)
