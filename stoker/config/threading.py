"""Public names of tf.config.threading."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.runtime.device_config import get_inter_op_parallelism_threads as get_inter_op_parallelism_threads
from stoker._src.runtime.device_config import get_intra_op_parallelism_threads as get_intra_op_parallelism_threads
from stoker._src.runtime.device_config import set_inter_op_parallelism_threads as set_inter_op_parallelism_threads
from stoker._src.runtime.device_config import set_intra_op_parallelism_threads as set_intra_op_parallelism_threads
