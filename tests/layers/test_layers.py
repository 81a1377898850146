"""tf.layers: names, scopes, reuse, collections, modes and bad arguments."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


def _names():
    return [variable.name for variable in tf.global_variables()]


def test_layers_are_named_in_order():
    """Unnamed layers are dense, dense_1, ...; a called layer keeps its scope for later calls."""
    x = tf.zeros([2, 4])
    tf.layers.dense(x, 3)
    second = tf.layers.Dense(3)
    first_call, second_call = second(x), second(x)
    assert _names() == ["dense/kernel:0", "dense/bias:0", "dense_1/kernel:0", "dense_1/bias:0"]
    assert first_call.op.name == "dense_1/BiasAdd" and second_call.op.name == "dense_1/BiasAdd_1"
    assert second.scope_name == "dense_1" and second.count_params() == 15


def test_layers_share_variables():
    """A layer's name with reuse, or a scope that is reused, gives the same variables."""
    x = tf.zeros([2, 4])
    tf.layers.dense(x, 3, name="d")
    again = tf.layers.dense(x, 3, name="d", reuse=True)
    assert _names() == ["d/kernel:0", "d/bias:0"] and again.op.name == "d_1/BiasAdd"
    with pytest.raises(ValueError, match="already exists"):
        tf.layers.dense(x, 3, name="d")
    with tf.variable_scope("s"):
        tf.layers.dense(x, 3)
    with tf.variable_scope("s", reuse=True):
        tf.layers.dense(x, 3)
    assert len(_names()) == 4


def test_trainable_and_regularized_weights():
    """Frozen layers stay out of TRAINABLE_VARIABLES; penalties are the layer's losses too."""
    x = tf.ones([2, 4])
    frozen = tf.layers.Dense(3, trainable=False)
    frozen(x)
    assert tf.trainable_variables() == [] and frozen.trainable_weights == [] and len(frozen.weights) == 2
    layer = tf.layers.Dense(
        3, kernel_regularizer=tf.keras.regularizers.l2(0.1), activity_regularizer=tf.reduce_sum, name="r"
    )
    layer(x)
    assert [loss.op.name for loss in layer.losses] == ["r/kernel/Regularizer/mul", "r/ActivityRegularizer/truediv"]
    assert tf.losses.get_regularization_losses() == layer.losses


def test_batch_normalization_modes():
    """Training uses the batch and moves the averages by UPDATE_OPS; otherwise the averages are used, and stay."""
    data = np.random.RandomState(0).randn(8, 3).astype(np.float32) * 2 + 1
    training = tf.placeholder(tf.bool, [])
    output = tf.layers.batch_normalization(data, training=training, momentum=0.5)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    mean = next(v for v in tf.global_variables() if v.name.endswith("moving_mean:0"))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        plain, _ = session.run([output, updates], {training: False})
        np.testing.assert_allclose(plain, data / np.sqrt(1.001), rtol=1e-5)
        np.testing.assert_allclose(session.run(mean), 0, atol=1e-7)
        normal, _ = session.run([output, updates], {training: True})
        expected = (data - data.mean(0)) / np.sqrt(data.var(0) + 1e-3)
        np.testing.assert_allclose(normal, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(session.run(mean), data.mean(0) * 0.5, rtol=1e-5)


def test_channels_first():
    """The same weights give the same result in both layouts."""
    images = np.random.RandomState(1).randn(2, 6, 6, 3).astype(np.float32)
    last = tf.layers.conv2d(images, 4, 3, name="c")
    first = tf.layers.conv2d(images.transpose(0, 3, 1, 2), 4, 3, name="c", reuse=True, data_format="channels_first")
    assert first.shape.as_list() == [2, 4, 4, 4]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        a, b = session.run([last, first])
        np.testing.assert_allclose(a, b.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)


def test_own_layers():
    """A layer of one's own makes variables in build and may add updates and losses."""

    class Scale(tf.layers.Layer):
        def build(self, input_shape):
            self.factor = self.add_weight("factor", [], initializer=tf.constant_initializer(2.0))
            self.built = True

        def call(self, inputs):
            self.add_loss(tf.reduce_sum(inputs))
            self.add_update(self.factor.assign_add(1.0))
            return inputs * self.factor

    layer = Scale()
    output = layer(tf.ones([2]))
    assert layer.factor.name == "scale/factor:0" and len(layer.updates) == 1
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == layer.updates
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(output).tolist() == [2, 2]
        session.run(layer.updates)
        assert session.run(output).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 3), "last dimension"),
        (lambda: tf.layers.dense(tf.zeros([3]), 3), "min_ndim=2"),
        (lambda: tf.layers.conv2d(tf.zeros([2, 4, 3]), 3, 3), "expected min_ndim=4"),
        (lambda: tf.layers.conv2d(tf.zeros([2, 4, 4, 3]), 3, (1, 2, 3)), "kernel_size"),
        (lambda: tf.layers.conv2d(tf.zeros([2, 4, 4, 3]), 3, 3, padding="other"), "padding"),
        (lambda: tf.layers.conv2d(tf.zeros([2, 4, 4, 3]), 3, 3, data_format="other"), "data_format"),
        (lambda: tf.layers.conv2d(tf.zeros([2, 4, 4, 3]), 3, 3, strides=2, dilation_rate=2), "strides > 1"),
        (lambda: tf.layers.batch_normalization(tf.zeros([2, 3]), axis=[1, -1]), "Duplicate axis"),
        (lambda: tf.layers.batch_normalization(tf.zeros([2, 3]), axis=0, virtual_batch_size=1), "cannot include 0"),
        (lambda: tf.layers.batch_normalization(tf.zeros([4, 3]), virtual_batch_size=3), "divisible by 9"),
        (lambda: tf.layers.batch_normalization(tf.zeros([2, 3]), renorm=True, renorm_clipping={"a": 1}), "rmax"),
        (lambda: tf.layers.batch_normalization(tf.placeholder(tf.float32)), "undefined rank"),
        (lambda: tf.layers.batch_normalization(tf.zeros([2, 3]), axis=5), "axis"),
        (lambda: tf.layers.Dense(3).scope_name, "has not been used"),
    ],
)
def test_bad_arguments_are_refused(make, text):
    """Shapes and settings that make no sense raise ValueError."""
    with pytest.raises(ValueError, match=text):
        make()


