"""Fused loops compute the same as the ops' own kernels, and are used only where shapes are statically known."""

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import fused_loops

needs_native = pytest.mark.skipif(fused_loops.native is None, reason="the extension was not built")


def on_cpu():
    return tf.Session(config=tf.ConfigProto(device_count={"GPU": 0}))


def run_both(build, *arrays, always=True, tolerance=2e-6):
    """Runs a graph with and without fused loops and compares the results. With `always`, fused loops must have been used."""
    results = []
    for native in (fused_loops.native, None):
        with mock.patch.object(fused_loops, "native", native), tf.Graph().as_default(), on_cpu() as session:
            inputs = [tf.placeholder(tf.float32, array.shape) for array in arrays]
            fetches = build(*inputs)
            results.append(session.run(fetches, dict(zip(inputs, arrays))))
            source = next(reversed(session._plans.values())).step.source
            assert ("fused_loops_" in source) == (native is not None) or not always, source
    for with_program, without in zip(*results):
        assert with_program.shape == without.shape
        np.testing.assert_allclose(with_program, without, rtol=tolerance, atol=tolerance / 2)


UNARY = {
    "neg": tf.negative, "abs": tf.abs, "square": tf.square, "exp": tf.exp, "tanh": tf.tanh, "sigmoid": tf.sigmoid,
    "relu": tf.nn.relu, "leaky": lambda x: tf.nn.leaky_relu(x, 0.3), "log": lambda x: tf.log(tf.abs(x) + 0.25),
    "trigamma": lambda x: tf.math.polygamma(1.0, tf.abs(x) + 0.25), "sin": tf.sin, "cos": tf.cos, "digamma": lambda x: tf.digamma(tf.abs(x) + 0.25), "erf": tf.math.erf, "relu6": lambda x: tf.nn.relu6(x * 3.0), "selu": tf.nn.selu,
    "log_softmax": lambda x: tf.nn.log_softmax(x) if x.shape.rank else x,
    "lowest": lambda x: tf.reduce_min(x, -1, keepdims=True) if x.shape.rank else x,
    "energy": lambda x: tf.nn.l2_loss(x) * 0.01,
    "elu": tf.nn.elu, "expm1": tf.math.expm1, "softplus": tf.nn.softplus,
    "log1p": lambda x: tf.log1p(tf.exp(x)), "cast": lambda x: tf.cast(x > 0.25, tf.float32) * x,
}  # fmt: skip
BINARY = {"add": tf.add, "sub": tf.subtract, "mul": tf.multiply, "max": tf.maximum, "min": tf.minimum,
          "distance": tf.squared_difference, "quotient": lambda x, y: tf.div_no_nan(x, tf.nn.relu(y) * 4.0),
          "larger": lambda x, y: tf.where_v2(x > y, x, y), "least": lambda x, y: tf.where_v2(tf.less_equal(x, y), x, 0.5),
          "row": lambda x, y: tf.where_v2(tf.greater_equal(x, 0.1), y, -x)}  # fmt: skip


@st.composite
def chains(draw):
    """A tree of small ops over shapes that broadcast with (3, 4, 5)."""
    shapes = [
        draw(st.sampled_from([(), (1,), (5,), (4, 1), (4, 5), (3, 1, 5), (3, 4, 5), (3, 1, 1)]))
        for _ in range(draw(st.integers(1, 3)))
    ]
    steps = draw(
        st.lists(
            st.tuples(st.sampled_from([*UNARY, *BINARY]), st.integers(0, 9), st.integers(0, 9)), min_size=5, max_size=12
        )
    )
    return shapes, steps, draw(st.integers(0, 2**31 - 1))


@needs_native
@settings(deadline=None, max_examples=60)
@given(chains())
def test_chains_of_small_ops_agree_with_their_kernels(case):
    """Element-wise ops with every kind of broadcasting compute the same with and without fused loops."""
    shapes, steps, seed = case
    random = np.random.RandomState(seed)

    def build(*inputs):
        values = list(inputs)
        for name, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            made = UNARY[name](x) if name in UNARY else BINARY[name](x, y)
            values.append(tf.tanh(made))  # bounded, so that rounding errors stay small
        return values[len(inputs) :]

    worth_sharing = mock.patch.object(fused_loops, "_WORTH_SHARING", 0 if seed % 2 else fused_loops._WORTH_SHARING)
    with worth_sharing:
        run_both(build, *[random.uniform(-2, 2, shape).astype("f") for shape in shapes])


