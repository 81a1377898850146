"""`tf.function`: arguments, traces, concrete functions, order of side effects, tensors that leak."""

from __future__ import annotations

import collections
import gc
import weakref

import numpy as np
import pytest

import stoker as tf

pytestmark = pytest.mark.usefixtures("eager")

SCALAR = tf.TensorSpec([], tf.float32)


# ---- input signatures -------------------------------------------------------------------------------------------


def test_signature_converts_what_it_can():
    """Python numbers, lists, arrays and variables become tensors of the signature's dtype; there is one trace."""
    f = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([None], tf.float32)])
    for value in ([1, 2], [1.0, 2.0], np.array([1, 2]), np.array([1.0, 2.0]), tf.Variable([1.0, 2.0])):
        assert f(value).numpy().tolist() == [2.0, 4.0]
    g = tf.function(lambda x: x + 1.0, input_signature=[SCALAR])
    assert [float(g(value)) for value in (2, True, np.float64(3), np.int32(4))] == [3.0, 2.0, 4.0, 5.0]
    assert f.experimental_get_tracing_count() == g.experimental_get_tracing_count() == 1
    assert f.input_signature == (tf.TensorSpec([None], tf.float32),)


def subtract(x, y=3.0):
    return x - y


@pytest.mark.parametrize(
    ("signature", "args", "kwargs", "words"),
    [
        ([SCALAR], (tf.TensorSpec([], tf.int32),), {}, "Can not cast TensorSpec"),
        ([SCALAR], (tf.TensorSpec([1], tf.float32),), {}, "Can not cast TensorSpec"),
        ([SCALAR], (None,), {}, "None values not supported"),
        ([SCALAR], ("text",), {}, "Binding inputs to tf.function failed due to"),
        ([SCALAR], (1.0, 2.0, 3.0), {}, "too many positional arguments"),
        ([SCALAR], (1.0,), {"z": 2.0}, "got an unexpected keyword argument 'z'"),
        ([SCALAR], (1.0,), {"y": 4.0}, r"Can not cast 4.0 to Literal\[3.0\]"),
        ([{"a": SCALAR}], ({"b": 1.0},), {}, "don't have the same"),
        ([(SCALAR, SCALAR)], ([1.0, 2.0],), {}, "don't have the same"),
        (None, (), {}, "missing a required argument: 'x'"),
        (None, ({1, 2},), {}, "Could not generate a generic TraceType for {1, 2}"),
    ],
)
def test_arguments_that_do_not_fit(signature, args, kwargs, words):
    """TypeError says what does not fit, what was given and what was expected."""
    f = tf.function(subtract, input_signature=signature)
    with pytest.raises(TypeError, match=words):
        f.get_concrete_function(*args, **kwargs) if args else f(*args, **kwargs)


def test_signature_and_defaults():
    """Arguments by name, defaults inside and outside of the signature."""
    f = tf.function(subtract, input_signature=[SCALAR, SCALAR])
    assert (float(f(1.0)), float(f(y=1.0, x=4.0)), float(f(4.0, y=2.0))) == (-2.0, 3.0, 2.0)
    g = tf.function(subtract, input_signature=[SCALAR])
    assert (float(g(1.0)), float(g(1.0, 3.0))) == (-2.0, -2.0)
    h = tf.function(lambda *xs: xs[0] + xs[1], input_signature=[SCALAR, SCALAR])
    assert float(h(1.0, 2.0)) == 3.0


@pytest.mark.parametrize(
    ("function", "signature", "words"),
    [
        (lambda x: x, [SCALAR, SCALAR], "input_signature contains 1 extra type constraints"),
        (lambda x: x, SCALAR, "must be either a tuple or a list"),
        (lambda x: x, [3], r"got invalid args \[3\]"),
        (lambda x, *, k: x, [SCALAR], "keyword-only parameter `k` must have a default value"),
    ],
)
def test_signatures_that_do_not_fit_the_function(function, signature, words):
    """A signature is checked when the function is decorated."""
    with pytest.raises(TypeError, match=words):
        tf.function(function, input_signature=signature)


def test_functions_that_do_not_tell_their_parameters():
    """Functions of C take what they are given."""
    assert int(tf.function(min)(3, 2)) == 2


# ---- traces -----------------------------------------------------------------------------------------------------


def count(function, *calls, **options):
    """The number of traces that calls with these arguments make."""
    f = tf.function(function, **options)
    for args in calls:
        f(*args)
    return f.experimental_get_tracing_count()


