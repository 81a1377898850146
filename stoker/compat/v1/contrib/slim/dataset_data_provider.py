"""Public names of tf.contrib.slim.dataset_data_provider."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.reading import DatasetDataProvider as DatasetDataProvider