@needs_native
def test_rounding_and_signs_are_exact():
    """Halves, signed zeros, infinities and NaN are rounded, and have signs, as by the ops' own kernels."""
    x = np.array([-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 3e9, -np.inf, np.inf, np.nan, 0.49999997, 8388609.0], "f")

    def build(x):
        made = [function(x * 1.0) for function in (tf.floor, tf.ceil, tf.rint, tf.round, tf.sign, tf.math.erf)]
        return [*made, tf.cast(tf.logical_not(x > 0.25), tf.float32) * 2.0]

    run_both(build, x, tolerance=2e-7)


@needs_native
def test_angles_of_any_size():
    """Sines and cosines of float32 are right to the last place for angles of any size, beside multiples of a quarter of a turn too."""
    random = np.random.RandomState(0)
    quarters = (np.arange(-200, 200) * (np.pi / 2)).astype("f")
    for x in (random.randn(500).astype("f"), quarters, 10.0 ** random.uniform(-30, 5.6, 500).astype("f"),
              np.array([1e6, -3e8, 3e38, 2.0, 0.0, -0.0], "f")):  # fmt: skip
        with tf.Graph().as_default(), on_cpu() as session:
            fed = tf.placeholder(tf.float32, x.shape)
            sine, cosine = session.run([tf.sin(-fed) * 1.0, tf.cos(fed + 0.0) * 1.0], {fed: -x})
        np.testing.assert_array_max_ulp(sine, np.sin(x.astype("d")).astype("f"), 1)
        np.testing.assert_array_max_ulp(cosine, np.cos(x.astype("d")).astype("f"), 1)


@needs_native
def test_angles_that_are_no_numbers():
    """The sine and the cosine of infinities and NaN are NaN; those of the numbers beside them are not."""
    x = np.array([np.inf, 0.5, -np.inf, np.nan, 1.0], "f")
    run_both(lambda x: [tf.sin(x * 1.0) + 0.0, tf.cos(x * 1.0) + 0.0], x, tolerance=2e-7)


@needs_native
def test_gradients_of_rectified_numbers_at_the_edges():
    """Where an activation's input is NaN, infinite or a zero of either sign, its gradient is that of the op's own kernel."""
    x = np.array([-np.inf, -1.5, -0.0, 0.0, 1.5, 6.0, 7.0, np.inf, np.nan], "f")

    def build(x):
        made = [function(x * 1.0) for function in (tf.nn.relu, tf.nn.relu6, tf.nn.leaky_relu, tf.nn.elu, tf.nn.selu)]
        return [gradient * 3.0 for each in made for gradient in tf.gradients(each * 2.0, x)]

    run_both(build, x)


def normalized(x):
    """The ops of layer normalization, a softmax and their gradients."""
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    scaled = (x - mean) * tf.rsqrt(variance + 1e-3)
    weights = tf.nn.softmax(scaled * 0.5)
    flat = tf.reshape(weights, [-1, weights.shape[-1]])
    return [scaled, weights, flat, *tf.gradients(flat**3 + tf.reshape(tf.sigmoid(scaled), flat.shape) ** 2, x)]


@needs_native
@pytest.mark.parametrize("block", [1, 48, fused_loops._BLOCK])
@pytest.mark.parametrize("shape", [(4, 100, 96), (400, 97), (3000, 17), (8, 4, 64, 20), (16, 4099)])
def test_rows_of_large_tensors_go_through_a_program_block_by_block(shape, block):
    """Normalization of large tensors, in blocks of any size, equals the results of the separate kernels."""
    x = np.random.RandomState(0).randn(*shape).astype("f")
    with mock.patch.object(fused_loops, "_BLOCK", block):
        run_both(normalized, x, tolerance=1e-5)


@needs_native
@settings(deadline=None, max_examples=60)
@given(chains(), st.integers(1, 40))
def test_chains_of_large_ops_agree_with_their_kernels(case, block):
    """Element-wise ops with every kind of broadcasting compute the same if tensors of a few elements count as large."""
    shapes, steps, seed = case
    random = np.random.RandomState(seed)

    def build(*inputs):
        values = list(inputs)
        for name, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            made = UNARY[name](x) if name in UNARY else BINARY[name](x, y)
            made = tf.reduce_sum(made, -1, keepdims=True) if i == 9 and made.shape.rank else made
            values.append(tf.tanh(tf.reshape(made, made.shape)))
        return values[len(inputs) :]

    with mock.patch.multiple(fused_loops, LARGEST=3, _FEWEST_ROWS=2, _BLOCK=block):
        run_both(build, *[random.uniform(-2, 2, shape).astype("f") for shape in shapes], always=False)


