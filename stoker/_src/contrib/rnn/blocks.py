"""Cells of one op, and fused cells, which run over a whole sequence at once."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.layers import rnn
from stoker._src.layers.base import InputSpec, Layer
from stoker._src.layers.rnn_cells import LayerRNNCell, LSTMStateTuple
from stoker._src.ops.array import casting, gathering, joining, ranges, selection, shaping
from stoker._src.ops.math import masking, reductions
from stoker._src.ops.nn import rnn_blocks
from stoker._src.ops.variables import initializers


def _lstm_variables(layer: Any, size: int, units: int, use_peephole: bool) -> Any:
    """kernel, bias and the peepholes of i, f and o, which are zeros if there are none."""
    kernel = layer.add_weight("kernel", [size + units, 4 * units])
    bias = layer.add_weight("bias", [4 * units], initializer=initializers.Constant(0.0))
    if not use_peephole:
        return kernel, bias, None
    return kernel, bias, [layer.add_weight(f"w_{gate}_diag", [units]) for gate in "ifo"]


@export(v1="contrib.rnn.LSTMBlockCell")
class LSTMBlockCell(LayerRNNCell):
    """An LSTM cell whose step is the op LSTMBlockCell. Its variables are those of `LSTMCell`."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: Any = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._num_units, self._forget_bias = num_units, forget_bias
        self._cell_clip = -1 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        size = self._input_size(input_shape)
        self._kernel, self._bias, self._peepholes = _lstm_variables(self, size, self._num_units, self._use_peephole)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        if len(state) != 2:
            raise ValueError("Expecting state to be a tuple with length 2.")
        c, h = state
        peepholes = self._peepholes or [shaping.zeros([self._num_units], inputs.dtype)] * 3
        out = rnn_blocks.LSTM_BLOCK_CELL(
            inputs,
            c,
            h,
            self._kernel,
            *peepholes,
            self._bias,
            forget_bias=self._forget_bias,
            cell_clip=self._cell_clip,
            use_peephole=self._use_peephole,
        )
        return out[6], LSTMStateTuple(out[1], out[6])


