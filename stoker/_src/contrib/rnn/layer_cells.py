"""Cells whose variables belong to their layer: NAS, SRU, and cells of independent neurons."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.layers.rnn_cells import LayerRNNCell, LSTMStateTuple, UnitsCell
from stoker._src.ops.array import joining
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import unary_functions
from stoker._src.ops.nn import activations
from stoker._src.ops.nn import bias as biases
from stoker._src.ops.variables import initializers


@export(v1="contrib.rnn.NASCell")
class NASCell(LayerRNNCell):
    """The cell found by neural architecture search (Zoph and Le, 2016, figure 8).

    Variables: `recurrent_kernel`, `kernel`, `bias` if `use_bias`, `projection_weights` if `num_proj`.
    """

    def __init__(
        self, num_units: int, num_proj: int | None = None, use_bias: bool = False, reuse: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units, self._num_proj, self._use_bias = num_units, num_proj, use_bias

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def build(self, input_shape: Any) -> None:
        size, units = self._input_size(input_shape), self._num_units
        self._recurrent = self.add_weight("recurrent_kernel", [self.output_size, 8 * units])
        self._kernel = self.add_weight("kernel", [size, 8 * units])
        if self._use_bias:
            self._bias = self.add_weight("bias", [8 * units], initializer=initializers.Zeros(self._variable_dtype))
        if self._num_proj is not None:
            self._projection = self.add_weight("projection_weights", [units, self._num_proj])
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        sigmoid, tanh, relu = unary_functions.sigmoid, unary_functions.tanh, activations.relu
        from_h = matrix_products.matmul(h, self._recurrent)
        if self._use_bias:
            from_h = biases.bias_add(from_h, self._bias)
        a = joining.split(matrix_products.matmul(inputs, self._kernel), 8, 1)
        b = joining.split(from_h, 8, 1)
        # The tree of the paper: eight leaves, four nodes above them, then the memory joins at the left.
        first = tanh(sigmoid(a[0] + b[0]) * relu(a[1] + b[1]))
        second = tanh(sigmoid(a[2] + b[2]) + relu(a[3] * b[3]))
        third = tanh(tanh(a[4] + b[4]) * sigmoid(a[5] + b[5]))
        fourth = sigmoid(tanh(a[6] + b[6]) + sigmoid(a[7] + b[7]))
        new_c = tanh(first + c) * second
        new_h = tanh(new_c * tanh(third + fourth))
        if self._num_proj is not None:
            new_h = matrix_products.matmul(new_h, self._projection)
        return new_h, LSTMStateTuple(new_c, new_h)


class _UnitsCell(UnitsCell):
    """A cell with one state, which is also its output."""

    def _zeros(self) -> Any:
        return initializers.Zeros(self._variable_dtype)


@export(v1="contrib.rnn.SRUCell")
class SRUCell(_UnitsCell):
    """The simple recurrent unit (Lei et al., 2017): c = f * c + (1 - f) * x_bar;  output = r * activation(c) + (1 - r) * x."""

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(num_units, activation, reuse, name, **kwargs)

    def build(self, input_shape: Any) -> None:
        size = self._input_size(input_shape)
        self._kernel = self.add_weight("kernel", [size, 4 * self._num_units])
        self._bias = self.add_weight("bias", [2 * self._num_units], initializer=self._zeros())
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        candidate, f, r, highway = joining.split(matrix_products.matmul(inputs, self._kernel), 4, 1)
        gates = unary_functions.sigmoid(biases.bias_add(joining.concat([f, r], 1), self._bias))
        f, r = joining.split(gates, 2, 1)
        c = f * state + (1 - f) * candidate
        return r * self._activation(c) + (1 - r) * highway, c


@export(v1="contrib.rnn.IndRNNCell")
class IndRNNCell(_UnitsCell):
    """The independently recurrent network (Li et al., 2018): activation(W inputs + u * state + b)."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype)

    def build(self, input_shape: Any) -> None:
        size, units = self._input_size(input_shape), self._num_units
        self._kernel_w = self.add_weight("kernel_w", [size, units])
        self._kernel_u = self.add_weight("kernel_u", [1, units], initializer=initializers.RandomUniform(-1, 1))
        self._bias = self.add_weight("bias", [units], initializer=self._zeros())
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        total = matrix_products.matmul(inputs, self._kernel_w) + state * self._kernel_u
        output = self._activation(biases.bias_add(total, self._bias))
        return output, output


class _Independent(_UnitsCell):
    """What IndyGRU and IndyLSTM share: initializers, and weights of independent neurons."""

    def __init__(
        self,
        num_units: int,
        activation: Any,
        reuse: Any,
        kernel_initializer: Any,
        bias_initializer: Any,
        name: str | None,
        dtype: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def _recurrent_initializer(self, size: int) -> Any:
        if self._kernel_initializer is not None:
            return self._kernel_initializer
        return initializers.RandomUniform(-1.0 / size, 1.0 / size)


@export(v1="contrib.rnn.IndyGRUCell")
class IndyGRUCell(_Independent):
    """A GRU whose recurrent weights are diagonal (Gonnet and Deselaers, 2019)."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, kernel_initializer, bias_initializer, name, dtype)

    def build(self, input_shape: Any) -> None:
        size, units = self._input_size(input_shape), self._num_units
        kernel, given = self._kernel_initializer, self._bias_initializer
        recurrent = self._recurrent_initializer(size)
        ones = initializers.Constant(1.0, dtype=self._variable_dtype) if given is None else given
        zeros = self._zeros() if given is None else given
        self._gates_w = self.add_weight("gates/kernel_w", [size, 2 * units], initializer=kernel)
        self._gates_u = self.add_weight("gates/kernel_u", [1, 2 * units], initializer=recurrent)
        self._gates_bias = self.add_weight("gates/bias", [2 * units], initializer=ones)
        self._candidate_w = self.add_weight("candidate/kernel", [size, units], initializer=kernel)
        self._candidate_u = self.add_weight("candidate/kernel_u", [1, units], initializer=recurrent)
        self._candidate_bias = self.add_weight("candidate/bias", [units], initializer=zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        gates = matrix_products.matmul(inputs, self._gates_w) + joining.concat([state, state], 1) * self._gates_u
        r, u = joining.split(unary_functions.sigmoid(biases.bias_add(gates, self._gates_bias)), 2, 1)
        candidate = matrix_products.matmul(inputs, self._candidate_w) + r * state * self._candidate_u
        new = u * state + (1 - u) * self._activation(biases.bias_add(candidate, self._candidate_bias))
        return new, new


@export(v1="contrib.rnn.IndyLSTMCell")
class IndyLSTMCell(_Independent):
    """An LSTM whose recurrent weights are diagonal (Gonnet and Deselaers, 2019)."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, kernel_initializer, bias_initializer, name, dtype)
        self._forget_bias = forget_bias

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    def build(self, input_shape: Any) -> None:
        size, units = self._input_size(input_shape), self._num_units
        given = self._bias_initializer
        self._kernel_w = self.add_weight("kernel_w", [size, 4 * units], initializer=self._kernel_initializer)
        self._kernel_u = self.add_weight("kernel_u", [1, 4 * units], initializer=self._recurrent_initializer(size))
        self._bias = self.add_weight("bias", [4 * units], initializer=self._zeros() if given is None else given)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        sigmoid = unary_functions.sigmoid
        gates = matrix_products.matmul(inputs, self._kernel_w) + joining.tile(h, [1, 4]) * self._kernel_u
        i, j, f, o = joining.split(biases.bias_add(gates, self._bias), 4, 1)
        new_c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)
