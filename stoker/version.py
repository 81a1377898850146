"""Public names of tf.version."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.base.version import API_VERSION_2 as VERSION
from stoker._src.base.version import COMPILER_VERSION as COMPILER_VERSION
from stoker._src.base.version import GIT_VERSION as GIT_VERSION
from stoker._src.base.version import GRAPH_DEF_VERSION_2 as GRAPH_DEF_VERSION
from stoker._src.base.version import GRAPH_DEF_VERSION_MIN_CONSUMER as GRAPH_DEF_VERSION_MIN_CONSUMER
from stoker._src.base.version import GRAPH_DEF_VERSION_MIN_PRODUCER as GRAPH_DEF_VERSION_MIN_PRODUCER
