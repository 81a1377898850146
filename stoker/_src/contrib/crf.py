"""`tf.contrib.crf`: linear-chain conditional random fields (Lafferty et al., 2001).

The score of a sequence of tags is the sum of `inputs[t, tag_t]` and `transition_params[tag_t, tag_t+1]` over time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.layers import rnn
from stoker._src.layers.rnn_cells import RNNCell
from stoker._src.ops.array import casting, gathering, joining, ranges, selection, shaping
from stoker._src.ops.math import arithmetic, comparison, masking, reductions, scans
from stoker._src.ops.variables import variable_scope


def _tensors(*values: Any) -> list[Tensor]:
    return [convert_to_tensor(each) for each in values]


def _mask(lengths: Tensor, steps: Any, dtype: Any) -> Tensor:
    return masking.sequence_mask(lengths, steps, dtype)


def _less_one(lengths: Tensor) -> Any:
    return arithmetic.maximum(casting.cast(0, lengths.dtype), lengths - 1)


def _unless_empty(lengths: Tensor, values: Any) -> Any:
    """0 for sequences of no steps."""
    return selection.where(comparison.less_equal(lengths, 0), shaping.zeros_like(values), values)


@export(v1="contrib.crf.crf_unary_score")
def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """The sum of the inputs [batch, time, tags] at the tags [batch, time], for each sequence."""
    tags, lengths, inputs = _tensors(tag_indices, sequence_lengths, inputs)
    at_tags = gathering.gather(inputs, casting.cast(tags, dtypes.int32), axis=2, batch_dims=2)
    return reductions.reduce_sum(at_tags * _mask(lengths, shaping.shape(tags)[1], at_tags.dtype), 1)


@export(v1="contrib.crf.crf_binary_score")
def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The sum of the transitions [tags, tags] between consecutive tags [batch, time], for each sequence."""
    tags, lengths, transitions = _tensors(tag_indices, sequence_lengths, transition_params)
    pairs = joining.stack([tags[:, :-1], tags[:, 1:]], 2)
    steps = gathering.gather_nd(transitions, pairs)
    mask = _mask(lengths, shaping.shape(tags)[1], steps.dtype)
    return reductions.reduce_sum(steps * mask[:, 1:], 1)


@export(v1="contrib.crf.crf_sequence_score")
def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The score of sequences of tags [batch, time], one number for each; 0 for an empty one."""
    inputs, tags, lengths, transitions = _tensors(inputs, tag_indices, sequence_lengths, transition_params)
    score = crf_unary_score(tags, lengths, inputs) + crf_binary_score(tags, lengths, transitions)
    return _unless_empty(lengths, score)


@export(v1="contrib.crf.crf_multitag_sequence_score")
def crf_multitag_sequence_score(inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The log of the sum of exp(score) over all sequences of the tags that `tag_bitmap` [batch, time, tags] allows."""
    inputs, allowed, lengths, transitions = _tensors(inputs, tag_bitmap, sequence_lengths, transition_params)
    excluded = shaping.fill(shaping.shape(inputs), casting.cast(-float("inf"), inputs.dtype))
    filtered = selection.where(casting.cast(allowed, dtypes.bool_), inputs, excluded)
    if inputs.static_shape.of_rank(3)[1] == 1:
        return _unless_empty(lengths, reductions.reduce_logsumexp(shaping.squeeze(filtered, [1]), [1]))
    return crf_log_norm(filtered, lengths, transitions)


@export(v1="contrib.crf.CrfForwardRnnCell")
class CrfForwardRnnCell(RNNCell):
    """One step of the forward algorithm: log sums of exp(score) over all sequences up to each tag."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        self._transitions = shaping.expand_dims(transition_params, 0)
        self._num_tags = _tag_count(transition_params)

    @property
    def state_size(self) -> int:
        return self._num_tags

    @property
    def output_size(self) -> int:
        return self._num_tags

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        paths = shaping.expand_dims(state, 2) + self._transitions
        new = inputs + reductions.reduce_logsumexp(paths, [1])
        return new, new


def _tag_count(transition_params: Any) -> int:
    count = convert_to_tensor(transition_params).static_shape.of_rank(2)[0]
    if count is None:
        raise ValueError("The number of tags, the size of transition_params, must be known.")
    return count


@export(v1="contrib.crf.crf_log_norm")
def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The log of the sum of exp(score) over all sequences of tags; 0 for an empty sequence."""
    inputs, lengths, transitions = _tensors(inputs, sequence_lengths, transition_params)
    first = inputs[:, 0, :]
    if inputs.static_shape.of_rank(3)[1] == 1:
        return _unless_empty(lengths, reductions.reduce_logsumexp(first, [1]))
    _, last = rnn.dynamic_rnn(
        CrfForwardRnnCell(transitions),
        inputs[:, 1:, :],
        sequence_length=_less_one(lengths),
        initial_state=first,
        dtype=inputs.dtype,
    )
    return _unless_empty(lengths, reductions.reduce_logsumexp(last, [1]))


