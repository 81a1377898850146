"""Public names of tf.keras."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.keras import activations as activations
from stoker.keras import backend as backend
from stoker.keras import callbacks as callbacks
from stoker.keras import constraints as constraints
from stoker.keras import datasets as datasets
from stoker.keras import experimental as experimental
from stoker.keras import initializers as initializers
from stoker.keras import layers as layers
from stoker.keras import losses as losses
from stoker.keras import metrics as metrics
from stoker.keras import models as models
from stoker.keras import optimizers as optimizers
from stoker.keras import preprocessing as preprocessing
from stoker.keras import regularizers as regularizers
from stoker.keras import utils as utils
from stoker._src.keras.base import Layer as Layer
from stoker._src.keras.model import Model as Model
from stoker._src.keras.model import Sequential as Sequential
from stoker._src.keras.network import Input as Input
