"""Recurrent cells: one step of a network with a state."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from stoker._src.base import nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.layers.base import InputSpec, Layer, as_activation, dims
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import arithmetic, clipping, unary_functions
from stoker._src.ops.nn import bias
from stoker._src.ops.variables import initializers, partitioned, variable_scope

_KERNEL, _BIAS = "kernel", "bias"


def check_cell(cell: Any, label: str = "cell") -> None:
    """Raises TypeError if `cell` is not a cell, and names what it lacks."""
    lacks = [f"{name!r} property is missing" for name in ("output_size", "state_size") if not _has(cell, name)]
    if not (_has(cell, "zero_state") or _has(cell, "get_initial_state")):
        lacks.append("either 'zero_state' or 'get_initial_state' method is required")
    if not callable(cell):
        lacks.append("is not callable")
    if lacks:
        raise TypeError(f"The argument {label!r} ({cell}) is not an RNNCell: {', '.join(lacks)}.")


def _has(cell: Any, name: str) -> bool:
    """Whether the cell has the attribute, without reading its value, which may not be ready yet."""
    return name in dir(cell)


def state_shape(batch_size: Any, size: Any) -> Any:
    """[batch, *size] as a list of numbers, or as a tensor if the batch size is a tensor."""
    inner: list[Any] = [size] if isinstance(size, int) else list(as_shape(size))
    known = constant_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
    if known is not None:
        return [int(known), *inner]
    return joining.concat([shaping.reshape(batch_size, [1]), inner], 0)


def zero_tensors(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros for each size in a structure of sizes."""

    def zeros(size: Any) -> Tensor:
        made = shaping.zeros(state_shape(batch_size, size), dtype)
        inner = [size] if isinstance(size, int) else list(as_shape(size))
        made.set_shape(Shape((made.static_shape[0] if made.static_shape.rank else None, *inner)))
        return made

    return _map_sizes(zeros, state_size)


def _map_sizes(function: Any, sizes: Any) -> Any:
    """Maps `function` over sizes. A TensorShape is one size, although it is iterable."""
    if isinstance(sizes, dict) or (isinstance(sizes, (list, tuple)) and not isinstance(sizes, Shape)):
        return nest.map_structure(function, sizes)
    return function(sizes)


