"""Ops and public functions of other families by name: `ops.Rsqrt(x)`, `public("nn.embedding_lookup")`.

Compositions in this package use many ops of which only the type matters, not the module that defines it.
"""

from __future__ import annotations

import sys
from typing import Any

from stoker._src.base.export import EXPORTS
from stoker._src.graph.definition import find_definition


class _Ops:
    def __getattr__(self, name: str) -> Any:
        definition = find_definition(name)
        if definition is None:
            raise NotImplementedError(f"the op {name} is not defined")
        return definition


ops = _Ops()


def public(name: str, namespace: str = "v1") -> Any:
    """What has the public name `name`.

    Raises:
        NotImplementedError: nothing has.
    """
    found = EXPORTS[namespace].get(name)
    if found is None:
        raise NotImplementedError(f"tf.{name} is not defined")
    module, attribute = found
    return getattr(sys.modules[module], attribute)
