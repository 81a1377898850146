"""Public names of tf.distribute.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.distribute.strategies import CentralStorageStrategy as CentralStorageStrategy
from stoker._src.distribute.strategies import CollectiveCommunication as CollectiveCommunication
from stoker._src.distribute.strategies import CollectiveCommunication as CommunicationImplementation
from stoker._src.distribute.strategies import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