def test_a_large_tensor_may_be_read_changed_and_read_again():
    """Fused loops over large tensors read variables at their place in the step, and views of their results have their own memory."""
    large = np.random.RandomState(0).randn(300, 200).astype("f")
    with tf.Graph().as_default(), on_cpu() as session:
        v = tf.get_variable("v", initializer=large)
        before = tf.tanh(v * 2.0) + v
        with tf.control_dependencies([before]):
            update = v.assign_add(np.ones_like(large))
        with tf.control_dependencies([update]):
            after = tf.reshape(tf.tanh(v.read_value() * 2.0) + v.read_value(), [200, 300])
        session.run(tf.global_variables_initializer())
        one, two = session.run([before, after])
        np.testing.assert_allclose(one, np.tanh(large * 2) + large, rtol=1e-5, atol=1e-6)
        changed = large + 1
        np.testing.assert_allclose(two.ravel(), (np.tanh(changed * 2) + changed).ravel(), rtol=1e-5, atol=1e-6)


@needs_native
@pytest.mark.parametrize("batch", [2, 7, 32])
def test_rows_are_shared_among_threads(batch):
    """An LSTM step that is large enough for several threads computes the same when its rows are split."""
    random = np.random.RandomState(batch)

    def build(gates, c, bias):
        i, j, f, o = tf.split(gates + bias, 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        return [c, tf.concat([tf.tanh(c) * tf.sigmoid(o), c], 1), tf.reshape(c, [batch, 2, 5])]

    rows, counted = fused_loops.Builder._rows, []

    def spy(builder, shape):
        counted.append(rows(builder, shape))
        return counted[-1]

    with mock.patch.object(fused_loops, "_WORTH_SHARING", 0), mock.patch.object(fused_loops.Builder, "_rows", spy):
        run_both(build, *[random.randn(batch, n).astype("f") for n in (40, 10)], random.randn(40).astype("f"))
    assert counted == [batch]


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_kernels_that_are_made_for_single_nodes_are_not_mixed_up(dtype):
    """Nodes of one type whose kernels are made for their constants each keep their own."""
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    pads = [[[0, 0], [1, 2]], [[3, 0], [0, 1]], [[0, 0], [1, 2]]]
    with tf.Graph().as_default(), on_cpu() as session:
        given = tf.placeholder(x.dtype, [2, 3])
        for found, padding in zip(session.run([tf.pad(given, each) for each in pads], {given: x}), pads):
            np.testing.assert_array_equal(found, np.pad(x, padding))


@needs_native
def test_memory_that_another_thread_may_read_is_not_used_again():
    """A repeated operand keeps its place until all threads are past the rows that use it; sums of rows of its size get another place."""
    made, scratch = [], fused_loops.Builder._scratch

    def spy(builder, first, rows, segments):
        places, size = scratch(builder, first, rows, segments)
        made.append((builder.code, first, places, segments))
        return places, size

    def build(x, v):
        total = tf.reduce_sum(tf.tanh(x) * tf.exp(v), 1, keepdims=True)
        return [tf.tanh(x) + tf.tanh(total)]

    with mock.patch.object(fused_loops, "_WORTH_SHARING", 0), mock.patch.object(fused_loops.Builder, "_scratch", spy):
        x = np.random.RandomState(0).randn(90, 90).astype("f")
        run_both(build, x, np.linspace(-1, 1, 90, dtype="f"), tolerance=2e-5)
    ((code, first, places, segments),) = made
    assert any(shared for _, _, shared in segments)
    uses: dict[int, list[int]] = {}
    for at, line in enumerate(code):
        for base in {id(item.base): item.base for item in line if isinstance(item, fused_loops.Buffer)}.values():
            if 0 <= base.index - first < len(places):
                uses.setdefault(base.index - first, []).append(at)
    for one, other in itertools.permutations(uses, 2):
        (begin, size), (start, length) = places[one], places[other]
        if uses[one][-1] < uses[other][0] and begin < start + length and start < begin + size:
            end = next((end for begin, end, shared in segments if shared and begin <= uses[one][-1] < end), 0)
            assert uses[other][0] >= end


@needs_native
@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([(2,), (3, 2), (16,), (1, 5)]),
    st.tuples(*[st.integers(1, 21)] * 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, fused_loops._WORTH_SHARING]),
    st.sampled_from([3, fused_loops.LARGEST]),
)
def test_products_of_many_pairs_of_matrices(outer, sizes, transpose_a, transpose_b, worth_sharing, largest):
    """Attention over small matrices is the same with and without fused loops, for threads, for large tensors and all transpositions."""
    m, k, n = sizes
    random = np.random.RandomState(m * k + n)

    def build(a, b):
        weights = tf.nn.softmax(tf.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b) / 4.0)
        return [weights, *tf.gradients(tf.square(weights), [a, b])]

    a, b = ((k, m) if transpose_a else (m, k)), ((n, k) if transpose_b else (k, n))
    arrays = [random.randn(*outer, *shape).astype("f") for shape in (a, b)]
    with mock.patch.multiple(fused_loops, _WORTH_SHARING=worth_sharing, LARGEST=largest, _FEWEST_ROWS=2):
        run_both(build, *arrays, always=largest > 3, tolerance=2e-5)


