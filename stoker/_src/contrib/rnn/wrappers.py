"""Wrappers of cells: highways, attention over past outputs, embeddings and projections."""

from __future__ import annotations

from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.contrib.rnn.linear import linear, width
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.layers.rnn_cells import RNNCell, check_cell
from stoker._src.layers.rnn_wrappers import PassingWrapper
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.math import reductions, unary_functions
from stoker._src.ops.nn import bias as biases
from stoker._src.ops.nn import conv_api, embedding, softmax
from stoker._src.ops.variables import initializers, variable_scope


@export(v1="contrib.rnn.HighwayWrapper")
class HighwayWrapper(PassingWrapper):
    """Mixes a cell's inputs into its outputs by gates (Srivastava et al., 2015): inputs * carry + outputs * transform.

    carry = sigmoid(inputs carry_w + carry_b). transform is 1 - carry, or has weights of its own if the gates are not
    coupled.
    """

    def __init__(self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0) -> None:
        super().__init__(cell)
        self._coupled, self._carry_bias_init = couple_carry_transform_gates, carry_bias_init

    def _gate(self, name: str, x: Tensor, bias_init: float) -> Tensor:
        size, kind = width(x), x.dtype.base_dtype
        kernel = variable_scope.get_variable(f"{name}_w", [size, size], dtype=kind)
        bias = variable_scope.get_variable(
            f"{name}_b", [size], dtype=kind, initializer=initializers.Constant(bias_init, dtype=kind)
        )
        return unary_functions.sigmoid(biases.xw_plus_b(x, kernel, bias))

    def _mixed(self, x: Tensor, output: Tensor) -> Any:
        x.shape.assert_is_compatible_with(output.shape)
        carry = self._gate("carry", x, self._carry_bias_init)
        transform = 1 - carry if self._coupled else self._gate("transform", x, -self._carry_bias_init)
        return x * carry + output * transform

    def _wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        outputs, new_state = self._step(inputs, state, scope)
        nest.assert_same_structure(inputs, outputs)
        return nest.map_structure(self._mixed, inputs, outputs), new_state


class _ScopedWrapper(RNNCell):
    """A cell around another, with variables of its own under its name."""

    def __init__(self, cell: Any, reuse: Any) -> None:
        super().__init__(_reuse=reuse)
        check_cell(cell)
        self._cell = cell
        if isinstance(cell, Trackable):
            self._track_trackable(cell, "cell")

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