def test_what_makes_a_new_trace():
    """Dtype, shape, structure and Python values do; values of tensors and arrays do not."""
    same = lambda *args: 1  # noqa: E731
    one, two = tf.constant(1), tf.constant(2)
    assert count(same, (one,), (two,), (np.int32(3),), (np.array(4, np.int32),)) == 1
    assert count(same, (one,), (tf.constant(1.0),), (tf.constant([1]),), (tf.constant([1, 2]),)) == 4
    assert count(same, (1,), (2,), (1,), (1.0,), (True,), ("a",), ("a",), (None,)) == 6
    assert count(same, ([one, two],), ([two, one],), ((one, two),), ([one],), ({"a": one},), ({"a": two},)) == 4
    assert count(same, (tf.float32,), (tf.int32,), (tf.float32,)) == 2
    ragged = [tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[1, 4], [2, 3, 5]])]
    assert count(tf.reduce_sum, *[(each,) for each in ragged]) == 1
    sparse = [tf.sparse.from_dense([0, 1]), tf.sparse.from_dense([2, 1])]
    assert count(tf.sparse.to_dense, *[(each,) for each in sparse]) == 1


def test_general_traces_take_special_tensors():
    """A trace for open sizes serves all tensors that fit; with reduce_retracing such traces are made."""
    seen = []

    def f(x):
        seen.append(str(x.shape))
        return x

    g = tf.function(f)
    g.get_concrete_function(tf.TensorSpec([None], tf.float32))
    for shape in ([3], [4], [2, 2], [3]):
        g(tf.zeros(shape))
    assert seen == ["(None,)", "(2, 2)"]
    seen.clear()
    h = tf.function(f, reduce_retracing=True)
    for shape in ([1, 2], [2, 2], [3, 2], [2, 3], [5, 5], [5, 5, 5], [1]):
        h(tf.zeros(shape))
    assert seen == ["(1, 2)", "(None, 2)", "(None, None)", "<unknown>"]


def test_reduce_retracing_keeps_python_values_apart():
    """Sizes are only compared between calls with the same Python values."""
    seen = []

    @tf.function(reduce_retracing=True)
    def f(x, k):
        seen.append((str(x.shape), k))
        return x

    for size, k in ((1, 1), (1, 2), (2, 1), (3, 3)):
        f(tf.zeros([size]), k)
    assert seen == [("(1,)", 1), ("(1,)", 2), ("(None,)", 1), ("(3,)", 3)]


def test_functions_in_functions_share_a_trace():
    """A function is traced once, wherever it is called, unless it takes tensors from around it."""
    v = tf.Variable(1)

    @tf.function
    def add(x):
        return x + v.assign_add(1)

    @tf.function
    def outer(x):
        for _ in tf.range(2):
            x = add(x)
        return add(x)

    assert int(outer(tf.constant(0))) == 2 + 3 + 4
    assert int(add(tf.constant(0))) == 5
    assert add.experimental_get_tracing_count() == 1
    box = []
    taker = tf.function(lambda x: x + box[-1])
    first = tf.function(lambda x: (box.append(x * 2), taker(x))[1])
    second = tf.function(lambda x: (box.append(x * 3), taker(x))[1])
    assert (int(first(tf.constant(1))), int(second(tf.constant(1)))) == (3, 4)


class Scaler:
    traced = 0

    def __init__(self, factor):
        self.factor = factor

    @tf.function
    def scale(self, x):
        Scaler.traced += 1
        return x * self.factor


def test_methods_have_traces_for_each_object():
    """Each object's method has its own traces, which do not keep the object alive; a new one may have its address."""
    two, three = Scaler(2), Scaler(3)
    before = Scaler.traced
    assert [int(two.scale(tf.constant(4))), int(three.scale(tf.constant(4))), int(two.scale(tf.constant(5)))] == [
        8,
        12,
        10,
    ]
    assert Scaler.traced - before == 2
    assert int(Scaler(7).scale(tf.constant(1))) == 7
    gone = weakref.ref(two)
    del two
    gc.collect()
    assert gone() is None
    for factor in range(20):
        assert int(Scaler(factor).scale(tf.constant(1))) == factor


def test_objects_as_arguments_are_not_kept():
    """A trace for an object goes on to serve equal ones, and lets it die; bound methods are equal when they are."""

    class Thing:
        def method(self, x):
            return x + 1

    thing = Thing()
    f = tf.function(lambda a, x: x)
    f(thing, tf.constant(1))
    g = tf.function(lambda m, x: m(x))
    assert [int(g(thing.method, tf.constant(i))) for i in (1, 2)] == [2, 3]
    assert g.experimental_get_tracing_count() == 1
    gone = weakref.ref(thing)
    del thing
    gc.collect()
    assert gone() is None


