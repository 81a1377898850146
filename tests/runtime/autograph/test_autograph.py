"""`tf.autograph`: what is converted, what loops go over, and the public names."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import stoker as tf
from stoker._src.base import settings as choices

pytestmark = pytest.mark.usefixtures("eager", "equality")


# ---- what loops go over -----------------------------------------------------------------------------------------


@tf.function
def total(rows):
    result = 0
    for row in rows:
        result += tf.reduce_sum(row)
    return result


def test_loops_over_tensors():
    """Tensors, variables, ragged tensors and arrays of any rank are gone over row by row, also an empty one."""
    assert int(total(tf.constant([[1, 2], [3, 4]]))) == 10
    assert int(total(tf.constant([1, 2, 3]))) == 6
    assert int(total(tf.zeros([0, 3], tf.int32))) == 0
    assert int(total(tf.Variable([1, 2]))) == 3
    assert int(total(tf.ragged.constant([[1, 2], [3]]))) == 6
    assert int(total([tf.constant(1), tf.constant([2, 3])])) == 6
    unknown = tf.function(total.python_function, input_signature=[tf.TensorSpec(None, tf.int32)])
    assert int(unknown(tf.constant([[1, 2], [3, 4]]))) == 10


def test_ranges_of_other_dtypes():
    """`tf.range` of floats and int64 counts as it says; `range` of a tensor is `tf.range`."""

    @tf.function
    def f(limit, step):
        result = limit - limit
        for i in tf.range(limit - limit, limit, step):
            result += i
        return result

    assert float(f(tf.constant(2.0), tf.constant(0.5))) == 3.0
    assert int(f(tf.constant(7, tf.int64), tf.constant(2, tf.int64))) == 12
    assert int(f(tf.constant(-7), tf.constant(-3))) == -9

    @tf.function
    def g(n):
        result = 0
        for i in range(n):
            result += i
        return result

    assert int(g(tf.constant(4))) == 6
    assert int(g(4)) == 6


def test_tensor_arrays_and_growing_tensors():
    """A loop collects in a TensorArray, or in a tensor whose shape invariant was set."""

    @tf.function
    def squares(n):
        array = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in tf.range(n):
            if i % 2 == 0:
                array = array.write(i // 2, i * i)
        return array.stack()

    assert squares(tf.constant(7)).numpy().tolist() == [0, 4, 16, 36]

    @tf.function
    def ones(n):
        rows = tf.zeros([0, 2])
        for _ in tf.range(n):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(rows, tf.TensorShape([None, 2]))], parallel_iterations=1, swap_memory=True
            )
            rows = tf.concat([rows, tf.ones([1, 2])], 0)
        return rows

    assert ones(tf.constant(3)).shape == [3, 2]


def test_shapes_that_lose_a_size_are_widened():
    """A variable whose size is only known to be unknown after an iteration may stay in the loop."""

    @tf.function
    def f(n):
        x = tf.zeros([1, 2])
        while n > 1:
            x = tf.reshape(x, [tf.minimum(n, 1), 2])
            n -= 1
        return x

    assert f(tf.constant(3)).shape == [1, 2]


def test_variables_that_only_an_iteration_defines():
    """They have the kind that an iteration gives them: structures, strings, arrays, sizes unknown; or stay None."""

    @tf.function
    def f(n, flag):
        never = None
        for i in tf.range(n):
            nested = (i, {"s": "x", "b": i > 1})
            growing = tf.range(i + 1)
            array = tf.TensorArray(tf.int32, 2).unstack([i, i])
            if flag:
                never = 1
        return nested, growing, array.stack(), never

    nested, growing, stacked, never = f(tf.constant(3), False)
    assert (int(nested[0]), nested[1]["s"].numpy(), bool(nested[1]["b"])) == (2, b"x", True)
    assert growing.numpy().tolist() == [0, 1, 2] and stacked.numpy().tolist() == [2, 2] and never is None


def test_maximum_iterations():
    """`set_loop_options(maximum_iterations=)` ends a loop, also when it is a tensor."""

    @tf.function
    def f(n, limit):
        while n > 0:
            tf.autograph.experimental.set_loop_options(maximum_iterations=limit)
            n -= 1
        return n

    assert int(f(tf.constant(10), 3)) == 7
    assert int(f(tf.constant(10), tf.constant(4))) == 6


def test_gradients():
    """Gradients go through converted loops and branches: y = 2 x^4 for positive y."""

    @tf.function
    def f(x):
        y = x
        for _ in tf.range(3):
            y = y * x
        if y > 0:
            y = y * 2.0
        return y

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert (float(y), float(tape.gradient(y, x))) == (32.0, 64.0)


def test_gradients_of_rows():
    """A loop over the rows of a tensor is differentiable in them."""

    @tf.function
    def f(rows):
        product = tf.ones([2])
        for row in rows:
            product = product * row
        return tf.reduce_sum(product)

    rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        tape.watch(rows)
        y = f(rows)
    np.testing.assert_allclose(tape.gradient(y, rows), [[15, 24], [5, 12], [3, 8]])


def test_variables_change_in_the_branch_that_runs():
    """Assignments belong to their branch or iteration."""
    v = tf.Variable(1)

    @tf.function
    def f(x):
        if x > 0:
            v.assign_add(x)
        else:
            v.assign_sub(x)
        while v < 9:
            v.assign_add(2)
        return v.read_value()

    assert int(f(tf.constant(3))) == 10
    assert int(f(tf.constant(-3))) == 13


def test_both_branches_may_return_nothing():
    """A bare return in a branch ends the function."""
    v = tf.Variable(0)

    @tf.function
    def f(x):
        if x > 0:
            v.assign_add(1)
            return
        v.assign_add(10)

    assert f(tf.constant(3)) is None
    f(tf.constant(-3))
    assert v.numpy() == 11


def test_python_functions_on_tensors():
    """len, int, float, abs, sorted and range take tensors; print and isinstance are Python's."""

    @tf.function
    def f(x):
        assert isinstance(3, int)
        return len(x), int(x[0]), float(x[0]), abs(x[0]), sorted(x), sorted(x, reverse=True), range(x[1])

    found = [value.numpy().tolist() for value in f(tf.constant([-9, 3]))]
    assert found == [2, -9, -9.0, 9, [-9, 3], [3, -9], [0, 1, 2]]
    unknown = tf.function(lambda x: len(x), input_signature=[tf.TensorSpec([None], tf.int32)])
    assert int(unknown(tf.constant([1, 2, 3]))) == 3


