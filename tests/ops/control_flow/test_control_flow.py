"""cond, case, switch_case, while_loop and their gradients, in graphs."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from tests.running import run_initialized

X = np.array([1.5, -0.5, 2.0], np.float32)


# ---- cond -------------------------------------------------------------------------------------------------------


def test_cond_runs_one_branch():
    """Only the side that the predicate chooses has effects."""
    p = tf.placeholder(tf.bool, [])
    v = tf.Variable(1.0)
    y = tf.cond(p, lambda: tf.assign_add(v, 2.0), lambda: tf.assign(v, -1.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(y, {p: True}) == 3.0
        assert session.run(v) == 3.0
        assert session.run(y, {p: False}) == -1.0
        assert session.run(v) == -1.0


def test_cond_structure_and_names():
    """The result has the structure that the branches return, and TensorFlow's names."""
    x = tf.placeholder(tf.float32, [3])
    y = tf.cond(x[0] > 0, lambda: (x, {"k": [x * 2.0, None]}), lambda: (-x, {"k": [x, None]}))
    assert y[0].op.name == "cond/Identity" and y[1]["k"][1] is None
    assert y[0].op.inputs[0].op.name == "cond" and y[0].op.inputs[0].op.type == "StatelessIf"
    assert y[0].shape.as_list() == [3]
    a, b = run_initialized([y[0], y[1]["k"][0]], {x: X})
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, 2 * X)


def test_cond_unpacks_a_single_result_unless_strict():
    """A list of one is the element; strict keeps the list; the 2.x form always does."""
    p = tf.placeholder(tf.bool, [])
    loose = tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)])
    strict = tf.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)], strict=True)
    newer = tf2.cond(p, lambda: [tf.constant(1)], lambda: [tf.constant(2)])
    assert isinstance(loose, tf.Tensor) and isinstance(strict, list) and isinstance(newer, list)
    assert run_initialized([loose, strict, newer], {p: False}) == [2, [2], [2]]


def test_cond_of_operations():
    """Branches that return operations give a tensor that has run them."""
    p = tf.placeholder(tf.bool, [])
    v = tf.Variable(0.0)
    done = tf.cond(p, lambda: tf.group(v.assign_add(5.0)), tf.no_op)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(done, {p: False})
        assert session.run(v) == 0.0
        session.run(done, {p: True})
        assert session.run(v) == 5.0


def test_cond_old_argument_names():
    """fn1 and fn2 are true_fn and false_fn; giving both is an error."""
    p = tf.constant(True)
    assert run_initialized(tf.cond(p, fn1=lambda: tf.constant(1), fn2=lambda: tf.constant(2))) == 1
    with pytest.raises(TypeError, match="fn1"):
        tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(2), fn1=lambda: tf.constant(1))


@pytest.mark.parametrize(
    ("pred", "true_fn", "false_fn", "message"),
    [
        (True, lambda: 1, lambda: 2, "Python bool"),
        ("tensor", 3, lambda: 2, "callable"),
        ("tensor", lambda: tf.constant(1), lambda: tf.constant(1.0), "same type: int32, float32"),
        ("tensor", lambda: [tf.constant(1)] * 2, lambda: [tf.constant(1)], "structure"),
        ("tensor", lambda: tf.constant(1), lambda: None, "NoneType|None"),
    ],
)
def test_cond_refuses(pred, true_fn, false_fn, message):
    """Predicates, functions and results that cannot be are refused with a reason."""
    branches_differ = callable(true_fn) and pred == "tensor"
    with pytest.raises(ValueError if branches_differ else TypeError, match=message):
        tf.cond(tf.constant(True) if pred == "tensor" else pred, true_fn, false_fn)
    if branches_differ:
        with pytest.raises(TypeError, match=message):
            tf2.cond(tf.constant(True), true_fn, false_fn)


def test_cond_gradient_of_each_side():
    """The gradient is that of the side taken, also of a value captured by both, and differentiates again."""
    x = tf.placeholder(tf.float32, [3])
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x) * x, lambda: x * x)
    first = tf.gradients(y, x)[0]
    second = tf.gradients(first, x)[0]
    for value in (X, -X):
        a, b = run_initialized([first, second], {x: value})
        positive = value.sum() > 0
        np.testing.assert_allclose(a, np.exp(value) * (1 + value) if positive else 2 * value, rtol=1e-5)
        np.testing.assert_allclose(b, np.exp(value) * (2 + value) if positive else 2 + 0 * value, rtol=1e-5)


