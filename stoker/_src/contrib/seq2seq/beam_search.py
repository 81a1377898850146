"""Beam search: a decoder that keeps the best `beam_width` sequences of each example."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape
from stoker._src.contrib.seq2seq.decoding import Decoder
from stoker._src.contrib.seq2seq.wrapper import AttentionWrapperState
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.base import Layer
from stoker._src.layers.rnn_cells import check_cell
from stoker._src.ops.array import casting, constants, gathering, joining, ranges, selection, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.control_flow.tensor_array import TensorArray
from stoker._src.ops.math import arithmetic, comparison, masking, reductions, sorting, unary_functions
from stoker._src.ops.nn import beam_trees, softmax
from stoker._src.ops.nn import embedding as embeddings


def _record(name: str, fields: str) -> Any:
    made = namedtuple(name, fields.split())
    made.__module__ = __name__
    return made


BeamSearchDecoderState = _record(
    "BeamSearchDecoderState", "cell_state log_probs finished lengths accumulated_attention_probs"
)
BeamSearchDecoderOutput = _record("BeamSearchDecoderOutput", "scores predicted_ids parent_ids")
FinalBeamSearchDecoderOutput = _record("FinalBeamSearchDecoderOutput", "predicted_ids beam_search_decoder_output")
for _made in (BeamSearchDecoderState, BeamSearchDecoderOutput, FinalBeamSearchDecoderOutput):
    export(v1=f"contrib.seq2seq.{_made.__name__}")(_made)


@export(v1="contrib.seq2seq.gather_tree")
def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None
) -> Any:
    """The sequences of a beam search: each beam's ids, followed back along the parents, [time, batch, beam].

    Args:
        step_ids, parent_ids: [time, batch, beam], the ids of each step, and the beams of the step before that they continue.
        max_sequence_lengths: [batch]. Behind it, and behind the first `end_token`, all ids are `end_token`.
        end_token: a scalar.
        name: the name of the op.
    """
    return beam_trees.GATHER_TREE(step_ids, parent_ids, max_sequence_lengths, end_token, name=name)


@export(v1="contrib.seq2seq.tile_batch")
def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Repeats each example `multiplier` times, side by side: [batch, ...] becomes [batch * multiplier, ...].

    Args:
        t: a structure of tensors.
        multiplier: the number of copies, the beam width.
        name: a name scope.

    Raises:
        ValueError: a tensor has no known rank, or is a scalar.
    """

    def tiled(x: Any) -> Tensor:
        x = convert_to_tensor(x, name="t")
        rank = x.static_shape.rank
        if rank is None:
            raise ValueError("t must have statically known rank")
        if rank == 0:
            raise ValueError("t must have a batch dimension, got a scalar")
        shape = shaping.shape(x)
        wide = joining.tile(shaping.expand_dims(x, 1), [1, multiplier, *[1] * (rank - 1)])
        flat = shaping.reshape(wide, joining.concat([shaping.reshape(shape[0] * multiplier, [1]), shape[1:]], 0))
        known = x.static_shape[0]
        size = multiplier if isinstance(multiplier, int) else constant_value(multiplier)
        flat.set_shape([None if known is None or size is None else known * int(size), *tuple(x.static_shape)[1:]])
        return flat

    with name_scope(name or "tile_batch"):
        return nest.map_structure(tiled, t)


