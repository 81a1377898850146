"""Public names of tf.contrib.slim.parallel_reader."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.reading import get_data_files as get_data_files
from stoker._src.contrib.slim.reading import parallel_read as parallel_read
from stoker._src.contrib.slim.reading import ParallelReader as ParallelReader
from stoker._src.contrib.slim.reading import single_pass_read as single_pass_read
