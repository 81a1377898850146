"""What TensorFlow gave beside what stoker gave: the difference in units of the dtype's precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52,
           "complex64": 2.0**-23, "complex128": 2.0**-52}  # fmt: skip
TINY = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "complex64": 2.0**-126}

# TensorFlow has no kernel for the dtype on a CPU, or no such op: nothing to compare with.
NO_KERNEL = ("NotFoundError", "UnimplementedError", "AttributeError")
# What TensorFlow says where it has a kernel that takes less than the op's definition, or a definition that takes less.
LIMITS = (
    "is not in the list of allowed values", "OpKernel", "Signature mismatch", "only supports NHWC", "Default MaxPoolingOp",
    "Default AvgPooling", "CPU implementation of", "only supports NHWC tensor format", "Conv2DCustomBackprop", "NCHW",
    "channels_last", "Wrong types for", "NDHWC", "Invalid output dtype", "Invalid seed", "Invalid shape or seed", "filter_size does n",
    "dilation rates larger than 1", "does not yet support dilation",
)  # fmt: skip
ARGUMENT_ERRORS = {"InvalidArgumentError", "ValueError", "TypeError"}


@dataclass
class Difference:
    """How one case came out: the difference in units of precision (0 is equal), or what kept it from being small."""

    units: float = 0.0
    text: str = ""  # a difference that no tolerance covers
    skipped: str = ""


def compare_case(
    ours: dict[str, Any], theirs: dict[str, Any], elementwise: bool, scale: float = 0.0, floor: float = 0.0
) -> Difference:
    """Compares two results, each {"values": arrays} or {"error": class name, "message": text}."""
    if theirs.get("error") == "Crash":
        return Difference(skipped="TensorFlow's process ends")
    if theirs.get("error") in NO_KERNEL and ours.get("error") != theirs["error"]:
        return Difference(skipped=f"TensorFlow: {theirs['error']}")
    if "error" in theirs and any(words in theirs["message"] for words in LIMITS):
        return Difference(skipped="TensorFlow's CPU kernel is narrower")
    if "error" in ours or "error" in theirs:
        return compare_errors(ours, theirs)
    if len(ours["values"]) != len(theirs["values"]):
        return Difference(text=f"{len(ours['values'])} outputs instead of {len(theirs['values'])}")
    worst = Difference()
    for number, (one, other) in enumerate(zip(ours["values"], theirs["values"])):
        found = compare_values(one, other, elementwise, scale, floor)
        if found.text:
            return Difference(text=f"output {number}: {found.text}" if number else found.text)
        worst = max(worst, found, key=lambda each: each.units)
    return worst


def compare_errors(ours: dict[str, Any], theirs: dict[str, Any]) -> Difference:
    if "error" not in theirs:
        return Difference(text=f"stoker raises {ours['error']}: {ours['message'][:120]}")
    if "error" not in ours:
        return Difference(text=f"TensorFlow raises {theirs['error']}: {theirs['message'][:120]}")
    if ours["error"] == theirs["error"] or {ours["error"], theirs["error"]} <= ARGUMENT_ERRORS:
        return Difference()
    return Difference(text=f"stoker raises {ours['error']} ({ours['message'][:80]}), TensorFlow {theirs['error']}")


def compare_values(
    ours: np.ndarray, theirs: np.ndarray, elementwise: bool, scale: float = 0.0, floor: float = 0.0
) -> Difference:
    """The largest difference of two arrays.

    Elements of element-wise ops are compared with their own size (or `floor`, if that is more); those of sums and products with
    the largest element (or `scale`, the size of the inputs), since a sum that cancels has no precision of its own. Subnormal
    numbers are zero: TensorFlow's threads treat them so.
    """
    if ours.shape != theirs.shape:
        return Difference(text=f"shape {list(ours.shape)} instead of {list(theirs.shape)}")
    if theirs.dtype.kind in "OSU":
        return Difference(text="" if ours.tolist() == theirs.tolist() else f"{ours.tolist()!r:.60} instead of {theirs.tolist()!r:.60}")  # fmt: skip
    if ours.dtype != theirs.dtype:
        return Difference(text=f"dtype {ours.dtype} instead of {theirs.dtype}")
    name = theirs.dtype.name
    if name not in EPSILON:
        wrong = ours != theirs
        if not wrong.any():
            return Difference()
        return Difference(text=f"{ours[wrong].ravel()[0]} instead of {theirs[wrong].ravel()[0]}")
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    if wide is np.complex128:
        a, b = (np.stack([x.real, x.imag], -1) for x in (a, b))
    with np.errstate(all="ignore"):
        tiny = TINY.get(name, 2.0**-1022)
        a, b = (np.where(np.abs(x) < tiny, 0, x) for x in (a, b))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if same.all():
            return Difference()
        odd = ~same & ~(np.isfinite(a) & np.isfinite(b))
        if odd.any():
            return Difference(text=f"{a[odd].ravel()[0]:.9g} instead of {b[odd].ravel()[0]:.9g}")
        size = np.abs(b)
        if wide is np.complex128:
            size = np.broadcast_to(np.maximum(size[..., :1], size[..., 1:]), size.shape)
        if not elementwise:
            finite = size[np.isfinite(size)]
            size = np.maximum(size, max(finite.max() if finite.size else 0.0, scale))
        size = np.maximum(size, max(tiny, floor))
        return Difference(units=float((np.abs(a - b) / size)[~same].max() / EPSILON[name]))
