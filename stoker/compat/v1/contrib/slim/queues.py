"""Public names of tf.contrib.slim.queues."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.tools import NestedQueueRunnerError as NestedQueueRunnerError
from stoker._src.contrib.slim.tools import QueueRunners as QueueRunners
