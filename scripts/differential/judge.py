"""Compares what two sides computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def difference(a: Any, b: Any, tolerance: float, *, exact: bool = False) -> tuple[float, str]:
    """How far two arrays are apart, in units of what rounding explains (up to 1 is fine), and what is different."""
    if a is None or b is None:
        return (0.0, "") if a is None and b is None else (math.inf, "None")
    if isinstance(a, str) or isinstance(b, str):
        return (0.0, "") if a is b else (math.inf, f"{a} {b}"[:200])
    if a.dtype != b.dtype:
        if {a.dtype.kind, b.dtype.kind} != {"f"}:
            return math.inf, f"dtypes {a.dtype} and {b.dtype}"
    if a.shape != b.shape:
        return math.inf, f"shapes {a.shape} and {b.shape}"
    if not a.size:
        return 0.0, ""
    if a.dtype.kind != "f":
        wrong = int((a != b).sum())
        return (math.inf if wrong else 0.0), f"{wrong} of {a.size} elements differ" if wrong else ""
    x, y = a.astype("f8"), b.astype("f8")
    with np.errstate(all="ignore"):
        unlike = (np.isnan(x) != np.isnan(y)) | (np.isinf(x) != np.isinf(y)) | (np.isinf(x) & np.isinf(y) & (x != y))
        if unlike.any():
            place = tuple(np.argwhere(unlike)[0]) if x.ndim else ()
            return math.inf, f"{x[place]} and {y[place]} at {place}; {int(unlike.sum())} of {x.size} elements"
        fine = np.isfinite(x)
        if not fine.any():
            return 0.0, ""
        gap = np.where(fine, np.abs(x - y), 0.0)
        top = np.abs(np.where(fine, y, 0.0)).max()
        allowed = 0.0 if exact else tolerance * (np.abs(np.where(fine, y, 0.0)) + 0.3 * top + 1e-3)
        over = gap / np.maximum(allowed, 1e-30)
        worst = np.unravel_index(over.argmax(), over.shape) if x.ndim else ()
        return float(
            over.max()
        ), f"{x[worst]} and {y[worst]} at {tuple(map(int, worst))}; {int((over > 1).sum())} of {x.size} elements"


def compare(a: dict[str, Any], b: dict[str, Any], tolerance: float, *, exact: bool = False) -> tuple[float, str]:
    """The worst difference of two sides."""
    if a.get("error") != b.get("error"):
        if a.get("error") and b.get("error"):
            return 0.0, ""
        return (
            math.inf,
            f"errors: {a.get('error')} {a.get('text', '')[:300]} / {b.get('error')} {b.get('text', '')[:300]}",
        )
    worst, text = 0.0, ""
    if len(a["results"]) != len(b["results"]):
        return (
            math.inf,
            f"{len(a['results'])} and {len(b['results'])} results: {[x for x in a['results'] + b['results'] if isinstance(x, str)]}",
        )
    for number, (left, right) in enumerate(zip(a["results"], b["results"])):
        if isinstance(left, str) or isinstance(right, str):
            if left != right:
                return math.inf, f"{left} / {right}"
            continue
        for i, (x, y) in enumerate(zip(left, right)):
            size, what = difference(x, y, tolerance, exact=exact)
            if size > worst:
                worst, text = size, f"run {number}, result {i}: {what}"
    return worst, text