def test_virtual_batches_and_adjustment():
    """Parts of a batch are normalized each by itself; an adjustment acts on what was normalized, in training only."""
    data = np.random.RandomState(0).randn(6, 2).astype(np.float32) * 2 + 1
    parts = data.reshape(3, 2, 2)
    mean, variance = parts.mean(0), parts.var(0)
    output = tf.layers.batch_normalization(data, training=True, virtual_batch_size=3, momentum=0.5)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    moving = next(v for v in tf.global_variables() if v.name.endswith("moving_variance:0"))
    training = tf.placeholder_with_default(True, [])
    adjusted = tf.layers.batch_normalization(
        data, training=training, adjustment=lambda shape: (tf.fill(shape, 2.0), tf.fill([1, 1], 0.5))
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, _ = session.run([output, updates])
        np.testing.assert_allclose(
            found, ((parts - mean) / np.sqrt(variance + 1e-3)).reshape(6, 2), rtol=1e-4, atol=1e-5
        )
        assert moving.shape.as_list() == [1, 1, 2]
        np.testing.assert_allclose(session.run(moving)[0, 0], 0.5 + variance.mean(0) * 0.5, rtol=1e-5)
        normal = (data - data.mean(0)) / np.sqrt(data.var(0) + 1e-3)
        np.testing.assert_allclose(session.run(adjusted), normal * 2 + 0.5, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(session.run(adjusted, {training: False}), data / np.sqrt(1.001), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), tf.zeros([2, 3, 4])), ValueError),
        (lambda: tf.nn.dynamic_rnn("cell", tf.zeros([2, 3, 4]), dtype=tf.float32), TypeError),
        (lambda: tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), [], dtype=tf.float32), ValueError),
        (lambda: tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), tf.zeros([2, 3]), dtype=tf.float32), TypeError),
        (lambda: tf.nn.rnn_cell.MultiRNNCell([]), ValueError),
        (lambda: tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(2), input_keep_prob=1.5), ValueError),
    ],
)
def test_bad_recurrent_arguments_are_refused(make, kind):
    """Recurrent networks say what they cannot work with."""
    with pytest.raises(kind):
        make()


def test_default_placeholders_choose_the_mode_of_a_run():
    """placeholder_with_default is not taken for a constant: a layer built with it obeys what a run feeds."""
    training = tf.placeholder_with_default(False, [])
    y = tf.layers.dropout(tf.ones([1, 64]), 0.5, training=training, seed=1)
    assert tf.get_static_value(training) is None
    with tf.Session() as session:
        assert session.run(y).tolist() == [[1.0] * 64]
        assert set(session.run(y, {training: True}).ravel()) == {0.0, 2.0}


def test_weights_as_arrays():
    """get_weights and set_weights exchange arrays with the variables of the default session, in the layer's order."""
    layer = tf.layers.Dense(2)
    layer(tf.ones([4, 3]))
    with tf.Session().as_default() as session:
        session.run(tf.global_variables_initializer())
        assert [w.shape for w in layer.get_weights()] == [(3, 2), (2,)]
        layer.set_weights([np.full((3, 2), 2.0), np.arange(2.0)])
        assert layer.get_weights()[1].tolist() == [0, 1]
        with pytest.raises(ValueError, match="length 1, but the layer was expecting 2"):
            layer.set_weights([np.ones((3, 2))])
        with pytest.raises(ValueError, match=r"\(3, 2\) not compatible with provided weight shape \(3, 3\)"):
            layer.set_weights([np.ones((3, 3)), np.ones(2)])


