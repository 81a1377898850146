"""Removes temporary files that a killed program left behind while it saved a checkpoint. Nothing reads them."""

from __future__ import annotations

import re
import time
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.errors import OpError
from stoker._src.formats import gfile

_PROGRAM_STARTED = time.time()


def remove_leftovers(directory: Any, basename: str) -> None:
    """Removes temporary files of checkpoints called `basename`, of the `checkpoint` file and of the graph, that are older than this program.

    Younger ones may belong to a program that is saving now. What cannot be removed stays.
    """
    names = "|".join((re.escape(basename), "checkpoint", r"graph\.pbtxt"))
    temporary = re.compile(
        rf"\.(?:{names})[^/]*\.[0-9a-f]{{16}}\.tmp|{re.escape(basename)}(?:-\d+)?_temp(?:_[0-9a-f]+)?"
    )
    if not gfile.isdir(directory):
        return
    for name in gfile.listdir(directory):
        name = name.rstrip("/")
        if not temporary.fullmatch(name):
            continue
        path = gfile.join(directory, name)
        try:
            status = gfile.stat(path)
            if status.mtime_nsec / 1e9 < _PROGRAM_STARTED:
                gfile.rmtree(path) if gfile.isdir(path) else gfile.remove(path)
                tf_logging.info("Removed %s, which a program left that was ended while it saved.", path)
        except OpError as error:
            tf_logging.warning("Could not remove the temporary file %s: %s", path, error)
