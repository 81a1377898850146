"""GradientTape, custom gradients and tf.function."""

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1

pytestmark = pytest.mark.usefixtures("eager")


def test_gradient_of_variables_and_watched_tensors():
    """Variables are watched by themselves, tensors when asked; what is not connected gives None or zeros."""
    v, x, other = tf.Variable([1.0, 2.0]), tf.constant(3.0), tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = tf.reduce_sum(v * v) * x
    found = tape.gradient(y, {"v": v, "x": x, "other": other})
    np.testing.assert_allclose(found["v"], [6, 12])
    assert float(found["x"]) == 5 and found["other"] is None
    assert float(tape.gradient(y, other, unconnected_gradients=tf.UnconnectedGradients.ZERO)) == 0
    np.testing.assert_allclose(tape.gradient(y, v, output_gradients=tf.constant(2.0)), [12, 24])
    assert tape.watched_variables() == (v,)


def test_tape_is_used_once_unless_persistent():
    """A second gradient of an ordinary tape is an error."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 4
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.gradient(y, x)


def test_stop_recording_reset_and_unwatched_variables():
    """What a tape does not record has no gradient."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        unwatched = v * v
        tape.watch(v)
        with tape.stop_recording():
            hidden = v * v
        seen = v * v
    assert tape.gradient(unwatched, v) is None and tape.gradient(hidden, v) is None
    assert float(tape.gradient(seen, v)) == 4
    with pytest.raises(ValueError, match="not recording"):
        tape.reset()
    with tape:
        tape.reset()
    assert tape.gradient(seen, v) is None


def test_nested_tapes_give_second_derivatives():
    """d2/dx2 of x^3."""
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        first = inner.gradient(y, x)
    assert float(outer.gradient(first, x)) == 12


def test_jacobians():
    """jacobian and batch_jacobian against the mathematics, eager and traced."""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    def both(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x**3
        return tape.jacobian(y, x), tape.batch_jacobian(y, x)

    expected = np.zeros((2, 2, 2, 2))
    for i in range(2):
        for j in range(2):
            expected[i, j, i, j] = 3 * float(x[i, j]) ** 2
    for form in (both, tf.function(both)):
        whole, rows = form(x)
        np.testing.assert_allclose(whole, expected, rtol=1e-6)
        np.testing.assert_allclose(rows, np.stack([expected[0, :, 0], expected[1, :, 1]]), rtol=1e-6)


def test_gradient_through_a_traced_function():
    """A call of a tf.function is differentiated, twice, also with respect to what it captures."""
    v, x = tf.Variable(3.0), tf.constant(2.0)
    square = tf.function(lambda a: tf.cond(a > 0, lambda: a * a * v, lambda: a))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = square(x)
        dx, dv = inner.gradient(y, [x, v])
    assert (float(dx), float(dv)) == (12, 4)
    assert [float(g) for g in outer.gradient(dx, [x, v])] == [6, 4]


def test_training_step_in_a_function():
    """Tape and updates inside of one function; reads before the update keep their value."""
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((v - x) ** 2)
        before = v.read_value()
        v.assign_sub(0.25 * tape.gradient(loss, v))
        return loss, before

    loss, before = step(tf.constant(0.0))
    assert float(loss) == 5
    np.testing.assert_allclose(before, [1, 2])
    np.testing.assert_allclose(v, [0.5, 1])


def test_function_traces_once_for_each_kind_of_arguments():
    """Values of tensors do not matter to the trace; shapes, dtypes and Python values do."""
    f = tf.function(lambda x, n=2: x * float(n))
    f(tf.constant([1.0])), f(tf.constant([5.0]))
    assert f.experimental_get_tracing_count() == 1
    f(tf.constant([1.0, 2.0])), f(tf.constant([1.0]), 3), f(tf.constant([1.0]), n=3)
    assert f.experimental_get_tracing_count() == 3
    loose = tf.function(lambda x: x + 1.0, reduce_retracing=True)
    for size in (1, 2, 3, 4):
        loose(tf.zeros([size]))
    assert loose.experimental_get_tracing_count() == 2


def test_input_signature():
    """One trace for what fits; the rest is refused."""
    f = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([None], tf.float32)])
    np.testing.assert_allclose(f([1.0, 2.0]), [2, 4])
    f(tf.constant([1.0]))
    assert f.experimental_get_tracing_count() == 1
    for wrong in (tf.constant(1.0), tf.constant([1])):
        with pytest.raises(TypeError, match=r"Binding inputs to tf.function failed"):
            f(wrong)
    concrete = f.get_concrete_function()
    assert concrete.inputs[0].shape.as_list() == [None]
    np.testing.assert_allclose(concrete(tf.constant([3.0])), [6])


