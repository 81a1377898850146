"""Decoders over lists of inputs, with and without attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.contrib.rnn.linear import linear, width
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.math import reductions, scans, unary_functions
from stoker._src.ops.nn import bias as biases
from stoker._src.ops.nn import conv_api, embedding, softmax
from stoker._src.ops.variables import variable_scope


def feed_back(table: Any, output_projection: Any = None, update_embedding: bool = True) -> Callable[[Any, Any], Any]:
    """A loop function: the embedding of the largest output of the step before."""

    def following(previous: Any, _: Any) -> Any:
        if output_projection is not None:
            previous = biases.xw_plus_b(previous, output_projection[0], output_projection[1])
        found = embedding.embedding_lookup(table, scans.argmax(previous, 1))
        return found if update_embedding else shaping.stop_gradient(found)

    return following


@export(v1="contrib.legacy_seq2seq.rnn_decoder")
def rnn_decoder(
    decoder_inputs: Any, initial_state: Any, cell: Any, loop_function: Any = None, scope: Any = None
) -> Any:
    """Runs a cell over a list of inputs. Returns (list of outputs, final state).

    Args:
        decoder_inputs: the inputs, [batch, size] for each step.
        initial_state: the cell's first state.
        cell: the cell.
        loop_function: a function (output of the step before, number of the step) to the input of a step. Then the given
            inputs are ignored but for the first.
        scope: the variable scope; "rnn_decoder" by default.
    """
    with variable_scope.variable_scope(scope or "rnn_decoder"):
        state, outputs = initial_state, []
        for i, given in enumerate(decoder_inputs):
            if loop_function is not None and outputs:
                with variable_scope.variable_scope("loop_function", reuse=True):
                    given = loop_function(outputs[-1], i)
            if i > 0:
                variable_scope.get_variable_scope().reuse_variables()
            output, state = cell(given, state)
            outputs.append(output)
    return outputs, state


def _check_projection(output_projection: Any, rows: Any, columns: int) -> None:
    if output_projection is None:
        return
    weights, bias = (convert_to_tensor(each) for each in output_projection)
    if rows is not None:
        weights.shape.assert_is_compatible_with([rows, columns])
    bias.shape.assert_is_compatible_with([columns])


@export(v1="contrib.legacy_seq2seq.embedding_rnn_decoder")
def embedding_rnn_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> Any:
    """`rnn_decoder` over lists of ids [batch], which are looked up in the variable `embedding`.

    Args:
        decoder_inputs: the ids.
        initial_state, cell: see `rnn_decoder`.
        num_symbols, embedding_size: the shape of the embedding.
        output_projection: (weights, bias) that map outputs to symbols, for `feed_previous`.
        feed_previous: whether the best symbol of a step is the input of the next one.
        update_embedding_for_previous: whether gradients pass through the embedding of such inputs.
        scope: the variable scope; "embedding_rnn_decoder" by default.
    """
    with variable_scope.variable_scope(scope or "embedding_rnn_decoder"):
        _check_projection(output_projection, None, num_symbols)
        table = variable_scope.get_variable("embedding", [num_symbols, embedding_size])
        loop = feed_back(table, output_projection, update_embedding_for_previous) if feed_previous else None
        inputs = [embedding.embedding_lookup(table, each) for each in decoder_inputs]
        return rnn_decoder(inputs, initial_state, cell, loop)


def _attention(states: Tensor, heads: int) -> Any:
    """A function from a query to `heads` means of the states [batch, length, size] (Vinyals et al., 2014)."""
    shape = states.static_shape.of_rank(3)
    length = shaping.shape(states)[1] if shape[1] is None else shape[1]
    size: Any = shape[2]
    hidden = shaping.reshape(states, [-1, length, 1, size])
    features, vectors = [], []
    for head in range(heads):
        kernel = variable_scope.get_variable(f"AttnW_{head}", [1, 1, size, size], dtype=states.dtype)
        features.append(conv_api.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
        vectors.append(variable_scope.get_variable(f"AttnV_{head}", [size], dtype=states.dtype))

    def attend(query: Any) -> list[Any]:
        if isinstance(query, (list, tuple)):
            query = joining.concat(nest.flatten(query), 1)
        found = []
        for head in range(heads):
            with variable_scope.variable_scope(f"Attention_{head}"):
                from_query = shaping.reshape(linear(query, size, True), [-1, 1, 1, size])
                scores = reductions.reduce_sum(
                    vectors[head] * unary_functions.tanh(features[head] + from_query), [2, 3]
                )
                weights = shaping.reshape(softmax.softmax(scores), [-1, length, 1, 1])
                found.append(shaping.reshape(reductions.reduce_sum(weights * hidden, [1, 2]), [-1, size]))
        return found

    return attend


@export(v1="contrib.legacy_seq2seq.attention_decoder")
def attention_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Any = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Any:
    """`rnn_decoder` with attention to `attention_states` [batch, length, size] (Bahdanau et al., 2014).

    Args:
        decoder_inputs, initial_state, cell, loop_function: see `rnn_decoder`.
        attention_states: the states to attend to.
        output_size: the size of the outputs; by default that of the cell.
        num_heads: the number of attentions.
        dtype: the dtype of the first attention; by default that of the scope.
        scope: the variable scope; "attention_decoder" by default.
        initial_state_attention: whether the first attention is that of the initial state, instead of zeros.

    Raises:
        ValueError: there are no inputs or heads, or the size of the attention states is unknown.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    attention_states = convert_to_tensor(attention_states)
    size = attention_states.static_shape.of_rank(3)[2]
    if size is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.shape}")
    sized: int = cell.output_size if output_size is None else output_size
    with variable_scope.variable_scope(scope or "attention_decoder", dtype=dtype) as opened:
        attend = _attention(attention_states, num_heads)
        batch = shaping.shape(decoder_inputs[0])[0]
        attentions = []
        for _ in range(num_heads):
            zeros = shaping.zeros(joining.stack([batch, size]), opened.dtype)
            zeros.set_shape([None, size])
            attentions.append(zeros)
        if initial_state_attention:
            attentions = attend(initial_state)
        state, outputs = initial_state, []
        for i, given in enumerate(decoder_inputs):
            if i > 0:
                variable_scope.get_variable_scope().reuse_variables()
            if loop_function is not None and outputs:
                with variable_scope.variable_scope("loop_function", reuse=True):
                    given = loop_function(outputs[-1], i)
            step_inputs = linear([given, *attentions], width(given), True)
            cell_output, state = cell(step_inputs, state)
            reuse = True if i == 0 and initial_state_attention else None
            with variable_scope.variable_scope(variable_scope.get_variable_scope(), reuse=reuse):
                attentions = attend(state)
            with variable_scope.variable_scope("AttnOutputProjection"):
                outputs.append(linear([cell_output, *attentions], sized, True))
    return outputs, state


@export(v1="contrib.legacy_seq2seq.embedding_attention_decoder")
def embedding_attention_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Any:
    """`attention_decoder` over lists of ids. The arguments are those of it and of `embedding_rnn_decoder`."""
    output_size = cell.output_size if output_size is None else output_size
    _check_projection(output_projection, output_size, num_symbols)
    with variable_scope.variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        table = variable_scope.get_variable("embedding", [num_symbols, embedding_size])
        loop = feed_back(table, output_projection, update_embedding_for_previous) if feed_previous else None
        inputs = [embedding.embedding_lookup(table, each) for each in decoder_inputs]
        return attention_decoder(
            inputs,
            initial_state,
            attention_states,
            cell,
            output_size=output_size,
            num_heads=num_heads,
            loop_function=loop,
            initial_state_attention=initial_state_attention,
        )