OFFSET = 5


# ---- what is converted ------------------------------------------------------------------------------------------


def absolute(x):
    if x > 0:
        return x
    return -x


class Base:
    limit = 3

    def method(self, x):
        if x > self.limit:
            return x
        return -x

    @staticmethod
    def static(x):
        return absolute(x)

    @classmethod
    def of_class(cls, x):
        if x > cls.limit:
            return x
        return -x

    def __call__(self, x):
        if x > 0:
            return self.method(x)
        return x


class Derived(Base):
    def __init__(self):
        self.__secret = 0

    @tf.function
    def method(self, x):
        if x > 0:
            self.__secret = super().method(x)
        else:
            self.__secret = super().method(x) + 1
        result = self.__secret
        self.__secret = 0
        return result


def test_methods():
    """Methods of every kind are converted, with `super()` and private names as in their class."""
    base, derived = Base(), Derived()

    @tf.function
    def f(x):
        return base.method(x), Base.static(x), Base.of_class(x), base.of_class(x), base(x), Base.method(base, x)

    assert [int(value) for value in f(tf.constant(2))] == [-2, 2, -2, -2, -2, -2]
    assert [int(derived.method(tf.constant(x))) for x in (5, 2, -2)] == [5, -2, 3]
    assert int(tf.function(base)(tf.constant(5))) == 5


