"""Everything behind the public names. Importing it defines every op."""

import gc
import importlib


def _load() -> None:
    """Imports torch and the ops with the cycle collector at rest.

    The hundreds of thousands of objects they make live as long as the process, and searching them for garbage again and again
    takes a third of the time to import them. They are set aside (`gc.freeze`), so later collections do not search them either.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module("torch")
        importlib.import_module("stoker._src.ops")
    finally:
        if collecting:
            gc.freeze()
            gc.enable()


_load()