@needs_native
def test_a_sum_over_axes_of_one_element_is_a_view():
    """Sums, means and maxima over axes of size one, and over a few elements, have the values of their kernels."""

    def build(x):
        y = tf.tanh(x)
        return [f(y, axis) for axis in (1, [1, 2], 2) for f in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max)]

    run_both(build, np.random.RandomState(0).randn(6, 1, 5).astype("f"))


def test_products_sums_and_rearrangements():
    """Matrix products in all four transpositions, sums over adjacent axes, concat, split, transpose and reshape."""
    random = np.random.RandomState(0)

    def build(a, b):
        products = [
            tf.matmul(x, y, transpose_a=ta, transpose_b=tb)
            for ta in (False, True)
            for tb in (False, True)
            for x, y in [(tf.transpose(a) if ta else a, tf.transpose(b) if tb else b)]
        ]
        joined = tf.concat([products[0], tf.tanh(a)], 1)
        parts = tf.split(joined, 2, axis=0)
        cube = tf.reshape(joined, [2, 3, 35])
        sums = [tf.reduce_sum(cube, axis) for axis in (None, 0, 1, 2, [0, 1], [1, 2], [-1])]
        means = [tf.reduce_mean(cube, axis, keepdims=True) for axis in (None, 0, [1, 2])]
        return [*products, joined, *parts, *sums, *means, tf.expand_dims(parts[0], 1), tf.tile(a[:, :1], [1, 3])]

    run_both(build, random.randn(6, 17).astype("f"), random.randn(17, 18).astype("f"))


def test_gradients_through_a_program():
    """The gradient of a small network runs in fused loops too, and is correct."""
    random = np.random.RandomState(1)

    def build(x, w, b):
        h = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
        loss = tf.reduce_mean(tf.square(tf.sigmoid(h) - 0.25))
        return [loss, *tf.gradients(loss, [x, w, b])]

    run_both(build, random.randn(7, 5).astype("f"), random.randn(5, 3).astype("f"), random.randn(3).astype("f"))


@needs_native
@pytest.mark.parametrize(
    ("op", "reference"),
    [(tf.exp, np.exp), (tf.tanh, np.tanh), (tf.sigmoid, lambda x: 1 / (1 + np.exp(-x))), (tf.math.expm1, np.expm1)],
)
def test_functions_are_exact_to_the_last_digits(op, reference):
    """Results are within two units in the last place of the float64 function, over the whole range."""
    x = np.concatenate([np.linspace(-100, 100, 20001), np.linspace(-1, 1, 8001), np.float32(10) ** np.arange(-38, 0)])
    x = x.astype("f")[:32768]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, x.shape)
        found = session.run(op(tf.negative(tf.negative(fed))) + 0.0, {fed: x})
    with np.errstate(over="ignore"):
        expected = reference(x.astype("d"))
    inside = np.abs(expected) <= np.finfo("f").max
    assert np.all(np.isinf(found[~inside]))
    normal = inside & (np.abs(expected) >= np.finfo("f").tiny)
    error = np.abs(found[normal] - expected[normal]) / np.spacing(np.abs(expected[normal]).astype("f"))
    assert error.max() <= 2.5, x[normal][error.argmax()]
    assert np.all(np.abs(found[inside & ~normal] - expected[inside & ~normal]) <= np.finfo("f").tiny)