def test_cond_gradient_of_resource_variables():
    """Variables read inside of a branch get their gradient."""
    p = tf.placeholder(tf.bool, [])
    v = tf.get_variable("v", [], initializer=tf.constant_initializer(3.0), use_resource=True)
    y = tf.cond(p, lambda: v * v, lambda: 2.0 * v)
    gradient = tf.gradients(y, v)[0]
    assert run_initialized(gradient, {p: True}) == 6.0
    assert run_initialized(gradient, {p: False}) == 2.0


def test_variable_made_inside_of_a_branch_belongs_to_the_graph():
    """get_variable in a branch makes an ordinary variable of the program."""
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.get_variable("inside", [], initializer=tf.constant_initializer(7.0)) + 0.0, lambda: 0.0)
    assert [v.op.name for v in tf.global_variables()] == ["inside"]
    assert run_initialized(y, {p: True}) == 7.0


def test_error_inside_of_a_branch_names_the_node():
    """What fails inside of a body is reported with the node of the body."""
    x = tf.placeholder(tf.float32, [None])
    y = tf.cond(x[0] > 0, lambda: tf.reshape(x, [2, 2], name="culprit"), lambda: tf.zeros([2, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run_initialized(y, {x: [1.0, 2.0, 3.0]})
    assert caught.value.op.name == "culprit"


# ---- case -------------------------------------------------------------------------------------------------------


def test_case_takes_the_first_true_predicate():
    """The first true predicate wins; without one the default runs."""
    x = tf.placeholder(tf.float32, [])
    y = tf.case([(x > 2, lambda: tf.constant(1)), (x > 1, lambda: tf.constant(2))], default=lambda: tf.constant(3))
    assert [run_initialized(y, {x: v}) for v in (3.0, 1.5, 0.0)] == [1, 2, 3]


def test_case_without_default_or_exclusive_asserts():
    """No true predicate without a default, or two with exclusive, is an error of the run."""
    x = tf.placeholder(tf.float32, [])
    pairs = [(x > 2, lambda: tf.constant(1)), (x > 1, lambda: tf.constant(2))]
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions"):
        run_initialized(tf.case(pairs), {x: 0.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1"):
        run_initialized(tf.case(pairs, exclusive=True, default=lambda: tf.constant(0)), {x: 3.0})


def test_switch_case():
    """The branch at the index runs; an index outside takes the default, else the last; gradients flow."""
    i = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [])
    y = tf.switch_case(i, [lambda: x * 2, lambda: x * x], default=lambda: -x)
    z = tf.switch_case(i, {0: lambda: x, 1: lambda: x * 10})
    gradient = tf.gradients(y, x)[0]
    assert [run_initialized(y, {i: n, x: 3.0}) for n in (0, 1, 2, -1)] == [6, 9, -3, -3]
    assert [run_initialized(gradient, {i: n, x: 3.0}) for n in (0, 1, 7)] == [2, 6, -1]
    assert run_initialized(z, {i: 5, x: 3.0}) == 30
    with pytest.raises(ValueError, match="contiguous"):
        tf.switch_case(i, {0: lambda: x, 2: lambda: x})


# ---- while_loop -------------------------------------------------------------------------------------------------


def test_while_loop_counts_and_names():
    """The usual loop, its structure and names."""
    i, (s, d) = tf.while_loop(
        lambda i, v: i < 5, lambda i, v: (i + 1, (v[0] + 1.0, {"k": v[1]["k"] * 2.0})), (0, (0.0, {"k": 1.0}))
    )
    assert i.op.inputs[0].op.name == "while" and i.op.inputs[0].op.type == "StatelessWhile"
    assert run_initialized([i, s, d["k"]]) == [5, 5.0, 32.0]


def test_while_loop_single_variable():
    """One variable in a list comes back as a tensor, in the same structure when asked or in 2.x."""
    assert isinstance(tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0]), tf.Tensor)
    assert isinstance(tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], return_same_structure=True), list)
    assert run_initialized(tf2.while_loop(lambda i: i < 3, lambda i: [i + 1], [0])) == [3]


def test_while_loop_maximum_iterations():
    """The limit ends the loop, also when it is a tensor."""
    limit = tf.placeholder(tf.int32, [])
    a = tf.while_loop(lambda i: i < 10, lambda i: i + 1, [0], maximum_iterations=4)
    b = tf.while_loop(lambda i: True, lambda i: i + 1, [0], maximum_iterations=limit)
    assert run_initialized([a, b], {limit: 7}) == [4, 7]


