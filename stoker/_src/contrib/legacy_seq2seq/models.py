"""Encoders with decoders, models with buckets, and their losses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.contrib.legacy_seq2seq.decoders import (
    embedding_attention_decoder,
    embedding_rnn_decoder,
    feed_back,
    rnn_decoder,
)
from stoker._src.contrib.rnn.wrappers import EmbeddingWrapper, OutputProjectionWrapper
from stoker._src.graph.scopes import name_scope
from stoker._src.layers import rnn
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.math import arithmetic, reductions
from stoker._src.ops.nn import cross_entropy, embedding
from stoker._src.ops.variables import variable_scope

_SMALLEST_TOTAL = 1e-12


@export(v1="contrib.legacy_seq2seq.basic_rnn_seq2seq")
def basic_rnn_seq2seq(
    encoder_inputs: Any, decoder_inputs: Any, cell: Any, dtype: Any = dtypes.float32, scope: Any = None
) -> Any:
    """A copy of the cell runs over the encoder's inputs; its last state is the decoder's first (Sutskever et al., 2014)."""
    with variable_scope.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = rnn.static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


@export(v1="contrib.legacy_seq2seq.tied_rnn_seq2seq")
def tied_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    loop_function: Any = None,
    dtype: Any = dtypes.float32,
    scope: Any = None,
) -> Any:
    """`basic_rnn_seq2seq` whose encoder and decoder share their weights."""
    with variable_scope.variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = rnn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        variable_scope.get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function=loop_function, scope=scope)


def _with_either(feed_previous: Any, decode: Callable[[bool, bool], Any], state: Any) -> Any:
    """The decoder `decode(feed, update)`, with or without feedback.

    If `feed_previous` is a tensor, both are built, with the same variables, and the embedding of feedback is not trained.
    """
    if isinstance(feed_previous, bool):
        return decode(feed_previous, True)

    def flat(feed: bool) -> Callable[[], list[Any]]:
        def build() -> list[Any]:
            reuse = None if feed else True
            with variable_scope.variable_scope(variable_scope.get_variable_scope(), reuse=reuse):
                outputs, final = decode(feed, False)
                return [*outputs, *nest.flatten(final)]

        return build

    found = branches_and_loops.cond(feed_previous, flat(True), flat(False))
    count = len(found) - len(nest.flatten(state))
    final = found[count:]
    return list(found[:count]), nest.pack_sequence_as(state, final) if nest.is_nested(state) else final[0]


@export(v1="contrib.legacy_seq2seq.embedding_rnn_seq2seq")
def embedding_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Any:
    """`basic_rnn_seq2seq` of ids with embeddings. Returns (logits for each step, final state).

    Args:
        encoder_inputs, decoder_inputs: lists of ids [batch].
        cell: the cell.
        num_encoder_symbols, num_decoder_symbols: the numbers of ids.
        embedding_size: the size of both embeddings.
        output_projection: (weights, bias) from outputs to logits. Without them, outputs are projected by the cell.
        feed_previous: a bool or a boolean tensor, whether the best symbol of a step is the input of the next one.
        dtype: the dtype of the encoder's state; by default that of the scope.
        scope: the variable scope; "embedding_rnn_seq2seq" by default.
    """
    with variable_scope.variable_scope(scope or "embedding_rnn_seq2seq") as opened:
        if dtype is not None:
            opened.set_dtype(dtype)
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = rnn.static_rnn(encoder, encoder_inputs, dtype=dtype or opened.dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(feed: bool, update: bool) -> Any:
            return embedding_rnn_decoder(
                decoder_inputs,
                state,
                cell,
                num_decoder_symbols,
                embedding_size,
                output_projection=output_projection,
                feed_previous=feed,
                update_embedding_for_previous=update,
            )

        return _with_either(feed_previous, decode, state)


@export(v1="contrib.legacy_seq2seq.embedding_tied_rnn_seq2seq")
def embedding_tied_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Any:
    """`tied_rnn_seq2seq` of ids with one embedding. The arguments are those of `embedding_rnn_seq2seq`."""
    with variable_scope.variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as opened:
        kind = opened.dtype
        table = variable_scope.get_variable("embedding", [num_symbols, embedding_size], dtype=kind)
        encoded = [embedding.embedding_lookup(table, each) for each in encoder_inputs]
        decoded = [embedding.embedding_lookup(table, each) for each in decoder_inputs]
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols)

        def decode(feed: bool, update: bool) -> Any:
            loop = feed_back(table, output_projection, update) if feed else None
            return tied_rnn_seq2seq(encoded, decoded, cell, loop_function=loop, dtype=kind)

        like = cell.zero_state(1, kind) if not isinstance(feed_previous, bool) else None
        return _with_either(feed_previous, decode, like)


@export(v1="contrib.legacy_seq2seq.embedding_attention_seq2seq")
def embedding_attention_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Any:
    """`embedding_rnn_seq2seq` with attention to the encoder's outputs. See `attention_decoder` for its arguments."""
    with variable_scope.variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as opened:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = rnn.static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        top = [shaping.reshape(each, [-1, 1, cell.output_size]) for each in outputs]
        attention_states = joining.concat(top, 1)
        output_size = None
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
            output_size = num_decoder_symbols

        def decode(feed: bool, update: bool) -> Any:
            return embedding_attention_decoder(
                decoder_inputs,
                state,
                attention_states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads=num_heads,
                output_size=output_size,
                output_projection=output_projection,
                feed_previous=feed,
                update_embedding_for_previous=update,
                initial_state_attention=initial_state_attention,
            )

        return _with_either(feed_previous, decode, state)


