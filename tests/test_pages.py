"""What the README, the pages of docs/ and examples/ show runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def python_blocks(page: str) -> list[str]:
    """The Python blocks of a page."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    return blocks


def python(directory: Path, *arguments: str) -> str:
    """What Python prints in that directory. It must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def stoker(directory: Path, *arguments: str) -> str:
    """What a command of stoker prints."""
    return python(directory, "-m", "stoker", *arguments)


def run_block(directory: Path, block: str) -> None:
    """Runs a block as a reader would: with `stoker run` if it imports TensorFlow, else with Python."""
    program = directory / "program.py"
    program.write_text(block)
    python(directory, *(["-m", "stoker", "run"] if "import tensorflow" in block else []), str(program))


@pytest.mark.parametrize("page", ["docs/distributed.md", "docs/estimators.md", "docs/keras.md"])
def test_the_blocks_of_a_page_are_one_program(page, tmp_path):
    """The Python blocks of the page, joined, are a program that runs."""
    run_block(tmp_path, "\n".join(python_blocks(page)))


@pytest.mark.parametrize("page", ["README.md", "docs/contrib.md", "docs/lite.md"])
def test_each_block_of_a_page_is_a_program(page, tmp_path):
    """Each Python block of the page runs by itself, where it finds the project's tests/golden."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for block in python_blocks(page):
        run_block(tmp_path, block)


def test_the_classifier_learns(tmp_path):
    """The example of `make demo` tells most points of the spirals apart after 300 steps."""
    table = stoker(tmp_path, "run", str(ROOT / "examples/classifier.py"), "--steps", "300")
    accuracy = float(table.split()[-1])
    assert accuracy > 0.8


def test_digits_travel_from_records_to_a_tflite_model(tmp_path):
    """The example trains from records, goes on from its checkpoint when it is called again, and its model in 8 bits reads most digits."""
    example = str(ROOT / "examples/digits_to_phone.py")
    stoker(tmp_path, "run", example, "--steps", "100")
    assert (tmp_path / "digits/training/model.ckpt-100.index").exists()
    line = stoker(tmp_path, "run", example, "--steps", "400")
    found = re.search(r"accuracy (\S+) on", line)
    assert found and float(found[1]) > 0.85
    assert not (tmp_path / "digits/training/model.ckpt-101.index").exists()


def test_replicas_have_the_losses_of_one_process(tmp_path):
    """The example prints the same losses with two workers as with one, and goes on from the checkpoint of two with one."""
    example = str(ROOT / "examples/replicas.py")
    alone = stoker(tmp_path, "run", example, "--steps", "40")
    together = stoker(tmp_path, "launch", "--workers", "2", example, "--steps", "40", "--checkpoints", "saved")
    assert "step    4" in alone
    assert together == alone
    later = stoker(tmp_path, "run", example, "--steps", "50", "--checkpoints", "saved")
    assert re.findall(r"step +(\d+)", later) == ["40", "45"]
