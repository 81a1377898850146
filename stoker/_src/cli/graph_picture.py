"""Draws a graph as SVG: nested boxes for scopes, layers from top to bottom, scopes closed where there are too many nodes.

Scopes are the parts of names between slashes. Every open scope is laid out by itself, in layers: a node stands below all its inputs, and the order
in a layer follows the neighbours (Sugiyama's method with barycentres). An edge across several layers has a place in each, so that it does not run
behind boxes. An edge between nodes of different scopes is drawn between the outermost boxes that separate them. Scopes that nothing connects
with the rest stand beside it. Nothing in it depends on TensorFlow: any list of `Node`s can be drawn.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

_WIDTH, _HEIGHT, _GAP, _LAYER = 144, 34, 16, 34
_PAD, _HEAD = 12, 20
_CHARACTERS = 20
_COLOURS = {"": "#ffffff", "input": "#d7ecd9", "variable": "#fde9c8", "closed": "#dce6f5", "output": "#f6d9df"}


@dataclass
class Node:
    """A node to draw: its full name, the op or another label, the names of nodes it takes inputs from, and a detail such as a shape."""

    name: str
    label: str
    inputs: list[str] = field(default_factory=list)
    detail: str = ""
    kind: str = ""  # "input", "variable", "output" or "": the colour
    title: str = ""  # the first line, if it is not the last part of the name; then the label is not shown


class _Box:
    """A node, or a scope with its boxes."""

    def __init__(self, name: str, node: Node | None = None) -> None:
        self.name, self.node = name, node
        self.children: dict[str, _Box] = {}
        self.count = 0  # nodes inside
        self.is_open = False
        self.x = self.y = 0.0
        self.width: float = _WIDTH
        self.height: float = _HEIGHT
        self.edges: set[tuple[str, str]] = set()  # between children, by name
        self.ways: dict[tuple[str, str], list[_Box]] = {}  # places of long edges in the layers between their ends

    @property
    def title(self) -> str:
        return self.name.rsplit("/", 1)[-1] or "graph"


def svg(nodes: Iterable[Node], title: str = "", *, most: int = 60) -> str:
    """The picture of a graph. Scopes are opened, outer and larger ones first, as long as at most `most` boxes are visible."""
    root = _tree(list(nodes))
    _open(root, most)
    _connect(root)
    _lay_out(root)
    width, height = root.width + 2 * _PAD, root.height + 2 * _PAD + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#66707a"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fafbfc"/>',
        f'<text x="{_PAD}" y="18" font-size="13" fill="#333">{_text(title or "graph")} · {root.count:,} nodes</text>',
    ]
    _draw(root, _PAD, 24 + _PAD, out)
    out.append("</svg>\n")
    return "\n".join(out)


# ---- which boxes ------------------------------------------------------------------------------------------------


def _tree(nodes: list[Node]) -> _Box:
    root = _Box("")
    names = {node.name for node in nodes}
    for node in nodes:
        box = root
        parts = node.name.split("/")
        for depth in range(1, len(parts)):
            name = "/".join(parts[:depth])
            box = box.children.setdefault(name + "/", _Box(name))
        box.children[node.name] = _Box(node.name, node)
    _count(root)
    root.edges = {
        (source, node.name) for node in nodes for source in node.inputs if source in names and source != node.name
    }
    return root


def _count(box: _Box) -> int:
    box.count = 1 if box.node is not None else sum(map(_count, box.children.values()))
    return box.count


def _open(root: _Box, most: int) -> None:
    root.is_open = True
    visible = len(root.children)
    closed = [box for box in root.children.values() if box.node is None]
    while closed:
        # The outer scopes first, among them the large ones.
        closed.sort(key=lambda box: (-box.name.count("/"), box.count))
        box = closed.pop()
        if visible + len(box.children) > most:
            continue
        box.is_open = True
        visible += len(box.children)
        closed += [inner for inner in box.children.values() if inner.node is None]


def _connect(root: _Box) -> None:
    """Gives each edge to the innermost open scope that holds both ends, between its children."""
    edges, root.edges = root.edges, set()
    for source, target in edges:
        box = root
        while True:
            first, second = _child(box, source), _child(box, target)
            if first != second:
                box.edges.add((first, second))
                break
            inner = box.children[first]
            if not inner.is_open:
                break
            box = inner


def _child(box: _Box, name: str) -> str:
    """The key of the child of `box` that is, or holds, a node."""
    if name in box.children:
        return name
    start = len(box.name) + 1 if box.name else 0
    return name[: name.index("/", start)] + "/"


# ---- where ------------------------------------------------------------------------------------------------------


def _lay_out(box: _Box) -> None:
    if not box.is_open:
        return
    for child in box.children.values():
        _lay_out(child)
    beside = _apart(box)
    layers = _layers(box, beside)
    boxes = box.children | _ways(box, layers)
    _order(layers, box)
    inner = _spread(layers, boxes, box)
    y = float(_HEAD)
    for layer in layers:
        tallest = max(boxes[key].height for key in layer)
        for key in layer:
            if key not in box.children:
                boxes[key].height = tallest
            boxes[key].y = y + (tallest - boxes[key].height) / 2
        y += tallest + _LAYER
    x = inner + 2 * _PAD
    for child in beside.values():
        child.x, child.y = x + _GAP, _HEAD
        x += child.width + 2 * _GAP
    tallest = max((child.height for child in beside.values()), default=0.0)
    box.width, box.height = x, max(y - _LAYER, _HEAD + tallest) + _PAD


def _apart(box: _Box) -> dict[str, _Box]:
    """The open scopes that no edge connects with the rest, such as the bodies of loops, unless there is nothing else."""
    joined = {key for edge in box.edges for key in edge}
    if not joined:
        return {}
    return {key: child for key, child in box.children.items() if child.is_open and key not in joined}


def _ways(box: _Box, layers: list[list[str]]) -> dict[str, _Box]:
    """Gives each edge that passes layers a place in them. Returns the places by name; a name with two slashes is not that of a node."""
    depth = {key: number for number, layer in enumerate(layers) for key in layer}
    made: dict[str, _Box] = {}
    for source, target in sorted(box.edges):
        for number in range(depth[source] + 1, depth[target]):
            name = f"{source}//{target}//{number}"
            made[name] = _Box(name)
            made[name].width = _GAP
            layers[number].append(name)
            box.ways.setdefault((source, target), []).append(made[name])
    return made


def _layers(box: _Box, beside: Iterable[str]) -> list[list[str]]:
    """The children in layers: each below all children it has an edge from. Edges that close a cycle are ignored, and so are children `beside`."""
    after: dict[str, list[str]] = {key: [] for key in box.children}
    for source, target in sorted(box.edges):
        after[source].append(target)
    order, state = [], dict.fromkeys(box.children, 0)
    forward: dict[str, list[str]] = {key: [] for key in box.children}
    for start in box.children:
        stack = [(start, iter(after[start]))] if not state[start] else []
        state[start] = state[start] or 1
        while stack:
            key, rest = stack[-1]
            for target in rest:
                if state[target] != 1:  # not on the current path
                    forward[key].append(target)
                if state[target] == 0:
                    state[target] = 1
                    stack.append((target, iter(after[target])))
                    break
            else:
                state[key] = 2
                order.append(key)
                stack.pop()
    depth = dict.fromkeys(box.children, 0)
    for key in reversed(order):
        for target in forward[key]:
            depth[target] = max(depth[target], depth[key] + 1)
    # A source stands right above the first that needs it.
    for key in order:
        if depth[key] == 0 and forward[key]:
            depth[key] = min(depth[target] for target in forward[key]) - 1
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    aside = set(beside)
    for key in box.children:
        if key not in aside:
            layers[depth[key]].append(key)
    return [layer for layer in layers if layer]


def _spread(layers: list[list[str]], boxes: dict[str, _Box], box: _Box) -> float:
    """Chooses the horizontal places: each box near the mean of its neighbours, in the order of its layer and without overlap. Returns the width."""
    neighbours = _neighbours(layers, box)
    middle: dict[str, float] = {}
    for layer in layers:
        middle |= dict(zip(layer, _apart_by(layer, [0.0] * len(layer), boxes)))
    for turn in range(12):
        for layer in layers if turn % 2 == 0 else reversed(layers):
            near = [[middle[other] for other in neighbours[key]] for key in layer]
            # The factor draws everything to the middle, so that the picture does not grow sideways from layer to layer.
            wanted = [0.9 * sum(each) / len(each) if each else middle[key] for key, each in zip(layer, near)]
            middle |= dict(zip(layer, _apart_by(layer, wanted, boxes)))
    left = min((middle[key] - boxes[key].width / 2 for key in middle), default=0.0)
    for key, place in middle.items():
        boxes[key].x = _PAD + place - boxes[key].width / 2 - left
    return max((boxes[key].x + boxes[key].width - _PAD for key in middle), default=_WIDTH)


def _apart_by(layer: list[str], wanted: list[float], boxes: dict[str, _Box]) -> list[float]:
    """The places nearest to those wanted at which boxes do not overlap.

    Without the widths of the boxes to the left, the places must not decrease: neighbours that would are moved to their mean.
    """
    widths = [boxes[key].width for key in layer]
    before = [0.0, *itertools.accumulate((a + b) / 2 + _GAP for a, b in itertools.pairwise(widths))]
    groups: list[tuple[float, int]] = []
    for place, offset in zip(wanted, before):
        groups.append((place - offset, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (first, few), (second, more) = groups.pop(-2), groups.pop()
            groups.append(((first * few + second * more) / (few + more), few + more))
    placed = itertools.chain.from_iterable([place] * count for place, count in groups)
    return [place + offset for place, offset in zip(placed, before)]


def _neighbours(layers: list[list[str]], box: _Box) -> dict[str, list[str]]:
    """The boxes and places in the layers above and below that edges join to each."""
    neighbours: dict[str, list[str]] = {key: [] for layer in layers for key in layer}
    for edge in sorted(box.edges):
        stations = [edge[0], *(way.name for way in box.ways.get(edge, ())), edge[1]]
        for above, below in itertools.pairwise(stations):
            neighbours[above].append(below)
            neighbours[below].append(above)
    return neighbours


def _order(layers: list[list[str]], box: _Box) -> None:
    """Orders each layer by the mean position of the neighbours, down and up a few times."""
    neighbours = _neighbours(layers, box)
    place = {key: i / max(len(layer) - 1, 1) for layer in layers for i, key in enumerate(layer)}
    for turn in range(6):
        for layer in layers if turn % 2 == 0 else reversed(layers):
            inside = set(layer)
            weight = {}
            for key in layer:
                near = [place[other] for other in neighbours[key] if other not in inside]
                weight[key] = sum(near) / len(near) if near else place[key]
            layer.sort(key=weight.__getitem__)
            for i, key in enumerate(layer):
                place[key] = i / max(len(layer) - 1, 1)


# ---- drawing ----------------------------------------------------------------------------------------------------


def _draw(box: _Box, left: float, top: float, out: list[str]) -> None:
    for source, target in sorted(box.edges):
        a, b = box.children[source], box.children[target]
        out.append(_edge(left, top, [a, *box.ways.get((source, target), ()), b]))
    for child in box.children.values():
        x, y = left + child.x, top + child.y
        if child.is_open:
            out.append(_rectangle(x, y, child, "#eef1f5", 6, child.name))
            out.append(f'<text x="{x + 8:.1f}" y="{y + 14:.1f}" fill="#445">{_text(child.title)}</text>')
            _draw(child, x, y, out)
            continue
        node = child.node
        if node is None:
            lines = child.title, f"{child.count:,} node{'' if child.count == 1 else 's'}"
            tip, colour = child.name, _COLOURS["closed"]
        else:
            label = "" if node.title else node.label
            lines = node.title or child.title, " · ".join(filter(None, (label, node.detail)))
            tip, colour = f"{node.name} ({node.label}) {node.detail}".strip(), _COLOURS.get(node.kind, "#ffffff")
        out.append(_rectangle(x, y, child, colour, 4 if node is not None else 8, tip))
        middle = x + child.width / 2
        out.append(
            f'<text x="{middle:.1f}" y="{y + 14:.1f}" text-anchor="middle" fill="#111">{_text(_short(lines[0]))}</text>'
        )
        out.append(
            f'<text x="{middle:.1f}" y="{y + 27:.1f}" text-anchor="middle" fill="#667" font-size="10">{_text(_short(lines[1], 24))}</text>'
        )


def _rectangle(x: float, y: float, box: _Box, colour: str, radius: int, tip: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}" fill="{colour}" '
        f'stroke="#9aa5b1"><title>{_text(tip)}</title></rect>'
    )


def _edge(left: float, top: float, stations: list[_Box]) -> str:
    """A curve from the first box to the last, straight down through the places between them."""
    path = ""
    for a, b in itertools.pairwise(stations):
        x1, y1 = left + a.x + a.width / 2, top + a.y + a.height
        x2, y2 = left + b.x + b.width / 2, top + b.y
        bend = max(abs(y2 - y1) / 2, 14)
        path += f"L{x1:.1f},{y1:.1f} " if path else f"M{x1:.1f},{y1:.1f} "
        path += f"C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f} "
    return f'<path d="{path.rstrip()}" fill="none" stroke="#66707a" stroke-opacity="0.7" marker-end="url(#tip)"/>'


def _short(text: str, most: int = _CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _text(text: str) -> str:
    return html.escape("".join(c if c.isprintable() else "?" for c in text))
