"""How a command describes itself in `--help`."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any


def add_command(
    commands: Any, name: str, help: str, description: str, examples: Sequence[str]
) -> argparse.ArgumentParser:
    """Adds the parser of a command.

    Args:
        commands: what `add_subparsers` returned.
        name: the command.
        help: a line for the list of commands.
        description: what the command does.
        examples: what may stand behind `stoker NAME`, shown with a line for each.
    """
    width = min(shutil.get_terminal_size().columns, 120) - 2
    return commands.add_parser(
        name,
        help=help,
        description=textwrap.fill(description, width),
        epilog="\n".join(["examples:", *(f"  stoker {name} {each}" for each in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
