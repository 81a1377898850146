"""Public names of tf.contrib.data."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.data import batch_and_drop_remainder as batch_and_drop_remainder
from stoker._src.contrib.data import padded_batch_and_drop_remainder as padded_batch_and_drop_remainder
from stoker._src.data.experimental import bucket_by_sequence_length as bucket_by_sequence_length
from stoker._src.data.experimental import choose_from_datasets as choose_from_datasets
from stoker._src.data.experimental import counter as Counter
from stoker._src.data.experimental import enumerate_dataset as enumerate_dataset
from stoker._src.data.experimental import get_single_element as get_single_element
from stoker._src.data.experimental import group_by_window as group_by_window
from stoker._src.data.experimental import ignore_errors as ignore_errors
from stoker._src.data.experimental import make_batched_features_dataset as make_batched_features_dataset
from stoker._src.data.experimental import map_and_batch as map_and_batch
from stoker._src.data.experimental import parallel_interleave as parallel_interleave
from stoker._src.data.experimental import prefetch_to_device as prefetch_to_device
from stoker._src.data.experimental import sample_from_datasets as sample_from_datasets
from stoker._src.data.experimental import scan as scan
from stoker._src.data.experimental import shuffle_and_repeat as shuffle_and_repeat
from stoker._src.data.experimental import unbatch as unbatch
from stoker._src.data.experimental import unique as unique
