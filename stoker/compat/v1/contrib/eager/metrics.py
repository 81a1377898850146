"""Public names of tf.contrib.eager.metrics."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.eager_metrics import Accuracy as Accuracy
from stoker._src.contrib.eager_metrics import BinaryAccuracy as BinaryAccuracy
from stoker._src.contrib.eager_metrics import CategoricalAccuracy as CategoricalAccuracy
from stoker._src.contrib.eager_metrics import Mean as Mean
from stoker._src.contrib.eager_metrics import Metric as Metric
from stoker._src.contrib.eager_metrics import SparseAccuracy as SparseAccuracy
