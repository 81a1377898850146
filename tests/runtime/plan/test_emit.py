"""Generated code holds only what the planner writes."""

from __future__ import annotations

import pytest

from stoker._src.base.errors import InternalError
from stoker._src.runtime.plan.emit import check_source


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def step(holding):\n    return ()\nstep(1)\n", "is not one function"),
        ("def other(holding):\n    return ()\n", "is not one function"),
        ("def step(holding):\n    import os\n", "holds Import"),
        ("def step(holding, x):\n    return (x.__class__, )\n", "uses the attribute __class__"),
        ("def step(holding):\n    return ('text', )\n", "holds 'text'"),
        ("def step(holding):\n    return (open(1), )\n", "uses the names .'open'."),
    ],
)
def test_foreign_source_is_refused(source, problem):
    """Whatever else stands in a step's source is an error, whether Python checks assertions or not."""
    with pytest.raises(InternalError, match=problem):
        check_source(source, "<test>", set())


def test_a_step_is_compiled():
    """Calls of known names with plain literals are what steps are made of."""
    code = check_source("def step(holding, x):\n    y = kernel(x, -1.5)\n    return (y, )\n", "<test>", {"kernel"})
    namespace = {"kernel": lambda x, y: x * y}
    exec(code, namespace)
    assert namespace["step"](None, 2.0) == (-3.0,)
