"""`dynamic_decode`: runs a decoder step by step until all sequences have ended."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.base import Layer
from stoker._src.layers.rnn_cells import check_cell
from stoker._src.ops.array import constants, joining, selection, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.control_flow.tensor_array import TensorArray
from stoker._src.ops.math import comparison, reductions
from stoker._src.ops.variables import variable_scope


@export(v1="contrib.seq2seq.Decoder")
class Decoder:
    """The interface of decoders, which `dynamic_decode` runs."""

    @property
    def batch_size(self) -> Any:
        """The number of sequences."""
        raise NotImplementedError(f"{type(self).__name__} does not say its batch_size.")

    @property
    def output_size(self) -> Any:
        """A structure of the sizes of a step's outputs."""
        raise NotImplementedError(f"{type(self).__name__} does not say its output_size.")

    @property
    def output_dtype(self) -> Any:
        """A structure of the dtypes of a step's outputs."""
        raise NotImplementedError(f"{type(self).__name__} does not say its output_dtype.")

    def initialize(self, name: str | None = None) -> Any:
        """(finished, first inputs, initial state), before the first step."""
        raise NotImplementedError(f"{type(self).__name__} does not define initialize.")

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """(outputs, next state, next inputs, finished) of one step."""
        raise NotImplementedError(f"{type(self).__name__} does not define step.")

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """(outputs, final state) after the last step. Without one, they stay as they are."""
        raise NotImplementedError(f"{type(self).__name__} does not define finalize.")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether the decoder's `finished` holds as it is. Otherwise a sequence that has ended stays so."""
        return False


def _per_size(function: Any, sizes: Any, *rest: Any) -> Any:
    """Maps over a structure of sizes. A TensorShape is one size."""
    if isinstance(sizes, (dict, list)) or (isinstance(sizes, tuple) and not isinstance(sizes, Shape)):
        flat = [function(*each) for each in zip(nest.flatten(sizes), *map(nest.flatten, rest))]
        return nest.pack_sequence_as(sizes, flat)
    return function(sizes, *rest)


def _dims(size: Any) -> list[Any]:
    if isinstance(size, Tensor):
        size = constant_value(size)
        return [None] if size is None else [int(each) for each in size.reshape(-1)]
    return [size] if isinstance(size, int) else list(as_shape(size))


def _zero_output(size: Any, dtype: Any, batch_size: Any) -> Tensor:
    inner = _dims(size)
    shape = joining.concat([shaping.reshape(batch_size, [1]), constants.constant(inner, dtypes.int32)], 0)
    made = shaping.zeros(shape, dtype)
    made.set_shape([_static(batch_size), *inner])
    return made


def _static(batch_size: Any) -> int | None:
    if isinstance(batch_size, Tensor):
        batch_size = constant_value(batch_size)
    return None if batch_size is None else int(batch_size)


def _batch_first(x: Any) -> Any:
    x = convert_to_tensor(x)
    rank = x.static_shape.rank
    return x if rank is None or rank < 2 else shaping.transpose(x, [1, 0, *range(2, rank)])


