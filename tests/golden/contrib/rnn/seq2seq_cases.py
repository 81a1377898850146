"""Decoders, attention, beam search and losses of `tf.contrib.seq2seq`, the functions of `tf.contrib.crf` and `legacy_seq2seq`.

As in `cases.py`, each case returns a structure of tensors.
"""

import numpy as np

_DRAWN = np.random.RandomState(1)
MEMORY = _DRAWN.randn(3, 4, 5).astype(np.float32)
MEMORY_LENGTHS = [4, 2, 3]
TARGETS = _DRAWN.randint(0, 7, (3, 5))
TARGET_LENGTHS = [5, 3, 4]
UNITS, WORDS = 6, 7


def embedding(tf):
    return tf.get_variable("embedding", [WORDS, 4])


def wrapped(tf, make, memory, lengths, cell=None, **options):
    cell = cell or tf.nn.rnn_cell.LSTMCell(UNITS)
    return tf.contrib.seq2seq.AttentionWrapper(cell, make(tf.contrib.seq2seq, memory, lengths), **options)


def training(make, output_layer=True, impute_finished=True, **options):
    """A decoder with attention on given inputs."""

    def case(tf):
        seq = tf.contrib.seq2seq
        cell = wrapped(tf, make, tf.constant(MEMORY), tf.constant(MEMORY_LENGTHS), **options)
        helper = seq.TrainingHelper(tf.nn.embedding_lookup(embedding(tf), TARGETS), tf.constant(TARGET_LENGTHS))
        layer = tf.layers.Dense(WORDS, use_bias=False) if output_layer else None
        decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), layer)
        outputs, state, lengths = seq.dynamic_decode(decoder, impute_finished=impute_finished)
        history = state.alignment_history
        history = [
            each.stack() for each in (history if isinstance(history, tuple) else [history]) if hasattr(each, "stack")
        ]
        return outputs, state.cell_state, state.attention, state.alignments, state.time, history, lengths

    return case


def luong(units=UNITS, **options):
    return lambda seq, memory, lengths: seq.LuongAttention(units, memory, lengths, **options)


def bahdanau(**options):
    return lambda seq, memory, lengths: seq.BahdanauAttention(4, memory, lengths, **options)


def both(seq, memory, lengths):
    return [seq.LuongAttention(UNITS, memory, lengths), seq.BahdanauAttention(4, memory)]


def greedy(tf):
    seq = tf.contrib.seq2seq
    table = embedding(tf)
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    helper = seq.GreedyEmbeddingHelper(table, tf.constant([1, 2, 3]), 0)
    decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), tf.layers.Dense(WORDS))
    return seq.dynamic_decode(decoder, maximum_iterations=6, output_time_major=True)


def inference(tf):
    seq = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(4)
    helper = seq.InferenceHelper(
        lambda outputs: outputs * 2, [4], tf.float32, tf.constant(MEMORY[:, 0, :4]), lambda ids: ids[:, 0] > 0.3
    )
    decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    return seq.dynamic_decode(decoder, maximum_iterations=4)


def custom(tf):
    seq = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(4)
    helper = seq.CustomHelper(
        lambda: (tf.zeros([3], tf.bool), tf.constant(MEMORY[:, 0, :4])),
        lambda time, outputs, state: tf.cast(tf.argmax(outputs, -1), tf.int32),
        lambda time, outputs, state, sample_ids: (tf.fill([3], time >= 2), outputs, state * 0.5),
    )
    decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    return seq.dynamic_decode(decoder)


