"""Public names of tf.queue."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.queues import FIFOQueue as FIFOQueue
from stoker._src.ops.queues import PaddingFIFOQueue as PaddingFIFOQueue
from stoker._src.ops.queues import PriorityQueue as PriorityQueue
from stoker._src.ops.queues import QueueBase as QueueBase
from stoker._src.ops.queues import RandomShuffleQueue as RandomShuffleQueue
