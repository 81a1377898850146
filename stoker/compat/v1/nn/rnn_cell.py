"""Public names of tf.nn.rnn_cell."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.layers.rnn_cells import BasicLSTMCell as BasicLSTMCell
from stoker._src.layers.rnn_cells import BasicRNNCell as BasicRNNCell
from stoker._src.layers.rnn_cells import GRUCell as GRUCell
from stoker._src.layers.rnn_cells import LSTMCell as LSTMCell
from stoker._src.layers.rnn_cells import LSTMStateTuple as LSTMStateTuple
from stoker._src.layers.rnn_cells import MultiRNNCell as MultiRNNCell
from stoker._src.layers.rnn_cells import RNNCell as RNNCell
from stoker._src.layers.rnn_wrappers import DeviceWrapper as DeviceWrapper
from stoker._src.layers.rnn_wrappers import DropoutWrapper as DropoutWrapper
from stoker._src.layers.rnn_wrappers import ResidualWrapper as ResidualWrapper
