"""Public names of tf.__internal__.feature_column."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.feature_column.base import DenseColumn as DenseColumn
from stoker._src.feature_column.base import FeatureColumn as FeatureColumn
from stoker._src.feature_column.base import SequenceDenseColumn as SequenceDenseColumn
from stoker._src.feature_column.base import StateManager as StateManager
from stoker._src.feature_column.transformation import FeatureTransformationCache as FeatureTransformationCache
