"""The mixed precision rewrite: what runs in 16 bits, what does not, and that programs see neither."""

from __future__ import annotations

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base import settings
from stoker._src.graph.definition import find_definition
from stoker._src.ops.support.half_precision import DATA_TYPES, ROLES

experimental = tf.train.experimental
ON, OFF = 1, 2


@pytest.fixture(autouse=True)
def rewrite_off():
    """The switch is process-wide."""
    yield
    settings.mixed_precision_rewrite = False


def config_with(**toggles):
    config = tf.ConfigProto(device_count={"GPU": 0})
    for name, value in toggles.items():
        setattr(config.graph_options.rewrite_options, name, value)
    return config


def planned_dtypes(session, fetches, feed_dict=None):
    """op name -> the dtype of its data, as the run's partition graph states it; and the names of the casts."""
    metadata = tf.RunMetadata()
    session.run(fetches, feed_dict, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
    (graph,) = metadata.partition_graphs
    found, casts = {}, []
    for node in graph.node:
        if node.op == "Cast" and "-CastTo" in node.name:
            casts.append(node.name)
        elif "T" in node.attr:
            found[node.name] = tf.as_dtype(node.attr["T"].type).name
    return found, casts


def test_every_listed_op_exists_and_has_data():
    """The lists name ops of ours, each with a type attribute that can be a 16-bit one."""
    for name in ROLES:
        definition = find_definition(name)
        assert definition is not None and DATA_TYPES & set(definition.attrs), name


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_products_in_bfloat16_softmax_in_float32(resource):
    """Products and what lies between them run in bfloat16 with casts at the borders; weights are cast once for both ways."""
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    w1 = tf.get_variable("w1", [6, 8], use_resource=resource)
    b1 = tf.get_variable("b1", [8], use_resource=resource)
    w2 = tf.get_variable("w2", [8, 3], use_resource=resource)
    hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w1, name="m1"), b1, name="a1"), name="r1")
    logits = tf.matmul(hidden, w2, name="m2")
    shifted = tf.add(logits, 0.5, name="after")
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(logits), logits=shifted))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session(config=config_with(auto_mixed_precision=ON)) as session:
        session.run(tf.global_variables_initializer())
        feed = {x: np.ones([4, 6], np.float32)}
        dtypes, casts = planned_dtypes(session, [train, loss, hidden], feed)
        assert {dtypes[name] for name in ("m1", "a1", "r1", "m2")} == {"bfloat16"}
        assert {dtypes["gradients/m1_grad/MatMul_1"], dtypes["gradients/m2_grad/MatMul"]} == {"bfloat16"}
        assert dtypes["gradients/r1_grad/ReluGrad"] == "bfloat16"
        # An addition whose result only goes to float32 ops would only be rounded; sums, losses and updates are never.
        assert {dtypes["after"], dtypes["Softmax"], dtypes["Mean"]} == {"float32"}
        assert sum(name.startswith(("w2/read", "m2/ReadVariableOp")) for name in casts) == 1
        values = session.run([loss, hidden, logits, w1], feed)
        assert all(np.asarray(value).dtype == np.float32 for value in values)
        rounded = [value.astype(tf.bfloat16.as_numpy_dtype).astype(np.float32) for value in values]
        assert np.array_equal(values[1], rounded[1]), "hidden is made of bfloat16 numbers"
        assert not np.array_equal(values[3], rounded[3]), "weights are not rounded"


def test_kernels_receive_bfloat16(monkeypatch):
    """The kernels of products and convolutions are called with bfloat16 tensors, forwards and backwards."""
    seen = {}
    for name in ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "BatchMatMulV2", "Softmax"):
        definition = find_definition(name)
        kernel = definition.kernel_fn

        def spy(*args, _kernel=kernel, _name=name, **kwargs):
            kinds = {str(arg.dtype) for arg in args if hasattr(arg, "is_floating_point") and arg.is_floating_point()}
            seen.setdefault(_name, set()).update(kinds)
            return _kernel(*args, **kwargs)

        monkeypatch.setattr(definition, "kernel_fn", spy)
        monkeypatch.setattr(definition.planning, "specialize", None)
        monkeypatch.setattr(definition.planning, "lower", None)
    x = tf.placeholder(tf.float32, [2, 6, 6, 2])
    k1, k2 = tf.get_variable("k1", [3, 3, 2, 4]), tf.get_variable("k2", [3, 3, 4, 4])
    images = tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(x, k1, 1, "SAME")), k2, 2, "VALID")
    rows = tf.reshape(images, [2, 4, 4])
    scores = tf.nn.softmax(tf.matmul(rows, rows, transpose_b=True))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(scores)))
    with tf.Session(config=config_with(auto_mixed_precision_onednn_bfloat16=ON)) as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {x: np.random.RandomState(0).rand(2, 6, 6, 2)})
    for name in ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "BatchMatMulV2"):
        assert seen[name] == {"torch.bfloat16"}, name
    assert seen["Softmax"] == {"torch.float32"}


