"""Public names of tf.random.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.random.index_shuffle import index_shuffle as index_shuffle
from stoker._src.ops.random.stateless_random import Algorithm as Algorithm
from stoker._src.ops.random.stateless_random import fold_in as stateless_fold_in
from stoker._src.ops.random.stateless_random import split as stateless_split
from stoker._src.ops.random.stateless_random import stateless_shuffle as stateless_shuffle
from stoker._src.ops.variables.random_generator import create_rng_state as create_rng_state
from stoker._src.ops.variables.random_generator import Generator as Generator
from stoker._src.ops.variables.random_generator import get_global_generator as get_global_generator
from stoker._src.ops.variables.random_generator import set_global_generator as set_global_generator
