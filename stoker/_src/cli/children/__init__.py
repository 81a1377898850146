"""Makes processes that a program starts under `stoker run` import stoker as `tensorflow` too.

Children of `multiprocessing` inherit this process's `sys.path`, other children its `PYTHONPATH`. Both contain the folder `path`,
where `import tensorflow` finds a package that replaces itself with stoker. Processes of another Python environment may have
TensorFlow itself, or no stoker. The package then steps aside.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

API = "STOKER_RUN_API"
ENVIRONMENT = "STOKER_RUN_ENVIRONMENT"
_FOLDER = str(Path(__file__).resolve().parent / "path")


def prepare(api: str) -> None:
    """Sets up the paths that child processes inherit."""
    os.environ[API] = api
    os.environ[ENVIRONMENT] = sys.prefix
    listed = os.environ.get("PYTHONPATH", "")
    if _FOLDER not in listed.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{_FOLDER}{os.pathsep}{listed}" if listed else _FOLDER
    if _FOLDER not in sys.path:
        sys.path.append(_FOLDER)
