"""Recurrent cells and loops: cells that users write, wrappers, and bad arguments."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from tests.running import run_initialized

X = np.random.RandomState(0).randn(3, 4, 2).astype(np.float32)
cells = tf.nn.rnn_cell


class Pair(cells.RNNCell):
    """A cell with variables of its own and a state of two parts, one of them a matrix."""

    def __init__(self, units):
        super().__init__()
        self._units = units

    @property
    def state_size(self):
        return self._units, tf.TensorShape([2, self._units])

    @property
    def output_size(self):
        return tf.TensorShape([self._units])

    def build(self, input_shape):
        self.kernel = self.add_variable("kernel", [int(input_shape[1]), self._units], initializer=tf.ones_initializer())
        self.built = True

    def call(self, inputs, state):
        total = tf.matmul(inputs, self.kernel) + state[0]
        return total, (total, state[1] + tf.expand_dims(total, 1))


def test_user_written_cell():
    """A cell needs call, state_size and output_size only; its variables lie under its name in the loop's scope."""
    lengths = [1, 4, 0]
    outputs, (first, second) = run_initialized(tf.nn.dynamic_rnn(Pair(3), X, sequence_length=lengths, dtype=tf.float32))
    assert [variable.name for variable in tf.global_variables()] == ["rnn/pair/kernel:0"]
    sums = np.cumsum(X.sum(2), 1)
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(outputs[row, :length, 0], sums[row, :length], rtol=1e-5)
        assert not outputs[row, length:].any()
        np.testing.assert_allclose(first[row, 0], sums[row, length - 1] if length else 0.0, rtol=1e-5)
        np.testing.assert_allclose(second[row, 1, 2], sums[row, :length].sum(), rtol=1e-4)


def test_initial_state_of_inputs():
    """The state's batch size and dtype are those of the inputs, which other arguments may not contradict."""
    cell = cells.GRUCell(3)
    assert cell.get_initial_state(inputs=X).shape.as_list() == [3, 3]
    with pytest.raises(ValueError, match="Input tensor batch: 3, batch_size: 7"):
        cell.get_initial_state(inputs=X, batch_size=7)
    with pytest.raises(ValueError, match="dtype from input tensor"):
        cell.get_initial_state(inputs=X, dtype=tf.float64)
    with pytest.raises(ValueError, match="cannot be None"):
        cell.get_initial_state()


def test_activations_by_name():
    """Cells take activations by name, as layers do."""
    outputs, _ = run_initialized(tf.nn.dynamic_rnn(cells.BasicRNNCell(2, activation="relu"), X, dtype=tf.float32))
    assert outputs.min() == 0
    with pytest.raises(ValueError, match="Unknown activation"):
        cells.LSTMCell(2, activation="nope")


@pytest.mark.parametrize(
    ("kind", "text", "call"),
    [
        (TypeError, "'output_size' property is missing, 'state_size' property is missing, either 'zero_state'", lambda: tf.nn.dynamic_rnn(3, X)),
        (TypeError, "'cell_bw' .* not an RNNCell", lambda: tf.nn.bidirectional_dynamic_rnn(cells.GRUCell(2), 3, X)),
        (TypeError, "is not an RNNCell", lambda: cells.DropoutWrapper(3)),
        (ValueError, "rank at least 3", lambda: tf.nn.dynamic_rnn(cells.GRUCell(2), X[0], dtype=tf.float32)),
        (ValueError, "expects 1 input", lambda: tf.nn.dynamic_rnn(cells.GRUCell(2), (X, X), dtype=tf.float32)),
        (ValueError, "dtype", lambda: tf.nn.dynamic_rnn(cells.GRUCell(2), X)),
        (ValueError, "between 0 and 1", lambda: cells.DropoutWrapper(cells.GRUCell(2), 1.5)),
        (ValueError, "state_is_tuple", lambda: cells.MultiRNNCell([cells.LSTMCell(2)], state_is_tuple=False)),
    ],
)  # fmt: skip
def test_bad_arguments(kind, text, call):
    """Something that is not a cell, a sequence or a probability is refused, and the argument is named."""
    with pytest.raises(kind, match=text):
        call()


