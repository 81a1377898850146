#!/usr/bin/env python3
"""Draw the ratios of benchmark results as an SVG.

    plot.py OUT.svg TITLE=RESULTS.json [TITLE=RESULTS.json ...]

Each file is one group of bars, on a logarithmic axis; the line at 1 is TensorFlow.
"""

import json
import math
import sys
from html import escape

LABEL, WIDTH, ROW, GAP, TOP = 190, 520, 18, 34, 28
FASTER, SLOWER, LINE, TEXT = "#2f7d5b", "#b5493b", "#8a8f98", "#30343b"
LEAST, MOST = 0.25, 32.0


def at(ratio):
    """The horizontal position of a ratio."""
    bounded = min(max(ratio, LEAST), MOST)
    return LABEL + WIDTH * math.log(bounded / LEAST) / math.log(MOST / LEAST)


def text(x, y, content, anchor="start", weight="normal"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{TEXT}">{escape(content)}</text>'


def group(title, rows, top):
    """The bars of one file. Returns the elements and the position below them."""
    parts = [text(LABEL, top - 8, title, weight="bold")]
    y = top
    for name, ratio in rows:
        left, right = sorted((at(1.0), at(ratio)))
        color = FASTER if ratio >= 1 else SLOWER
        parts.append(text(LABEL - 8, y + 13, name, anchor="end"))
        parts.append(
            f'<rect x="{left:.1f}" y="{y + 3}" width="{max(right - left, 1):.1f}" height="{ROW - 6}" fill="{color}"/>'
        )
        parts.append(text(max(right, at(1.0)) + 5, y + 13, f"{ratio:.2f}"))
        y += ROW
    return parts, y


def draw(groups):
    parts, y = [], TOP
    for title, rows in groups:
        made, y = group(title, rows, y + GAP - 10)
        parts += made
    axis = []
    for ratio in (0.25, 0.5, 1, 2, 4, 8, 16, 32):
        x = at(ratio)
        axis.append(
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{y + 6}" stroke="{LINE}" stroke-width="{1.6 if ratio == 1 else 0.4}"/>'
        )
        axis.append(text(x, TOP - 8, f"{ratio:g}", anchor="middle"))
    width, height = LABEL + WIDTH + 60, y + 14
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
    )
    return "\n".join([head, *axis, *parts, "</svg>"]) + "\n"


def main():
    out, *given = sys.argv[1:]
    groups = []
    for each in given:
        title, _, path = each.partition("=")
        with open(path) as file:
            rows = json.load(file)
        groups.append((title, [(name, row["ratio"]) for name, row in rows.items() if row["ratio"]]))
    with open(out, "w") as file:
        file.write(draw(groups))


if __name__ == "__main__":
    main()