def test_partials_wrappers_and_callbacks():
    """functools.partial, wrapped functions and the function given to map_fn are converted."""

    def pick(limit, x):
        if x > limit:
            return x
        return -x

    def logged(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @tf.function
    @logged
    def f(x):
        return functools.partial(pick, 2)(x) + tf.reduce_sum(tf.map_fn(absolute, tf.stack([x, -x])))

    assert int(f(tf.constant(3))) == 9
    assert int(tf.function(functools.partial(pick, 2))(tf.constant(1))) == -1


def test_lambdas_of_one_line_are_told_apart():
    """Two lambdas with the same arguments on one line are each converted from their own source."""
    f, g = tf.function(lambda x: x if x > 0 else -x), tf.function(lambda x: x if x > 5 else x * 2)
    assert (int(f(tf.constant(-3))), int(g(tf.constant(3)))) == (3, 6)


def test_global_and_nonlocal_variables():
    """Branches assign to variables of the module and of functions around."""
    count = 0

    @tf.function
    def f(x):
        global OFFSET
        nonlocal count
        if x > 0:
            OFFSET, count = 6, x
        else:
            OFFSET, count = 7, -x
        found = OFFSET * 100 + count
        OFFSET, count = 5, 0
        return found

    assert [int(f(tf.constant(x))) for x in (2, -3)] == [602, 703]
    assert (OFFSET, count) == (5, 0)


def test_generators_stay_python():
    """A generator is not converted, the loop over it is Python's."""

    def three(x):
        for i in range(3):
            yield x + i

    @tf.function
    def f(x):
        result = 0
        for value in three(x):
            if value > 3:
                result += value
        return result

    assert int(f(tf.constant(3))) == 9


def test_do_not_convert_and_autograph_false():
    """What is not converted raises TensorFlow's error for a tensor as a condition; eager tensors still work."""
    kept = tf.autograph.experimental.do_not_convert(absolute)
    assert kept.__wrapped__ is absolute and kept(-3) == 3 and int(kept(tf.constant(-3))) == 3
    assert tf.autograph.experimental.do_not_convert()(absolute)(3) == 3
    for function in (tf.function(kept), tf.function(absolute, autograph=False), tf.function(lambda x: kept(x))):
        with pytest.raises(TypeError, match=r"Using a symbolic `tf.Tensor` as a Python `bool` is not allowed"):
            function(tf.constant(3))


def test_functions_without_source_run_as_they_are():
    """Code from exec has no source: it runs, and a tensor as a condition is an error."""
    namespace = {}
    exec("def plain(x):\n  return x + 1\ndef branching(x):\n  return x if x > 0 else -x\n", namespace)
    assert int(tf.function(lambda x: namespace["plain"](x))(tf.constant(1))) == 2
    with pytest.raises(TypeError, match="as a Python `bool` is not allowed"):
        tf.function(namespace["branching"])(tf.constant(1))


def test_code_that_cannot_be_converted_warns_and_runs(caplog):
    """A directive in the wrong place leaves the function as it is, with a line in the log."""

    @tf.function
    def f(n):
        for _ in range(2):
            n -= 1
            tf.autograph.experimental.set_loop_options(maximum_iterations=3)
        return n

    with caplog.at_level("WARNING"):
        assert int(f(tf.constant(10))) == 8
    assert "AutoGraph could not transform" in caplog.text
    assert '"set_loop_options" must be the first statement in the loop block' in caplog.text


def test_python_functions_inside_see_eager_tensors():
    """py_function runs converted code with values, which stays Python."""
    seen = []

    @tf.function
    def f(x):
        def note(v):
            if v > 2:
                seen.append(int(v))
            return v * 2

        return tf.py_function(note, [x], tf.int32)

    assert int(f(tf.constant(3))) == 6
    assert seen == [3]


def test_tracing_runs_once_for_each_kind_of_argument():
    """Converted functions are traced and cached as others are; the branch on a Python value is chosen when tracing."""
    traced = []

    @tf.function
    def f(x, double):
        traced.append(double)
        if double:
            x = x * 2
        return x

    assert [int(f(tf.constant(1), True)), int(f(tf.constant(2), True)), int(f(tf.constant(2), False))] == [2, 4, 2]
    assert traced == [True, False]


# ---- tf.autograph -----------------------------------------------------------------------------------------------


def test_to_graph():
    """`to_graph` gives a function that builds control flow in a graph, and is plain Python on numbers."""
    converted = tf.autograph.to_graph(absolute)
    assert converted.__name__ == "tf__absolute"
    assert (converted(3), converted(-3)) == (3, 3)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.int32, [])
        assert session.run(converted(x), {x: -4}) == 4
    assert int(tf.autograph.to_graph(Base().method)(5)) == 5