@export(v1="contrib.legacy_seq2seq.one2many_rnn_seq2seq")
def one2many_rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs_dict: Any,
    enc_cell: Any,
    dec_cells_dict: Any,
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Any,
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Any:
    """One encoder and several named decoders. Returns two dictionaries by name: the outputs and the final states."""
    outputs, states = {}, {}
    with variable_scope.variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as opened:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = rnn.static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        for name, inputs in decoder_inputs_dict.items():
            count = num_decoder_symbols_dict[name]
            with variable_scope.variable_scope(f"one2many_decoder_{name}"):
                cell = OutputProjectionWrapper(dec_cells_dict[name], count)

                def decode(feed: bool, update: bool, inputs: Any = inputs, cell: Any = cell, count: int = count) -> Any:
                    return embedding_rnn_decoder(
                        inputs, state, cell, count, embedding_size, None, feed, update_embedding_for_previous=update
                    )

                outputs[name], states[name] = _with_either(feed_previous, decode, state)
    return outputs, states


@export(v1="contrib.legacy_seq2seq.sequence_loss_by_example")
def sequence_loss_by_example(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """The weighted cross-entropy of lists of logits [batch, symbols] and targets [batch], one number for each example.

    Args:
        logits, targets, weights: lists, one entry for each step.
        average_across_timesteps: whether the sum over time is divided by that of the weights.
        softmax_loss_function: a function of `labels` and `logits`; the sparse softmax cross-entropy by default.
        name: a name scope.

    Raises:
        ValueError: the lists differ in length.
    """
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(
            f"Lengths of logits, weights, and targets must be the same {len(logits)}, {len(weights)}, {len(targets)}."
        )
    with name_scope(name or "sequence_loss_by_example"):
        loss = softmax_loss_function or cross_entropy.sparse_softmax_cross_entropy_with_logits
        steps = []
        for logit, target, weight in zip(logits, targets, weights):
            labels = shaping.reshape(target, [-1]) if softmax_loss_function is None else target
            steps.append(loss(labels=labels, logits=logit) * weight)
        total = arithmetic.add_n(steps)
        if average_across_timesteps:
            total = total / (arithmetic.add_n(list(weights)) + _SMALLEST_TOTAL)
        return total


@export(v1="contrib.legacy_seq2seq.sequence_loss")
def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """`sequence_loss_by_example`, summed over the batch, and divided by its size if `average_across_batch`."""
    with name_scope(name or "sequence_loss"):
        cost = reductions.reduce_sum(
            sequence_loss_by_example(
                logits,
                targets,
                weights,
                average_across_timesteps=average_across_timesteps,
                softmax_loss_function=softmax_loss_function,
            )
        )
        if not average_across_batch:
            return cost
        return cost / casting.cast(shaping.shape(targets[0])[0], cost.dtype)


@export(v1="contrib.legacy_seq2seq.model_with_buckets")
def model_with_buckets(
    encoder_inputs: Any,
    decoder_inputs: Any,
    targets: Any,
    weights: Any,
    buckets: Any,
    seq2seq: Callable[[Any, Any], Any],
    softmax_loss_function: Any = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> Any:
    """One model for each pair of lengths, all with the same variables. Returns (outputs, losses), one entry a bucket.

    Args:
        encoder_inputs, decoder_inputs, targets, weights: lists of tensors for the longest bucket.
        buckets: pairs (encoder length, decoder length).
        seq2seq: a function (encoder inputs, decoder inputs) -> (outputs, states).
        softmax_loss_function: see `sequence_loss`.
        per_example_loss: whether losses are one number for each example.
        name: a name scope.

    Raises:
        ValueError: a list is shorter than the last bucket.
    """
    for kind, given, at in (
        ("encoder_inputs", encoder_inputs, 0),
        ("targets", targets, 1),
        ("weights", weights, 1),
    ):
        if len(given) < buckets[-1][at]:
            raise ValueError(
                f"Length of {kind} ({len(given)}) must be at least that of last bucket ({buckets[-1][at]})."
            )
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    outputs, losses = [], []
    with name_scope(name or "model_with_buckets"):
        for i, (encoder_length, decoder_length) in enumerate(buckets):
            with variable_scope.variable_scope(variable_scope.get_variable_scope(), reuse=True if i > 0 else None):
                bucket_outputs, _ = seq2seq(encoder_inputs[:encoder_length], decoder_inputs[:decoder_length])
                outputs.append(bucket_outputs)
                losses.append(
                    loss(
                        outputs[-1],
                        targets[:decoder_length],
                        weights[:decoder_length],
                        softmax_loss_function=softmax_loss_function,
                    )
                )
    return outputs, losses