@export(v1="contrib.seq2seq.BeamSearchDecoder")
class BeamSearchDecoder(Decoder):
    """Beam search. The memory of attention and the initial state must have been tiled with `tile_batch`.

    score = log_prob / ((5 + length) / 6)^length_penalty_weight + coverage_penalty_weight * sum(log(min(attention, 1)))
    (Wu et al., 2016), where attention is the sum of the alignments of all steps.

    Args:
        cell: the cell.
        embedding: a function from ids to inputs, or the table.
        start_tokens: [batch], the first ids.
        end_token: the id that ends a sequence.
        initial_state: the cell's state, [batch * beam_width, ...].
        beam_width: the number of sequences to keep.
        output_layer: a layer on the cell's outputs.
        length_penalty_weight, coverage_penalty_weight: see above. 0 turns a penalty off.
        reorder_tensor_arrays: whether TensorArrays of the state (the history of alignments) follow their beams in the end.

    Raises:
        TypeError: an argument is not a cell or a layer.
        ValueError: `start_tokens` is not a vector, or `end_token` not a scalar.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        check_cell(cell, "cell")
        if output_layer is not None and not isinstance(output_layer, Layer):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell, self._output_layer = cell, output_layer
        self._beam_width, self._reorder = beam_width, reorder_tensor_arrays
        self._length_weight, self._coverage_weight = length_penalty_weight, coverage_penalty_weight
        self._embedding: Any = (
            embedding if callable(embedding) else lambda ids: embeddings.embedding_lookup(embedding, ids)
        )
        self._start_tokens = convert_to_tensor(start_tokens, dtypes.int32, name="start_tokens")
        if self._start_tokens.static_shape.rank != 1:
            raise ValueError("start_tokens must be a vector")
        self._end_token = convert_to_tensor(end_token, dtypes.int32, name="end_token")
        if self._end_token.static_shape.rank != 0:
            raise ValueError("end_token must be a scalar")
        known = self._start_tokens.static_shape[0]
        self._known_batch = known
        self._batch_size: Any = shaping.shape(self._start_tokens)[0] if known is None else known
        self._initial_cell_state = nest.map_structure(self._split, initial_state)
        self._start_inputs = self._embedding(joining.tile(shaping.expand_dims(self._start_tokens, 1), [1, beam_width]))

    # -- shapes: [batch, beam, ...] and [batch * beam, ...] --------------------------------------------------------

    def _split(self, x: Any) -> Any:
        """[batch * beam, ...] as [batch, beam, ...]. Arrays and scalars are not of a beam."""
        if isinstance(x, TensorArray):
            return x
        x = convert_to_tensor(x)
        if x.static_shape.rank is None:
            raise ValueError(f"Expected tensor ({x}) to have known rank, but ndims == None.")
        if x.static_shape.rank == 0:
            return x
        inner = shaping.shape(x)[1:]
        found = shaping.reshape(x, joining.concat([[self._batch_size, self._beam_width], inner], 0))
        found.set_shape([self._known_batch, self._beam_width, *tuple(x.static_shape)[1:]])
        return found

    def _merged(self, x: Any) -> Any:
        """The reverse of `_split`."""
        if isinstance(x, TensorArray):
            return x
        x = convert_to_tensor(x)
        if not x.static_shape.rank:
            return x
        inner = shaping.shape(x)[2:]
        rows = self._batch_size * self._beam_width
        found = shaping.reshape(x, joining.concat([shaping.reshape(rows, [1]), inner], 0))
        known = None if self._known_batch is None else self._known_batch * self._beam_width
        found.set_shape([known, *tuple(x.static_shape)[2:]])
        return found

    def _gathered(self, x: Any, beams: Tensor) -> Any:
        """The given beams [batch, beam] of [batch, beam, ...]."""
        if isinstance(x, TensorArray) or not x.static_shape.rank:
            return x
        found = gathering.gather_nd(x, self._rows_and(beams))
        found.set_shape(x.static_shape)
        return found

    def _rows_and(self, columns: Tensor) -> Tensor:
        rows = joining.tile(shaping.expand_dims(ranges.range(self._batch_size), 1), [1, self._beam_width])
        return joining.stack([rows, casting.cast(columns, dtypes.int32)], 2)

    # -- a decoder ---------------------------------------------------------------------------------------------------

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """Beams trade places, so that a beam that has ended may be taken by one that has not."""
        return True

    @property
    def output_size(self) -> Any:
        size = TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(scores=size, predicted_ids=size, parent_ids=size)

    @property
    def output_dtype(self) -> Any:
        kind = as_dtype(nest.flatten(self._initial_cell_state)[0].dtype).base_dtype
        return BeamSearchDecoderOutput(scores=kind, predicted_ids=dtypes.int32, parent_ids=dtypes.int32)

    def initialize(self, name: str | None = None) -> Any:
        """All beams are alike at first, so that all but the first one count as ended, with probability 0."""
        kind = self.output_dtype.scores
        first = shaping.zeros(joining.stack([self._batch_size]), dtypes.int32)
        finished = selection.one_hot(first, self._beam_width, on_value=False, off_value=True, dtype=dtypes.bool_)
        log_probs = selection.one_hot(
            first,
            self._beam_width,
            on_value=convert_to_tensor(0.0, kind),
            off_value=convert_to_tensor(-np.inf, kind),
            dtype=kind,
        )
        shape = [self._known_batch, self._beam_width]
        for each in (finished, log_probs):
            each.set_shape(shape)
        alignments = self._alignments(self._initial_cell_state)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=log_probs,
            finished=finished,
            lengths=shaping.zeros_like(finished, dtype=dtypes.int64),
            accumulated_attention_probs=() if alignments is None else shaping.zeros_like(alignments),
        )
        return finished, self._start_inputs, state

    def _alignments(self, cell_state: Any) -> Any:
        """The alignments of attention, [batch, beam, items], for the coverage penalty; None without one."""
        if isinstance(self._coverage_weight, (int, float)) and self._coverage_weight == 0:
            return None
        states = cell_state if isinstance(cell_state, tuple) and not hasattr(cell_state, "_fields") else (cell_state,)
        found: list[Any] = []
        for each in states:
            if isinstance(each, AttentionWrapperState):
                found.extend(each.alignments if isinstance(each.alignments, tuple) else [each.alignments])
        if not found:
            raise ValueError("coverage_penalty_weight needs a state of AttentionWrapper")
        return joining.concat(found, -1) / len(found)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name or "BeamSearchDecoderStep"):
            cell_inputs = nest.map_structure(self._merged, inputs)
            cell_state = nest.map_structure(self._merged, state.cell_state)
            cell_outputs, next_cell_state = self._cell(cell_inputs, cell_state)
            if self._output_layer is not None:
                cell_outputs = self._output_layer(cell_outputs)
            logits = self._split(cell_outputs)
            next_cell_state = nest.map_structure(self._split, next_cell_state)
            outputs, next_state = self._searched(logits, next_cell_state, state)
            finished = next_state.finished
            next_inputs: Any = branches_and_loops.cond(
                reductions.reduce_all(finished),
                lambda: self._start_inputs,
                lambda: self._embedding(outputs.predicted_ids),
            )
            next_inputs.set_shape(self._start_inputs.static_shape)
        return outputs, next_state, next_inputs, finished

    def _searched(self, logits: Tensor, next_cell_state: Any, state: Any) -> Any:
        """One step of the search: (outputs, next state)."""
        width, kind = self._beam_width, logits.dtype.base_dtype
        words = tuple(logits.static_shape)[-1] or shaping.shape(logits)[-1]
        running = comparison.logical_not(state.finished)
        # A beam that has ended goes on with the end token only, for free.
        lowest = float(np.finfo(kind.as_numpy_dtype).min)
        ended = selection.one_hot(
            self._end_token,
            words,
            on_value=convert_to_tensor(0.0, kind),
            off_value=convert_to_tensor(lowest, kind),
            dtype=kind,
        )
        steps = softmax.log_softmax(logits)
        mask = casting.cast(shaping.expand_dims(state.finished, 2), kind)
        steps = mask * ended + (1 - mask) * steps
        total = shaping.expand_dims(state.log_probs, 2) + steps

        longer = selection.one_hot(self._end_token, words, on_value=0, off_value=1, dtype=dtypes.int64)
        added = casting.cast(shaping.expand_dims(running, 2), dtypes.int64) * longer
        new_lengths = added + shaping.expand_dims(state.lengths, 2)
        alignments = self._alignments(next_cell_state)
        seen: Any = state.accumulated_attention_probs
        if alignments is not None:
            open_ = casting.cast(shaping.expand_dims(running, 2), alignments.dtype)
            seen = alignments * open_ + seen
        scores = self._scores(total, new_lengths, state.finished, None if alignments is None else seen)

        flat = shaping.reshape(scores, joining.stack([self._batch_size, width * words]))
        best, places = sorting.top_k(flat, width)
        best.set_shape([self._known_batch, width])
        places.set_shape([self._known_batch, width])
        next_log_probs = gathering.gather_nd(shaping.reshape(total, shaping.shape(flat)), self._rows_and(places))
        next_log_probs.set_shape([self._known_batch, width])
        ids = casting.cast(arithmetic.floormod(places, words), dtypes.int32)
        parents = casting.cast(arithmetic.floordiv(places, words), dtypes.int32)

        were_finished = self._gathered(state.finished, parents)
        finished = comparison.logical_or(were_finished, comparison.equal(ids, self._end_token))
        grown = casting.cast(comparison.logical_not(were_finished), dtypes.int64)
        next_state = BeamSearchDecoderState(
            cell_state=nest.map_structure(lambda x: self._gathered(x, parents), next_cell_state),
            log_probs=next_log_probs,
            finished=finished,
            lengths=self._gathered(state.lengths, parents) + grown,
            accumulated_attention_probs=() if alignments is None else self._gathered(seen, parents),
        )
        return BeamSearchDecoderOutput(scores=best, predicted_ids=ids, parent_ids=parents), next_state

    def _scores(self, log_probs: Tensor, lengths: Tensor, finished: Tensor, seen: Any) -> Any:
        kind = log_probs.dtype.base_dtype
        scores = log_probs
        weight = constant_value(self._length_weight) if isinstance(self._length_weight, Tensor) else self._length_weight
        if weight is None or weight != 0:
            scores = log_probs / ((5.0 + casting.cast(lengths, kind)) / 6.0) ** casting.cast(
                convert_to_tensor(self._length_weight), kind
            )
        if seen is None:
            return scores
        # Items behind the end of the memory are never attended to; with 1 in their place they do not count.
        covered = selection.where(comparison.equal(seen, 0.0), shaping.ones_like(seen), seen)
        covered = unary_functions.log(arithmetic.minimum(covered, 1.0))
        # Only sequences that have ended are judged by what they cover.
        penalty = reductions.reduce_sum(covered, -1, keepdims=True) * casting.cast(
            shaping.expand_dims(finished, 2), kind
        )
        return scores + casting.cast(convert_to_tensor(self._coverage_weight), kind) * penalty

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        longest = casting.cast(reductions.reduce_max(final_state.lengths, 1), dtypes.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder:
            final_state = final_state._replace(
                cell_state=nest.map_structure(
                    lambda x: self._reordered(x, outputs.parent_ids, final_state.lengths), final_state.cell_state
                )
            )
        return FinalBeamSearchDecoderOutput(beam_search_decoder_output=outputs, predicted_ids=ids), final_state

    def _reordered(self, array: Any, parents: Tensor, lengths: Tensor) -> Any:
        """An array of [batch * beam, ...] for each step as one tensor, in which each beam has its own history."""
        if not isinstance(array, TensorArray):
            return array
        element = array.element_shape
        # TensorFlow only sorts arrays whose batch size is not known, or that have [batch, beam, ...] for each step.
        if element.rank is None or element.rank < 1 or (element[0] is not None and self._known_batch is not None):
            return array
        stacked = array.stack()
        width = self._beam_width
        sizes = shaping.shape(parents)
        steps, batch = sizes[0], sizes[1]
        own = joining.tile(
            shaping.reshape(ranges.range(width), [1, 1, width]), joining.stack([steps, batch, constants.constant(1)])
        )
        mask = shaping.transpose(casting.cast(masking.sequence_mask(lengths, steps), dtypes.int32), [2, 0, 1])
        longest = casting.cast(reductions.reduce_max(lengths, 1), dtypes.int32)
        origin = gather_tree(own * mask + (1 - mask) * (width + 1), parents, longest, constants.constant(width + 1))
        origin = selection.where(comparison.less(origin, width), origin, own)
        inner = shaping.shape(stacked)[2:]
        whole = shaping.reshape(stacked, joining.concat([joining.stack([steps, batch, width]), inner], 0))
        times, rows = (
            joining.tile(shaping.reshape(ranges.range(size), shape), joining.stack(multiples))
            for size, shape, multiples in (
                (steps, [-1, 1, 1], [1, batch, width]),
                (batch, [1, -1, 1], [steps, 1, width]),
            )
        )
        sorted_ = gathering.gather_nd(whole, joining.stack([times, rows, origin], 3))
        found = shaping.reshape(sorted_, shaping.shape(stacked))
        found.set_shape(Shape((None, *tuple(element))))
        return found
