"""Public names of tf.nn.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.nn.dropout import general_dropout as general_dropout
from stoker._src.ops.nn.dropout import stateless_dropout as stateless_dropout