def test_activations_and_initializers_by_name():
    """Names stand for the functions of tf.nn and the classes of tf.initializers; unknown ones are refused."""
    output = tf.layers.dense(tf.ones([1, 2]), 2, "relu", kernel_initializer="ones", bias_initializer="Zeros")
    assert output.op.type == "Relu"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(output).tolist() == [[2, 2]]
    assert tf.layers.Dense(2, "linear").activation(output) is output
    with pytest.raises(ValueError, match="Unknown activation function: 'bogus'"):
        tf.layers.Dense(2, "bogus")
    with pytest.raises(ValueError, match="Unknown initializer: 'bogus'"):
        tf.layers.dense(tf.ones([1, 2]), 2, kernel_initializer="bogus")
    with pytest.raises(TypeError, match="identifier: 3"):
        tf.layers.Dense(2, 3)


def test_input_specs():
    """An InputSpec for each input says what was expected and found."""

    class Sum(tf.layers.Layer):
        def call(self, inputs):
            return inputs[0] + inputs[1]

    layer = Sum(name="s")
    layer.input_spec = [tf.layers.InputSpec(ndim=2), tf.layers.InputSpec(ndim=3)]
    with pytest.raises(ValueError, match=r'Input 1 of layer "s" .* expected ndim=3, found ndim=2'):
        layer([tf.ones([4, 3]), tf.ones([4, 3])])
    layer.input_spec = tf.layers.InputSpec(shape=(None, 7))
    with pytest.raises(ValueError, match=r'"s" expects 1 input\(s\), but it received 2'):
        layer([tf.ones([4, 3]), tf.ones([4, 3])])
    with pytest.raises(ValueError, match=r"expected shape=\(None, 7\), found shape=\(4, 3\)"):
        layer(tf.ones([4, 3]))
    layer.input_spec = tf.layers.InputSpec(dtype="int32")
    with pytest.raises(ValueError, match="expected dtype=int32"):
        layer(tf.ones([4, 3]))


def test_a_layer_that_is_not_trained():
    """Its variables are in no collection of trained ones, and it adds no updates."""
    tf.layers.batch_normalization(tf.ones([4, 3]), training=True, trainable=False)
    assert tf.trainable_variables() == [] and tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []


def test_building_by_hand():
    """`build` makes the variables in the layer's scope without a call."""
    layer = tf.layers.Dense(2, name="k")
    layer.build([None, 3])
    assert layer.built and [w.name for w in layer.weights] == ["k/kernel:0", "k/bias:0"]
    assert layer.count_params() == 8 and layer.dtype is None


def test_convolutions_take_more_batch_dimensions():
    """Dimensions in front of the images are all batch dimensions, for either place of the channels."""
    x = np.random.RandomState(0).rand(2, 3, 5, 6, 4).astype(np.float32)
    layer = tf.layers.Conv2D(3, 2)
    many, one = layer(x), layer(x.reshape(6, 5, 6, 4))
    assert many.shape.as_list() == [2, 3, 4, 5, 3] == layer.compute_output_shape([2, 3, 5, 6, 4]).as_list()
    unknown = layer(tf.placeholder_with_default(x, [None, 3, None, 6, 4]))
    assert unknown.shape.as_list() == [None, 3, None, 5, 3]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, wanted, other = session.run([many, one, unknown])
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-6)
    np.testing.assert_array_equal(found, other)
    with pytest.raises(ValueError, match="expected ndim=4"):
        tf.layers.conv2d_transpose(x, 3, 2)


def test_eager_layers_keep_their_losses(eager):
    """A regularized layer works eagerly and tells its penalties."""
    layer = tf.layers.Dense(2, kernel_initializer=tf.ones_initializer(), kernel_regularizer=tf.reduce_sum)
    layer(np.ones([2, 3], np.float32))
    assert [float(loss) for loss in layer.losses] == [6.0]
    assert not tf.losses.get_regularization_losses()


def test_dropout_takes_sizes_that_are_not_known():
    """Where `noise_shape` says None the inputs' own size counts, known when the graph is built or not."""
    x = tf.placeholder(tf.float32, [None, 30, 2])
    dropped = tf.layers.dropout(x, 0.5, noise_shape=[None, None, 1], training=True)
    with tf.Session() as session:
        found = session.run(dropped, {x: np.ones([3, 30, 2])})
    assert dropped.shape.as_list() == [None, 30, 2] and (found[..., 0] == found[..., 1]).all()
    assert {0.0, 2.0} == set(found[0, :, 0].tolist())