@export(v1="contrib.rnn.AttentionCellWrapper")
class AttentionCellWrapper(_ScopedWrapper):
    """Attention over the last `attn_length` outputs (Bahdanau et al., 2014; Rocktaeschel et al., 2015).

    Args:
        cell: the cell.
        attn_length: the number of past outputs in view.
        attn_size: the size of the output; by default that of the cell's output.
        attn_vec_size: the size of the attention's hidden layer; by default `attn_size`.
        input_size: the size that inputs and attention are mapped to; by default that of the inputs.
        state_is_tuple: whether the state is (cell state, attention, past outputs). Otherwise these are concatenated.
        reuse: see `Layer`.
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: Any = None,
    ) -> None:
        super().__init__(cell, reuse)
        if nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                f"Cell returns tuple of states, but the flag state_is_tuple is not set. State size is: {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._attn_length, self._state_is_tuple, self._input_size = attn_length, state_is_tuple, input_size
        self._attn_size: int = cell.output_size if attn_size is None else attn_size
        self._attn_vec_size: int = self._attn_size if attn_vec_size is None else attn_vec_size

    @property
    def state_size(self) -> Any:
        sizes = (self._cell.state_size, self._attn_size, self._attn_size * self._attn_length)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._attn_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return RNNCell.zero_state(self, batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> Any:
        size, length = self._attn_size, self._attn_length
        if self._state_is_tuple:
            cell_state, attention, past = state
        else:
            cell_state, attention, past = joining.split(state, [self._cell.state_size, size, size * length], 1)
        past = shaping.reshape(past, [-1, length, size])
        inputs = linear([inputs, attention], self._input_size or width(inputs), True)
        output, new_state = self._cell(inputs, cell_state)
        query = joining.concat(nest.flatten(new_state), 1) if self._state_is_tuple else new_state
        attention = self._attention(query, past)
        with variable_scope.variable_scope("attn_output_projection"):
            output = linear([output, attention], size, True)
        past = joining.concat([past[:, 1:, :], shaping.expand_dims(output, 1)], 1)
        past = shaping.reshape(past, [-1, length * size])
        result = (new_state, attention, past)
        return output, result if self._state_is_tuple else joining.concat(list(result), 1)

    def _attention(self, query: Tensor, past: Tensor) -> Tensor:
        size, length, hidden_size = self._attn_size, self._attn_length, self._attn_vec_size
        kind = past.dtype.base_dtype
        with variable_scope.variable_scope("attention"):
            kernel = variable_scope.get_variable("attn_w", [1, 1, size, hidden_size], dtype=kind)
            v = variable_scope.get_variable("attn_v", [hidden_size], dtype=kind)
            hidden = shaping.reshape(past, [-1, length, 1, size])
            features = conv_api.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME")
            from_query = shaping.reshape(linear(query, hidden_size, True), [-1, 1, 1, hidden_size])
            scores = reductions.reduce_sum(v * unary_functions.tanh(features + from_query), [2, 3])
            weights = shaping.reshape(softmax.softmax(scores), [-1, length, 1, 1])
            return shaping.reshape(reductions.reduce_sum(weights * hidden, [1, 2]), [-1, size])


@export(v1="contrib.rnn.EmbeddingWrapper")
class EmbeddingWrapper(_ScopedWrapper):
    """Looks ids up in the variable `embedding` before they enter the cell. Inputs are [batch] or [batch, 1]."""

    def __init__(
        self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                f"Both embedding_classes and embedding_size must be > 0: {embedding_classes}, {embedding_size}."
            )
        self._classes, self._size, self._initializer = embedding_classes, embedding_size, initializer

    def call(self, inputs: Any, state: Any) -> Any:
        initializer = self._initializer or variable_scope.get_variable_scope().initializer
        if initializer is None:
            initializer = initializers.RandomUniform(-(3**0.5), 3**0.5)  # variance 1
        kind = nest.flatten(state)[0].dtype.base_dtype
        table = variable_scope.get_variable(
            "embedding", [self._classes, self._size], dtype=kind, initializer=initializer
        )
        return self._cell(embedding.embedding_lookup(table, shaping.reshape(inputs, [-1])), state)


@export(v1="contrib.rnn.InputProjectionWrapper")
class InputProjectionWrapper(_ScopedWrapper):
    """Maps inputs to `num_proj` numbers before they enter the cell."""

    def __init__(
        self, cell: Any, num_proj: int, activation: Any = None, input_size: int | None = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        self._num_proj, self._activation = num_proj, activation

    def call(self, inputs: Any, state: Any) -> Any:
        projected = linear(inputs, self._num_proj, True)
        return self._cell(projected if self._activation is None else self._activation(projected), state)


@export(v1="contrib.rnn.OutputProjectionWrapper")
class OutputProjectionWrapper(_ScopedWrapper):
    """Maps a cell's outputs to `output_size` numbers."""

    def __init__(self, cell: Any, output_size: int, activation: Any = None, reuse: Any = None) -> None:
        super().__init__(cell, reuse)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._output_size, self._activation = output_size, activation

    @property
    def output_size(self) -> int:
        return self._output_size

    def call(self, inputs: Any, state: Any) -> Any:
        output, new_state = self._cell(inputs, state)
        projected = linear(output, self._output_size, True)
        return projected if self._activation is None else self._activation(projected), new_state


@export(v1="contrib.rnn.CompiledWrapper")
class CompiledWrapper(PassingWrapper):
    """A cell to be compiled by XLA in TensorFlow. Here plans are compiled anyway, so it is the cell itself."""

    def __init__(self, cell: Any, compile_stateful: bool = False) -> None:
        super().__init__(cell)

    def _wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        return self._step(inputs, state, scope)
