"""Public names of tf.nn.experimental."""

from stoker._src.ops.nn.dropout import general_dropout as general_dropout
from stoker._src.ops.nn.dropout import stateless_dropout as stateless_dropout
