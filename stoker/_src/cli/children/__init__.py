"""Processes that a program starts under `stoker run` get stoker as `tensorflow` too.

Children of `multiprocessing` are given this process's `sys.path`, others its `PYTHONPATH`: both have the folder `path`, where
`import tensorflow` finds a package that puts stoker in its own place. Processes of another Python environment may have
TensorFlow itself, or no stoker: there the package steps aside.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

API = "STOKER_RUN_API"
ENVIRONMENT = "STOKER_RUN_ENVIRONMENT"
_FOLDER = str(Path(__file__).resolve().parent / "path")


def prepare(api: str) -> None:
    """Sets up what child processes inherit."""
    os.environ[API] = api
    os.environ[ENVIRONMENT] = sys.prefix
    listed = os.environ.get("PYTHONPATH", "")
    if _FOLDER not in listed.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{_FOLDER}{os.pathsep}{listed}" if listed else _FOLDER
    if _FOLDER not in sys.path:
        sys.path.append(_FOLDER)