def test_batch_normalization_keeps_its_statistics():
    """Data goes through a batch normalization in bfloat16; its statistics, scale and offset stay in float32."""
    x = tf.placeholder(tf.float32, [8, 5, 5, 3])
    images = tf.layers.conv2d(x, 4, 3, name="c1")
    images = tf.nn.relu(tf.layers.batch_normalization(images, training=True, name="bn"))
    images = tf.layers.conv2d(images, 2, 1, name="c2")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(images))
    with tf.Session(config=config_with(auto_mixed_precision=ON)) as session:
        session.run(tf.global_variables_initializer())
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        dtypes, casts = planned_dtypes(session, [train, *updates], {x: np.random.RandomState(0).rand(8, 5, 5, 3)})
        norms = {name: dtype for name, dtype in dtypes.items() if "FusedBatchNorm" in name}
        assert "bfloat16" in norms.values()
        assert not any("bn/gamma" in name or "bn/moving" in name for name in casts)
        assert np.isfinite(session.run("bn/moving_variance:0")).all()


def test_loop_bodies():
    """The body of a loop is rewritten; what goes round the loop stays float32."""
    w = tf.get_variable("w", [4, 4], use_resource=True)
    state = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.tanh(tf.matmul(s, w))), [0, tf.ones([2, 4])])[
        1
    ]
    gradient = tf.gradients(tf.reduce_sum(state), w)[0]
    with tf.Session(config=config_with()) as plain, tf.Session(config=config_with(auto_mixed_precision=ON)) as mixed:
        value = np.random.RandomState(0).normal(size=[4, 4]).astype(np.float32)
        for session in (plain, mixed):
            session.run(w.initializer)
            w.load(value, session)
        expected, found = plain.run([state, gradient]), mixed.run([state, gradient])
        for a, b in zip(expected, found):
            assert b.dtype == np.float32 and not np.array_equal(a, b)
            np.testing.assert_allclose(a, b, rtol=0.05, atol=0.05)


def test_reference_read_after_a_write_is_cast_again():
    """A product told to wait for an assignment multiplies by what was assigned."""
    w = tf.Variable(np.eye(2, dtype=np.float32), use_resource=False)
    x = tf.constant([[1.0, 2.0]])
    before = tf.matmul(x, w)
    with tf.control_dependencies([before, w.assign(3 * np.eye(2, dtype=np.float32))]):
        after = tf.matmul(x, w)
    with tf.Session(config=config_with(auto_mixed_precision=ON)) as session:
        session.run(w.initializer)
        first, second = session.run([before, after])
    # TensorFlow leaves open whether `before` sees the write, not whether `after` does.
    assert second.tolist() == [[3.0, 6.0]] and first.dtype == np.float32


