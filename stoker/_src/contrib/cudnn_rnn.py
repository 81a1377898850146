"""`tf.contrib.cudnn_rnn`: cells that run networks trained with cuDNN."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.contrib.rnn.blocks import LSTMBlockCell
from stoker._src.layers.rnn_cells import GRUCell
from stoker._src.ops.array import joining
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import unary_functions
from stoker._src.ops.nn import bias as biases
from stoker._src.ops.variables import initializers


@export(v1="contrib.cudnn_rnn.CudnnCompatibleLSTMCell")
class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """The LSTM of cuDNN: an `LSTMBlockCell` without a forget bias, clipping or peepholes."""

    def __init__(self, num_units: int, reuse: Any = None) -> None:
        super().__init__(num_units, forget_bias=0, reuse=reuse, name="cudnn_compatible_lstm_cell")


@export(v1="contrib.cudnn_rnn.CudnnCompatibleGRUCell")
class CudnnCompatibleGRUCell(GRUCell):
    """The GRU of cuDNN, which resets the product with the state instead of the state: c = tanh(W x + b + r * (R h + b'))."""

    def __init__(self, num_units: int, reuse: Any = None, kernel_initializer: Any = None) -> None:
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)

    def build(self, input_shape: Any) -> None:
        size, units = self._input_size(input_shape), self._num_units
        kernel = self._kernel_initializer
        ones = initializers.Constant(1.0, dtype=self._variable_dtype)
        zeros = initializers.Zeros(self._variable_dtype)
        self._gate_kernel = self.add_weight("gates/kernel", [size + units, 2 * units], initializer=kernel)
        self._gate_bias = self.add_weight("gates/bias", [2 * units], initializer=ones)
        into, hidden = "candidate/input_projection", "candidate/hidden_projection"
        self._input_kernel = self.add_weight(f"{into}/kernel", [size, units], initializer=kernel)
        self._hidden_kernel = self.add_weight(f"{hidden}/kernel", [units, units], initializer=kernel)
        self._input_bias = self.add_weight(f"{into}/bias", [units], initializer=zeros)
        self._hidden_bias = self.add_weight(f"{hidden}/bias", [units], initializer=zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        gates = matrix_products.matmul(joining.concat([inputs, state], 1), self._gate_kernel)
        r, u = joining.split(unary_functions.sigmoid(biases.bias_add(gates, self._gate_bias)), 2, 1)
        from_inputs = biases.bias_add(matrix_products.matmul(inputs, self._input_kernel), self._input_bias)
        from_state = biases.bias_add(matrix_products.matmul(state, self._hidden_kernel), self._hidden_bias)
        candidate = unary_functions.tanh(from_inputs + r * from_state)
        new = u * state + (1 - u) * candidate
        return new, new
