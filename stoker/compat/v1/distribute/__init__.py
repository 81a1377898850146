"""Public names of tf.distribute."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.distribute import cluster_resolver as cluster_resolver
from stoker.compat.v1.distribute import experimental as experimental
from stoker._src.distribute.contexts import has_strategy as has_strategy
from stoker._src.distribute.contexts import in_cross_replica_context as in_cross_replica_context
from stoker._src.distribute.contexts import InputContext as InputContext
from stoker._src.distribute.contexts import InputReplicationMode as InputReplicationMode
from stoker._src.distribute.contexts import ReduceOp as ReduceOp
from stoker._src.distribute.contexts import ReplicaContext as ReplicaContext
from stoker._src.distribute.strategies import CrossDeviceOps as CrossDeviceOps
from stoker._src.distribute.strategies import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from stoker._src.distribute.strategies import MirroredStrategy as MirroredStrategy
from stoker._src.distribute.strategies import NcclAllReduce as NcclAllReduce
from stoker._src.distribute.strategies import OneDeviceStrategy as OneDeviceStrategy
from stoker._src.distribute.strategies import ReductionToOneDevice as ReductionToOneDevice
from stoker._src.distribute.strategy import experimental_set_strategy as experimental_set_strategy
from stoker._src.distribute.strategy import get_loss_reduction as get_loss_reduction
from stoker._src.distribute.strategy import get_replica_context as get_replica_context
from stoker._src.distribute.strategy import get_strategy as get_strategy
from stoker._src.distribute.strategy import Strategy as Strategy
from stoker._src.distribute.strategy import StrategyExtended as StrategyExtended
from stoker._src.distributed.server import Server as Server
from stoker._src.ops.collective.groups import rank as rank
from stoker._src.ops.collective.groups import size as size
from stoker._src.train.optimizers.replicated import broadcast_variables as broadcast_variables
from stoker._src.train.optimizers.replicated import BroadcastHook as BroadcastHook
from stoker._src.train.optimizers.replicated import wrap as wrap