def _normalized_in_branches(x, training):
    return tf.cond(
        training,
        lambda: tf.layers.batch_normalization(x, training=True, momentum=0.5, name="norm"),
        lambda: tf.layers.batch_normalization(x, training=False, name="norm", reuse=True),
    )


@pytest.mark.parametrize("nested", [False, True])
def test_updates_of_layers_in_branches(nested):
    """Updates made in a branch are in UPDATE_OPS: they act when they are run and the branch is chosen, and then only."""
    x, training = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.bool, [])
    if nested:
        y = tf.cond(tf.placeholder_with_default(True, []), lambda: _normalized_in_branches(x, training), lambda: x)
    else:
        y = _normalized_in_branches(x, training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    if not nested:
        assert [op.name for op in updates] == ["cond/norm/AssignMovingAvg", "cond/norm/AssignMovingAvg_1"]
    mean = next(variable for variable in tf.global_variables() if "moving_mean" in variable.name)
    with tf.control_dependencies(updates):
        step = tf.identity(y)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feed = {x: [[1.0, 3.0], [3.0, 5.0]]}
        found = []
        for fetch, flag in ((y, True), (step, False), (step, True), (updates, True)):
            session.run(fetch, {**feed, training: flag})
            found.append(session.run(mean).tolist())
    assert found == [[0, 0], [0, 0], [1, 2], [1.5, 3]]


def test_regularized_variables_of_branches_and_loops():
    """The loss of a variable made in a branch or a loop is computed outside of it, once, and can be added and fetched."""

    def layer(x):
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            return tf.layers.dense(x, 2, kernel_initializer=tf.ones_initializer(), kernel_regularizer=tf.nn.l2_loss)

    x = tf.ones([1, 2])
    tf.cond(tf.placeholder_with_default(True, []), lambda: layer(x), lambda: x)
    with tf.variable_scope("loop"):
        tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, layer(x)), [0, x])
    losses = tf.losses.get_regularization_losses()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([*losses, tf.losses.get_total_loss()]) == [2, 2, 4]


def test_names_of_updates_by_kind_of_variable():
    """The update of a moving average bears its scope's name for a reference variable, the op's inside of it for a resource."""
    x = tf.ones([2, 3])
    tf.layers.batch_normalization(x, training=True, name="plain")
    with tf.variable_scope("", use_resource=True):
        tf.layers.batch_normalization(x, training=True, name="resource")
    assert [op.name for op in tf.get_collection(tf.GraphKeys.UPDATE_OPS)][::2] == [
        "plain/AssignMovingAvg",
        "resource/AssignMovingAvg/AssignSubVariableOp",
    ]


def test_public_attributes_of_layers():
    """Layers say how many spatial dimensions they have, wrappers which cell, and the activation is always a function."""
    x = tf.ones([2, 2])
    assert tf.layers.Dense(3).activation(x) is x
    assert [layer(2, 2).rank for layer in (tf.layers.Conv1D, tf.layers.SeparableConv2D, tf.layers.Conv3DTranspose)] == [
        1,
        2,
        3,
    ]
    cell = tf.nn.rnn_cell.BasicRNNCell(2, activation="linear")
    assert tf.nn.rnn_cell.ResidualWrapper(cell).cell is cell
    output, _ = cell(x * 100, tf.zeros([2, 2]))
    assert output.op.type == "BiasAdd"  # no tanh


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.layers.Dense(3),
        lambda: tf.layers.Conv2D(3, 2),
        lambda: tf.layers.SeparableConv2D(3, 2),
        lambda: tf.layers.Conv2DTranspose(3, 2),
        lambda: tf.layers.BatchNormalization(),
    ],
)
def test_layers_built_by_hand_can_be_called(make):
    """A layer whose `build` was called makes no other variables when it is called."""
    layer = make()
    layer.build(tf.TensorShape([None, 6, 6, 2]))
    before = list(tf.global_variables())
    layer(tf.ones([1, 6, 6, 2]))
    assert layer.built and tf.global_variables() == before


@pytest.mark.parametrize("make", ["BasicRNNCell", "GRUCell", "BasicLSTMCell", "LSTMCell"])
def test_cells_built_by_hand_can_be_called(make):
    """The same holds for cells, whose dtype need not be known then."""
    cell = getattr(tf.nn.rnn_cell, make)(3)
    cell.build(tf.TensorShape([None, 2]))
    before = list(tf.global_variables())
    cell(tf.ones([1, 2]), cell.zero_state(1, tf.float32))
    assert cell.built and tf.global_variables() == before