# ---- results ----------------------------------------------------------------------------------------------------


def test_structures_come_back():
    """Lists, tuples, dicts, named tuples, None, numbers and composites keep their place."""
    pair = collections.namedtuple("pair", "a b")

    @tf.function
    def f(x):
        return {"b": x, "a": (x, None, [1, "s", 2.5])}, pair(x, 2), tf.ragged.constant([[1], [2, 3]]), ()

    first, second, ragged, empty = f(tf.constant(1))
    assert list(first) == ["b", "a"] and first["a"][1] is None and first["a"][2][1].numpy() == b"s"
    assert type(second) is pair and int(second.b) == 2
    assert ragged.to_list() == [[1], [2, 3]] and empty == ()
    assert tf.function(lambda: None)() is None


@pytest.mark.parametrize("result", [object(), {1}, tf.float32, len])
def test_results_that_are_no_tensors(result):
    """TypeError names the function and the type that was found."""
    with pytest.raises(TypeError, match=r"must return zero or more Tensors .* found return value of type"):
        tf.function(lambda: result)()


# ---- concrete functions -----------------------------------------------------------------------------------------


def test_concrete_functions_are_called_as_the_function_or_with_tensors():
    """By position, by name, with the Python values they were traced for, or with tensors alone."""

    @tf.function
    def f(x, k, pair=None):
        return x * k

    concrete = f.get_concrete_function(tf.TensorSpec([None], tf.int32, name="given"), 3)
    x = tf.constant([1, 2])
    for result in (concrete(x), concrete(x, 3), concrete(given=x), concrete(x=x, k=3)):
        assert result.numpy().tolist() == [3, 6]
    assert f.get_concrete_function(tf.TensorSpec([None], tf.int32, name="given"), 3) is concrete
    for args, kwargs, words in (
        ((x, 4), {}, r"Can not cast 4 to Literal\[3\]"),
        ((), {}, "missing a required argument"),
        ((x, x, x, x), {}, "too many positional arguments"),
        ((), {"z": x}, "Fallback to flat signature also failed"),
        ((object(),), {}, "Fallback to flat signature also failed"),
    ):
        with pytest.raises(TypeError, match=words):
            concrete(*args, **kwargs)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input #0.*expected to be a int32 tensor but is a float"):
        concrete(tf.constant([1.0]))
    fixed = f.get_concrete_function(tf.TensorSpec([2], tf.int32), 4)
    with pytest.raises(TypeError, match="must have the shape"):
        fixed(tf.constant([1, 2, 3]))


def test_concrete_functions_describe_themselves():
    """Signature, results, captures and variables, and the text of them all."""
    v = tf.Variable(2.0)

    @tf.function
    def f(a, *rest, k=3, **named):
        return {"r": a * v, "n": None, "l": [rest[0]]}

    concrete = f.get_concrete_function(tf.constant(1.0), tf.constant([1, 2]), z=tf.constant("s"))
    args, kwargs = concrete.structured_input_signature
    assert args == (tf.TensorSpec([], tf.float32, "a"), tf.TensorSpec([2], tf.int32, "rest_0"))
    assert kwargs == {"k": 3, "z": tf.TensorSpec([], tf.string, "z")}
    assert [tensor.op.name for tensor in concrete.inputs[:3]] == ["a", "rest_0", "z"]
    assert concrete.structured_outputs["r"].dtype == tf.float32 and concrete.structured_outputs["n"] is None
    assert concrete.output_dtypes["l"] == [tf.int32] and concrete.output_shapes["r"] == []
    assert concrete.variables == (v,) and len(concrete.captured_inputs) == 1
    text = str(concrete)
    assert text.startswith(
        "ConcreteFunction Input Parameters:\n  a (POSITIONAL_ONLY): TensorSpec(shape=(), dtype=tf.float32"
    )
    assert "  k (KEYWORD_ONLY): Literal[3]\n" in text and "['n', Literal[None]]" in text
    assert "TensorSpec(shape=(), dtype=tf.resource, name=None)" in text
    assert f.pretty_printed_concrete_signatures() in text
    assert repr(tf.function(lambda: 1).get_concrete_function()).startswith("<ConcreteFunction () -> TensorSpec")


