"""Op definitions by family. Importing this package defines every op; it knows no Session."""

import importlib
import pkgutil


def _load() -> None:
    """Imports the modules of this package: defining an op is a side effect of importing its module."""
    for module in pkgutil.walk_packages(__path__, __name__ + "."):
        if ".native" not in module.name:
            importlib.import_module(module.name)


_load()
