"""The program in docs/estimators.md."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_program_of_the_page_runs():
    """The Python blocks of docs/estimators.md, joined, are a program that runs."""
    page = (Path(__file__).parents[2] / "docs" / "estimators.md").read_text()
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    assert "train_and_evaluate" in program
    exec(compile(program, "docs/estimators.md", "exec"), {})
