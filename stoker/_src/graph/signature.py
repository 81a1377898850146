"""The type of an op: its inputs, outputs and attributes. `definition.py` describes the syntax."""

from __future__ import annotations

import functools
import re
from collections import namedtuple
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.attributes import AttrSpec, attr_spec

_SIGNATURE = re.compile(r"\s*(\w+)\s*\((.*)\)\s*->\s*\((.*)\)\s*", re.DOTALL)
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
        """Raises InvalidArgumentError if the op does not support the rank."""
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


@dataclass(eq=False)
class Signature:
    """The name, inputs, outputs and attributes of an op, and derived properties."""

    name: str
    inputs: tuple[Arg, ...]
    outputs: tuple[Arg, ...]
    attrs: dict[str, AttrSpec]
    plain: bool = field(init=False)  # every input is a single tensor: no grouping needed
    single: bool = field(init=False)  # exactly one output tensor
    by_reference: bool = field(init=False)  # some input is a reference to a variable
    ranked: bool = field(init=False)  # some input must have a certain rank
    measured: bool = field(init=False)  # or a certain number of elements
    narrow: tuple[str, ...] = field(init=False)  # attributes that the kernel holds in 32 bits
    inferred: frozenset[str] = field(init=False)  # attributes that inputs determine: never passed by name

    def __post_init__(self) -> None:
        self.plain = not any(arg.is_list for arg in self.inputs)
        self.single = len(self.outputs) == 1 and not self.outputs[0].is_list
        self.by_reference = any(arg.is_ref for arg in self.inputs)
        self.ranked = any(arg.ranks is not None or arg.run_ranks is not None for arg in self.inputs)
        self.measured = any(arg.length is not None for arg in self.inputs)
        self.narrow = tuple(name for name, spec in self.attrs.items() if spec.int32)
        self.inferred = frozenset(
            attr for arg in self.inputs for attr in (arg.type_attr, arg.number_attr, arg.list_attr) if attr is not None
        )

    @functools.cached_property
    def result_type(self) -> Any:
        """The named tuple type of an op with several outputs, created on first use."""
        return namedtuple(self.name, [arg.name for arg in self.outputs])

    def group(self, flat: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        """Groups a node's flat inputs into arguments: list inputs become lists."""
        if self.plain:
            return list(flat)
        return _group(self.inputs, flat, attrs)

    def group_outputs(self, flat: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
        return _group(self.outputs, flat, attrs)

    def output_dtypes(self, attrs: dict[str, Any]) -> list[DType]:
        if self.single:
            return self.outputs[0].dtypes(attrs)
        return [dtype for arg in self.outputs for dtype in arg.dtypes(attrs)]

    def flatten_results(self, results: Any) -> list[Any]:
        """Flattens the result of a kernel or shape rule to one entry per output tensor."""
        if self.single:
            return [results]
        if not self.outputs:
            return []
        if len(self.outputs) == 1:
            return list(results)
        flat: list[Any] = []
        for arg, result in zip(self.outputs, results):
            flat.extend(result) if arg.is_list else flat.append(result)
        return flat

    def pack_outputs(self, flat: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """The output tensors of a node in the form that the caller of the op expects."""
        if self.single:
            return flat[0]
        groups = _group(self.outputs, flat, attrs)
        return groups[0] if len(groups) == 1 else self.result_type(*groups)

    def check_ranks(self, ranks: list[int | None], attrs: dict[str, Any], *, running: bool = True) -> None:
        """Raises InvalidArgumentError if the known rank of a flat input is not supported."""
        for arg, found in zip(self.inputs, self.group(ranks, attrs)):
            if (arg.run_ranks if running else arg.ranks) is not None:
                for rank in found if arg.is_list else (found,):
                    if rank is not None:
                        arg.check_rank(rank, running=running)

    def check_lengths(self, shapes: list[Shape], attrs: dict[str, Any]) -> None:
        """Raises InvalidArgumentError if a vector has the wrong number of elements."""
        for arg, found in zip(self.inputs, self.group(shapes, attrs)):
            if arg.length is not None:
                found.merge(Shape((arg.length,)))


def _group(args: tuple[Arg, ...], flat: Sequence[Any], attrs: dict[str, Any]) -> list[Any]:
    groups: list[Any] = []
    position = 0
    for arg in args:
        if not arg.is_list:
            groups.append(flat[position])
            position += 1
            continue
        count = attrs[arg.number_attr] if arg.number_attr is not None else len(attrs[arg.list_attr or ""])
        groups.append(list(flat[position : position + count]))
        position += count
    return groups


# -- reading -----------------------------------------------------------------------------------------------------


def read_signature(
    text: str, attrs: dict[str, Any]
) -> tuple[str, tuple[Arg, ...], tuple[Arg, ...], dict[str, AttrSpec]]:
    """Parses the name, inputs, outputs and attributes of a definition."""
    match = _SIGNATURE.fullmatch(text)
    if match is None:
        raise ValueError(f"cannot read the op signature {text!r}")
    specs = {key: attr_spec(value) for key, value in attrs.items()}
    inputs, outputs = _arguments(match[2], specs), _arguments(match[3], specs)
    for arg in (*inputs, *outputs):
        if arg.number_attr is not None and arg.number_attr not in specs:
            specs[arg.number_attr] = AttrSpec("int", minimum=0)
        if arg.list_attr is not None and arg.list_attr not in specs:
            specs[arg.list_attr] = AttrSpec("list(type)")
    return match[1], inputs, outputs, specs


def _arguments(text: str, attrs: Container[str]) -> tuple[Arg, ...]:
    """Parses the arguments on one side of a signature."""
    parts = [part.strip() for part in text.split(",")]
    return tuple([_arg(part, _words(part)["type"] in attrs) for part in parts if part])


# Many arguments have the same text as those of another op, so the result is cached.
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
