"""The command line: `run` a TensorFlow program, `launch` it in several processes, `inspect` a file, `convert` between formats, show or
run a SavedModel.
"""

from __future__ import annotations

import argparse
import os
import sys

from stoker._src.base.version import VERSION
from stoker._src.cli import convert, inspect, launch, run, saved_model

_COMMANDS = (run, launch, inspect, convert, saved_model)


def main(argv: list[str] | None = None) -> int:
    """Runs a command and returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="stoker",
        description="TensorFlow's training stack on PyTorch: runs TensorFlow 1 programs unmodified.",
    )
    parser.add_argument("--version", action="version", version=f"stoker {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    args = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if args.command == "run":
        return args.execute(args)  # exceptions of the program pass through
    try:
        return args.execute(args)
    except BrokenPipeError:  # the reader closed the pipe, for example `| head`
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # prevents a second error when Python flushes at exit
        return 1
