"""Variants of the LSTM and GRU that create their variables when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export
from stoker._src.contrib.rnn.linear import layer_normalized, linear, width
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.rnn_cells import LSTMStateTuple, RNNCell
from stoker._src.ops.array import joining, selection, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import arithmetic, clipping, unary_functions
from stoker._src.ops.nn import activations, dropout
from stoker._src.ops.nn import bias as biases
from stoker._src.ops.random import uniform_normal
from stoker._src.ops.variables import initializers, variable_scope

Activation = Callable[[Tensor], Any]


def sharded(name: str, shape: list[int], dtype: Any, shards: int) -> Tensor:
    """A matrix from `shards` variables of its rows, `<name>_0`, `<name>_1`, ... The first ones take the remainder.

    Raises:
        ValueError: there are more shards than rows.
    """
    if shards > shape[0]:
        raise ValueError(f"Too many shards: shape={shape}, num_shards={shards}")
    rows, rest = divmod(shape[0], shards)
    parts = [
        variable_scope.get_variable(f"{name}_{i}", [rows + (i < rest), *shape[1:]], dtype=dtype) for i in range(shards)
    ]
    return parts[0] if shards == 1 else joining.concat(parts, 0, name=name)


@export(v1="contrib.rnn.LayerNormBasicLSTMCell")
class LayerNormBasicLSTMCell(RNNCell):
    """An LSTM with layer normalization (Ba et al., 2016) and dropout of the candidate (Semeniuta et al., 2016).

    i, j, f, o = norm(W [inputs, h]);  new_c = norm(c * sigmoid(f + forget_bias) + sigmoid(i) * dropout(activation(j)))
    output = new_h = activation(new_c) * sigmoid(o)

    Variables: `kernel`; `gamma` and `beta` under `input`, `transform`, `forget`, `output` and `state`. Without layer
    normalization there is a `bias` instead.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: int | None = None,
        activation: Activation = unary_functions.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._activation, self._forget_bias = num_units, activation, forget_bias
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed
        self._layer_norm, self._norm_gain, self._norm_shift = layer_norm, norm_gain, norm_shift

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def _norm(self, x: Tensor, scope: str) -> Tensor:
        return layer_normalized(x, scope, self._norm_gain, self._norm_shift) if self._layer_norm else x

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        sigmoid = unary_functions.sigmoid
        gates = linear([inputs, h], 4 * self._num_units, not self._layer_norm)
        i, j, f, o = (
            self._norm(part, scope)
            for part, scope in zip(joining.split(gates, 4, 1), ("input", "transform", "forget", "output"))
        )
        g = self._activation(j)
        if not isinstance(self._keep_prob, (int, float)) or self._keep_prob < 1:
            g = dropout.dropout(g, keep_prob=self._keep_prob, seed=self._seed)
        new_c = self._norm(c * sigmoid(f + self._forget_bias) + sigmoid(i) * g, "state")
        new_h = self._activation(new_c) * sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


