"""Public names of tf.contrib.stateless."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.random.stateless_random import stateless_multinomial as stateless_multinomial
from stoker._src.ops.random.stateless_random import stateless_normal as stateless_random_normal
from stoker._src.ops.random.stateless_random import stateless_truncated_normal as stateless_truncated_normal
from stoker._src.ops.random.stateless_random import stateless_uniform as stateless_random_uniform