@export(v1="contrib.seq2seq.dynamic_decode")
def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
    **kwargs: Any,
) -> Any:
    """Runs a decoder until all sequences have ended. Returns (outputs, final state, lengths).

    Args:
        decoder: the `Decoder`.
        output_time_major: whether outputs are [time, batch, ...] instead of [batch, time, ...].
        impute_finished: whether the outputs of a sequence that has ended are zeros, and its state stays the same.
        maximum_iterations: a scalar, the largest number of steps.
        parallel_iterations, swap_memory: have no effect.
        scope: the variable scope; "decoder" by default.
        **kwargs: passed to `initialize` and `step`.

    Raises:
        TypeError: `decoder` is not a Decoder.
        ValueError: `maximum_iterations` is not a scalar.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with variable_scope.variable_scope(scope, "decoder"):
        if maximum_iterations is not None:
            maximum_iterations = convert_to_tensor(maximum_iterations, dtypes.int32, name="maximum_iterations")
            if maximum_iterations.static_shape.rank not in (None, 0):
                raise ValueError("maximum_iterations must be a scalar")
        finished, inputs, state = decoder.initialize(**kwargs)
        finished = convert_to_tensor(finished)
        batch_size = decoder.batch_size
        zeros = _per_size(
            lambda size, dtype: _zero_output(size, dtype, batch_size), decoder.output_size, decoder.output_dtype
        )
        if maximum_iterations is not None:
            finished = comparison.logical_or(finished, comparison.greater_equal(0, maximum_iterations))
        lengths = shaping.zeros_like(finished, dtype=dtypes.int32)
        arrays = _per_size(
            lambda size, dtype: TensorArray(
                dtype, size=0, dynamic_size=True, element_shape=TensorShape([_static(batch_size), *_dims(size)])
            ),
            decoder.output_size,
            decoder.output_dtype,
        )
        state = nest.map_structure(lambda x: x if isinstance(x, TensorArray) else convert_to_tensor(x), state)

        def body(time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any) -> Any:
            outputs, next_state, next_inputs, ended = decoder.step(time, inputs, state, **kwargs)
            if decoder.tracks_own_finished:
                next_finished = ended
            else:
                next_finished = comparison.logical_or(ended, finished)
            if maximum_iterations is not None:
                next_finished = comparison.logical_or(next_finished, time + 1 >= maximum_iterations)
            steps = shaping.fill(shaping.shape(lengths), time + 1)
            next_lengths = selection.where(finished, lengths, steps)
            nest.assert_same_structure(state, next_state)
            nest.assert_same_structure(arrays, outputs)
            nest.assert_same_structure(inputs, next_inputs)
            emitted = outputs
            if impute_finished:
                emitted = nest.map_structure(lambda out, zero: selection.where(finished, zero, out), outputs, zeros)
                next_state = nest.map_structure(lambda new, old: _kept(finished, new, old), next_state, state)
            written = nest.map_structure(lambda array, value: array.write(time, value), arrays, emitted)
            return time + 1, written, next_state, next_inputs, next_finished, next_lengths

        time = constants.constant(0, dtypes.int32, name="time")
        _, arrays, final_state, _, _, lengths = branches_and_loops.while_loop(
            lambda time, arrays, state, inputs, finished, lengths: comparison.logical_not(
                reductions.reduce_all(finished)
            ),
            body,
            (time, arrays, state, inputs, finished, lengths),
            shape_invariants=None,
            parallel_iterations=parallel_iterations,
            return_same_structure=True,
        )
        outputs = nest.map_structure(lambda array: array.stack(), arrays)
        if type(decoder).finalize is not Decoder.finalize:
            outputs, final_state = decoder.finalize(outputs, final_state, lengths)
        if not output_time_major:
            outputs = nest.map_structure(_batch_first, outputs)
    return outputs, final_state, lengths


def _kept(finished: Tensor, new: Any, old: Any) -> Any:
    """`old` where a sequence has ended. Arrays and scalars are not of a sequence."""
    if isinstance(new, TensorArray) or new.static_shape.rank == 0:
        return new
    chosen = selection.where(finished, old, new)
    chosen.set_shape(old.static_shape)
    return chosen


BasicDecoderOutput = namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))
BasicDecoderOutput.__module__ = __name__
export(v1="contrib.seq2seq.BasicDecoderOutput")(BasicDecoderOutput)


@export(v1="contrib.seq2seq.BasicDecoder")
class BasicDecoder(Decoder):
    """A decoder of a cell, a `Helper` that chooses outputs and next inputs, and an optional layer on the outputs.

    Raises:
        TypeError: an argument is not a cell, a helper or a layer.
    """

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        check_cell(cell, "cell")
        if output_layer is not None and not isinstance(output_layer, Layer):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell, self._helper = cell, helper
        self._initial_state = initial_state
        self._output_layer: Any = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    def _rnn_output_size(self) -> Any:
        size = self._cell.output_size
        if self._output_layer is None:
            return size
        return _per_size(
            lambda each: TensorShape(
                list(as_shape(self._output_layer.compute_output_shape(TensorShape([None, *_dims(each)]))))[1:]
            ),
            size,
        )

    @property
    def output_size(self) -> Any:
        return BasicDecoderOutput(self._rnn_output_size(), self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        kind = nest.flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(
            _per_size(lambda _: as_dtype(kind).base_dtype, self._rnn_output_size()), self._helper.sample_ids_dtype
        )

    def initialize(self, name: str | None = None) -> Any:
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name or "BasicDecoderStep"):
            cell_outputs, cell_state = self._cell(inputs, state)
            if self._output_layer is not None:
                cell_outputs = self._output_layer(cell_outputs)
            sample_ids = self._helper.sample(time=time, outputs=cell_outputs, state=cell_state)
            finished, next_inputs, next_state = self._helper.next_inputs(
                time=time, outputs=cell_outputs, state=cell_state, sample_ids=sample_ids
            )
        return BasicDecoderOutput(cell_outputs, sample_ids), next_state, next_inputs, finished
