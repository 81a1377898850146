"""Public names of tf.lite."""

# Written by scripts/api_gen.py.
# fmt: off
from typing import TYPE_CHECKING

from stoker._src.base.first_use import names_on_first_use

if TYPE_CHECKING:
    from stoker.compat.v1.lite._names import *

__getattr__, __dir__ = names_on_first_use(__name__)
