"""Public names of tf.contrib.slim.prefetch_queue."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.reading import prefetch_queue as prefetch_queue
