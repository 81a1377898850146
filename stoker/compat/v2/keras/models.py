"""Public names of tf.keras.models."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.model import Model as Model
from stoker._src.keras.model import Sequential as Sequential
from stoker._src.keras.saving import clone_model as clone_model
from stoker._src.keras.saving import load_model as load_model
from stoker._src.keras.saving import model_from_config as model_from_config
from stoker._src.keras.saving import model_from_json as model_from_json
from stoker._src.keras.saving import save_model as save_model
