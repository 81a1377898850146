"""Public names of tf.distribute."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.collective.groups import rank as rank
from stoker._src.ops.collective.groups import size as size
from stoker._src.train.optimizers.replicated import broadcast_variables as broadcast_variables
from stoker._src.train.optimizers.replicated import BroadcastHook as BroadcastHook
from stoker._src.train.optimizers.replicated import wrap as wrap
