"""Public names of tf.data."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.data import experimental as experimental
from stoker._src.data.dataset import AUTOTUNE as AUTOTUNE
from stoker._src.data.dataset import DatasetSpec as DatasetSpec
from stoker._src.data.dataset import DatasetV1 as Dataset
from stoker._src.data.dataset import get_output_classes as get_output_classes
from stoker._src.data.dataset import get_output_shapes as get_output_shapes
from stoker._src.data.dataset import get_output_types as get_output_types
from stoker._src.data.dataset import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from stoker._src.data.dataset import make_initializable_iterator as make_initializable_iterator
from stoker._src.data.dataset import make_one_shot_iterator as make_one_shot_iterator
from stoker._src.data.dataset import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
from stoker._src.data.iterators import Iterator as Iterator
from stoker._src.data.options import Options as Options
from stoker._src.data.readers import FixedLengthRecordDatasetV1 as FixedLengthRecordDataset
from stoker._src.data.readers import TextLineDatasetV1 as TextLineDataset
from stoker._src.data.readers import TFRecordDatasetV1 as TFRecordDataset
