"""Public names of tf.keras."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.keras import activations as activations
from stoker.compat.v1.keras import backend as backend
from stoker.compat.v1.keras import callbacks as callbacks
from stoker.compat.v1.keras import constraints as constraints
from stoker.compat.v1.keras import datasets as datasets
from stoker.compat.v1.keras import experimental as experimental
from stoker.compat.v1.keras import initializers as initializers
from stoker.compat.v1.keras import layers as layers
from stoker.compat.v1.keras import losses as losses
from stoker.compat.v1.keras import metrics as metrics
from stoker.compat.v1.keras import models as models
from stoker.compat.v1.keras import optimizers as optimizers
from stoker.compat.v1.keras import preprocessing as preprocessing
from stoker.compat.v1.keras import regularizers as regularizers
from stoker.compat.v1.keras import utils as utils
from stoker._src.keras.model import Model as Model
from stoker._src.keras.model import Sequential as Sequential
from stoker._src.keras.network import Input as Input
