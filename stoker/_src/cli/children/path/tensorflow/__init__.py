"""`import tensorflow` in a process that was started by a program under `stoker run`.

In that program's environment, stoker replaces this package. In another Python environment, of any version, the import finds whatever it would
find without this package.
"""

import importlib
import os
import sys

_PATH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ROOT = os.path.abspath(os.path.join(_PATH, *[os.pardir] * 5))

_self = sys.modules.pop("tensorflow")  # keeps the module alive while this code runs
if os.environ.get("STOKER_RUN_ENVIRONMENT") == sys.prefix:
    try:
        _redirect = importlib.import_module("stoker._src.cli.redirect")
    except ImportError:  # stoker was run from its source folder, without being installed
        sys.path.append(_ROOT)
        _redirect = importlib.import_module("stoker._src.cli.redirect")
    _redirect.install(os.environ.get("STOKER_RUN_API", "v1"))
else:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _PATH]
importlib.import_module("tensorflow")