def test_while_loop_shape_invariants():
    """A variable that grows needs an invariant that says so."""
    start = tf.zeros([1, 2])
    body = lambda i, x: (i + 1, tf.concat([x, x], 0))  # noqa: E731
    with pytest.raises(ValueError, match="shape_invariants"):
        tf.while_loop(lambda i, x: i < 3, body, [0, start])
    _, x = tf.while_loop(
        lambda i, x: i < 3, body, [0, start], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])]
    )
    assert x.shape.as_list() == [None, 2]
    assert run_initialized(x).shape == (8, 2)
    with pytest.raises(ValueError, match="invariant"):
        tf.while_loop(
            lambda i, x: i < 3, body, [0, start], shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 3])]
        )


@pytest.mark.parametrize(
    ("error", "cond", "body", "variables"),
    [
        (TypeError, 3, lambda i: i, [0]),
        (TypeError, lambda i: i < 3, 3, [0]),
        (TypeError, lambda i: i, lambda i: i + 1, [0]),
        (TypeError, lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [0]),
        (ValueError, lambda i: i < 3, lambda i: (i, i), [0]),
        (ValueError, lambda: True, list, []),
    ],
)
def test_while_loop_refuses(error, cond, body, variables):
    """Functions and variables that do not fit are refused when the loop is built."""
    with pytest.raises(error):
        tf.while_loop(cond, body, variables)


def test_while_loop_writes_variables():
    """Updates inside of a body happen once for each iteration, and reads before the loop keep their value."""
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer(), use_resource=True)
    before = v.read_value()

    def body(i, s):
        with tf.control_dependencies([v.assign_add([1.0, 2.0])]):
            return i + 1, s + v.read_value()

    with tf.control_dependencies([before]):
        _, s = tf.while_loop(lambda i, s: i < 3, body, [0, tf.zeros([2])])
    with tf.control_dependencies([s]):
        after = v.read_value()
    a, b, c = run_initialized([before, s, after])
    np.testing.assert_array_equal(a, [0, 0])
    np.testing.assert_array_equal(b, [6, 12])
    np.testing.assert_array_equal(c, [3, 6])


def test_while_gradient_with_trip_count_known_only_when_run():
    """x**(n+1) by a loop, differentiated three times."""
    n = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float64, [])
    _, y = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * x), [0, x])
    first = tf.gradients(y, x)[0]
    second = tf.gradients(first, x)[0]
    third = tf.gradients(second, x)[0]
    for count in (0, 1, 2, 5):
        k = count + 1
        found = run_initialized([y, first, second, third], {n: count, x: 1.5})
        expected = [
            1.5**k,
            k * 1.5 ** (k - 1),
            k * (k - 1) * 1.5 ** (k - 2),
            k * (k - 1) * (k - 2) * 1.5 ** (k - 3),
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("trips", [0, 1, 3])
@pytest.mark.parametrize("body", ["alone", "beside", "read"])
def test_gradient_of_what_a_loop_leaves_unchanged(body, trips):
    """A loop variable that no iteration changes has the gradient of its value after the loop, and of what the body reads."""
    x = tf.constant([3.0, 5.0])
    if body == "alone":
        y = tf.while_loop(lambda i, c: i < trips, lambda i, c: (i + 1, c), [0, x])[1] * [1.0, 2.0]
        expected = [1.0, 2.0]
    elif body == "beside":
        last = tf.while_loop(lambda i, s, c: i < trips, lambda i, s, c: (i + 1, s * 2.0, c), [0, x, x * 4.0])
        y = last[1] + last[2] * 3.0
        expected = [2.0**trips + 12.0] * 2
    else:
        last = tf.while_loop(lambda i, s, c: i < trips, lambda i, s, c: (i + 1, s + c, c), [0, x, x * 4.0])
        y = last[1] + last[2] * 3.0
        expected = [1.0 + 4.0 * trips + 12.0] * 2
    np.testing.assert_array_equal(run_initialized(tf.gradients(y, x)[0]), expected)


def test_nested_loop_and_cond_gradient_against_differences():
    """A cond in a loop in a loop: the gradient agrees with central differences."""
    x = tf.placeholder(tf.float64, [])

    def outer(i, s):
        def inner(j, t):
            return j + 1, tf.cond(t > 1.0, lambda: tf.sin(t) * x, lambda: tf.exp(t * x))

        return i + 1, tf.while_loop(lambda j, t: j < i + 1, inner, [0, s])[1] + x

    _, y = tf.while_loop(lambda i, s: i < 3, outer, [0, x])
    gradient = tf.gradients(y, x)[0]
    with tf.Session() as session:
        for value in (0.3, 0.9, 1.7):
            step = 1e-6
            up, down = (session.run(y, {x: value + d}) for d in (step, -step))
            np.testing.assert_allclose(session.run(gradient, {x: value}), (up - down) / (2 * step), rtol=1e-6)


def test_loop_inside_of_cond_gradient():
    """A loop in one branch only."""
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x > 0, lambda: tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), [0, x])[1], lambda: -x)
    gradient = tf.gradients(y, x)[0]
    assert run_initialized(gradient, {x: 2.0}) == 32.0
    assert run_initialized(gradient, {x: -2.0}) == -1.0