class Counted(cells.BasicRNNCell):
    """A cell that notes each step it really runs."""

    def __init__(self, units):
        super().__init__(units)
        self.steps = 0

    def _note(self):
        self.steps += 1
        return np.float32(0)

    def call(self, inputs, state):
        return super().call(inputs + tf.stop_gradient(tf.reshape(tf.py_func(self._note, [], tf.float32), [])), state)


@pytest.mark.parametrize("unrolled", [False, True])
@pytest.mark.parametrize(("lengths", "steps"), [([3, 2, 1], 3), ([0, 0, 0], 0), ([4, 1, 1], 4)])
def test_cells_do_not_run_after_the_longest_sequence(lengths, steps, unrolled):
    """Where all sequences have ended, the cell draws no more random numbers; a loop runs one step at least."""
    cell = Counted(2)
    x, given = tf.placeholder(tf.float32, [None, 4, 2]), tf.placeholder(tf.int32, [None])
    if unrolled:
        listed, state = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=given)
        outputs = tf.stack(listed, 1)
    else:
        outputs, state = tf.nn.dynamic_rnn(cell, x, given, dtype=tf.float32)
    assert outputs.shape.as_list() == [None, 4, 2] and state.shape.as_list() == [None, 2]
    gradient = tf.gradients(tf.reduce_sum(outputs) + tf.reduce_sum(state), x)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([outputs, gradient], {x: X, given: lengths})
    assert cell.steps == steps + (steps == 0 and not unrolled)
    for value in found:
        for row, length in enumerate(lengths):
            assert value[row, :length].any() == (length > 0) and not value[row, length:].any()


@pytest.mark.parametrize(
    ("visitor", "dropped"),
    [
        (None, (False, True)),
        (lambda state: True, (True, True)),
        (lambda state: False, (False, False)),
        (lambda state: not isinstance(state, cells.LSTMStateTuple), (False, False)),
        (lambda state: isinstance(state, cells.LSTMStateTuple), (False, False)),
        (lambda state: not isinstance(state, cells.LSTMStateTuple) or cells.LSTMStateTuple(True, False), (True, False)),
    ],
)
def test_the_visitor_is_asked_down_to_the_tensors(visitor, dropped):
    """Dropout happens to the tensors of a state for which the visitor says so, and says so of all around them."""

    class Ones(cells.RNNCell):
        state_size, output_size = cells.LSTMStateTuple(40, 40), 40

        def call(self, inputs, state):
            return inputs, cells.LSTMStateTuple(inputs, inputs)

    cell = cells.DropoutWrapper(Ones(), state_keep_prob=0.5, dropout_state_filter_visitor=visitor)
    ones = tf.ones([1, 40])
    _, state = cell(ones, cells.LSTMStateTuple(ones, ones))
    assert tuple(not np.all(part == 1) for part in run_initialized([state.c, state.h])) == dropped


def test_weights_in_parts():
    """Shards, even a single one, make the weights of an LSTM partitioned variables with their names."""
    cell = cells.LSTMCell(4, num_unit_shards=3, num_proj=4, num_proj_shards=1)
    outputs, _ = tf.nn.dynamic_rnn(cell, X, dtype=tf.float32)
    assert [(variable.op.name, variable.shape.as_list()) for variable in tf.global_variables()] == [
        ("rnn/lstm_cell/kernel/part_0", [2, 16]),
        ("rnn/lstm_cell/kernel/part_1", [2, 16]),
        ("rnn/lstm_cell/kernel/part_2", [2, 16]),
        ("rnn/lstm_cell/bias", [16]),
        ("rnn/lstm_cell/projection/kernel/part_0", [4, 4]),
    ]
    assert np.isfinite(run_initialized(outputs)).all()


