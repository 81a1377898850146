"""Public names of tf.estimator.tpu."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.estimator.tpu import InputPipelineConfig as InputPipelineConfig
from stoker._src.estimator.tpu import TPUConfig as TPUConfig
from stoker._src.estimator.tpu import TPUEstimator as TPUEstimator
from stoker._src.estimator.tpu import TPUEstimatorSpec as TPUEstimatorSpec
from stoker._src.estimator.tpu import TPURunConfig as RunConfig
