"""Public names of tf.estimator."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.feature_column.parse_spec import classifier_parse_example_spec as classifier_parse_example_spec
from stoker._src.feature_column.parse_spec import regressor_parse_example_spec as regressor_parse_example_spec
