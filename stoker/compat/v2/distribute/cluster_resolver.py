"""Public names of tf.distribute.cluster_resolver."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.distribute.cluster_resolver import ClusterResolver as ClusterResolver
from stoker._src.distribute.cluster_resolver import SimpleClusterResolver as SimpleClusterResolver
from stoker._src.distribute.cluster_resolver import TFConfigClusterResolver as TFConfigClusterResolver
from stoker._src.distribute.cluster_resolver import TPUClusterResolver as TPUClusterResolver
