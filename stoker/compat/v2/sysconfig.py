"""Public names of tf.sysconfig."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.base.app import get_compile_flags as get_compile_flags
from stoker._src.base.app import get_include as get_include
from stoker._src.base.app import get_lib as get_lib
from stoker._src.base.app import get_link_flags as get_link_flags
from stoker._src.base.version import CXX11_ABI_FLAG as CXX11_ABI_FLAG
from stoker._src.base.version import CXX_VERSION as CXX_VERSION
from stoker._src.base.version import MONOLITHIC_BUILD as MONOLITHIC_BUILD
