"""The program in docs/keras.md."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_program_of_the_page_runs():
    """The Python blocks of docs/keras.md, joined, are a program that runs."""
    page = (Path(__file__).parents[2] / "docs" / "keras.md").read_text()
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    assert "load_model" in program
    exec(compile(program, "docs/keras.md", "exec"), {})
