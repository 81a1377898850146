"""Runs programs as `python -m stoker run PROGRAM --logdir DIRECTORY` does, one after the other: python run_training.py DIRECTORY PROGRAM...

What PROGRAM prints goes to DIRECTORY/NAME.out, its log to DIRECTORY/NAME.err, and its files to DIRECTORY/NAME. Each program has a process of its
own, which is forked from one that has loaded stoker: that saves most of the time of short programs.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path

import stoker.compat.v1 as tf
from stoker._src.cli.main import main


def run(path: Path, directory: Path) -> None:
    """Runs a program in this process, with its streams in files."""
    for stream, ending in ((1, ".out"), (2, ".err")):
        file = os.open(directory / (path.stem + ending), os.O_WRONLY | os.O_CREAT)
        os.dup2(file, stream)
    main(["run", str(path), "--logdir", str(directory / path.stem)])


def child(path: Path, directory: Path) -> int:
    """Runs a program in a process of its own. Returns its exit status."""
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    status = 1
    try:
        run(path, directory)
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_all(directory: str, programs: list[str]) -> int:
    """Returns how many of the programs failed."""
    assert tf.no_op  # loads the ops
    return sum(child(Path(program), Path(directory)) != 0 for program in programs)


if __name__ == "__main__":
    # A program takes the place of __main__, which is cleared: another copy of this module starts it.
    sys.exit(importlib.import_module("tests.scripts.run_training").run_all(sys.argv[1], sys.argv[2:]))
