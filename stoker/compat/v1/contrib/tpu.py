"""Public names of tf.contrib.tpu."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.estimator.tpu import bfloat16_scope as bfloat16_scope
from stoker._src.estimator.tpu import cross_replica_sum as cross_replica_sum
from stoker._src.estimator.tpu import CrossShardOptimizer as CrossShardOptimizer
from stoker._src.estimator.tpu import InputPipelineConfig as InputPipelineConfig
from stoker._src.estimator.tpu import TPUConfig as TPUConfig
from stoker._src.estimator.tpu import TPUEstimator as TPUEstimator
from stoker._src.estimator.tpu import TPUEstimatorSpec as TPUEstimatorSpec
from stoker._src.estimator.tpu import TPURunConfig as RunConfig
