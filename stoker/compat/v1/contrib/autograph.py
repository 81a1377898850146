"""Public names of tf.contrib.autograph."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.runtime.autograph.public import do_not_convert as do_not_convert
from stoker._src.runtime.autograph.public import Feature as Feature
from stoker._src.runtime.autograph.public import set_loop_options as set_loop_options
from stoker._src.runtime.autograph.public import to_code_v1 as to_code
from stoker._src.runtime.autograph.public import to_graph_v1 as to_graph
