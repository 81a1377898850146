"""The global switch that has placement logged, and the lines that are."""

from __future__ import annotations

import sys

enabled = False
"""Set by `tf.debugging.set_log_device_placement`. Read before every eager op, so a plain variable."""


def placed(name: str, kind: str, device: str) -> None:
    """A node of a graph or function was given its device."""
    print(f"{name}: ({kind}): {device}", file=sys.stderr)


def executed(kind: str, device: str) -> None:
    """An op ran in eager mode."""
    print(f"Executing op {kind} in device {device}", file=sys.stderr)