def sampled(kind, **options):
    """Helpers with random choices: seeds give TensorFlow's."""

    def case(tf):
        seq = tf.contrib.seq2seq
        tf.set_random_seed(5)
        cell = tf.nn.rnn_cell.GRUCell(WORDS)
        table = tf.get_variable("embedding", [WORDS, WORDS])
        inputs = tf.nn.embedding_lookup(table, TARGETS)
        if kind == "embedding":
            helper = seq.ScheduledEmbeddingTrainingHelper(
                inputs, tf.constant(TARGET_LENGTHS), table, 0.5, seed=1, scheduling_seed=2
            )
        elif kind == "output":
            helper = seq.ScheduledOutputTrainingHelper(inputs, tf.constant(TARGET_LENGTHS), 0.5, seed=3, **options)
        else:
            helper = seq.SampleEmbeddingHelper(table, tf.constant([1, 2, 3]), 0, softmax_temperature=0.7, seed=4)
        decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
        return seq.dynamic_decode(decoder, maximum_iterations=5)

    return case


def beam(make=None, steps=6, unknown_batch=False, **options):
    def case(tf):
        seq = tf.contrib.seq2seq
        width = 3
        memory = tf.constant(MEMORY)
        if unknown_batch:
            memory = tf.placeholder_with_default(memory, [None, 4, 5])
        memory = seq.tile_batch(memory, width)
        lengths = seq.tile_batch(tf.constant(MEMORY_LENGTHS), width)
        cell = tf.nn.rnn_cell.LSTMCell(UNITS)
        if make is not None:
            cell = wrapped(tf, make, memory, lengths, cell, attention_layer_size=5, alignment_history=True)
        decoder = seq.BeamSearchDecoder(
            cell, embedding(tf), tf.constant([1, 2, 3]), 0, cell.zero_state(tf.shape(memory)[0], tf.float32), width,
            output_layer=tf.layers.Dense(WORDS), **options,
        )  # fmt: skip
        outputs, state, final_lengths = seq.dynamic_decode(decoder, maximum_iterations=steps)
        found = [
            outputs,
            state.log_probs,
            state.finished,
            state.lengths,
            final_lengths,
            state.accumulated_attention_probs,
        ]
        if make is not None:
            history = state.cell_state.alignment_history
            found += [state.cell_state.attention, history.stack() if hasattr(history, "stack") else history]
        return found

    return case


def from_state(tf):
    seq = tf.contrib.seq2seq
    _, encoded = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.LSTMCell(UNITS), tf.constant(MEMORY), dtype=tf.float32, scope="encoder"
    )
    cell = wrapped(
        tf, luong(), tf.constant(MEMORY), None, initial_cell_state=encoded, attention_layer_size=3, output_attention=False,
        cell_input_fn=lambda inputs, attention: inputs * tf.reduce_sum(attention + 1),
    )  # fmt: skip
    helper = seq.TrainingHelper(tf.constant(MEMORY.transpose(1, 0, 2)), tf.constant(MEMORY_LENGTHS), time_major=True)
    decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    outputs, state, lengths = seq.dynamic_decode(decoder)
    return outputs, state.cell_state, state.attention, lengths


def functions(tf):
    seq = tf.contrib.seq2seq
    p = tf.nn.sigmoid(tf.constant(MEMORY[:, :, 0]))
    first = tf.one_hot([0, 1, 0], 4)
    hard = tf.cast(p > 0.5, tf.float32)
    logits = tf.constant(np.random.RandomState(2).randn(3, 5, WORDS).astype(np.float32))
    weights = tf.sequence_mask(TARGET_LENGTHS, 5, tf.float32) * tf.constant([[0.5], [1.0], [2.0]])
    losses = [
        seq.sequence_loss(logits, tf.constant(TARGETS), weights, steps, batch, sum_steps, sum_batch)
        for steps, batch, sum_steps, sum_batch in [
            (True, True, False, False), (True, False, False, False), (False, True, False, False), (False, False, False, False),
            (False, False, True, True), (False, False, True, False), (False, False, False, True), (True, False, False, True),
            (False, True, True, False),
        ]
    ]  # fmt: skip
    ids = tf.constant(np.random.RandomState(3).randint(0, 5, (6, 2, 3)).astype(np.int32))
    parents = tf.constant(np.random.RandomState(4).randint(0, 3, (6, 2, 3)).astype(np.int32))
    return [
        seq.hardmax(logits), seq.safe_cumprod(p, axis=1, exclusive=True), seq.tile_batch(ids, 2),
        seq.monotonic_attention(p, first, "recursive"), seq.monotonic_attention(p, first, "parallel"),
        seq.monotonic_attention(hard, first, "hard"), seq.gather_tree(ids, parents, [6, 4], 0), losses,
    ]  # fmt: skip


