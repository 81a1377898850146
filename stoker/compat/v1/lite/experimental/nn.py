"""Public names of tf.lite.experimental.nn."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.lite.rnn import dynamic_rnn as dynamic_rnn
from stoker._src.lite.rnn import TFLiteLSTMCell as TFLiteLSTMCell
from stoker._src.lite.rnn import TfLiteRNNCell as TfLiteRNNCell
