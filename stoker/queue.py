"""Public names of tf.queue."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.resources.queues import FIFOQueue as FIFOQueue
from stoker._src.ops.resources.queues import PaddingFIFOQueue as PaddingFIFOQueue
from stoker._src.ops.resources.queues import PriorityQueue as PriorityQueue
from stoker._src.ops.resources.queues import QueueBase as QueueBase
from stoker._src.ops.resources.queues import RandomShuffleQueue as RandomShuffleQueue