def test_to_graph_without_recursion():
    """With `recursive=False` the functions that a function calls stay as they are."""
    converted = tf.autograph.to_graph(lambda x: absolute(x), recursive=False)
    assert converted(-3) == 3
    with tf.Graph().as_default(), pytest.raises(TypeError, match="as a Python `bool`"):
        converted(tf.constant(-4))


def test_to_code():
    """`to_code` gives source that compiles."""
    code = tf.autograph.to_code(absolute)
    assert code.startswith("def tf__absolute(x):")
    compile(code, "<code>", "exec")
    narrow = tf.compat.v1.autograph.to_code(absolute, indentation=" ")
    assert "\n def ag__main():" in narrow


@pytest.mark.parametrize("thing", [3, len, Base])
def test_only_python_functions_can_be_converted(thing):
    """`to_graph` and `to_code` say what they cannot convert."""
    for convert in (tf.autograph.to_graph, tf.autograph.to_code):
        with pytest.raises(Exception, match=r"converting .* doesn't expose a __code__ object"):
            convert(thing)


def test_trace_and_verbosity(capsys):
    """`trace` prints while a function is traced; the verbosity decides whether conversions are told."""

    def told(x):
        tf.autograph.trace("here", x.dtype.name)
        return x

    tf.autograph.set_verbosity(1, alsologtostdout=True)
    try:
        tf.function(told)(tf.constant(1))
    finally:
        tf.autograph.set_verbosity(0)
    printed = capsys.readouterr().out
    assert "here int32" in printed and "AutoGraph converted <function" in printed


def test_equality_of_1x(monkeypatch):
    """Where `==` compares identity, as in 1.x, EQUALITY_OPERATORS makes it compare values."""
    monkeypatch.setattr(choices, "tensor_equality", False)
    asked = tf.autograph.experimental.Feature.EQUALITY_OPERATORS

    def f(x):
        return (1 if x == 3 else 2), (1 if x != 3 else 2)

    assert [int(v) for v in tf.function(f, experimental_autograph_options=asked)(tf.constant(3))] == [1, 2]
    assert [int(v) for v in tf.function(f)(tf.constant(3))] == [2, 1]


def test_features():
    """NAME_SCOPES puts the ops of a function into a scope of its name; what is no Feature is refused."""
    feature = tf.autograph.experimental.Feature

    def f(x):
        return absolute(x * 2)

    for asked in (feature.ALL, (feature.NAME_SCOPES, feature.LISTS)):
        graph = tf.function(f, experimental_autograph_options=asked).get_concrete_function(tf.constant(1)).graph
        assert {"f/mul", "f/absolute/Greater"} <= {op.name for op in graph.get_operations()}
    with pytest.raises(TypeError, match="Feature, found 'L'"):
        tf.function(f, experimental_autograph_options="L")


def test_graphs_of_1x():
    """Outside of functions, map_fn converts what it is given, and an assertion that nobody would run is refused."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert session.run(tf.map_fn(absolute, tf.constant([3, -3]))).tolist() == [3, 3]

        def checked(x):
            assert x > 0
            return x

        with pytest.raises(TypeError, match="as a Python `bool` is not allowed"):
            tf.autograph.to_graph(checked)(tf.constant(1))
    for kept in (
        tf.function(lambda x: tf.map_fn(absolute, x), autograph=False),
        tf.function(tf.autograph.experimental.do_not_convert(lambda x: tf.map_fn(absolute, x))),
    ):
        with pytest.raises(TypeError, match="as a Python `bool` is not allowed"):
            kept(tf.constant([1]))


def test_defaults_that_are_functions():
    """Code in default values and annotations belongs to the definition, which is not repeated."""
    f = tf.function(lambda x, k=lambda v: v * 2: k(x) if x > 0 else x)

    def g(x: int, make=lambda: 3) -> int:
        if x > 0:
            return x + make()
        return x

    assert int(f(tf.constant(3))) == 6
    assert int(tf.function(g)(tf.constant(1))) == 4