def test_composite_arguments_of_concrete_functions():
    """A ragged or sparse tensor is one argument."""
    f = tf.function(lambda s, k: tf.sparse.to_dense(s) * k)
    sparse = tf.sparse.from_dense([0, 1])
    concrete = f.get_concrete_function(sparse, tf.constant(2))
    assert concrete(sparse, tf.constant(3)).numpy().tolist() == [0, 3]
    assert concrete.structured_input_signature[0][0] == tf.SparseTensorSpec([2], tf.int32)
    general = f.get_concrete_function(tf.SparseTensorSpec([None], tf.int32), tf.constant(2))
    assert general(sparse, tf.constant(3)).numpy().tolist() == [0, 3]
    promised = tf.function(tf.reduce_sum, input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    assert int(promised(tf.ragged.constant([[1], [2, 3]]))) == 6
    with pytest.raises(TypeError, match="Can not cast"):
        promised(tf.ragged.constant([[1.0]]))


def test_types():
    """Functions and their traces have public classes."""
    f = tf.function(lambda: 1)
    assert isinstance(f, tf.types.experimental.PolymorphicFunction)
    assert isinstance(f, tf.types.experimental.GenericFunction)
    assert isinstance(f.get_concrete_function(), tf.types.experimental.ConcreteFunction)


def test_attributes_of_functions():
    """`experimental_implements`, `experimental_attributes` and `jit_compile` are attributes of the FunctionDef."""
    f = tf.function(
        lambda x: x, experimental_implements="my.op", experimental_attributes={"api_implements": "a"}, jit_compile=True
    )
    attrs = f.get_concrete_function(tf.constant(1)).function_def.attr
    assert (attrs["_implements"].s, attrs["api_implements"].s, attrs["_XlaMustCompile"].b) == (b"my.op", b"a", True)
    with pytest.raises(ValueError, match=r"zzz is not supported by tf.function as an attribute"):
        tf.function(lambda x: x, experimental_attributes={"zzz": 1})


# ---- side effects -----------------------------------------------------------------------------------------------


def test_side_effects_happen_in_the_order_of_the_program():
    """Assignments, Python functions and queues, also in branches and loops."""
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    queue = tf.queue.FIFOQueue(10, tf.int32, [[]])
    told = []

    @tf.function
    def f(x):
        a.assign(b + 1.0)
        tf.py_function(lambda: told.append("a"), [], [])
        if x > 0:
            tf.py_function(lambda: told.append("b"), [], [])
            b.assign(a * 2.0)
        for i in tf.range(2):
            tf.py_function(lambda v: told.append(int(v)), [i], [])
            queue.enqueue(i)
        tf.py_function(lambda: told.append("c"), [], [])
        a.assign_add(b)
        return a.read_value(), queue.dequeue(), queue.dequeue(), queue.size()

    assert [float(value) for value in f(tf.constant(1))] == [9.0, 0.0, 1.0, 0.0]
    f(tf.constant(-1))
    assert told == ["a", "b", 0, 1, "c", "a", 0, 1, "c"]


def test_two_python_functions_in_one_function():
    """Functions with several blocking ops run when they are called eagerly; an error of one ends the call."""
    seen = []

    @tf.function
    def f(x):
        tf.py_function(lambda v: seen.append(int(v)), [x], [])
        return tf.py_function(lambda v: 6 // int(v), [x], tf.int32)

    assert int(f(tf.constant(3))) == 2
    with pytest.raises(tf.errors.UnknownError, match="ZeroDivisionError"):
        f(tf.constant(0))
    assert seen == [3, 0]


def test_run_functions_eagerly():
    """With it the Python function itself runs."""
    seen = []

    @tf.function
    def f(x):
        seen.append(1)
        return x if x > 0 else -x

    tf.config.run_functions_eagerly(True)
    try:
        assert [int(f(tf.constant(v))) for v in (1, -1)] == [1, 1]
    finally:
        tf.config.run_functions_eagerly(False)
    assert len(seen) == 2 and not tf.config.functions_run_eagerly()


# ---- tensors that leak ------------------------------------------------------------------------------------------


def test_tensors_that_leak_out_of_their_function():
    """Using one raises TypeError that says where it was made, eagerly, in ops and in other functions."""
    leaked = []
    v = tf.Variable(0)

    @tf.function
    def f(x):
        leaked.append(x * 2)
        return x

    f(tf.constant(1))
    for use in (
        lambda: leaked[0] + 1,
        lambda: tf.add(1, leaked[0]),
        lambda: v.assign(leaked[0]),
        lambda: tf.function(lambda x: x + leaked[0])(tf.constant(1)),
        lambda: tf.function(lambda: leaked[0])(),
    ):
        with pytest.raises(
            TypeError, match=r"is out of scope and cannot be used here(.|\n)*test_def_function.py:\d+ in f"
        ):
            use()
