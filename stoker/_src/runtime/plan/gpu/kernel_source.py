"""Writes the CUDA source of fused kernels from nodes (kernel_nodes.py) in sections (kernel_sections.py)."""

from __future__ import annotations

import math
import struct
from contextlib import contextmanager
from typing import Any, NamedTuple

from stoker._src.runtime.plan.gpu.kernel_nodes import BINARY, BOOL, FLOAT, UNARY, Node, broadcast_steps, row_major
from stoker._src.runtime.plan.gpu.kernel_sections import Section, Sections, collapsed

_MOST_STATEMENTS = 700  # of one kernel; compiling takes time
_MOST_THREADS = 1024
_FEW_BLOCKS, _MOST_LEVELS = 2, 12  # of one level that a single block computes, and of all its levels
_MOST_LANES = 512  # elements of a row that one warp computes; longer rows get a block

_HEADER = """
typedef unsigned int u32;
__device__ inline float larger(float x, float y) { return (x > y || x != x) ? x : y; }
"""
_REDUCERS = """
__device__ inline float warp_sum(float x) {
    for (int step = 16; step; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
__device__ inline float warp_max(float x) {
    for (int step = 16; step; step >>= 1) x = larger(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}
__device__ inline float block_sum(float x, float *room) {
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0.0f;
    for (u32 i = 0; i < blockDim.x / 32; i++) x += room[i];
    return x;
}
__device__ inline float block_max(float x, float *room) {
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = x;
    __syncthreads();
    x = room[0];
    for (u32 i = 1; i < blockDim.x / 32; i++) x = larger(x, room[i]);
    return x;
}
"""


class TooLarge(Exception):
    """A kernel would have too many statements."""


class Launch(NamedTuple):
    """One kernel: its source, how many blocks of how many threads, and the buffers it takes (positions among inputs and stored nodes)."""

    source: str
    blocks: int
    threads: int
    inputs: list[int]
    nodes: list[Node]


class Layout(NamedTuple):
    """How an input lies in memory: its strides; None if its only element is passed by value."""

    strides: tuple[int, ...] | None


def launches(wanted: list[Node], layouts: list[Layout], booleans: set[int], *, emulated: bool = False) -> list[Launch]:
    """Writes the kernels that compute the wanted nodes. `booleans` are the ids of those that are stored as booleans.

    With `emulated`, each thread works alone, so that a C++ compiler can take the place of a GPU in tests.

    Raises:
        TooLarge: the kernels would be too large.
    """
    try:
        return _launches(Sections(wanted), layouts, booleans, emulated)
    except TooLarge:
        return _launches(Sections(wanted, keep_shared=True), layouts, booleans, emulated)


def _launches(sections: Sections, layouts: list[Layout], booleans: set[int], emulated: bool) -> list[Launch]:
    levels = [[each for each in sections.all if each.level == n] for n in sorted({each.level for each in sections.all})]
    groups: list[list[list[Section]]] = []
    for level in levels:
        # One block takes small levels one after the other, which is faster than to launch a kernel for each.
        if groups and not emulated and _is_tiny(level) and _is_tiny(groups[-1][-1]) and len(groups[-1]) < _MOST_LEVELS:
            groups[-1].append(level)
        else:
            groups.append([level])
    return [_Writer(sections, layouts, booleans, emulated).write(group) for group in groups]


def _is_tiny(level: list[Section]) -> bool:
    return sum(_Writer.blocks_of(each, _MOST_THREADS, emulated=False) for each in level) <= _FEW_BLOCKS


