"""Public names of tf.autograph."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.autograph import experimental as experimental
from stoker._src.runtime.autograph.public import set_verbosity as set_verbosity
from stoker._src.runtime.autograph.public import to_code_v1 as to_code
from stoker._src.runtime.autograph.public import to_graph_v1 as to_graph
from stoker._src.runtime.autograph.public import trace as trace
