"""Looks up ops by name at call time, so that a family of ops can refer to families that are imported after it.

    from stoker._src.graph.late_binding import ops

    ops.ScatterNd(indices, updates, shape)    the op definition, by the op's name
    ops.reduce_sum(x, axis)                   an exported function, by its Python name

Gradients need ops of later families (the gradient of a gather is a scatter, that of a broadcast is a sum). Importing them
would create import cycles, so gradients refer to them through `ops`. Everything else is imported directly.
"""

from __future__ import annotations

import sys
from typing import Any

from stoker._src.base.export import EXPORTS
from stoker._src.graph.definition import find_definition

# The families of ops. A family imports only from earlier ones.
OP_FAMILIES = (
    "support",
    "array",
    "math",
    "linalg",
    "control_flow",
    "random",
    "variables",
    "strings",
    "io",
    "sparse",
    "ragged",
    "signal",
    "nn",
    "resources",
    "training",
    "quantization",
    "distributions",
    "image",
    "summary",
    "dataset",
    "collective",
)
_OPS = "stoker._src.ops."


class _LateBoundOps:
    """Resolves an attribute to an op definition or an exported function, and caches it."""

    def __getattr__(self, name: str) -> Any:
        found = find_definition(name)
        if found is None:
            found = getattr(sys.modules[_exporting_module(name)], name)
        setattr(self, name, found)
        return found


def _exporting_module(name: str) -> str:
    """Returns the module of `ops` that exports the function. If several families export the name, the earliest one has the plain form."""
    modules = {
        module
        for table in EXPORTS.values()
        for module, attribute in table.values()
        if attribute == name and module.startswith(_OPS)
    }
    families = {module.removeprefix(_OPS).split(".")[0] for module in modules}
    for family in OP_FAMILIES:
        if family in families:
            candidates = [module for module in modules if module.startswith(f"{_OPS}{family}.")]
            if len(candidates) > 1:
                raise AttributeError(f"ops.{name} is ambiguous: {', '.join(sorted(candidates))} all export it.")
            return candidates[0]
    raise AttributeError(f"There is neither an op nor an exported function of ops called {name!r}.")


ops = _LateBoundOps()
