"""Public names of tf.keras.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.feature_column.layers import SequenceFeatures as SequenceFeatures
from stoker._src.keras.saved_models import export_saved_model as export_saved_model
from stoker._src.keras.saved_models import load_from_saved_model as load_from_saved_model
from stoker._src.keras.schedules import CosineDecay as CosineDecay
