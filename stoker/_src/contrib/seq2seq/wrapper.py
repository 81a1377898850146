"""`AttentionWrapper`: a cell that attends to memories at every step."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.contrib.seq2seq.mechanisms import AttentionMechanism, known
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.layers.core import Dense
from stoker._src.layers.rnn_cells import RNNCell, check_cell, zero_tensors
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.control_flow import assertions
from stoker._src.ops.control_flow.tensor_array import TensorArray
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import comparison

_State = namedtuple(
    "AttentionWrapperState", ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state")
)


@export(v1="contrib.seq2seq.AttentionWrapperState")
class AttentionWrapperState(_State):
    """The state of an `AttentionWrapper`.

    cell_state: the wrapped cell's state. attention: the attention of the step before. time: the number of steps.
    alignments: the weights of the memory, one tensor for each mechanism. alignment_history: TensorArrays of the weights of
    all steps, or (). attention_state: the states of the mechanisms.
    """

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A copy with some fields replaced.

        Raises:
            ValueError: a tensor's static shape contradicts that of the one it replaces.
        """

        def fits(old: Any, new: Any) -> Any:
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                if not new.static_shape.compatible(old.static_shape):
                    raise ValueError(
                        "The shape of the AttentionWrapperState is expected to be same as the one to clone. "
                        f"self.shape: {old.shape}, input.shape: {new.shape}"
                    )
                new.set_shape(old.static_shape)
            return new

        return nest.map_structure(fits, self, self._replace(**kwargs))


def _compute_attention(mechanism: Any, cell_output: Any, attention_state: Any, attention_layer: Any) -> Any:
    """(attention, alignments, next state): the mean of the memory by the alignments, mapped by the layer with the output."""
    alignments, next_state = mechanism(cell_output, state=attention_state)
    weights = shaping.expand_dims(alignments, 1)
    context = shaping.squeeze(matrix_products.matmul(weights, mechanism.values), [1])
    if attention_layer is None:
        return context, alignments, next_state
    return attention_layer(joining.concat([cell_output, context], 1)), alignments, next_state


def _joined(inputs: Any, attention: Any) -> Tensor:
    return joining.concat([inputs, attention], -1)


