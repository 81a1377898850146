"""Public names of tf.contrib.cudnn_rnn."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.cudnn_rnn import CudnnCompatibleGRUCell as CudnnCompatibleGRUCell
from stoker._src.contrib.cudnn_rnn import CudnnCompatibleLSTMCell as CudnnCompatibleLSTMCell
