"""The program in docs/distributed.md."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_program_of_the_page_runs():
    """The Python blocks of docs/distributed.md, joined, are a program that runs."""
    page = (Path(__file__).parents[2] / "docs" / "distributed.md").read_text()
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    assert "MonitoredTrainingSession" in program
    exec(compile(program, "docs/distributed.md", "exec"), {})