def test_variables_are_made_on_the_first_call_only():
    """A variable kept by the program is made once; one made at every call is an error."""
    kept = []

    @tf.function
    def good(x):
        if not kept:
            kept.append(tf.Variable(2.0))
        return x * kept[0]

    assert float(good(tf.constant(3.0))) == 6 and len(kept) == 1
    with pytest.raises(ValueError, match="singleton"):
        tf.function(lambda: tf.Variable(1.0) + 0.0)()


def test_python_control_flow_on_tensors_is_refused():
    """`if tensor:` inside of a function that is not converted raises TensorFlow's error."""
    with pytest.raises(TypeError, match="as a Python `bool` is not allowed"):
        tf.function(lambda x: x if x > 0 else -x, autograph=False)(tf.constant(1.0))


def test_tensor_of_one_function_in_another_is_out_of_scope():
    """A tensor that escapes from a trace cannot be used elsewhere."""
    leaked = []
    tf.function(lambda x: leaked.append(x + 1.0))(tf.constant(1.0))
    with pytest.raises(TypeError, match="out of scope"):
        tf.function(lambda: leaked[0] * 2.0)()


def test_custom_gradient():
    """The given gradient is used, in eager mode, in functions and in graphs, also for variables."""
    v, x = tf.Variable(2.0), tf.constant(3.0)

    @tf.custom_gradient
    def scaled(x):
        def grad(dy, variables=None):
            return dy * 10.0, [dy * 100.0 for _ in variables]

        return x * v, grad

    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x)
        return tape.gradient(y, [x, v])

    for form in (both, tf.function(both)):
        assert [float(g) for g in form(x)] == [10, 100]
    with tf1.Graph().as_default(), tf1.Session() as session:
        a = tf1.constant(3.0)
        b = tf1.custom_gradient(lambda x: (x * x, lambda dy: dy * 7.0))(a)
        assert session.run(tf1.gradients(b, a)) == [7.0]


def test_custom_gradient_must_take_variables():
    """Reading a variable without a `variables` argument is reported."""
    v = tf.Variable(2.0)
    with pytest.raises(TypeError, match="variables"):
        tf.custom_gradient(lambda x: (x * v, lambda dy: dy))(tf.constant(1.0))


def test_recompute_and_pass_through():
    """recompute_grad gives the ordinary gradient, grad_pass_through that of the identity."""
    v, x = tf.Variable(2.0), tf.constant(3.0)
    again, through = tf.recompute_grad(lambda x: x * x * v), tf.grad_pass_through(lambda x: tf.floor(x * 10.0))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, b = again(x), through(x)
    assert [float(g) for g in tape.gradient(a, [x, v])] == [12, 9]
    assert float(b) == 30 and float(tape.gradient(b, x)) == 1


def test_eager_control_flow_is_python():
    """cond and while_loop run at once in eager mode, and a tape sees through them."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), [0, x])[1]
        z = tf.cond(y > 0, lambda: y, lambda: -y)
    assert float(z) == 16 and float(tape.gradient(z, x)) == 32


def test_hessians_in_a_graph():
    """hessians of x0^2 x1."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        x = tf1.constant([1.0, 2.0])
        np.testing.assert_allclose(session.run(tf1.hessians(x[0] ** 2 * x[1], x)[0]), [[4, 2], [2, 0]])


def test_tensors_print_as_in_tensorflow(eager):
    """Matrices start on a line of their own; `repr` shows plain numbers."""
    assert str(tf.constant([[1, 2], [3, 4]])) == "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32)"
    assert str(tf.constant([1, 2])) == "tf.Tensor([1 2], shape=(2,), dtype=int32)"
    assert repr(tf.constant(1.5)) == "<tf.Tensor: shape=(), dtype=float32, numpy=1.5>"
    assert repr(tf.constant("x")) == "<tf.Tensor: shape=(), dtype=string, numpy=b'x'>"
    assert repr(tf.Variable(2.0, name="v")) == "<tf.Variable 'v:0' shape=() dtype=float32, numpy=2.0>"


def test_eager_operands_of_different_dtypes_are_refused(eager):
    """Nothing is promoted: InvalidArgumentError, also for lists of tensors and numbers that do not fit."""
    one, integer = tf.constant(1.0), tf.constant(1)
    for step in (
        lambda: one + integer,
        lambda: integer + 1.5,
        lambda: tf.stack([one, integer]),
        lambda: tf.Variable(1.0) + tf.Variable(1),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError):
            step()
    with pytest.raises(tf.errors.UnimplementedError, match="Cast string to int32"):
        tf.cast(tf.constant("1"), tf.int32)