@export(v1="nn.rnn_cell.RNNCell")
class RNNCell(Layer):
    """One step: `output, new_state = cell(inputs, state)`.

    Subclasses define `call(inputs, state)`, `state_size` (an int, a shape, or a structure of them) and `output_size`.
    """

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        if scope is not None:
            with variable_scope.variable_scope(scope) as opened:
                return super().__call__(inputs, state, scope=opened)
        with variable_scope.variable_scope(
            variable_scope.get_variable_scope()
        ):  # scopes its ops as `rnn/rnn/my_cell/...`
            return super().__call__(inputs, state)

    @property
    def state_size(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say its state_size.")

    @property
    def output_size(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say its output_size.")

    def build(self, input_shape: Any) -> None:
        self.built = True

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return zero_tensors(self.state_size, batch_size, dtype)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """A state of zeros for `inputs`, or for a batch size and dtype.

        Raises:
            ValueError: neither is given, or they contradict each other.
        """
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            found = inputs.static_shape[0]
            wanted = constant_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
            if wanted is not None and found is not None and wanted != found:
                raise ValueError(f"batch size from input tensor is different from the input param. Input tensor batch: {found}, batch_size: {batch_size}")  # fmt: skip
            if dtype is not None and as_dtype(dtype) is not inputs.dtype.base_dtype:
                raise ValueError(f"dtype from input tensor is different from the input param. Input tensor dtype: {inputs.dtype}, dtype: {dtype}")  # fmt: skip
            batch_size = shaping.shape(inputs)[0]
            dtype = inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(f"batch_size and dtype cannot be None while constructing initial state: batch_size={batch_size}, dtype={dtype}")  # fmt: skip
        return self.zero_state(batch_size, dtype)


@export(v1="contrib.rnn.LayerRNNCell")
class LayerRNNCell(RNNCell):
    """A cell whose variables belong to its layer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.input_spec = InputSpec(ndim=2)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        for part in nest.flatten(state):
            kind = as_dtype(part.dtype if hasattr(part, "dtype") else convert_to_tensor(part).dtype)
            if not (kind.is_floating or kind.is_complex):
                raise ValueError(f"RNN cell only supports floating point inputs, but received dtype: {kind}")
        return Layer.__call__(self, inputs, state, scope=scope)

    def _input_size(self, input_shape: Any) -> int:
        if nest.is_nested(input_shape) and any(
            nest.is_nested(each) or isinstance(each, TensorShape) for each in input_shape
        ):
            raise ValueError(
                f'Layer "{self.name}" expects 1 input(s), but it received {len(input_shape)} input tensors.'
            )
        if self._dtype is not None and not as_dtype(self._dtype).is_floating:
            raise ValueError(f"RNN cell only supports floating point inputs, but received dtype: {self._dtype}")
        sizes = dims(input_shape)
        if not sizes:
            raise ValueError(
                f'Input 0 of layer "{self.name}" is incompatible with the layer: expected ndim=2, found ndim=0'
            )
        size = sizes[-1]
        if size is None:
            raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {input_shape}")
        return size


class UnitsCell(LayerRNNCell):
    """A cell with one state, of the size of its output."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = num_units
        self._activation = unary_functions.tanh if activation is None else as_activation(activation)

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units


@export(v1="nn.rnn_cell.BasicRNNCell")
class BasicRNNCell(UnitsCell):
    """output = new_state = activation(W [inputs, state] + b)."""

    def build(self, input_shape: Any) -> None:
        size = self._input_size(input_shape)
        self._kernel = self.add_weight(_KERNEL, [size + self._num_units, self._num_units])
        self._bias = self.add_weight(_BIAS, [self._num_units], initializer=initializers.Zeros(self._variable_dtype))
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        product = matrix_products.matmul(joining.concat([inputs, state], 1), self._kernel)
        output = self._activation(bias.bias_add(product, self._bias))
        return output, output


@export(v1="nn.rnn_cell.GRUCell")
class GRUCell(LayerRNNCell):
    """A gated recurrent unit (Cho et al., 2014).

    r, u = sigmoid(W_gates [inputs, state] + b_gates);  c = activation(W_candidate [inputs, r * state] + b_candidate)
    output = new_state = u * state + (1 - u) * c

    Variables: `gates/kernel`, `gates/bias` (initially 1), `candidate/kernel`, `candidate/bias`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = num_units
        self._activation = unary_functions.tanh if activation is None else as_activation(activation)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        size, units = self._input_size(input_shape), self._num_units
        given = self._bias_initializer
        self._gate_kernel = self.add_weight(
            f"gates/{_KERNEL}", [size + units, 2 * units], initializer=self._kernel_initializer
        )
        ones = initializers.Constant(1.0, dtype=self._variable_dtype) if given is None else given
        self._gate_bias = self.add_weight(f"gates/{_BIAS}", [2 * units], initializer=ones)
        self._candidate_kernel = self.add_weight(
            f"candidate/{_KERNEL}", [size + units, units], initializer=self._kernel_initializer
        )
        zeros = initializers.Zeros(self._variable_dtype) if given is None else given
        self._candidate_bias = self.add_weight(f"candidate/{_BIAS}", [units], initializer=zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        gates = matrix_products.matmul(joining.concat([inputs, state], 1), self._gate_kernel)
        r, u = joining.split(unary_functions.sigmoid(bias.bias_add(gates, self._gate_bias)), 2, 1)
        candidate = matrix_products.matmul(joining.concat([inputs, r * state], 1), self._candidate_kernel)
        c = self._activation(bias.bias_add(candidate, self._candidate_bias))
        output = u * state + (1 - u) * c
        return output, output


LSTMStateTuple = namedtuple("LSTMStateTuple", ("c", "h"))
LSTMStateTuple.dtype = property(lambda self: _state_dtype(self))  # type: ignore[attr-defined]
LSTMStateTuple.__module__ = __name__
export(v1="nn.rnn_cell.LSTMStateTuple")(LSTMStateTuple)


def _state_dtype(state: Any) -> Any:
    if state.c.dtype != state.h.dtype:
        raise TypeError(f"Inconsistent internal state: {state.c.dtype} vs {state.h.dtype}")
    return state.c.dtype


@export(v1="nn.rnn_cell.BasicLSTMCell")
class BasicLSTMCell(LayerRNNCell):
    """Long short-term memory (Zaremba et al., 2014): i, j, f, o = W [inputs, h] + b.

    new_c = c * sigmoid(f + forget_bias) + sigmoid(i) * activation(j);  output = new_h = activation(new_c) * sigmoid(o)
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units, self._forget_bias, self._state_is_tuple = num_units, forget_bias, state_is_tuple
        self._activation = unary_functions.tanh if activation is None else as_activation(activation)

    @property
    def state_size(self) -> Any:
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        size, units = self._input_size(input_shape), self._num_units
        self._kernel = self.add_weight(_KERNEL, [size + units, 4 * units])
        self._bias = self.add_weight(_BIAS, [4 * units], initializer=initializers.Zeros(self._variable_dtype))
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state if self._state_is_tuple else joining.split(state, 2, 1)
        gates = bias.bias_add(matrix_products.matmul(joining.concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = joining.split(gates, 4, 1)
        sigmoid = unary_functions.sigmoid
        kept = arithmetic.multiply(c, sigmoid(arithmetic.add(f, self._forget_bias)))
        new_c = arithmetic.add(kept, arithmetic.multiply(sigmoid(i), self._activation(j)))
        new_h = arithmetic.multiply(self._activation(new_c), sigmoid(o))
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else joining.concat([new_c, new_h], 1)


def _parts(shards: int | None) -> Any:
    return None if shards is None else partitioned.fixed_size_partitioner(shards)


@export(v1="nn.rnn_cell.LSTMCell")
class LSTMCell(LayerRNNCell):
    """Long short-term memory with peepholes, clipping and projection (Sak et al., 2014).

    Args:
        num_units: the size of c.
        use_peepholes: whether gates depend on c, through the diagonal weights `w_f_diag`, `w_i_diag`, `w_o_diag`.
        cell_clip: a bound on |c|.
        initializer: the initializer of the weights.
        num_proj: the size of the output after projection by `projection/kernel`.
        proj_clip: a bound on the projected output.
        num_unit_shards, num_proj_shards: the number of variables that the weights are split into.
        forget_bias: added to the forget gate.
        state_is_tuple: whether the state is an LSTMStateTuple. Otherwise it is c and h, concatenated.
        activation: tanh by default.
        reuse, name, dtype: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._unit_parts, self._projection_parts = _parts(num_unit_shards), _parts(num_proj_shards)
        self._num_units, self._use_peepholes, self._cell_clip = num_units, use_peepholes, cell_clip
        self._initializer, self._num_proj, self._proj_clip = initializer, num_proj, proj_clip
        self._output_size = num_proj or num_units
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple
        self._activation = unary_functions.tanh if activation is None else as_activation(activation)

    @property
    def output_size(self) -> int:
        return self._output_size

    @property
    def state_size(self) -> Any:
        sizes = (self._num_units, self.output_size)
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    def build(self, input_shape: Any) -> None:
        size, units = self._input_size(input_shape), self._num_units
        self._kernel = self.add_weight(
            _KERNEL,
            [size + self.output_size, 4 * units],
            initializer=self._initializer,
            partitioner=self._unit_parts,
        )
        self._bias = self.add_weight(_BIAS, [4 * units], initializer=initializers.Zeros(self._variable_dtype))
        if self._use_peepholes:
            self._w_f, self._w_i, self._w_o = (
                self.add_weight(f"w_{gate}_diag", [units], initializer=self._initializer) for gate in "fio"
            )
        if self._num_proj is not None:
            self._projection = self.add_weight(
                f"projection/{_KERNEL}",
                [units, self._num_proj],
                initializer=self._initializer,
                partitioner=self._projection_parts,
            )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        if self._state_is_tuple:
            c, h = state
        else:
            c, h = joining.split(state, [self._num_units, self.output_size], 1)
        gates = bias.bias_add(matrix_products.matmul(joining.concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = joining.split(gates, 4, 1)
        sigmoid, act, peep = unary_functions.sigmoid, self._activation, self._use_peepholes
        f = f + self._forget_bias
        new_c = sigmoid(f + self._w_f * c if peep else f) * c
        new_c = new_c + sigmoid(i + self._w_i * c if peep else i) * act(j)
        if self._cell_clip is not None:
            new_c = clipping.clip_by_value(new_c, -self._cell_clip, self._cell_clip)
        new_h = sigmoid(o + self._w_o * new_c if peep else o) * act(new_c)
        if self._num_proj is not None:
            new_h = matrix_products.matmul(new_h, self._projection)
            if self._proj_clip is not None:
                new_h = clipping.clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else joining.concat([new_c, new_h], 1)


@export(v1="nn.rnn_cell.MultiRNNCell")
class MultiRNNCell(RNNCell):
    """Stacked cells: each takes the output of the one below. Variables are under `cell_0`, `cell_1`, ...

    Raises:
        ValueError: there are no cells, or a cell has a structured state although `state_is_tuple` is False.
        TypeError: `cells` is not a list.
    """

    def __init__(self, cells: Any, state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not isinstance(cells, (list, tuple)):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        self._cells, self._state_is_tuple = list(cells), state_is_tuple
        for number, cell in enumerate(cells):
            if isinstance(cell, Trackable):
                self._track_trackable(cell, f"cell-{number}")
        if not state_is_tuple and any(isinstance(cell.state_size, (tuple, list)) for cell in cells):
            raise ValueError("Some cells return tuples of states, but the flag state_is_tuple is not set.")

    @property
    def state_size(self) -> Any:
        sizes = [cell.state_size for cell in self._cells]
        return tuple(sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    @property
    def trainable_weights(self) -> list[Any]:
        return [weight for cell in self._cells for weight in cell.trainable_weights] if self._trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        chosen = {id(weight) for weight in self.trainable_weights}
        return [weight for cell in self._cells for weight in cell.weights if id(weight) not in chosen]

    @property
    def weights(self) -> list[Any]:
        return self.trainable_weights + self.non_trainable_weights

    variables = weights
    trainable_variables = trainable_weights

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with name_scope(type(self).__name__ + "ZeroState"):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> Any:
        start, states = 0, []
        for i, cell in enumerate(self._cells):
            with variable_scope.variable_scope(f"cell_{i}"):
                if self._state_is_tuple:
                    if not isinstance(state, (list, tuple)) or len(state) != len(self._cells):
                        raise ValueError(
                            f"Expected state to be a tuple of length {len(self.state_size)}, but received: {state}"
                        )
                    current = state[i]
                else:
                    current = state[:, start : start + cell.state_size]  # type: ignore[index,call-overload]
                    start += cell.state_size
                inputs, new_state = cell(inputs, current)
                states.append(new_state)
        return inputs, tuple(states) if self._state_is_tuple else joining.concat(states, 1)