def test_names_around_cells():
    """A cell without variables of its own opens the scope it stands in once more; wrappers have scopes for zero states."""
    cell = cells.MultiRNNCell([cells.DropoutWrapper(cells.GRUCell(3), output_keep_prob=0.5), cells.BasicRNNCell(2)])
    outputs, _ = tf.nn.static_rnn(cell, [tf.ones([2, 4])], dtype=tf.float32)
    assert outputs[0].name == "rnn/rnn/multi_rnn_cell/cell_1/basic_rnn_cell/Tanh:0"
    zeros = cell.zero_state(2, tf.float32)
    assert zeros[0].name == "MultiRNNCellZeroState/DropoutWrapperZeroState/GRUCellZeroState/zeros:0"


def test_every_layer_makes_the_collection_of_updates():
    """UPDATE_OPS is there once a layer was called, also in a loop, though it may be empty."""
    tf.nn.dynamic_rnn(cells.GRUCell(3), X, dtype=tf.float32)
    assert "update_ops" in tf.get_default_graph().get_all_collection_keys()
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []


# What TensorFlow 2.21 gives for a GRUCell(3) with kernels of 0.1, inputs linspace(-1, 1, 6) and states of one.
_NEWER = {
    "none": ([[0.7653] * 3, [0.8889] * 3], [[0.7653] * 3, [0.8889] * 3]),
    "input": ([[0.7383] * 3, [0.9200] * 3], [[0.7383] * 3, [0.9200] * 3]),
    "output": ([[1.5307, 0.0, 1.5307], [1.7777, 0.0, 0.0]], [[0.7653] * 3, [0.8889] * 3]),
    "state": ([[0.7653] * 3, [0.8889] * 3], [[0.0] * 3, [0.0] * 3]),
}


@pytest.mark.parametrize("dropped", _NEWER)
def test_dropout_wrapper_of_2_x(eager, dropped):
    """The 2.x wrapper drops what TensorFlow's drops for the same seeds."""
    tf2.random.set_seed(5)
    cell = tf.nn.rnn_cell.GRUCell(3, kernel_initializer=tf.constant_initializer(0.1))
    options = {} if dropped == "none" else {f"{dropped}_keep_prob": 0.5}
    wrapper = tf2.nn.RNNCellDropoutWrapper(cell, seed=3, **options)
    inputs = np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)
    output, state = wrapper(tf2.constant(inputs), tf2.ones([2, 3]))
    np.testing.assert_allclose(output.numpy(), _NEWER[dropped][0], atol=1e-4)
    np.testing.assert_allclose(state.numpy(), _NEWER[dropped][1], atol=1e-4)
    assert wrapper.wrapped_cell is cell and len(wrapper.variables) == 4


def test_residual_and_device_wrappers_of_2_x(eager):
    """They take any callable cell and hand arguments on to it; what is not a cell is refused."""

    class Cell:
        state_size = output_size = 3

        def __call__(self, inputs, state, scale=1.0):
            return inputs * scale, state + 1.0

        def zero_state(self, batch_size, dtype):
            return tf2.zeros([batch_size, 3], dtype)

    ones = tf2.ones([2, 3])
    output, state = tf2.nn.RNNCellResidualWrapper(Cell())(ones, ones, scale=3.0)
    assert output.numpy().tolist() == [[4.0] * 3] * 2 and state.numpy().tolist() == [[2.0] * 3] * 2
    joined = tf2.nn.RNNCellResidualWrapper(Cell(), residual_fn=lambda a, b: a - b)(ones, ones)[0]
    assert joined.numpy().tolist() == [[0.0] * 3] * 2
    placed = tf2.nn.RNNCellDeviceWrapper(Cell(), "/cpu:0")
    assert placed(ones, ones)[0].numpy().tolist() == [[1.0] * 3] * 2
    assert placed.zero_state(2, tf2.float32).shape == [2, 3] and placed.output_size == 3
    for wrapper in (tf2.nn.RNNCellResidualWrapper, tf2.nn.RNNCellDropoutWrapper):
        with pytest.raises(TypeError, match="is not an RNNCell"):
            wrapper(3)


def test_inputs_of_another_rank_make_no_variables():
    """A cell looks at its input's rank before it makes variables."""
    with pytest.raises(ValueError, match="expected ndim=2, found ndim=1"):
        cells.GRUCell(3)(tf.ones([2]), tf.zeros([2, 3]))
    assert not tf.global_variables()
