"""Public names of tf.contrib.distribute."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.distribute import DistributeConfig as DistributeConfig
from stoker._src.distribute.contexts import has_strategy as has_distribution_strategy
from stoker._src.distribute.contexts import has_strategy as has_strategy
from stoker._src.distribute.contexts import in_cross_replica_context as in_cross_replica_context
from stoker._src.distribute.contexts import ReplicaContext as ReplicaContext
from stoker._src.distribute.strategies import CrossDeviceOps as CrossDeviceOps
from stoker._src.distribute.strategies import MirroredStrategy as MirroredStrategy
from stoker._src.distribute.strategies import OneDeviceStrategy as OneDeviceStrategy
from stoker._src.distribute.strategy import get_loss_reduction as get_loss_reduction
from stoker._src.distribute.strategy import get_replica_context as get_replica_context
from stoker._src.distribute.strategy import get_strategy as get_distribution_strategy
from stoker._src.distribute.strategy import get_strategy as get_strategy
from stoker._src.distribute.strategy import Strategy as DistributionStrategy
