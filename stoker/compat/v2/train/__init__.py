"""Public names of tf.train."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.train import experimental as experimental
from stoker._src.distributed.cluster_spec import ClusterSpec as ClusterSpec
from stoker._src.formats.protos import BytesList as BytesList
from stoker._src.formats.protos import ClusterDef as ClusterDef
from stoker._src.formats.protos import Example as Example
from stoker._src.formats.protos import Feature as Feature
from stoker._src.formats.protos import FeatureList as FeatureList
from stoker._src.formats.protos import FeatureLists as FeatureLists
from stoker._src.formats.protos import Features as Features
from stoker._src.formats.protos import FloatList as FloatList
from stoker._src.formats.protos import Int64List as Int64List
from stoker._src.formats.protos import JobDef as JobDef
from stoker._src.formats.protos import SequenceExample as SequenceExample
from stoker._src.formats.protos import ServerDef as ServerDef
from stoker._src.train.checkpoints.checkpoint import Checkpoint as Checkpoint
from stoker._src.train.checkpoints.manager import CheckpointManager as CheckpointManager
from stoker._src.train.checkpoints.options import CheckpointOptions as CheckpointOptions
from stoker._src.train.checkpoints.reader import list_variables as list_variables
from stoker._src.train.checkpoints.reader import load_checkpoint as load_checkpoint
from stoker._src.train.checkpoints.reader import load_variable as load_variable
from stoker._src.train.checkpoints.state import checkpoints_iterator as checkpoints_iterator
from stoker._src.train.checkpoints.state import get_checkpoint_state as get_checkpoint_state
from stoker._src.train.checkpoints.state import latest_checkpoint as latest_checkpoint
from stoker._src.train.input.coordinator import Coordinator as Coordinator
from stoker._src.train.optimizers.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
