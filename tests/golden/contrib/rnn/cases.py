"""Recurrent cells of `tf.contrib.rnn`, written against `tf` of 1.x: built by TensorFlow to record results, by the tests to compare.

Each case returns a structure of tensors. Every variable gets a value that depends only on its name and shape.
"""

import zlib

import numpy as np

X = np.random.RandomState(0).randn(3, 4, 6).astype(np.float32)
LENGTHS = [2, 4, 3]


def looped(make, **options):
    """A case that runs a cell over X in a loop."""

    def case(tf):
        return tf.nn.dynamic_rnn(make(tf.contrib.rnn, tf), tf.constant(X), dtype=tf.float32, **options)

    return case


def unrolled(make, inputs=X):
    """A case that runs a cell over the steps of the inputs."""

    def case(tf):
        steps = tf.unstack(tf.constant(inputs), axis=1)
        return tf.contrib.rnn.static_rnn(make(tf.contrib.rnn, tf), steps, dtype=tf.float32)

    return case


def images(rank):
    return np.random.RandomState(rank).randn(2, 3, *([4] * rank), 2).astype(np.float32)


def convolutional(rank, **options):
    def case(tf):
        rnn = tf.contrib.rnn
        cell = [rnn.Conv1DLSTMCell, rnn.Conv2DLSTMCell, rnn.Conv3DLSTMCell][rank - 1]
        made = cell(input_shape=[4] * rank + [2], output_channels=3, kernel_shape=[3] * rank, **options)
        return tf.nn.dynamic_rnn(made, tf.constant(images(rank)), dtype=tf.float32)

    return case


def fused(tf, **options):
    cell = tf.contrib.rnn.LSTMBlockFusedCell(5, **options)
    return cell(tf.transpose(tf.constant(X), [1, 0, 2]), dtype=tf.float32, sequence_length=tf.constant(LENGTHS))


def fused_from_state(tf):
    cell = tf.contrib.rnn.LSTMBlockFusedCell(5)
    state = (tf.constant(X[:, 0, :5]), tf.constant(X[:, 1, :5]))
    return cell(tf.transpose(tf.constant(X), [1, 0, 2]), initial_state=state)


def reversed_time(tf):
    rnn = tf.contrib.rnn
    cell = rnn.TimeReversedFusedRNN(rnn.FusedRNNCellAdaptor(rnn.BasicRNNCell(5), use_dynamic_rnn=True))
    inputs = tf.transpose(tf.constant(X), [1, 0, 2])
    with_lengths = cell(inputs, dtype=tf.float32, sequence_length=LENGTHS, scope="with_lengths")
    return with_lengths, cell(inputs, dtype=tf.float32, scope="whole")


def adapted_static(tf):
    rnn = tf.contrib.rnn
    cell = rnn.FusedRNNCellAdaptor(rnn.BasicLSTMCell(5))
    return cell(tf.transpose(tf.constant(X), [1, 0, 2]), dtype=tf.float32)


def stacked(tf):
    rnn = tf.contrib.rnn
    forward, backward = ([rnn.BasicLSTMCell(size) for size in (5, 3)] for _ in range(2))
    return rnn.stack_bidirectional_dynamic_rnn(
        forward, backward, tf.constant(X), dtype=tf.float32, sequence_length=LENGTHS
    )


def stacked_static(tf):
    rnn = tf.contrib.rnn
    forward, backward = ([rnn.GRUCell(size) for size in (5, 3)] for _ in range(2))
    steps = tf.unstack(tf.constant(X), axis=1)
    return rnn.stack_bidirectional_rnn(forward, backward, steps, dtype=tf.float32, sequence_length=LENGTHS)


def embedded(tf):
    rnn = tf.contrib.rnn
    cell = rnn.EmbeddingWrapper(rnn.GRUCell(5), 7, 4)
    return rnn.static_rnn(cell, [tf.constant([1, 6, 0]), tf.constant([2, 2, 3])], dtype=tf.float32)


def phased(tf, **options):
    cell = tf.contrib.rnn.PhasedLSTMCell(5, **options)
    times = np.abs(X[:, :, :1]).cumsum(1)
    return tf.nn.dynamic_rnn(cell, (tf.constant(times), tf.constant(X)), dtype=tf.float32)


def layers_of_cells(rnn, tf):
    return rnn.MultiRNNCell(
        [rnn.LayerNormBasicLSTMCell(4), rnn.ResidualWrapper(rnn.UGRNNCell(4)), rnn.LSTMBlockCell(3)]
    )