def test_back_prop_false_stops_gradients():
    """back_prop=False makes the loop a constant to gradients."""
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), [0, x], back_prop=False)
    assert tf.gradients(y, x) == [None]


def test_loop_graph_goes_out_and_back():
    """A graph with a loop, a branch and their gradients computes the same after export and import."""
    x = tf.placeholder(tf.float32, [3], name="x")
    body = lambda i, s: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: s * x, lambda: s + x))  # noqa: E731
    _, y = tf.while_loop(lambda i, s: i < 4, body, [0, x])
    gradient = tf.gradients(y, x)[0]
    expected = run_initialized([y, gradient], {x: X})
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(
            tf.import_graph_def(graph_def, return_elements=[y.name, gradient.name], name=""), {"x:0": X}
        )
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)


# ---- Assert -----------------------------------------------------------------------------------------------------


def test_assert_shows_its_data():
    """A false condition fails the run with the data, shortened."""
    x = tf.placeholder(tf.float32, [4])
    check = tf.Assert(x[0] > 0, ["x is", x], summarize=2)
    run_initialized(check, {x: [1, 2, 3, 4]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"assertion failed: \[x is\] \[-1 2...\]"):
        run_initialized(check, {x: [-1, 2, 3, 4]})


# ---- loops over rows --------------------------------------------------------------------------------------------


def test_map_scan_fold():
    """The loops over rows and their gradients, with a first dimension that is not known."""
    x = tf.placeholder(tf.float64, [None, 2])
    results = [
        tf.map_fn(lambda r: r * r, x),
        tf.scan(lambda a, r: a * r, x),
        tf.scan(lambda a, r: a + r, x, initializer=tf.ones([2], tf.float64), reverse=True),
        tf.foldl(lambda a, r: a * r, x),
        tf.foldr(lambda a, r: a - r, x),
    ]
    assert [t.shape.as_list() for t in results[:3]] == [[None, 2]] * 3
    value = np.array([[1.0, 2.0], [3.0, 4.0], [0.5, 1.5]])
    found = run_initialized(results, {x: value})
    expected = [
        value**2,
        np.cumprod(value, 0),
        1 + np.cumsum(value[::-1], 0)[::-1],
        value.prod(0),
        value[2] - value[1] - value[0],
    ]
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b)
    np.testing.assert_allclose(run_initialized(tf.gradients(results[0], x)[0], {x: value}), 2 * value)
    np.testing.assert_allclose(run_initialized(tf.gradients(results[3], x)[0], {x: value}), value.prod(0) / value)


def test_map_fn_of_structures_and_dtypes():
    """Structures go in and come out; a dtype that changes must be stated."""
    x, y = tf.constant([1, 2, 3]), tf.constant([[1.0], [2.0], [3.0]])
    a, b = tf.map_fn(lambda r: (tf.cast(r[0], tf.float32), r[1] * 2.0), (x, y), dtype=(tf.float32, tf.float32))
    assert a.shape.as_list() == [3] and b.shape.as_list() == [3, 1]
    np.testing.assert_array_equal(run_initialized(a), [1, 2, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="fn_output_signature"):
        tf.map_fn(lambda r: tf.cast(r, tf.float32), x)
    with pytest.raises(ValueError, match="scalar"):
        tf.map_fn(lambda r: r, tf.constant(1.0))


def test_gradient_of_a_loop_whose_condition_has_no_part_in_it():
    """A cond in a loop's body, of which the wanted gradient needs nothing, is left out of the backward loop."""
    w = tf.constant([1.0, 2.0])
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def body(i, x):
        return i + 1, x * w + tf.cond(i >= 2, lambda: tf.zeros([2]), lambda: rows[i] * 0.5)

    _, y = tf.while_loop(lambda i, x: i < 3, body, [0, tf.zeros([2])])
    found, from_rows = run_initialized([tf.gradients(y, w)[0], tf.gradients(y, rows)[0]])
    np.testing.assert_allclose(found, [1.0 * 0.5 * 2 + 3 * 0.5, 2 * 0.5 * 2 * 2 + 4 * 0.5])
    np.testing.assert_allclose(from_rows, [[0.5, 2.0], [0.5, 1.0], [0.0, 0.0]])


def test_random_ops_of_bodies_count_in_the_graph_around_them():
    """Without control flow v2 the seeds after a loop or a branch depend on the random ops made in it."""
    tf.disable_control_flow_v2()
    tf.set_random_seed(1)
    tf.while_loop(lambda i: i < 1, lambda i: i + tf.random_uniform([], 1, 2, tf.int32), [0])
    tf.cond(tf.placeholder(tf.bool, []), lambda: tf.random_uniform([]), lambda: tf.random_uniform([]))
    assert tf.get_seed(None) == (1, 3)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"parallel_iterations": 0}, TypeError),
        ({"parallel_iterations": None}, TypeError),
        ({"parallel_iterations": 1.5}, ValueError),
        ({"maximum_iterations": [1]}, ValueError),
    ],
)
def test_hints_to_the_executor_are_checked(arguments, error):
    """while_loop refuses numbers of parallel iterations and limits that cannot be."""
    with pytest.raises(error):
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], **arguments)


