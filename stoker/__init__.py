"""stoker: TensorFlow's training stack on PyTorch, under the 2.x names. The 1.x names are in `stoker.compat.v1`."""

# Written by scripts/api_gen.py.
# fmt: off
from typing import TYPE_CHECKING

from stoker._src.base.first_use import names_on_first_use

if TYPE_CHECKING:
    from stoker._names import *

__getattr__, __dir__ = names_on_first_use(__name__)