def test_fed_results_of_converted_ops():
    """A fed tensor is what was fed, whoever would have computed it."""
    a = tf.placeholder_with_default(np.ones([2, 2], np.float32), [2, 2])
    product = tf.matmul(a, a)
    again = tf.matmul(tf.nn.relu(product), a)
    with tf.Session(config=config_with(auto_mixed_precision=ON)) as session:
        fed = np.full([2, 2], 1.001, np.float32)
        found, result = session.run([product, again], {product: fed})
    assert np.array_equal(found, fed) and result.tolist() == [[2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize(
    ("toggles", "enabled", "expected"),
    [
        ({}, False, "float32"),
        ({}, True, "bfloat16"),
        ({"auto_mixed_precision": OFF}, True, "float32"),
        ({"auto_mixed_precision": ON}, False, "bfloat16"),
        ({"auto_mixed_precision_onednn_bfloat16": ON}, False, "bfloat16"),
        ({"auto_mixed_precision_cpu": ON}, False, "float16"),
        ({"auto_mixed_precision": ON, "disable_meta_optimizer": True}, False, "float32"),
    ],
)
def test_switches(toggles, enabled, expected):
    """The process-wide switch and the session's own options decide, the session's OFF before the switch."""
    if enabled:
        experimental.enable_mixed_precision_graph_rewrite(tf.train.GradientDescentOptimizer(0.1))
    product = tf.matmul(tf.ones([2, 2]), tf.placeholder_with_default(np.ones([2, 2], np.float32), [2, 2]), name="m")
    with tf.Session(config=config_with(**toggles)) as session:
        assert planned_dtypes(session, product)[0]["m"] == expected


def test_float64_and_integers_are_left_alone():
    """Only float32 is converted."""
    a = tf.placeholder_with_default(np.eye(2), [2, 2])
    b = tf.placeholder_with_default(np.eye(2, dtype=np.int32), [2, 2])
    with tf.Session(config=config_with(auto_mixed_precision=ON)) as session:
        dtypes, casts = planned_dtypes(session, [tf.matmul(a, a, name="a"), tf.matmul(b, b, name="b")])
    assert dtypes["a"] == "float64" and dtypes["b"] == "int32" and not casts


def test_the_log_says_how_many(caplog):
    """A session logs what it converted."""
    product = tf.matmul(tf.placeholder_with_default(np.eye(2, dtype=np.float32), [2, 2]), tf.ones([2, 2]))
    level = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.INFO)
    try:
        with tf.Session(config=config_with(auto_mixed_precision=ON)) as session, caplog.at_level("INFO", "tensorflow"):
            session.run(product)
    finally:
        tf.logging.set_verbosity(level)
    assert "Converted 1 of 4 ops to bfloat16, with 3 casts." in caplog.text


def test_warnings_about_sessions(caplog):
    """Enabling warns of sessions made before, disabling when there is nothing to disable."""
    with tf.Session(), caplog.at_level("WARNING", "tensorflow"):
        experimental.enable_mixed_precision_graph_rewrite(tf.train.GradientDescentOptimizer(0.1))
        assert "You already have existing Sessions that do not use mixed precision" in caplog.text
        experimental.disable_mixed_precision_graph_rewrite()
        assert "already disabled" not in caplog.text
        experimental.disable_mixed_precision_graph_rewrite()
        assert "called when mixed precision is already disabled" in caplog.text


@pytest.mark.usefixtures("eager")
def test_functions_in_eager_mode():
    """A `tf.function` made after enabling is rewritten; plain eager ops are not."""
    experimental.enable_mixed_precision_graph_rewrite(tf.train.GradientDescentOptimizer(0.1), 1)
    x = tf2.constant(np.random.RandomState(0).rand(3, 3).astype(np.float32))
    plain = tf2.matmul(x, x)
    compiled = tf2.function(lambda x: tf2.matmul(x, x))(x)
    assert compiled.dtype == tf2.float32 and not np.array_equal(plain.numpy(), compiled.numpy())
    np.testing.assert_allclose(plain.numpy(), compiled.numpy(), rtol=0.02)


def _accuracy(mixed):
    """Trains a small CNN to tell where the bright bar of a noisy image is; the share of new images it gets right."""
    rng = np.random.RandomState(3)

    def draw(count):
        labels = rng.randint(0, 4, count)
        images = rng.normal(0, 0.6, (count, 8, 8, 1))
        for image, label in zip(images, labels):
            part = slice(4 * (label // 2), 4 * (label // 2) + 3)
            image[(part, slice(2, 6)) if label % 2 else (slice(2, 6), part)] += 1.0
        return images.astype(np.float32), labels

    with tf.Graph().as_default():
        tf.set_random_seed(5)
        x, y = tf.placeholder(tf.float32, [None, 8, 8, 1]), tf.placeholder(tf.int32, [None])
        hidden = tf.layers.conv2d(x, 8, 3, padding="same", use_bias=False)
        hidden = tf.nn.relu(tf.layers.batch_normalization(hidden, training=True))
        hidden = tf.layers.max_pooling2d(hidden, 2, 2)
        hidden = tf.layers.conv2d(hidden, 16, 3, activation=tf.nn.relu)
        logits = tf.layers.dense(tf.layers.flatten(hidden), 4)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
        optimizer = tf.train.AdamOptimizer(0.01)
        if mixed:
            optimizer = experimental.enable_mixed_precision_graph_rewrite(optimizer)
        train = optimizer.minimize(loss)
        hits = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y), tf.float32))
        with tf.Session(config=config_with()) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(80):
                images, labels = draw(64)
                session.run(train, {x: images, y: labels})
            images, labels = draw(400)
            settings.mixed_precision_rewrite = False
            return session.run(hits, {x: images, y: labels})


def test_a_cnn_learns_as_well():
    """A CNN with batch normalization and a dynamic loss scale reaches the accuracy it reaches in float32."""
    plain, mixed = _accuracy(mixed=False), _accuracy(mixed=True)
    assert plain > 0.9 and mixed > 0.9 and abs(plain - mixed) < 0.04


def test_steps_that_overflow_are_skipped():
    """A step whose 16-bit gradients are not finite changes no weight and shrinks the scale; the next one is applied."""
    x = tf.placeholder(tf.float32, [2, 2])
    w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
    optimizer = experimental.enable_mixed_precision_graph_rewrite(
        tf.train.GradientDescentOptimizer(0.1), experimental.DynamicLossScale(4.0, 10)
    )
    train = optimizer.minimize(tf.reduce_sum(tf.matmul(x, w)))
    with tf.Session(config=config_with()) as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {x: np.full([2, 2], 3e38, np.float32)})
        assert session.run(w).tolist() == [[1, 1], [1, 1]] and session.run(optimizer._loss_scale()) == 2.0
        session.run(train, {x: np.ones([2, 2], np.float32)})
        np.testing.assert_allclose(session.run(w), np.full([2, 2], 0.8), rtol=1e-6)