@export(v1="contrib.seq2seq.AttentionWrapper")
class AttentionWrapper(RNNCell):
    """Wraps a cell with attention: the cell takes `cell_input_fn(inputs, attention)`, and its output is the next query.

    Args:
        cell: the cell.
        attention_mechanism: a mechanism, or a list of them.
        attention_layer_size: the size of the attention, a layer of the cell's output and the context; a list for several
            mechanisms. By default the attention is the context itself.
        alignment_history: whether to keep the alignments of all steps in the state.
        cell_input_fn: by default the concatenation.
        output_attention: whether the output is the attention (Luong) or the cell's output (Bahdanau).
        initial_cell_state: the cell state in `zero_state`.
        name: the name of its scope.
        attention_layer: layers to use instead of those of `attention_layer_size`.
        attention_fn: a function (mechanism, cell_output, attention_state, attention_layer) -> (attention, alignments, next
            attention state).
        dtype: see `Layer`.

    Raises:
        TypeError: a mechanism is none, or `cell_input_fn` is not callable.
        ValueError: the number of layers or sizes differs from that of the mechanisms, or both are given.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Any = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        check_cell(cell, "cell")
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for each in mechanisms:
            if not isinstance(each, AttentionMechanism):
                raise TypeError(
                    f"attention_mechanism must be an AttentionMechanism or list of multiple AttentionMechanism, saw type: {type(each).__name__}"
                )
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(f"cell_input_fn must be callable, saw type: {type(cell_input_fn).__name__}")
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        self._cell, self._mechanisms = cell, mechanisms
        self._cell_input_fn = cell_input_fn or _joined
        self._output_attention, self._alignment_history = output_attention, alignment_history
        self._attention_fn = attention_fn or _compute_attention
        self._attention_layers: Any = self._layers_of(attention_layer_size, attention_layer)
        if isinstance(cell, Trackable):
            self._track_trackable(cell, "cell")
        self._initial_cell_state: Any = None
        if initial_cell_state is not None:
            self._set_initial_state(initial_cell_state)

    def _layers_of(self, sizes: Any, layers: Any) -> Any:
        """The attention layers, and the size of the attention."""
        count = len(self._mechanisms)
        if sizes is not None:
            each = tuple(sizes) if isinstance(sizes, (list, tuple)) else (sizes,)
            if len(each) != count:
                raise ValueError(
                    f"If provided, attention_layer_size must contain exactly one integer per attention_mechanism, saw: {len(each)} vs {count}"
                )
            kinds = [mechanism.dtype for mechanism in self._mechanisms]
            self._attention_layer_size = sum(each)
            return tuple(
                Dense(size, name="attention_layer", use_bias=False, dtype=kind) for size, kind in zip(each, kinds)
            )
        if layers is not None:
            each = tuple(layers) if isinstance(layers, (list, tuple)) else (layers,)
            if len(each) != count:
                raise ValueError(
                    f"If provided, attention_layer must contain exactly one layer per attention_mechanism, saw: {len(each)} vs {count}"
                )
            self._attention_layer_size = sum(
                layer.compute_output_shape([None, self._cell.output_size + _depth(mechanism)])[-1]
                for layer, mechanism in zip(each, self._mechanisms)
            )
            return each
        self._attention_layer_size = sum(_depth(mechanism) for mechanism in self._mechanisms)
        return None

    def _set_initial_state(self, initial: Any) -> None:
        with name_scope("AttentionWrapperInit"):
            first = convert_to_tensor(nest.flatten(initial)[-1])
            batch = first.static_shape[0]
            batch_size = shaping.shape(first)[0] if batch is None else batch
            with control_dependencies(
                self._batch_checks(batch_size, "the memory (encoder output) and initial_cell_state")
            ):
                self._initial_cell_state = nest.map_structure(
                    lambda each: shaping.identity(each, name="check_initial_cell_state"), initial
                )

    def _batch_checks(self, batch_size: Any, between: str) -> list[Any]:
        message = (
            f"When calling AttentionWrapper {self._base_name}: Non-matching batch sizes between {between}. Are you using the "
            "BeamSearchDecoder?  You may need to tile your memory (or initial state) via tf.contrib.seq2seq.tile_batch with argument "
            "multiple=beam_width."
        )
        checks = []
        for mechanism in self._mechanisms:
            sizes = (batch_size, mechanism.batch_size)
            if None not in map(known, sizes):
                if known(batch_size) != known(mechanism.batch_size):
                    raise ValueError(f"{message} ({batch_size} and {mechanism.batch_size})")
            else:
                checks.append(assertions.assert_op(comparison.equal(*sizes), [message, *sizes]))
        return checks

    def _one_or_all(self, items: Any) -> Any:
        items = tuple(items)
        return items if self._is_multi else items[0]

    def _as_tuple(self, items: Any) -> tuple[Any, ...]:
        return tuple(items) if self._is_multi else (items,)

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        sizes = self._one_or_all(each.alignments_size for each in self._mechanisms)
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=TensorShape([]),
            attention=self._attention_layer_size,
            alignments=sizes,
            attention_state=self._one_or_all(each.state_size for each in self._mechanisms),
            alignment_history=self._one_or_all(
                each.alignments_size if self._alignment_history else () for each in self._mechanisms
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first step. The cell's state is `initial_cell_state` if there is one.

        Raises:
            ValueError: the batch size is not that of the memory.
        """
        with name_scope(type(self).__name__ + "ZeroState"):
            if self._initial_cell_state is not None:
                cell_state = self._initial_cell_state
            else:
                cell_state = self._cell.get_initial_state(batch_size=batch_size, dtype=dtype)
            checks = self._batch_checks(batch_size, "the memory (encoder output) and the requested batch size")
            with control_dependencies(checks):
                cell_state = nest.map_structure(lambda s: shaping.identity(s, name="checked_cell_state"), cell_state)
            alignments = [each.initial_alignments(batch_size, dtype) for each in self._mechanisms]
            return AttentionWrapperState(
                cell_state=cell_state,
                time=shaping.zeros([], dtypes.int32),
                attention=zero_tensors(self._attention_layer_size, batch_size, dtype),
                alignments=self._one_or_all(alignments),
                attention_state=self._one_or_all(each.initial_state(batch_size, dtype) for each in self._mechanisms),
                alignment_history=self._one_or_all(
                    TensorArray(dtype, size=0, dynamic_size=True, element_shape=each.shape)
                    if self._alignment_history
                    else ()
                    for each in alignments
                ),
            )

    def call(self, inputs: Any, state: Any) -> Any:
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                f"Expected state to be instance of AttentionWrapperState. Received type {type(state)} instead."
            )
        cell_inputs = self._cell_input_fn(inputs, state.attention)
        cell_output, next_cell_state = self._cell(cell_inputs, state.cell_state)
        known_batch = cell_output.static_shape.of_rank(2)[0]
        batch_size = shaping.shape(cell_output)[0] if known_batch is None else known_batch
        with control_dependencies(
            self._batch_checks(batch_size, "the memory (encoder output) and the query (decoder output)")
        ):
            cell_output = shaping.identity(cell_output, name="checked_cell_output")
        attentions, alignments, states, histories = [], [], [], []
        before = self._as_tuple(state.attention_state)
        histories_before = self._as_tuple(state.alignment_history)
        for i, mechanism in enumerate(self._mechanisms):
            attention, weights, next_state = self._attention_fn(
                mechanism, cell_output, before[i], self._attention_layers[i] if self._attention_layers else None
            )
            attentions.append(attention)
            alignments.append(weights)
            states.append(next_state)
            histories.append(histories_before[i].write(state.time, weights) if self._alignment_history else ())
        attention = joining.concat(attentions, 1)
        next_state = AttentionWrapperState(
            time=state.time + 1,
            cell_state=next_cell_state,
            attention=attention,
            attention_state=self._one_or_all(states),
            alignments=self._one_or_all(alignments),
            alignment_history=self._one_or_all(histories),
        )
        return attention if self._output_attention else cell_output, next_state


def _depth(mechanism: Any) -> int:
    return tuple(mechanism.values.static_shape)[-1]