@pytest.mark.parametrize(
    "op", [tf.exp, tf.tanh, tf.sigmoid, tf.nn.relu, tf.abs, tf.square, tf.sqrt, tf.rsqrt, tf.reciprocal]
)
def test_special_numbers(op):
    """NaN, infinities and zeros give the same results as the ops' own kernels."""
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], "f")
    run_both(lambda x: [op(tf.negative(tf.negative(x))), tf.abs(tf.abs(x))], special)


def test_a_shape_that_was_promised_wrongly_still_gives_the_right_result():
    """A wrong static shape that was set by hand disables the fused loops but does not change the result."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        y = tf.identity(x)
        y.set_shape([4])
        z = tf.tanh(y * 2.0) + y
        values = np.arange(6, dtype="f")
        np.testing.assert_allclose(session.run(z, {x: values}), np.tanh(values * 2) + values, rtol=1e-6)


def test_inputs_that_do_not_lie_in_order():
    """A transposed view is made contiguous before fused loops read it."""
    a = np.arange(600, dtype="f").reshape(20, 30) / 600
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [20, 30])
        turned = tf.transpose(tf.check_numerics(x, "x"))
        y = tf.tanh(turned * 2.0) + turned
        np.testing.assert_allclose(session.run(y, {x: a}), np.tanh(a.T * 2) + a.T, rtol=1e-6)


def test_a_variable_is_read_before_the_update_that_follows():
    """Fused loops read variables at their place among reads and writes."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=np.ones(4, "f"))
        before = tf.tanh(v * 2.0) + v
        with tf.control_dependencies([before]):
            update = v.assign_add(np.ones(4, "f"))
        with tf.control_dependencies([update]):
            after = tf.tanh(v.read_value() * 2.0) + v.read_value()
        session.run(tf.global_variables_initializer())
        one, two = session.run([before, after])
        np.testing.assert_allclose(one, np.tanh(2.0) + np.ones(4), rtol=1e-6)
        np.testing.assert_allclose(two, np.tanh(4.0) + 2 * np.ones(4), rtol=1e-6)