CASES = {
    "lstm_block": looped(lambda rnn, tf: rnn.LSTMBlockCell(5), sequence_length=LENGTHS),
    "lstm_block_peephole": looped(lambda rnn, tf: rnn.LSTMBlockCell(5, 0.5, cell_clip=0.4, use_peephole=True)),
    "gru_block": looped(lambda rnn, tf: rnn.GRUBlockCell(5)),
    "gru_block_v2": looped(lambda rnn, tf: rnn.GRUBlockCellV2(5)),
    "fused": fused,
    "fused_peephole": lambda tf: fused(tf, forget_bias=0.0, cell_clip=0.3, use_peephole=True),
    "fused_from_state": fused_from_state,
    "reversed_time": reversed_time,
    "adapted_static": adapted_static,
    "stacked": stacked,
    "stacked_static": stacked_static,
    "layer_norm": looped(lambda rnn, tf: rnn.LayerNormBasicLSTMCell(5, norm_gain=0.9, norm_shift=0.1)),
    "layer_norm_off": looped(lambda rnn, tf: rnn.LayerNormBasicLSTMCell(5, layer_norm=False)),
    "coupled": looped(lambda rnn, tf: rnn.CoupledInputForgetGateLSTMCell(5)),
    "coupled_all": looped(
        lambda rnn, tf: rnn.CoupledInputForgetGateLSTMCell(5, use_peepholes=True, num_proj=3, proj_clip=0.2, num_unit_shards=2, num_proj_shards=2)
    ),
    "coupled_norm": looped(lambda rnn, tf: rnn.CoupledInputForgetGateLSTMCell(5, layer_norm=True, state_is_tuple=False)),
    "ugrnn": looped(lambda rnn, tf: rnn.UGRNNCell(5)),
    "nas": looped(lambda rnn, tf: rnn.NASCell(5)),
    "nas_projected": looped(lambda rnn, tf: rnn.NASCell(5, num_proj=3, use_bias=True)),
    "highway": looped(lambda rnn, tf: rnn.HighwayWrapper(rnn.BasicRNNCell(6))),
    "highway_separate": looped(lambda rnn, tf: rnn.HighwayWrapper(rnn.BasicRNNCell(6), couple_carry_transform_gates=False)),
    "conv1d": convolutional(1),
    "conv2d": convolutional(2, forget_bias=0.5),
    "conv3d": convolutional(3, use_bias=False),
    "attention": looped(lambda rnn, tf: rnn.AttentionCellWrapper(rnn.BasicLSTMCell(5), 3)),
    "attention_sized": looped(
        lambda rnn, tf: rnn.AttentionCellWrapper(rnn.GRUCell(5), 2, attn_size=4, attn_vec_size=3, input_size=7, state_is_tuple=False)
    ),
    "embedding": embedded,
    "input_projection": looped(lambda rnn, tf: rnn.InputProjectionWrapper(rnn.GRUCell(5), 4, activation=tf.nn.relu)),
    "output_projection": looped(lambda rnn, tf: rnn.OutputProjectionWrapper(rnn.GRUCell(5), 4, activation=tf.tanh)),
    "intersection": looped(lambda rnn, tf: rnn.IntersectionRNNCell(6)),
    "intersection_projected": looped(lambda rnn, tf: rnn.IntersectionRNNCell(5, num_in_proj=5)),
    "phased": phased,
    "phased_peephole": lambda tf: phased(tf, use_peepholes=True, trainable_ratio_on=False, period_init_max=4.0),
    "glstm": looped(lambda rnn, tf: rnn.GLSTMCell(6, number_of_groups=2)),
    "glstm_projected": looped(lambda rnn, tf: rnn.GLSTMCell(6, num_proj=4, number_of_groups=2)),
    "sru": looped(lambda rnn, tf: rnn.SRUCell(6)),
    "ind_rnn": looped(lambda rnn, tf: rnn.IndRNNCell(5)),
    "indy_gru": looped(lambda rnn, tf: rnn.IndyGRUCell(5)),
    "indy_lstm": looped(lambda rnn, tf: rnn.IndyLSTMCell(5)),
    "stack_of_cells": looped(layers_of_cells),
    "cudnn_lstm": lambda tf: tf.nn.dynamic_rnn(
        tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(5), tf.constant(X), dtype=tf.float32
    ),
    "cudnn_gru": lambda tf: tf.nn.dynamic_rnn(
        tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell(5), tf.constant(X), dtype=tf.float32
    ),
}  # fmt: skip


def value_of(name, shape):
    """The value of a variable. Period and shift of a phased LSTM must be positive."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).uniform(-0.6, 0.6, shape).astype(np.float32)
    return np.abs(drawn) + 0.2 if "phased" in name or "period" in name else drawn


def flat(tf, structure):
    return [each for each in tf.contrib.framework.nest.flatten(structure) if each is not None]


def total(tf, outputs):
    """A number that depends on all outputs, each in another way."""
    real = [each for each in outputs if each.dtype.is_floating]
    places = [tf.cast(tf.reshape(tf.range(tf.size(each)), tf.shape(each)), tf.float32) for each in real]
    return tf.add_n([tf.reduce_sum(each * tf.cos(place)) for each, place in zip(real, places)])


def results(tf, case, with_gradients=True):
    """name -> array for one case: variables (names, shapes, whether they are trained), outputs, and gradients."""
    with tf.Graph().as_default():
        outputs = [tf.convert_to_tensor(each) for each in flat(tf, case(tf))]
        variables, trained = tf.global_variables(), tf.trainable_variables()
        wanted = trained if with_gradients else []
        gradients = tf.gradients(total(tf, outputs), list(wanted)) if wanted else []
        gradients = [each if each is None else tf.convert_to_tensor(each) for each in gradients]
        with tf.Session() as session:
            for each in variables:
                each.load(value_of(each.op.name, each.shape.as_list()), session)
            found = session.run([outputs, [each for each in gradients if each is not None]])
    names = [f"{each.op.name} {each.shape.as_list()} {each in trained}" for each in variables]
    without = [each.op.name for each, gradient in zip(wanted, gradients) if gradient is None]
    return {
        "variables": np.array(names, dtype=str),
        "without": np.array(without, dtype=str),
        **{f"output_{i}": each for i, each in enumerate(found[0])},
        **{f"gradient_{i}": each for i, each in enumerate(found[1])},
    }


def all_results(tf, cases):
    """The results of several cases, `<case>/<name>` -> array. Beams are not differentiated."""
    return {
        f"{name}/{key}": value
        for name, case in cases.items()
        for key, value in results(tf, case, not name.startswith("beam")).items()
    }
