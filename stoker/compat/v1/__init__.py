"""The 1.x names. Importing this module by name chooses 1.x behaviour: graphs and sessions."""

# Written by scripts/api_gen.py.
# fmt: off
from typing import TYPE_CHECKING

from stoker._src.base.first_use import names_on_first_use

if TYPE_CHECKING:
    from stoker.compat.v1._names import *

__getattr__, __dir__ = names_on_first_use(__name__)
from stoker._src.graph.behavior import entered_v1

entered_v1()
