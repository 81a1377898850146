"""Divides the nodes of fused GPU kernels into sections: loops over one domain that pass values on in registers.

A section is one of

* flat: each thread computes one element;
* rows: a few threads compute one row, and sums over the row are known to all of them, as in a softmax or a normalization;
* columns: sums over the rows of a matrix, as in the gradient of a bias.

Sections that do not depend on each other have the same level and are launched together. What a section takes from one of a lower level
passes through memory; everything else is computed where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from stoker._src.runtime.plan.gpu.kernel_nodes import Node, broadcast_steps

Access = str  # "same": the element at the domain's index; "row": that of the row; "": any other
_COSTLY = 24  # operations that are not repeated for each element of a row
_BUSY = 64  # blocks that keep the device busy
_SMALL = 1 << 16  # elements that a few blocks compute quickly


class Section:
    def __init__(self, kind: str, dims: tuple[int, ...], level: int) -> None:
        self.kind, self.level = kind, level
        self.dims: tuple[int, ...] = dims
        self.members: list[Node] = []

    @property
    def domain(self) -> int:
        return math.prod(self.dims)

    def access(self, node: Node) -> Access | None:
        """How the section visits a node that it would compute; None if it cannot."""
        if node.is_reduction:
            return "same" if self._geometry(node) else None
        if node.size == self.domain:
            return "same"
        return "row" if self.kind == "rows" and node.size == self.dims[0] else None

    def _geometry(self, node: Node) -> bool:
        outer, middle, inner, _ = node.data
        if self.kind == "rows":
            return inner == 1 and self.dims == (outer, middle)
        return self.kind == "columns" and self.dims == (outer, middle, inner)

    def convert(self, node: Node) -> None:
        """Makes a flat section one that can also compute a reduction."""
        outer, middle, inner, _ = node.data
        self.kind, self.dims = ("rows", (outer, middle)) if inner == 1 else ("columns", (outer, middle, inner))

    def moved(self, access: Access, shape: tuple[int, ...], steps: list[int]) -> Access:
        """The access to the operand of a node, whose elements are `steps` apart in the dimensions of the node."""
        dims = collapsed(shape, steps)
        if dims in ([], [(math.prod(shape), 1)]):
            return access
        if self.kind == "rows" and access == "same":
            rows, columns = self.dims
            if dims == [(rows, 1), (columns, 0)] or (rows == 1 and dims == [(columns, 0)]):
                return "row"
        return ""


def collapsed(shape: tuple[int, ...], steps: list[int]) -> list[tuple[int, int]]:
    """(size, step) of each dimension, with those merged that are one regular sequence."""
    dims: list[tuple[int, int]] = []
    for size, step in zip(shape, steps):
        if size == 1:
            continue
        if dims and dims[-1][1] == step * size:
            dims[-1] = (dims[-1][0] * size, step)
        else:
            dims.append((size, step))
    return dims


def operand_steps(node: Node, operand: Node) -> list[int] | None:
    """The distances of an operand's elements in the dimensions of the node; None if they are not regular."""
    if node.kind in ("unary", "binary", "select"):
        return broadcast_steps(operand.shape, node.shape)
    if node.kind == "copy" and node.data[1] == 0:
        return list(node.data[0])
    return None


def operands(section: Section, node: Node, access: Access) -> Iterator[tuple[Node, Access]]:
    """The operands of a node, and how the section visits them."""
    for each in node.inputs:
        if node.kind == "reshape" or node.is_reduction:
            yield each, access
        else:
            steps = operand_steps(node, each)
            yield each, "" if steps is None or not access else section.moved(access, node.shape, steps)