class _Writer:
    """Writes one kernel, which computes sections of one level. Each section has blocks of its own."""

    def __init__(self, sections: Sections, layouts: list[Layout], booleans: set[int], emulated: bool) -> None:
        self.sections, self.layouts, self.booleans, self.emulated = sections, layouts, booleans, emulated
        self.threads = 256
        self.inputs: dict[int, str] = {}  # position -> declared type
        self.nodes: dict[int, Node] = {}  # stored nodes that are read or written
        self._written: set[int] = set()
        self._lines: list[str] = []
        self._known: dict[tuple[int, str], str] = {}
        self._indices: dict[str, str] = {}
        self._count = 0
        self._section: Section = sections.all[0]

    def write(self, levels: list[list[Section]]) -> Launch:
        together = [section for level in levels for section in level]
        if self.emulated:
            self.threads = 32
        elif len(levels) > 1 or any(s.kind == "rows" and s.dims[1] >= 4096 and s.dims[0] <= 64 for s in together):
            self.threads = _MOST_THREADS
        first = 0
        for number, section in enumerate(together):
            blocks = self.blocks_of(section, self.threads, emulated=self.emulated)
            if len(levels) > 1:
                if number and section.level != together[number - 1].level:
                    self._line("__syncthreads();")
                self._line(f"for (u32 block = 0; block < {blocks}u; block++) {{")
            else:
                condition = "" if len(together) == 1 else f"if (blockIdx.x < {first + blocks}u) "
                self._line(f"{'else ' if number else ''}{condition}{{")
                self._line(f"const u32 block = blockIdx.x - {first}u;")
                first += blocks
            self._section = section
            with self._scope():
                getattr(self, f"_{section.kind}")(section)
            self._line("}")
        parameters = [f"{kind}in{i}" for i, kind in self.inputs.items()]
        for number, node in enumerate(self.nodes.values()):
            kind = "unsigned char" if id(node) in self.booleans else "float"
            parameters.append(f"{'' if id(node) in self._written else 'const '}{kind} *__restrict__ node{number}")
        names = {f"@{key}@": f"node{number}" for number, key in enumerate(self.nodes)}
        body = "\n".join(self._lines)
        for mark, name in names.items():
            body = body.replace(mark, name)
        header = _HEADER + ("" if self.emulated else _REDUCERS)
        room = "" if all(each.kind == "flat" for each in together) else f"__shared__ float room[{self.threads}];\n"
        bounds = f"__launch_bounds__({self.threads})"
        source = f'{header}extern "C" __global__ void {bounds} fused({", ".join(parameters)}) {{\n{room}{body}\n}}\n'
        return Launch(source, max(first, 1), self.threads, list(self.inputs), list(self.nodes.values()))

    # -- sections ------------------------------------------------------------------------------------------------

    @staticmethod
    def blocks_of(section: Section, threads: int, *, emulated: bool) -> int:
        if section.kind == "flat":
            return -(-section.dims[0] // threads)
        if section.kind == "rows":
            return -(-section.dims[0] // (threads // _lanes(section, threads, emulated)))
        return section.dims[0] * -(-section.dims[2] // 32)

    def _flat(self, section: Section) -> None:
        self._line(f"const u32 i = block * {self.threads}u + threadIdx.x;")
        self._line(f"if (i < {section.dims[0]}u) {{")
        self._store(section, "i", section.members)
        self._line("}")

    def _rows(self, section: Section) -> None:
        rows, columns = section.dims
        lanes = _lanes(section, self.threads, self.emulated)
        each = self.threads // lanes
        self._line(f"const u32 lane = threadIdx.x % {lanes}u, row = block * {each}u + threadIdx.x / {lanes}u;")
        self._line(f"if (row < {rows}u) {{")
        depths = {id(node): self.sections.depth(section, node) for node in section.members}
        reductions = [node for node in section.members if node.is_reduction]
        for depth in range(max((depths[id(node)] for node in reductions), default=-1) + 1):
            passed = [node for node in reductions if depths[id(node)] == depth]
            names = [self._accumulator(node) for node in passed]
            self._line(f"for (u32 c = lane; c < {columns}u; c += {lanes}u) {{")
            self._line(f"const u32 i = row * {columns}u + c;")
            with self._scope():
                for node, name in zip(passed, names):
                    self._accumulate(node, name, self._element(node.inputs[0], "i"))
            self._line("}")
            for node, name in zip(passed, names):
                if lanes > 1:
                    how = f"warp_{node.kind}({name})" if lanes == 32 else f"block_{node.kind}({name}, room)"
                    self._line(f"{name} = {how};")
                self._divide(node, name)
                self._known[id(node), "row"] = name
        scalars = [
            node for node in section.members if node.size == rows and (node.is_reduction or node.size != section.domain)
        ]
        if any(id(node) in self.sections.stored for node in scalars):
            self._line("if (lane == 0u) {")
            self._store(section, "row", scalars)
            self._line("}")
        elements = [node for node in section.members if not any(node is scalar for scalar in scalars)]
        if any(id(node) in self.sections.stored for node in elements):
            self._line(f"for (u32 c = lane; c < {columns}u; c += {lanes}u) {{")
            self._line(f"const u32 i = row * {columns}u + c;")
            self._store(section, "i", elements)
            self._line("}")
        self._line("}")

    def _columns(self, section: Section) -> None:
        _, middle, inner = section.dims
        across, down = -(-inner // 32), self.threads // 32
        reductions = [node for node in section.members if node.is_reduction]
        self._line(f"const u32 lane = threadIdx.x % 32u, line = threadIdx.x / 32u, slice = block / {across}u;")
        self._line(f"const u32 column = block % {across}u * 32u + lane;")
        names = [self._accumulator(node) for node in reductions]
        self._line(f"if (column < {inner}u) for (u32 m = line; m < {middle}u; m += {down}u) {{")
        self._line(f"const u32 i = (slice * {middle}u + m) * {inner}u + column;")
        with self._scope():
            for node, name in zip(reductions, names):
                self._accumulate(node, name, self._element(node.inputs[0], "i"))
            self._store(section, "i", [node for node in section.members if not node.is_reduction])
        self._line("}")
        for node, name in zip(reductions, names):
            self._line("__syncthreads();")
            self._line(f"room[threadIdx.x] = {name};")
            self._line("__syncthreads();")
            self._line(f"if (line == 0u && column < {inner}u) {{")
            combined = (
                f"{name} + room[at * 32u + lane]" if node.kind == "sum" else f"larger({name}, room[at * 32u + lane])"
            )
            self._line(f"for (u32 at = 1; at < {down}u; at++) {name} = {combined};")
            self._divide(node, name)
            self._write_to(node, f"slice * {inner}u + column", name)
            self._line("}")

    def _accumulator(self, node: Node) -> str:
        name = self._name("a")
        self._line(f"float {name} = {'0.0f' if node.kind == 'sum' else _number(-math.inf)};")
        return name

    def _accumulate(self, node: Node, name: str, element: str) -> None:
        self._line(f"{name} += {element};" if node.kind == "sum" else f"{name} = larger({name}, {element});")

    def _divide(self, node: Node, name: str) -> None:
        if node.data[3] != 1:
            self._line(f"{name} /= {_number(float(node.data[3]))};")

    def _store(self, section: Section, index: str, nodes: list[Node]) -> None:
        with self._scope():
            for node in nodes:
                if id(node) in self.sections.stored:
                    self._write_to(node, index, self._element(node, index))

    def _write_to(self, node: Node, index: str, element: str) -> None:
        if id(node) in self.sections.stored:
            self._written.add(id(node))
            shown = f"{element} != 0.0f" if id(node) in self.booleans else element
            self._line(f"{self._buffer(node)}[{index}] = {shown};")

    def _buffer(self, node: Node) -> str:
        self.nodes[id(node)] = node
        return f"@{id(node)}@"

    # -- elements ------------------------------------------------------------------------------------------------

    def _element(self, node: Node, index: str) -> str:
        """Writes the computation of an element. Returns the name of a variable, or a literal."""
        if node.kind == "number":
            return _number(node.data)
        known = self._known.get((id(node), index))
        if known is not None:
            return known
        place = self.sections.place.get(id(node))
        if place is not None and place is not self._section:
            made = self._value(node, f"{self._buffer(node)}[{index}]", id(node) in self.booleans)
        elif node.kind == "reshape":
            made = self._element(node.inputs[0], index)
        elif node.kind == "copy":
            steps, begin = node.data
            made = self._element(node.inputs[0], self._at(index, node.shape, list(steps), begin))
        elif node.kind == "input":
            made = self._input(node, index)
        elif node.kind == "concat":
            made = self._concat(node, index)
        elif node.kind == "pad":
            made = self._pad(node, index)
        elif node.kind in ("unary", "binary", "select"):
            given = [
                self._element(each, self._at(index, node.shape, broadcast_steps(each.shape, node.shape)))
                for each in node.inputs
            ]
            made = self._value(node, _formula(node, given))
        else:
            raise AssertionError(node.kind)
        self._known[id(node), index] = made
        return made

    def _value(self, node: Node, expression: str, boolean: bool = False) -> str:
        name = self._name("v")
        self._line(f"const {node.ctype} {name} = {f'{expression} ? 1.0f : 0.0f' if boolean else expression};")
        return name

    def _input(self, node: Node, index: str) -> str:
        position, ctype = node.data
        strides = self.layouts[position].strides
        if strides is None:
            self.inputs[position] = "const double " if ctype in (FLOAT, BOOL) else "const int "
            return self._value(node, f"({node.ctype})in{position}")
        kind = "unsigned char" if ctype == BOOL else ctype
        self.inputs[position] = f"const {kind} *__restrict__ "
        at = index if list(strides) == row_major(node.shape) else self._at(index, node.shape, list(strides))
        return self._value(node, f"in{position}[{at}]", ctype == BOOL)

    def _concat(self, node: Node, index: str) -> str:
        axis, name = node.data, self._name("v")
        inner, total = math.prod(node.shape[axis + 1 :]), node.shape[axis]
        outer = self._index(f"{index} / {inner * total}u")
        at = self._index(f"{index} / {inner}u % {total}u" if inner > 1 else f"{index} % {total}u")
        rest = f" + {index} % {inner}u" if inner > 1 else ""
        self._line(f"float {name};")
        begin = 0
        for number, part in enumerate(node.inputs):
            size = part.shape[axis]
            last = number == len(node.inputs) - 1
            self._line(("else " if number else "") + ("{" if last else f"if ({at} < {begin + size}u) {{"))
            with self._scope():
                place = self._index(f"({outer} * {size}u + {at} - {begin}u) * {inner}u{rest}")
                self._line(f"{name} = {self._element(part, place)};")
            self._line("}")
            begin += size
        return name

    def _pad(self, node: Node, index: str) -> str:
        (x,), name = node.inputs, self._name("v")
        conditions, terms = [], []
        steps, inner = row_major(x.shape), row_major(node.shape)
        for axis, before in enumerate(node.data):
            coordinate = f"{index} / {inner[axis]}u % {node.shape[axis]}u"
            if node.shape[axis] != x.shape[axis]:
                shifted = self._index(f"{coordinate} - {before}u")  # wraps around if it is negative
                conditions.append(f"{shifted} < {x.shape[axis]}u")
            else:
                shifted = f"({coordinate})"
            terms.append(f"{shifted} * {steps[axis]}u")
        self._line(f"float {name} = 0.0f;")
        self._line(f"if ({' && '.join(conditions) or 'true'}) {{")
        with self._scope():
            self._line(f"{name} = {self._element(x, self._index(' + '.join(terms) or '0u'))};")
        self._line("}")
        return name

    def _at(self, index: str, shape: tuple[int, ...], steps: list[int], begin: int = 0) -> str:
        """The index of an operand's element, from that of the node's."""
        if not begin:
            moved = self._section.moved("same" if index == "i" else "row" if index == "row" else "", shape, steps)
            if moved:
                return "i" if moved == "same" else "row"
        dims = collapsed(shape, steps)
        if dims in ([], [(math.prod(shape), 1)]) and not begin:
            return index
        inner, terms = 1, []
        for place, (size, step) in reversed(list(enumerate(dims))):
            if step:
                coordinate = index if inner == 1 else f"{index} / {inner}u"
                terms.append(f"{coordinate if place == 0 else f'{coordinate} % {size}u'} * {step}")
            inner *= size
        return self._index(" + ".join([*terms, str(begin)]) if begin or not terms else " + ".join(terms))

    # -- lines ---------------------------------------------------------------------------------------------------

    def _index(self, expression: str) -> str:
        known = self._indices.get(expression)
        if known is None:
            known = self._indices[expression] = self._name("i")
            self._line(f"const u32 {known} = {expression};")
        return known

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def _line(self, line: str) -> None:
        if len(self._lines) >= _MOST_STATEMENTS:
            raise TooLarge
        self._lines.append(line)

    @contextmanager
    def _scope(self) -> Any:
        """Variables that are declared inside are unknown afterwards."""
        known, indices = dict(self._known), dict(self._indices)
        yield
        self._known, self._indices = known, indices


def _lanes(section: Section, threads: int, emulated: bool) -> int:
    """How many threads share a row."""
    rows, columns = section.dims
    if emulated or (columns <= 8 and rows >= 4096):
        return 1
    return 32 if columns <= _MOST_LANES else threads


def _formula(node: Node, given: list[str]) -> str:
    if node.kind == "select":
        return f"{given[0]} != 0.0f ? {given[1]} : {given[2]}"
    text = UNARY[node.name] if node.kind == "unary" else BINARY[node.name]
    words = {"x": given[0], "y": given[-1]}
    return "".join(words.get(word, word) for word in _words(text))


def _words(text: str) -> list[str]:
    """The words of a formula and what is between them."""
    found, word = [], ""
    for letter in text:
        if letter.isalnum() or letter == "_" or (letter == "." and word):
            word += letter
        else:
            found += [word, letter]
            word = ""
    return [*found, word]


def _number(number: Any) -> str:
    if isinstance(number, int) and not isinstance(number, bool):
        return f"{number}ll"
    (rounded,) = struct.unpack("f", struct.pack("f", number)) if abs(number) < 3.4e38 else (number,)
    if math.isfinite(rounded):
        text = repr(rounded)
        return f"({text}f)" if rounded < 0 or "e" in text or "." in text else f"{text}.0f"
    bits = 0x7FC00000 if rounded != rounded else 0x7F800000 if rounded > 0 else 0xFF800000
    return f"__int_as_float(0x{bits:x})"