def test_a_traced_run_goes_node_by_node():
    """Tracing shows the time of every node, including the nodes of fused loops."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        y = tf.tanh(tf.square(tf.negative(x, name="minus"), name="squared"), name="bent")
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(y, {x: [1, 2, 3]}, options=options, run_metadata=metadata)
        names = {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
        assert {"minus", "squared", "bent"} <= names


def test_packed_numbers_make_no_tensor():
    """A vector of scalars that is only used as slice indices is passed as plain numbers. If it is fetched, fed or computed with, it is a tensor."""
    with tf.Graph().as_default(), on_cpu() as session:
        x, i = tf.placeholder(tf.float32, [4, 6]), tf.placeholder(tf.int32, [])
        begin = tf.stack([i, i + 1])
        part = tf.slice(x, begin, [1, 2])
        value = np.arange(24, dtype="f").reshape(4, 6)
        np.testing.assert_array_equal(session.run(part, {x: value, i: 2}), value[2:3, 3:5])
        assert "Pack" not in session.explain(part, [x, i])
        found, where, more = session.run([part, begin, begin * 2], {x: value, i: 1})
        np.testing.assert_array_equal(found, value[1:2, 2:4])
        np.testing.assert_array_equal([where, more], [[1, 2], [2, 4]])
        np.testing.assert_array_equal(session.run(part, {x: value, begin: [0, 0]}), value[:1, :2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Size"):
            session.run(part, {x: value, i: 4})


def test_a_program_waits_for_all_queues_it_takes_from():
    """A metric whose values and weights come from two queues waits for both before one native call processes them."""
    batches = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    weights = np.array([1.0, 2.0, 0.0, 3.0], np.float32).reshape(4, 1, 1) * np.ones((4, 2, 1), np.float32)
    values = tf.FIFOQueue(10, tf.float32, shapes=[(2, 2)])
    weighing = tf.FIFOQueue(10, tf.float32, shapes=[(2, 1)])
    fill = [values.enqueue_many(batches), weighing.enqueue_many(weights)]
    mean, update = tf.metrics.mean_tensor(values.dequeue(), weights=weighing.dequeue())
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(fill)
        for count in range(1, 5):
            expected = (batches * weights)[:count].sum(0) / weights[:count].sum(0)
            np.testing.assert_allclose(session.run(update), expected, rtol=1e-6)
            np.testing.assert_allclose(session.run(mean), expected, rtol=1e-6)


def test_grouped_updates_follow_the_queues_they_wait_for():
    """Updates that run as one call start after all control inputs of each of them."""
    first, second = tf.FIFOQueue(1, tf.float32, shapes=[()]), tf.FIFOQueue(1, tf.float32, shapes=[()])
    one, two = tf.Variable(1.0), tf.Variable(2.0)
    taken = first.dequeue(), second.dequeue()
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    gradient = tf.constant(1.0)
    early = optimizer.apply_gradients([(gradient, one)])
    with tf.control_dependencies([taken[1]]):
        late = optimizer.apply_gradients([(tf.identity(gradient), two)])
    step = tf.group(early, late, *[tensor.op for tensor in taken])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        lines = session.explain(step).splitlines()
        session.run([first.enqueue(1.0), second.enqueue(1.0)])
        session.run(step)
        assert session.run([one, two]) == [0.5, 1.5]
    update = max(i for i, line in enumerate(lines) if "ApplyGradientDescent" in line)
    waited = [i for i, line in enumerate(lines) if ".result()" in line and "fifo_queue_1" in line]
    assert waited and waited[0] < update


@needs_native
@pytest.mark.parametrize("rows", [3, 40_000])
def test_masks_select_inside_and_outside_of_the_loops(rows):
    """A comparison is used by selections in the same loops and, as booleans, by other ops. Its gradient selects in the same way."""
    x, y = (np.random.RandomState(seed).uniform(-2, 2, (rows, 3)).astype("f") for seed in (0, 1))

    def build(x, y):
        mask = tf.greater(x * 2.0, y)
        chosen = tf.where(mask, tf.exp(x), tf.tanh(y))
        loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(y), logits=chosen)
        leaky = tf.nn.leaky_relu(chosen - 0.5)
        return [tf.cast(mask, tf.int32), chosen, loss, *tf.gradients([loss, leaky], [x, y])]

    run_both(build, x, y)


@needs_native
def test_booleans_of_rows_come_from_outside():
    """A boolean per row, as computed from sequence lengths, selects whole rows."""
    x = np.random.RandomState(0).uniform(-2, 2, (5, 4)).astype("f")

    def build(x):
        kept = tf.constant([3, 0, 2, 0, 1]) > tf.cast(tf.reduce_sum(x) * 0.0, tf.int32)
        return [tf.where(kept, tf.tanh(x) * 2.0, tf.exp(x) + 1.0)]

    run_both(build, x)


@needs_native
@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(0, 7), st.booleans(), st.integers(0, 2), st.data()
)
def test_maxima_agree_with_their_kernels(shape, axes, keep_dims, unusual, data):
    """Maxima over any axes, of infinities and NaN, too, their gradients and logsumexp equal the ops' own kernels."""
    reduced = [axis for axis in range(len(shape)) if axes >> axis & 1] or [len(shape) - 1]
    x = np.random.RandomState(data.draw(st.integers(0, 99))).randn(*shape).astype("f")
    for value in (np.nan, -np.inf)[:unusual]:
        x[np.unravel_index(data.draw(st.integers(0, x.size - 1)), x.shape)] = value

    def build(x):
        largest = tf.reduce_max(x * 2.0, reduced, keepdims=keep_dims) + 0.0
        total = tf.reduce_logsumexp(x, reduced, keepdims=keep_dims)
        return [largest, total, tf.gradients(largest, x)[0], tf.nn.elu(tf.reduce_max(x))]

    run_both(build, x)


@needs_native
@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, 1e-40, 3e38, np.inf, -np.inf, np.nan, -0.9999999, 1e-10])
def test_logarithms_at_the_edges(value):
    """Logarithms of zero, negative, subnormal, huge and NaN values equal NumPy's, but subnormal results are zero."""
    x = np.full((4, 4), value, "f")
    with np.errstate(all="ignore"):
        expected = [np.log(x) * 2, np.log1p(x) * 2]
    with tf.Graph().as_default(), on_cpu() as session:
        given = tf.placeholder(tf.float32, x.shape)
        found = session.run([tf.log(given) * 2.0 + 0.0, tf.log1p(given) * 2.0 + 0.0], {given: x})
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1.2e-38)


