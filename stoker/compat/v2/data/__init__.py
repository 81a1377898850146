"""Public names of tf.data."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.data import experimental as experimental
from stoker._src.data.dataset import AUTOTUNE as AUTOTUNE
from stoker._src.data.dataset import Dataset as Dataset
from stoker._src.data.dataset import DatasetSpec as DatasetSpec
from stoker._src.data.dataset import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from stoker._src.data.dataset import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
from stoker._src.data.options import Options as Options
from stoker._src.data.readers import FixedLengthRecordDataset as FixedLengthRecordDataset
from stoker._src.data.readers import TextLineDataset as TextLineDataset
from stoker._src.data.readers import TFRecordDataset as TFRecordDataset
