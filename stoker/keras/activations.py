"""Public names of tf.keras.activations."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.activations import deserialize as deserialize
from stoker._src.keras.activations import elu as elu
from stoker._src.keras.activations import exponential as exponential
from stoker._src.keras.activations import gelu as gelu
from stoker._src.keras.activations import get as get
from stoker._src.keras.activations import hard_sigmoid as hard_sigmoid
from stoker._src.keras.activations import mish as mish
from stoker._src.keras.activations import relu as relu
from stoker._src.keras.activations import selu as selu
from stoker._src.keras.activations import serialize as serialize
from stoker._src.keras.activations import sigmoid as sigmoid
from stoker._src.keras.activations import softmax as softmax
from stoker._src.keras.activations import softplus as softplus
from stoker._src.keras.activations import softsign as softsign
from stoker._src.keras.activations import swish as swish
from stoker._src.keras.activations import tanh as tanh
from stoker._src.layers.base import linear as linear
