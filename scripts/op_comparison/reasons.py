"""Why some ops differ from TensorFlow, or are not compared with it. The documentation prints these words."""

from __future__ import annotations

# Ops whose results may differ, and why: (largest difference in units of the dtype's precision, reason).
TOLERANCES: dict[str, tuple[float, str]] = {}

# Differences that stay: op -> reason.
DELIBERATE: dict[str, str] = {}

# Modules whose ops are not compared here, and why.
NOT_COMPARED: dict[str, str] = {}
NOT_COMPARED_OPS: dict[str, str] = {}

# Ops that eager mode runs, tried by other tests; or why it does not.
EAGER_NOTES: dict[str, str] = {}

ELEMENTWISE = (4.0, "the last bits of library functions")
SUMS = (64.0, "sums are taken in another order")