class Sections:
    """The sections that compute some wanted nodes."""

    def __init__(self, wanted: list[Node], *, keep_shared: bool = False) -> None:
        """`keep_shared` stores what several nodes use, instead of computing it again for each."""
        self.place: dict[int, Section] = {}
        self.all: list[Section] = []
        self.stored: set[int] = {id(node) for node in wanted}
        order = _ordered(wanted)
        self._kept = {id(node) for node in wanted} | {id(node) for node in order if node.is_reduction}
        self._keep_costly(order, keep_shared=keep_shared)
        for node in order:
            if id(node) in self._kept and node.kind not in ("input", "number"):
                self._put(node)

    def _keep_costly(self, order: list[Node], *, keep_shared: bool) -> None:
        uses: dict[int, int] = {}
        for node in order:
            for each in node.inputs:
                uses[id(each)] = uses.get(id(each), 0) + 1
                if each.cost > _COSTLY and node.size >= 4 * each.size and not node.is_reduction:
                    self._kept.add(id(each))
        if keep_shared:
            self._kept.update(id(node) for node in order if uses.get(id(node), 0) > 1 and node.cost > 1)

    def _put(self, node: Node) -> None:
        section = next((each for each in reversed(self.all) if self._joins(each, node)), None)
        if section is None:
            section = Section("flat", (node.size,), 0)
            if node.is_reduction:
                section.convert(node)
            section.level = max((self.place[id(d)].level + 1 for d, _ in self._depends(section, node)), default=0)
            self.all.append(section)
        section.members.append(node)
        self.place[id(node)] = section
        for each, _ in self._depends(section, node):
            if self.place[id(each)] is not section:
                self.stored.add(id(each))

    def _joins(self, section: Section, node: Node) -> bool:
        trial = section
        if node.is_reduction and section.kind == "flat" and section.domain == math.prod(node.data[:3]):
            trial = Section(section.kind, section.dims, section.level)
            trial.members = section.members
            trial.convert(node)
            if not _is_busy(trial):
                return False
        access = trial.access(node)
        if access is None or (not node.is_reduction and access == "same" and not _is_busy(trial)):
            return False
        for each, how in self._depends(trial, node, section):
            place = self.place[id(each)]
            if place is section:
                if not how or (section.kind == "columns" and each.is_reduction):
                    return False
            elif place.level >= section.level:
                return False
        section.kind, section.dims = trial.kind, trial.dims
        return True

    def _depends(self, section: Section, node: Node, own: Section | None = None) -> list[tuple[Node, Access]]:
        """The placed nodes that a section needs for a node, and how it visits them."""
        own = section if own is None else own
        found: dict[tuple[int, Access], tuple[Node, Access]] = {}
        seen: set[tuple[int, Access]] = set()
        pending = list(operands(section, node, section.access(node) or ""))
        while pending:
            each, access = pending.pop()
            if (id(each), access) in seen:
                continue
            seen.add((id(each), access))
            place = self.place.get(id(each))
            if place is not None:
                # A reduction is known once for each row, and nothing else of the row's length can be read as an element.
                fits = access and (access == "row") == (each.is_reduction or place.access(each) == "row")
                if place is not own or not fits or each.is_reduction or access == "row":
                    found[id(each), access] = each, access if fits else ""
                    continue
            pending += operands(section, each, access)
        return list(found.values())

    def depth(self, section: Section, node: Node) -> int:
        """How many passes over a row come before a node can be computed."""
        return max(
            (
                self.depth(section, each) + (1 if each.is_reduction else 0)
                for each, _ in self._depends(section, node)
                if self.place[id(each)] is section
            ),
            default=0,
        )


def _is_busy(section: Section) -> bool:
    """Whether a section that computes all elements of its domain has enough blocks for them."""
    if section.kind == "rows":
        blocks = section.dims[0] if section.dims[1] > 512 else section.dims[0] // 8
    elif section.kind == "columns":
        blocks = section.dims[0] * -(-section.dims[2] // 32)
    else:
        return True
    return blocks >= _BUSY or section.domain <= _SMALL


def _ordered(wanted: list[Node]) -> list[Node]:
    """All nodes that are needed, operands first."""
    order: list[Node] = []
    seen: set[int] = set()
    pending: list[tuple[Node, bool]] = [(node, False) for node in reversed(wanted)]
    while pending:
        node, done = pending.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            pending += [(each, False) for each in node.inputs]
    return order
