"""docs/pytorch.md does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stoker.compat.v1 as tf

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "pytorch.md"


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_the_examples_run(tmp_path, monkeypatch, capsys):
    """The Python blocks of the page run in order, and the code that it shows is the code that comes out."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    names: dict = {"__name__": "page"}
    with tf.Graph().as_default():
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(block, names)
    names["session"].close()
    shown = re.search(r"    def forward.*?\n(?=        \.\.\.)", text, re.DOTALL)
    assert shown is not None
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    expected = [line[4:].rstrip() for line in shown[0].splitlines()]
    assert printed[: len(expected)] == expected
