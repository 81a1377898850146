"""`import tensorflow` in a process that a program under `stoker run` started: stoker takes its place."""

import importlib
import os
import sys

_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))
try:
    _redirect = importlib.import_module("stoker._src.cli.redirect")
except ModuleNotFoundError:  # stoker was run from its folder, without being installed
    sys.path.append(_ROOT)
    _redirect = importlib.import_module("stoker._src.cli.redirect")

del sys.modules["tensorflow"]
_redirect.install(os.environ.get("STOKER_RUN_API", "v1"))
importlib.import_module("tensorflow")