def monotonic(kind, **options):
    def make(seq, memory, lengths):
        if kind == "luong":
            return seq.LuongMonotonicAttention(UNITS, memory, lengths, score_bias_init=-1.0, **options)
        return seq.BahdanauMonotonicAttention(4, memory, lengths, score_bias_init=0.5, **options)

    return make


def crf(tf):
    crf = tf.contrib.crf
    scores = tf.get_variable("scores", [3, 5, 4])
    tags = tf.constant(np.random.RandomState(5).randint(0, 4, (3, 5)).astype(np.int32))
    lengths = tf.constant([5, 3, 1], tf.int32)
    likelihood, transitions = crf.crf_log_likelihood(scores, tags, lengths)
    bitmap = tf.constant(np.random.RandomState(6).rand(3, 5, 4) > 0.4)
    decoded, best = crf.crf_decode(scores, transitions, lengths)
    single = scores[:, :1]
    return [
        likelihood, decoded, best, crf.crf_log_norm(scores, lengths, transitions),
        crf.crf_sequence_score(scores, tags, lengths, transitions), crf.crf_unary_score(tags, lengths, scores),
        crf.crf_binary_score(tags, lengths, transitions),
        crf.crf_multitag_sequence_score(scores, bitmap, lengths, transitions),
        crf.crf_decode(single, transitions, tf.constant([1, 1, 1])), crf.crf_log_norm(single, tf.constant([1, 1, 1]), transitions),
        crf.crf_sequence_score(single, tags[:, :1], tf.constant([1, 1, 1]), transitions),
        crf.crf_log_likelihood(scores, tags, tf.constant([0, 2, 4]), transitions)[0],
    ]  # fmt: skip


ENCODED = [np.array(row, np.int32) for row in np.random.RandomState(7).randint(0, 6, (4, 2))]
DECODED = [np.array(row, np.int32) for row in np.random.RandomState(8).randint(0, WORDS, (3, 2))]


def legacy(function, cell=None, tensors=False, **options):
    def case(tf):
        make = getattr(tf.contrib.legacy_seq2seq, function)
        made = tf.nn.rnn_cell.LSTMCell(UNITS) if cell is None else cell(tf)
        if tensors:
            steps = tf.unstack(tf.constant(MEMORY), axis=1)
            return make(steps, steps[:3], made, **options)
        return make(
            [tf.constant(row) for row in ENCODED],
            [tf.constant(row) for row in DECODED],
            made,
            dtype=tf.float32,
            **options,
        )

    return case


def stacked_cells(tf):
    return tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(UNITS), tf.nn.rnn_cell.GRUCell(UNITS)])


def projected(tf):
    w, b = tf.get_variable("proj_w", [UNITS, WORDS]), tf.get_variable("proj_b", [WORDS])
    return tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
        [tf.constant(row) for row in ENCODED], [tf.constant(row) for row in DECODED], tf.nn.rnn_cell.GRUCell(UNITS), 6, WORDS, 4,
        output_projection=(w, b), feed_previous=True,
    )  # fmt: skip


def chosen_feed(tf):
    return tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq(
        [tf.constant(row) for row in ENCODED], [tf.constant(row) for row in DECODED], tf.nn.rnn_cell.GRUCell(UNITS), 6, WORDS, 4,
        feed_previous=tf.constant(True),
    )  # fmt: skip


def one_to_many(tf):
    cell = tf.nn.rnn_cell.GRUCell
    words = {"a": [tf.constant(row) for row in DECODED], "b": [tf.constant(row) for row in DECODED[:2]]}
    outputs, states = tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(
        [tf.constant(row) for row in ENCODED], words, cell(UNITS), {"a": cell(UNITS), "b": cell(UNITS)}, 6, {"a": WORDS, "b": WORDS}, 4,
    )  # fmt: skip
    return [outputs["a"], outputs["b"], states["a"], states["b"]]


