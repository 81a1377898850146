"""What `stoker inspect` found in a file: lines of text and tables for a terminal, a plain structure for JSON, nodes for a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stoker._src.cli.graph_picture import Node

_BARS = "▁▂▃▄▅▆▇█"
_BINS = 12


@dataclass
class Report:
    """`lines` for a terminal, `data` for JSON, `graph` (a GraphDef) and `nodes` for pictures where there are any."""

    lines: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    graph: Any = None

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.lines.extend(table(header, rows))


def printable(text: str) -> str:
    """Text without control characters, so that a name cannot change what a terminal shows."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table with columns of equal width."""
    every = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*every)]
    for row in every:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip()


def shape_text(shape: Sequence[Any]) -> str:
    return " x ".join("?" if size is None else str(size) for size in shape) or "scalar"


# ---- statistics -------------------------------------------------------------------------------------------------


def statistics(array: np.ndarray) -> dict[str, Any] | None:
    """Minimum, maximum, mean, standard deviation, counts of zeros, NaNs and infinities, and a histogram of the finite elements.

    Returns None for strings. Complex numbers count by their size.
    """
    if array.dtype.kind in "OSU":
        return None
    values = np.abs(array) if array.dtype.kind == "c" else array
    values = values.astype(np.float64).ravel()
    finite = values[np.isfinite(values)]
    found: dict[str, Any] = {"min": None, "max": None, "mean": None, "std": None}
    if finite.size:
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = finite.min(), finite.max(), finite.mean(), finite.std()
        found = {key: float(n) if math.isfinite(n) else None for key, n in zip(found, numbers)}
    found["zeros"] = int(np.count_nonzero(values == 0))
    found["nan"] = int(np.count_nonzero(np.isnan(values)))
    found["inf"] = int(np.count_nonzero(np.isinf(values)))
    found["histogram"] = _histogram(finite)
    return found


def _histogram(finite: np.ndarray) -> dict[str, list[Any]]:
    if not finite.size:
        return {"edges": [], "counts": []}
    low, high = float(finite.min()), float(finite.max())
    if not math.isfinite(high - low) or low == high:
        return {"edges": [low, high], "counts": [int(finite.size)]}
    counts, edges = np.histogram(finite, _BINS, (low, high))
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def sparkline(counts: Sequence[int]) -> str:
    """A histogram in one line. A bin that is not empty is never drawn as one that is."""
    most = max(counts, default=0)
    return "".join(" " if not n else _BARS[-(-n * len(_BARS) // most) - 1] for n in counts)


STATISTICS = ("min", "max", "mean", "std", "zeros", "NaN", "Inf", "histogram")


def statistics_cells(found: dict[str, Any] | None) -> tuple[str, ...]:
    """The cells of a table's row for `STATISTICS`."""
    if found is None:
        return ("",) * len(STATISTICS)
    numbers = ["-" if found[key] is None else f"{found[key]:.4g}" for key in ("min", "max", "mean", "std")]
    counts = [f"{found[key]:,}" if found[key] else "-" for key in ("zeros", "nan", "inf")]
    return (*numbers, *counts, sparkline(found["histogram"]["counts"]))