@export(v1="contrib.rnn.CoupledInputForgetGateLSTMCell")
class CoupledInputForgetGateLSTMCell(RNNCell):
    """An LSTM whose input gate is 1 - f (Greff et al., 2015), with the options of `LSTMCell` and layer normalization.

    Variables: `W_0`, `W_1`, ... (shards of the kernel of j, f and o), `B`, `W_F_diag`, `W_O_diag`, `W_P_0`, ...
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation = unary_functions.tanh,
        reuse: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._initializer = num_units, use_peepholes, initializer
        self._num_proj, self._proj_clip = num_proj, proj_clip
        self._num_unit_shards, self._num_proj_shards = num_unit_shards, num_proj_shards
        self._forget_bias, self._state_is_tuple, self._activation = forget_bias, state_is_tuple, activation
        self._layer_norm, self._norm_gain, self._norm_shift = layer_norm, norm_gain, norm_shift

    @property
    def state_size(self) -> Any:
        sizes = (self._num_units, self.output_size)
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def _norm(self, x: Tensor, scope: str) -> Tensor:
        return layer_normalized(x, scope, self._norm_gain, self._norm_shift) if self._layer_norm else x

    def call(self, inputs: Any, state: Any) -> Any:
        units, kind, sigmoid = self._num_units, inputs.dtype.base_dtype, unary_functions.sigmoid
        c, h = state if self._state_is_tuple else joining.split(state, [units, self.output_size], 1)
        with variable_scope.variable_scope(variable_scope.get_variable_scope(), initializer=self._initializer):
            kernel = sharded("W", [width(inputs) + self.output_size, 3 * units], kind, self._num_unit_shards)
            bias = variable_scope.get_variable("B", [3 * units], dtype=kind, initializer=initializers.Zeros(kind))
            product = matrix_products.matmul(joining.concat([inputs, h], 1), kernel)
            if not self._layer_norm:
                product = biases.bias_add(product, bias)
            j, f, o = (
                self._norm(part, scope)
                for part, scope in zip(joining.split(product, 3, 1), ("transform", "forget", "output"))
            )
            if self._use_peepholes:
                on_f, on_o = (variable_scope.get_variable(f"W_{gate}_diag", [units], dtype=kind) for gate in "FO")
                f = f + on_f * c
            kept = sigmoid(f + self._forget_bias)
            new_c = self._norm(kept * c + (1 - kept) * self._activation(j), "state")
            new_h = sigmoid(o + on_o * new_c if self._use_peepholes else o) * self._activation(new_c)
            if self._num_proj is not None:
                projection = sharded("W_P", [units, self._num_proj], kind, self._num_proj_shards)
                new_h = matrix_products.matmul(new_h, projection)
                if self._proj_clip is not None:
                    new_h = clipping.clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else joining.concat([new_c, new_h], 1)


@export(v1="contrib.rnn.UGRNNCell")
class UGRNNCell(RNNCell):
    """The update-gate RNN (Collins et al., 2016): g = sigmoid(.. + forget_bias), new = g * state + (1 - g) * activation(..)."""

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Activation = unary_functions.tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._initializer = num_units, initializer
        self._forget_bias, self._activation = forget_bias, activation

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        width(inputs)
        with variable_scope.variable_scope(variable_scope.get_variable_scope(), initializer=self._initializer):
            g, c = joining.split(linear([inputs, state], 2 * self._num_units, True), 2, 1)
        g = unary_functions.sigmoid(g + self._forget_bias)
        new = g * state + (1 - g) * self._activation(c)
        return new, new


@export(v1="contrib.rnn.IntersectionRNNCell")
class IntersectionRNNCell(RNNCell):
    """The intersection RNN (Collins et al., 2016): gates in depth, on the inputs y, and in time, on the state h.

    The inputs have the size `num_units`, or are mapped to `num_in_proj` = `num_units` by `in_projection`.

    Raises:
        ValueError: on the call, if they have another size.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Activation = activations.relu,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._num_in_proj, self._initializer = num_units, num_in_proj, initializer
        self._forget_bias, self._y_activation = forget_bias, y_activation

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        units, sigmoid = self._num_units, unary_functions.sigmoid
        with variable_scope.variable_scope(variable_scope.get_variable_scope(), initializer=self._initializer):
            if width(inputs) != units:
                if self._num_in_proj != units:
                    raise ValueError(
                        "Must have input size == output size for Intersection RNN. To fix, num_in_proj should be set to num_units at cell init."
                    )
                with variable_scope.variable_scope("in_projection"):
                    inputs = linear(inputs, units, True)
            product = linear([inputs, state], 4 * units, True)
        gate_h, h, gate_y, y = joining.split(product, 4, 1)
        gate_h, gate_y = sigmoid(gate_h + self._forget_bias), sigmoid(gate_y + self._forget_bias)
        new_state = gate_h * state + (1 - gate_h) * unary_functions.tanh(h)
        return gate_y * inputs + (1 - gate_y) * self._y_activation(y), new_state