@export(v1="contrib.rnn.GRUBlockCell")
class GRUBlockCell(LayerRNNCell):
    """A GRU cell whose step is the op GRUBlockCell. Variables: `w_ru`, `b_ru` (initially 1), `w_c`, `b_c`."""

    _weight_names = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self, num_units: int | None = None, cell_size: int | None = None, reuse: Any = None, name: str = "gru_cell"
    ) -> None:
        super().__init__(name=name, _reuse=reuse)
        if (cell_size is None) == (num_units is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        self._num_units: Any = cell_size if num_units is None else num_units

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        size, units = self._input_size(input_shape), self._num_units
        names = self._weight_names
        self._w_ru = self.add_weight(names[0], [size + units, 2 * units])
        self._b_ru = self.add_weight(names[1], [2 * units], initializer=initializers.Constant(1.0))
        self._w_c = self.add_weight(names[2], [size + units, units])
        self._b_c = self.add_weight(names[3], [units], initializer=initializers.Constant(0.0))
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        *_, h = rnn_blocks.GRU_BLOCK_CELL(inputs, state, self._w_ru, self._w_c, self._b_ru, self._b_c)
        return h, h


@export(v1="contrib.rnn.GRUBlockCellV2")
class GRUBlockCellV2(GRUBlockCell):
    """A `GRUBlockCell` with the variables of `GRUCell`."""

    _weight_names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")


@export(v1="contrib.rnn.FusedRNNCell")
class FusedRNNCell:
    """A network that takes a whole sequence: `outputs, final_state = cell(inputs, ...)`, with inputs [time, batch, ...]."""

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __call__.")


@export(v1="contrib.rnn.FusedRNNCellAdaptor")
class FusedRNNCellAdaptor(FusedRNNCell):
    """Any cell as a fused cell. It runs in a loop if `use_dynamic_rnn`, and unrolled otherwise."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell, self._use_dynamic_rnn = cell, use_dynamic_rnn

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> Any:
        is_list = isinstance(inputs, list)
        if self._use_dynamic_rnn:
            outputs, state = rnn.dynamic_rnn(
                self._cell,
                joining.stack(inputs) if is_list else inputs,
                sequence_length=sequence_length,
                initial_state=initial_state,
                dtype=dtype,
                time_major=True,
                scope=scope,
            )
            return joining.unstack(outputs) if is_list else outputs, state
        steps = inputs if is_list else joining.unstack(inputs)
        outputs, state = rnn.static_rnn(self._cell, steps, initial_state, dtype, sequence_length, scope)
        return outputs if is_list else joining.stack(outputs), state


@export(v1="contrib.rnn.TimeReversedFusedRNN")
class TimeReversedFusedRNN(FusedRNNCell):
    """A fused cell that runs over time in reverse. With lengths, each example is reversed within its own length."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def _reversed(self, x: Any, lengths: Any) -> Any:
        if isinstance(x, list):
            if lengths is None:
                return list(reversed(x))
            return joining.unstack(self._reversed(joining.stack(x), lengths))
        if lengths is None:
            return selection.reverse(x, [0])
        return selection.reverse_sequence(x, seq_lengths=lengths, seq_axis=0, batch_axis=1)

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> Any:
        outputs, state = self._cell(
            self._reversed(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return self._reversed(outputs, sequence_length), state


@export(v1="contrib.rnn.LSTMBlockWrapper")
class LSTMBlockWrapper(Layer):
    """The base of fused LSTM cells. Subclasses define `num_units` and `_call_cell`."""

    @property
    def num_units(self) -> int:
        """The size of the state."""
        raise NotImplementedError(f"{type(self).__name__} does not say its num_units.")

    def _call_cell(
        self, inputs: Any, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> Any:
        """(states, outputs), each [time, batch, units], for inputs [time, batch, size]."""
        raise NotImplementedError(f"{type(self).__name__} does not define _call_cell.")

    def call(self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None) -> Any:
        """(outputs, LSTMStateTuple). Outputs behind an example's length are 0, and its state is that at its length.

        Raises:
            ValueError: the inputs are not [time, batch, size], or neither an initial state nor a dtype is given.
        """
        is_list = isinstance(inputs, list)
        x = joining.stack(inputs) if is_list else convert_to_tensor(inputs)
        shape = x.static_shape.of_rank(3)
        if shape[2] is None:
            raise ValueError("inputs must be [time, batch, size] with a known size.")
        batch = shaping.shape(x)[1] if shape[1] is None else shape[1]
        steps = shaping.shape(x)[0] if shape[0] is None else shape[0]
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            zeros = shaping.zeros(joining.stack([batch, self.num_units]), dtype)
            zeros.set_shape([shape[1], self.num_units])
            first_c = first_h = zeros
        else:
            if len(initial_state) != 2:
                raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
            first_c, first_h = initial_state
            dtype = dtype or convert_to_tensor(first_c).dtype
        lengths = None if sequence_length is None else casting.cast(sequence_length, dtypes.int64)
        states, outputs = self._call_cell(x, first_c, first_h, dtype, lengths)
        if lengths is None:
            final = (states[-1], outputs[-1])
        else:
            mask = shaping.transpose(masking.sequence_mask(lengths, steps, dtype))
            outputs = outputs * shaping.expand_dims(mask, 2)
            final = tuple(
                _at_lengths(whole, first, lengths, batch) for whole, first in ((states, first_c), (outputs, first_h))
            )
        return joining.unstack(outputs) if is_list else outputs, LSTMStateTuple(*final)


def _at_lengths(whole: Tensor, first: Any, lengths: Tensor, batch: Any) -> Tensor:
    """The rows of [time, batch, units] at each example's last step; `first` for an empty example."""
    rows = joining.concat([shaping.expand_dims(first, 0), whole], 0)
    rank = ranges.range(casting.cast(batch, dtypes.int64))
    return gathering.gather_nd(rows, joining.stack([lengths, rank], 1))


@export(v1="contrib.rnn.LSTMBlockFusedCell")
class LSTMBlockFusedCell(LSTMBlockWrapper):
    """An LSTM over a whole sequence in one op, BlockLSTM. Its variables are those of `LSTMBlockCell`."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: Any = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._num_units, self._forget_bias = num_units, forget_bias
        self._cell_clip = -1 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole
        self.input_spec = InputSpec(ndim=3)

    @property
    def num_units(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        size = input_shape[-1]
        self._kernel, self._bias, self._peepholes = _lstm_variables(
            self, int(size), self._num_units, self._use_peephole
        )
        self.built = True

    def _call_cell(
        self, inputs: Any, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> Any:
        peepholes = self._peepholes or [shaping.zeros([self._num_units], dtype)] * 3
        if sequence_length is None:
            longest = casting.cast(shaping.shape(inputs)[0], dtypes.int64)
        else:
            longest = casting.cast(reductions.reduce_max(sequence_length), dtypes.int64)
        out = rnn_blocks.BLOCK_LSTM(
            longest,
            inputs,
            initial_cell_state,
            initial_output,
            self._kernel,
            *peepholes,
            self._bias,
            forget_bias=self._forget_bias,
            cell_clip=self._cell_clip,
            use_peephole=self._use_peephole,
        )
        return out[1], out[6]
