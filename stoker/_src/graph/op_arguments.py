"""The inputs and outputs of ops: what a signature says of each. (How signatures are spelled is told in `definition.py`.)"""

from __future__ import annotations

import functools
import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError

_ANY_RANK = 254
_RANK_WORDS = {"scalar": 0, "vector": 1, "matrix": 2}
_ARG = re.compile(
    r"(?P<name>\w+)\s*:\s*(?:(?P<rank>[a-z]+(?:[<=>]\d)?/[a-z]+(?:[<=>]\d)?|scalar|vector(?:=\d)?|matrix|rank[<=>]\d)(?P<built>\*)?\s+)?(?P<host>host\s+)?"
    r"(?:\[(?P<list>\w+)\]|(?P<ref>Ref\()?\s*(?:(?P<number>\w+)\s*\*\s*)?(?P<type>\w+)\s*\)?)"
)


@dataclass(frozen=True)
class Arg:
    """One input or output of an op."""

    name: str
    dtype: DType | None = None  # fixed type
    type_attr: str | None = None
    number_attr: str | None = None  # a list of that many
    list_attr: str | None = None  # a list, one for each dtype of that attribute
    is_ref: bool = False
    host: bool = False
    ranks: tuple[int, int] | None = None  # the smallest and the largest, while a graph is built
    run_ranks: tuple[int, int] | None = None  # the same when the op runs
    length: int | None = None  # the number of elements, of a vector
    reform: str = ""  # "one", "single" or "flat": what the kernel receives is made a scalar or a vector

    def takes(self, rank: int, *, running: bool = True) -> bool:
        least, most = (self.run_ranks if running else self.ranks) or (0, _ANY_RANK)
        return least <= rank <= most

    def check_rank(self, rank: int, *, running: bool = True) -> None:
        """Raises InvalidArgumentError for a rank that the op does not take here."""
        if self.takes(rank, running=running):
            return
        least, most = (self.run_ranks if running else self.ranks) or (0, _ANY_RANK)
        wanted = (
            f"rank {least}" if least == most else f"at most rank {most}" if rank > most else f"at least rank {least}"
        )
        raise InvalidArgumentError(None, None, f"Shape must be {wanted} but is rank {rank}: input '{self.name}'")

    @property
    def is_list(self) -> bool:
        return self.number_attr is not None or self.list_attr is not None

    def dtypes(self, attrs: dict[str, Any]) -> list[DType]:
        """The dtypes this argument has in a node with `attrs`."""
        if self.list_attr is not None:
            return list(attrs[self.list_attr])
        dtype = self.dtype if self.dtype is not None else attrs[self.type_attr or ""]
        if self.is_ref:
            dtype = dtype._as_ref
        return [dtype] * (1 if self.number_attr is None else attrs[self.number_attr])


def read_arguments(text: str, attrs: Container[str]) -> tuple[Arg, ...]:
    """The arguments that one side of a signature states, of an op with attributes `attrs`."""
    parts = [part.strip() for part in text.split(",")]
    return tuple([_arg(part, _words(part)["type"] in attrs) for part in parts if part])


# Most arguments are spelled like another op's: they are read once.
@functools.cache
def _words(text: str) -> dict[str, Any]:
    match = _ARG.fullmatch(text)
    if match is None:
        raise ValueError(f"cannot read {text!r} as an argument")
    return match.groupdict()


@functools.cache
def _arg(text: str, is_attr: bool) -> Arg:
    words = _words(text)
    building, _, running = (words["rank"] or "any").partition("/")
    running = running or ("any" if words["built"] else building)
    building, _, length = building.partition("=") if building.startswith("vector") else (building, "", "")
    running = running.partition("=")[0] if running.startswith("vector") else running
    limits: dict[str, Any] = {
        "host": bool(words["host"]),
        "length": int(length) if length else None,
        "ranks": _ranks(building),
        "run_ranks": _ranks(running),
    }
    if running in ("single", "one", "flat"):
        limits["reform"] = running
    if words["list"]:
        return Arg(words["name"], list_attr=words["list"], **limits)
    return Arg(
        words["name"],
        dtype=None if is_attr else as_dtype(words["type"]),
        type_attr=words["type"] if is_attr else None,
        number_attr=words["number"],
        is_ref=bool(words["ref"]),
        **limits,
    )


def _ranks(text: str) -> tuple[int, int] | None:
    """`vector` -> (1, 1), `rank<2` -> (0, 1), `rank>0` -> (1, any)."""
    if text in ("any", "flat", "one"):
        return None
    if text == "single":
        return 0, 1
    if text in _RANK_WORDS:
        return _RANK_WORDS[text], _RANK_WORDS[text]
    bound = int(text[5:])
    return {"<": (0, bound - 1), "=": (bound, bound), ">": (bound + 1, _ANY_RANK)}[text[4]]


def host_rank(value: Any) -> int:
    """The rank of plain (nested lists of) numbers; what an empty list holds is not known, so it counts as a vector."""
    rank = 0
    while isinstance(value, list):
        rank, value = rank + 1, value[0] if value else None
    return rank


def _elements(value: Any) -> list[Any]:
    return [each for item in value for each in _elements(item)] if isinstance(value, list) else [value]


def reformed(arg: Arg, value: Any) -> Any:
    """The value of an input as the one element it holds, or as a vector of its elements."""
    flat: Any = _elements(value) if arg.host else value.reshape(-1)
    if arg.reform == "flat":
        return flat
    if len(flat) != 1:
        shape = len(flat) if arg.host else ",".join(map(str, value.shape))
        raise InvalidArgumentError(None, None, f"{arg.name} must be a scalar, not a tensor of shape [{shape}]")
    return flat[0] if arg.host else flat.reshape(())