@export(v1="contrib.crf.crf_log_likelihood")
def crf_log_likelihood(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None) -> Any:
    """(log likelihood of the tags [batch, time], transitions). Without transitions, they are the variable `transitions`."""
    inputs, tags, lengths = _tensors(inputs, tag_indices, sequence_lengths)
    if transition_params is None:
        count = inputs.static_shape.of_rank(3)[2]
        transition_params = variable_scope.get_variable("transitions", [count, count])
    score = crf_sequence_score(inputs, tags, lengths, transition_params)
    return score - crf_log_norm(inputs, lengths, transition_params), transition_params


@export(v1="contrib.crf.viterbi_decode")
def viterbi_decode(score: Any, transition_params: Any) -> Any:
    """(best tags as a list, their score) of one sequence of NumPy scores [time, tags]."""
    score, transitions = np.asarray(score), np.asarray(transition_params)
    best = score[0]
    pointers = []
    for row in score[1:]:
        paths = best[:, None] + transitions
        pointers.append(paths.argmax(0))
        best = row + paths.max(0)
    tags = [int(best.argmax())]
    for pointer in reversed(pointers):
        tags.append(int(pointer[tags[-1]]))
    return tags[::-1], best.max()


@export(v1="contrib.crf.CrfDecodeForwardRnnCell")
class CrfDecodeForwardRnnCell(RNNCell):
    """One step of the Viterbi algorithm. The output is the best tag before each tag."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        self._transitions = shaping.expand_dims(transition_params, 0)
        self._num_tags = _tag_count(transition_params)

    @property
    def state_size(self) -> int:
        return self._num_tags

    @property
    def output_size(self) -> int:
        return self._num_tags

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        paths = shaping.expand_dims(state, 2) + self._transitions
        return casting.cast(scans.argmax(paths, 1), dtypes.int32), inputs + reductions.reduce_max(paths, [1])


@export(v1="contrib.crf.CrfDecodeBackwardRnnCell")
class CrfDecodeBackwardRnnCell(RNNCell):
    """One step back along the best tags: the state [batch, 1] is a tag, the inputs are the best tags before each tag."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> int:
        return 1

    @property
    def output_size(self) -> int:
        return 1

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        rows = ranges.range(shaping.shape(inputs)[0])
        tags = gathering.gather_nd(inputs, joining.stack([rows, shaping.squeeze(state, [1])], 1))
        tags = shaping.expand_dims(tags, 1)
        return tags, tags


@export(v1="contrib.crf.crf_decode")
def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> Any:
    """(best tags [batch, time], their scores [batch]) by the Viterbi algorithm. Tags behind a sequence's length are 0."""
    potentials, transitions, lengths = _tensors(potentials, transition_params, sequence_length)
    if potentials.static_shape.of_rank(3)[1] == 1:
        only = shaping.squeeze(potentials, [1])
        tags = casting.cast(shaping.expand_dims(scans.argmax(only, 1), 1), dtypes.int32)
        return tags, reductions.reduce_max(only, 1)
    before = _less_one(lengths)
    pointers, last = rnn.dynamic_rnn(
        CrfDecodeForwardRnnCell(transitions),
        potentials[:, 1:, :],
        sequence_length=before,
        initial_state=potentials[:, 0, :],
        dtype=dtypes.int32,
    )
    pointers = selection.reverse_sequence(pointers, seq_lengths=before, seq_axis=1, batch_axis=0)
    final = shaping.expand_dims(casting.cast(scans.argmax(last, 1), dtypes.int32), 1)
    earlier, _ = rnn.dynamic_rnn(
        CrfDecodeBackwardRnnCell(_tag_count(transitions)),
        pointers,
        sequence_length=before,
        initial_state=final,
        dtype=dtypes.int32,
    )
    tags = joining.concat([final, shaping.squeeze(earlier, [2])], 1)
    tags = selection.reverse_sequence(tags, seq_lengths=lengths, seq_axis=1, batch_axis=0)
    return tags, reductions.reduce_max(last, 1)