def buckets(tf):
    legacy_seq2seq = tf.contrib.legacy_seq2seq

    def model(x, y):
        return legacy_seq2seq.embedding_rnn_seq2seq(x, y, tf.nn.rnn_cell.GRUCell(UNITS), 6, WORDS, 4)

    words = [tf.constant(row) for row in DECODED]
    weights = [tf.constant([1.0, 0.5]), tf.constant([1.0, 0.0]), tf.constant([0.0, 0.0])]
    args = [tf.constant(row) for row in ENCODED], words, words, weights, [(2, 2), (4, 3)], model
    outputs, losses = legacy_seq2seq.model_with_buckets(*args)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        _, by_example = legacy_seq2seq.model_with_buckets(*args, per_example_loss=True)
    return [
        outputs, losses, by_example, legacy_seq2seq.sequence_loss(outputs[1], words, weights, False, False),
        legacy_seq2seq.sequence_loss_by_example(outputs[1], words, weights, False),
    ]  # fmt: skip


SEQ2SEQ = {
    "luong": training(luong(), attention_layer_size=3),
    "luong_scaled": training(luong(scale=True), alignment_history=True, impute_finished=False),
    "luong_masked": training(luong(score_mask_value=-1.0, probability_fn=lambda x: x / 10), output_layer=False),
    "bahdanau": training(bahdanau(), output_attention=False, alignment_history=True),
    "bahdanau_normalized": training(bahdanau(normalize=True), attention_layer_size=3),
    "two_memories": training(both, attention_layer_size=[3, 4], alignment_history=True),
    "two_contexts": training(both),
    "monotonic_luong": training(monotonic("luong", scale=True), attention_layer_size=3),
    "monotonic_bahdanau": training(monotonic("bahdanau", mode="recursive", normalize=True)),
    "monotonic_hard": training(monotonic("bahdanau", mode="hard")),
    "from_state": from_state,
    "greedy": greedy,
    "inference": inference,
    "custom": custom,
    "scheduled_embedding": sampled("embedding"),
    "scheduled_output": sampled("output"),
    "scheduled_output_mapped": sampled("output", next_inputs_fn=lambda outputs: outputs * 0.5),
    "sample_embedding": sampled("sample"),
    "beam": beam(),
    "beam_penalized": beam(length_penalty_weight=1.0, steps=9),
    "beam_attention": beam(luong(), length_penalty_weight=0.6, coverage_penalty_weight=0.4),
    "beam_bahdanau": beam(bahdanau()),
    "beam_sorted": beam(bahdanau(), unknown_batch=True),
    "functions": functions,
    "crf": crf,
    "legacy_basic": legacy("basic_rnn_seq2seq", tensors=True),
    "legacy_tied": legacy("tied_rnn_seq2seq", tensors=True),
    "legacy_embedding": legacy("embedding_rnn_seq2seq", num_encoder_symbols=6, num_decoder_symbols=WORDS, embedding_size=4),
    "legacy_embedding_fed": legacy(
        "embedding_rnn_seq2seq", num_encoder_symbols=6, num_decoder_symbols=WORDS, embedding_size=4, feed_previous=True
    ),
    "legacy_embedding_tied": legacy("embedding_tied_rnn_seq2seq", num_symbols=WORDS, embedding_size=4),
    "legacy_attention": legacy(
        "embedding_attention_seq2seq", stacked_cells, num_encoder_symbols=6, num_decoder_symbols=WORDS, embedding_size=4, num_heads=2
    ),
    "legacy_attention_fed": legacy(
        "embedding_attention_seq2seq", num_encoder_symbols=6, num_decoder_symbols=WORDS, embedding_size=4, feed_previous=True,
        initial_state_attention=True,
    ),
    "legacy_projected": projected,
    "legacy_chosen_feed": chosen_feed,
    "legacy_one_to_many": one_to_many,
    "legacy_buckets": buckets,
}  # fmt: skip
