"""The package's version, and the TensorFlow versions of its API."""

import platform

VERSION = "0.1.0"
API_VERSION_1 = "1.15.5"
API_VERSION_2 = "2.21.0"
GIT_VERSION = f"stoker-{VERSION}"
COMPILER_VERSION = platform.python_compiler()
GRAPH_DEF_VERSION_1 = 134
GRAPH_DEF_VERSION_2 = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
# There is no C++ library to compile against.
CXX11_ABI_FLAG = 0
CXX_VERSION = 0
MONOLITHIC_BUILD = 0
