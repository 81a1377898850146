"""Public names of tf.tpu."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.estimator.tpu import bfloat16_scope as bfloat16_scope
from stoker._src.estimator.tpu import cross_replica_sum as cross_replica_sum
from stoker._src.estimator.tpu import CrossShardOptimizer as CrossShardOptimizer