@export(v1="contrib.rnn.PhasedLSTMCell")
class PhasedLSTMCell(RNNCell):
    """The phased LSTM (Neil et al., 2016). Inputs are pairs of times [batch, 1] and features [batch, size].

    Each unit has a `period`, a `phase` and a share `ratio_on` of the period in which it is open. The state changes by the
    openness k of the unit: new = k * (step of the LSTM) + (1 - k) * old; a closed unit leaks `leak` times its place in
    the period.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._leak = num_units, use_peepholes, leak
        self._ratio_on, self._trainable_ratio_on = ratio_on, trainable_ratio_on
        self._period_init_min, self._period_init_max = period_init_min, period_init_max

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def _openness(self, times: Tensor) -> Any:
        kind, units = times.dtype.base_dtype, self._num_units
        lowest, highest = self._period_init_min, self._period_init_max

        def draw_period(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            logarithm = uniform_normal.random_uniform(
                shape, unary_functions.log(lowest * 1.0), unary_functions.log(highest * 1.0), dtype=dtype
            )
            return unary_functions.exp(logarithm)

        period = variable_scope.get_variable("period", [units], dtype=kind, initializer=draw_period)

        def draw_phase(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            return uniform_normal.random_uniform(shape, 0.0, 1.0, dtype=dtype) * period.initialized_value()

        phase = variable_scope.get_variable("phase", [units], dtype=kind, initializer=draw_phase)
        ratio = variable_scope.get_variable(
            "ratio_on",
            [units],
            dtype=kind,
            initializer=initializers.Constant(self._ratio_on, dtype=kind),
            trainable=self._trainable_ratio_on,
        )
        shifted = times - phase
        # The gradient of the remainder with respect to the period would grow with time; it is left out.
        remainder = shaping.stop_gradient(arithmetic.floormod(shifted, period) - shifted) + shifted
        place = remainder / period
        rising = 2 * place / ratio
        falling = 2 - rising
        closed = self._leak * place
        k = selection.where(place < ratio, falling, closed)
        return selection.where(place < 0.5 * ratio, rising, k)

    def call(self, inputs: Any, state: Any) -> Any:
        times, x = inputs
        c, h = state
        units, sigmoid = self._num_units, unary_functions.sigmoid
        seen = [x, h]
        with variable_scope.variable_scope("mask_gates"):
            gates = sigmoid(linear([*seen, c] if self._use_peepholes else seen, 2 * units, True))
        into, kept = joining.split(gates, 2, 1)
        with variable_scope.variable_scope("new_input"):
            candidate = unary_functions.tanh(linear(seen, units, True))
        new_c = c * kept + into * candidate
        with variable_scope.variable_scope("output_gate"):
            out = sigmoid(linear([*seen, new_c] if self._use_peepholes else seen, units, True))
        new_h = unary_functions.tanh(new_c) * out
        k = self._openness(times)
        new_c, new_h = k * new_c + (1 - k) * c, k * new_h + (1 - k) * h
        return new_h, LSTMStateTuple(new_c, new_h)


@export(v1="contrib.rnn.GLSTMCell")
class GLSTMCell(RNNCell):
    """The group LSTM (Kuchaiev and Ginsburg, 2017): the gates of a group depend on its part of the inputs and of h only."""

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Activation = unary_functions.tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if num_units % number_of_groups:
            raise ValueError("num_units must be divisible by number_of_groups")
        if num_proj is not None and num_proj % number_of_groups:
            raise ValueError("num_proj must be divisible by number_of_groups")
        self._num_units, self._initializer, self._num_proj = num_units, initializer, num_proj
        self._groups, self._forget_bias, self._activation = number_of_groups, forget_bias, activation

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        units, kind, sigmoid = self._num_units, inputs.dtype.base_dtype, unary_functions.sigmoid
        if width(inputs) % self._groups:
            raise ValueError(f"input size ({width(inputs)}) must be divisible by number_of_groups ({self._groups})")
        with variable_scope.variable_scope(variable_scope.get_variable_scope(), initializer=self._initializer):
            by_group = []
            parts = zip(joining.split(inputs, self._groups, 1), joining.split(h, self._groups, 1))
            for number, (x_part, h_part) in enumerate(parts):
                with variable_scope.variable_scope(f"group{number}"):
                    product = linear([x_part, h_part], 4 * units // self._groups, False)
                by_group.append(joining.split(product, 4, 1))
            i, j, f, o = (
                biases.bias_add(
                    joining.concat(list(columns), 1),
                    variable_scope.get_variable(
                        f"bias_{gate}", [units], dtype=kind, initializer=initializers.Constant(0.0, dtype=kind)
                    ),
                )
                for gate, columns in zip("ijfo", zip(*by_group))
            )
            new_c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * self._activation(j)
            new_h = sigmoid(o) * self._activation(new_c)
            if self._num_proj is not None:
                with variable_scope.variable_scope("projection"):
                    new_h = linear(new_h, self._num_proj, False)
        return new_h, LSTMStateTuple(new_c, new_h)
