"""Public names of tf.train.queue_runner."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.train.input.queue_runner import add_queue_runner as add_queue_runner
from stoker._src.train.input.queue_runner import QueueRunner as QueueRunner
from stoker._src.train.input.queue_runner import start_queue_runners as start_queue_runners