def test_a_negative_limit_runs_no_iteration():
    """maximum_iterations=-1 means none, as in TensorFlow."""
    with tf.Session() as session:
        assert session.run(tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], maximum_iterations=-1)) == 0


def test_predicates_and_indices_are_tensors_in_a_graph():
    """case and switch_case take no Python values in a graph."""
    with pytest.raises(TypeError, match="pred must be a Tensor"):
        tf.case([(True, lambda: 1)])
    with pytest.raises(TypeError, match="'branch_index' must be a Tensor"):
        tf.switch_case(0, [lambda: 1])


def _concrete(function, *specs):
    return tf2.function(function).get_concrete_function(*specs)


@pytest.mark.parametrize("name", ["If", "StatelessIf"])
@pytest.mark.parametrize(("taken", "expected"), [(True, 10.0), (False, 3.0)])
def test_a_branch_run_eagerly_is_differentiated(eager, name, taken, expected):
    """A tape passes through an If op that runs at once."""
    spec = tf2.TensorSpec([], tf.float32)
    square, triple = _concrete(lambda x: x * x, spec), _concrete(lambda x: x * 3.0, spec)
    x = tf2.constant(5.0)
    with tf2.GradientTape() as tape:
        tape.watch(x)
        y = getattr(tf2.raw_ops, name)(
            cond=tf2.constant(taken), input=[x], Tout=[tf.float32], then_branch=square, else_branch=triple
        )
    assert float(tape.gradient(y, x)) == expected


def test_a_loop_run_eagerly_is_differentiated(eager):
    """A tape passes through a While op that runs at once."""
    number, count = tf2.TensorSpec([], tf.float32), tf2.TensorSpec([], tf.int32)
    go_on, square = _concrete(lambda i, x: i < 2, count, number), _concrete(lambda i, x: (i + 1, x * x), count, number)
    x = tf2.constant(2.0)
    with tf2.GradientTape() as tape:
        tape.watch(x)
        y = tf2.raw_ops.While(input=[tf2.constant(0), x], cond=go_on, body=square)
    assert float(y[1]) == 16.0 and float(tape.gradient(y[1], x)) == 32.0


def test_an_attribute_that_is_no_function():
    """An op that calls a function says what it was given instead of one."""
    with pytest.raises(TypeError, match="to a func for argument 'f'"):
        tf.raw_ops.PartitionedCall(args=[1.0], Tout=[tf.float32], f=3)


def test_arrays_leave_a_loop_with_the_shape_of_what_was_written():
    """The element shape that `write` finds in a loop's body is known after the loop."""
    x = tf.placeholder(tf.float32, [None, 4])
    count = tf.shape(x)[0]
    _, array = tf.while_loop(
        lambda i, a: i < count, lambda i, a: (i + 1, a.write(i, x[:, :3])), (0, tf.TensorArray(tf.float32, count))
    )
    assert array.element_shape.as_list() == [None, 3] and array.stack().shape.as_list() == [None, None, 3]


def test_eager_loops_return_what_the_body_returned(eager):
    """Run eagerly a 1.x loop returns the structure of its body: a list of one element stays one."""
    assert tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0]).numpy() == 3
    (listed,) = tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [0])
    (untouched,) = tf.while_loop(lambda i: i < 0, lambda i: i + 1, [0])
    assert (listed.numpy(), untouched.numpy()) == (3, 0)


def test_eager_ops_without_outputs_return_nothing(eager):
    """An op that has no outputs has run when it is called, and gives None."""
    assert tf.no_op() is None
    assert tf.raw_ops.NoOp() is None
    assert tf.global_variables_initializer() is None