@st.composite
def pieces(draw):
    """A matrix, where to cut it, how to pad it, and the width of what it is multiplied by."""
    rows, columns = draw(st.integers(2, 40)), draw(st.integers(2, 40))
    cut = draw(st.integers(1, columns - 1))
    padding = draw(st.tuples(*[st.integers(0, 3)] * 4))
    return rows, columns, cut, padding, draw(st.integers(1, 90)), draw(st.integers(0, 1000))


@needs_native
@settings(deadline=None, max_examples=40)
@given(pieces())
def test_slices_pads_and_products_agree_with_their_kernels(case):
    """Slices, splits, stacks, pads, comparisons and products, small ones and those left to BLAS, equal the ops' own kernels."""
    rows, columns, cut, (top, bottom, left, right), width, seed = case
    random = np.random.RandomState(seed)

    def build(x, w):
        y = tf.tanh(x)
        first, second = tf.split(y, [cut, columns - cut], axis=1)
        padded = tf.pad(first * 2.0, [[top, bottom], [left, right]])
        stacked = tf.stack([y[:, 0], tf.sigmoid(y[:, -1])], axis=1)
        strided = tf.exp(y[::2, 1:])
        product = tf.nn.relu(tf.matmul(y, w) + 1.0)
        back = tf.matmul(product, w, transpose_b=True) * 0.01
        across = tf.matmul(y, product, transpose_a=True) * 0.01
        both = tf.logical_or(tf.logical_and(y > 0.0, tf.equal(y, y)), tf.not_equal(y, x))
        chosen = tf.where(both, y, -y)
        parts = tf.unstack(tf.square(second), axis=0)
        return [
            padded,
            stacked,
            strided,
            product,
            back,
            across,
            chosen,
            parts[0],
            parts[-1],
            tf.slice(y, [1, 0], [-1, cut]),
        ]

    worth_sharing = mock.patch.object(fused_loops, "_WORTH_SHARING", 0 if seed % 2 else fused_loops._WORTH_SHARING)
    blas = mock.patch.object(fused_loops, "_MOST_PRODUCTS", 64 if seed % 3 else fused_loops._MOST_PRODUCTS)
    with worth_sharing, blas:
        arrays = [random.uniform(-1, 1, shape).astype("f") for shape in ((rows, columns), (columns, width))]
        run_both(build, *arrays, tolerance=2e-5)


_BOUNDS = st.one_of(st.none(), st.integers(-6, 6))
_ITEMS = st.one_of(
    st.none(), st.integers(-3, 2), st.builds(slice, _BOUNDS, _BOUNDS, st.sampled_from([None, 1, 1, 2, -1]))
)


@needs_native
@settings(deadline=None, max_examples=80)
@given(st.lists(_ITEMS, max_size=4), st.one_of(st.none(), st.integers(0, 4)))
def test_gradients_of_slices_agree_with_their_kernels(items, ellipsis):
    """The gradient of any slice of a (3, 4, 5) tensor is zero outside of it, fused or not."""
    x = np.random.RandomState(0).randn(3, 4, 5).astype("f")
    if ellipsis is not None:
        items.insert(min(ellipsis, len(items)), Ellipsis)
    try:
        if x[tuple(items)].size == 0:
            return
    except IndexError:
        return

    def build(x):
        return [tf.tanh(tf.gradients(tf.reduce_sum(tf.square(tf.tanh(x)[tuple(items)])), x)[0])]

    run_both(build, x)


@needs_native
def test_the_plan_says_what_was_fused():
    """`session.explain` ends with the number of fused ops, and the reasons why others were not."""
    with tf.Graph().as_default(), on_cpu() as session:
        x, n = tf.placeholder(tf.float32, [8, 4]), tf.placeholder(tf.float16, [3])
        y = tf.tanh(tf.exp(x) + 1.0) * tf.sigmoid(x)
        session.run([y, tf.exp(n)], {x: np.ones((8, 4), "f"), n: np.ones(3, np.float16)})
        plan = session.explain([y, tf.square(n)], [x, n])
    assert "# fused loops: 1 calls run 5 ops" in plan
    assert "# not fused, the dtype is neither float32 nor float64: Square" in plan
