"""Public names of tf.autograph.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.runtime.autograph.public import do_not_convert as do_not_convert
from stoker._src.runtime.autograph.public import Feature as Feature
from stoker._src.runtime.autograph.public import set_loop_options as set_loop_options
