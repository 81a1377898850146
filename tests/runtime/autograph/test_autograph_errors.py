"""Errors of converted functions: TensorFlow's class and words, with the user's own lines."""

from __future__ import annotations

import inspect
import traceback

import pytest

import stoker as tf

pytestmark = pytest.mark.usefixtures("eager")


class Custom(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code


# Each program fails; the line that its message names is marked.


def missing_else(x):
    if x > 0:  # here
        y = x
    return y


def missing_main(x):
    if x > 0:  # here
        pass
    else:
        y = x
    return y


def missing_place(x):
    class Box:
        pass

    box = Box()
    if x > 0:  # here
        box.y = x
    return box.y


def missing_in_elif(x):
    if x > 0:
        y = 1
    elif x > -5:  # here
        y = 2
    return y


def other_dtype(x):
    if x > 0:  # here
        y = 1
    else:
        y = 2.0
    return y


def none_in_else(x):
    y = None
    if x > 0:  # here
        y = x
    return y


def other_structure(x):
    if x > 0:  # here
        y = (x, x)
    else:
        y = x
    return y


def no_return(x):  # noqa: RET503
    if x > 0:  # here
        return x


def other_return_dtype(x):
    if x > 0:  # here
        return 1
    return 2.0


def other_expression(x):
    return 1 if x > 0 else 2.0  # here


def number_as_condition(x):
    if x:  # here
        return 1
    return 2


def vector_as_condition(x):
    while tf.stack([x, x]) > 0:  # here
        x -= 1
    return x


def read_before_the_loop(x):
    while x > 0:  # here
        y = y + x  # noqa: F821, F841
        x = x - 1
    return x


def dtype_changes(x):
    y = 0
    while x > 0:  # here
        y = tf.cast(y, tf.float32) + 1.5
        x = x - 1
    return y


def shape_changes(x):
    y = tf.zeros([1])
    for _ in tf.range(x):  # here
        y = tf.concat([y, y], 0)
    return y


def none_after_iteration(x):
    y = 1
    while x > 0:  # here
        y = None
        x = x - 1
    return y


def structure_changes(x):
    y = (1, 2)
    while x > 0:  # here
        y = 3
        x = x - 1
    return y


def bad_invariant(x):
    while x > 0:  # here
        tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([1]))])
        x = x - 1
    return x


def break_of_python_loop(x):
    y = 0
    for i in range(5):  # here
        y += i
        if x > 0:
            break
    return y


def condition_becomes_tensor(x):
    i = 0
    while i < 10:  # here
        i = i + x
    return i


def scalar_iterated(x):
    for i in x:  # here
        x = i
    return x


def unbound(x, flag=False):
    if flag:
        y = x
    return y  # here


def unbound_in_piece(x):
    if x > 0:
        y = z  # noqa: F821, F841  # here
        z = 1
        return z  # noqa: RET504
    return x


def raised_in_branch(x):
    if x > 0:
        raise ValueError("boom")  # here
    return x


def key_error(x):
    return {}["k"] + x  # here


def wrong_shape(x):
    return tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])) + (x if x > 0 else 0)  # here


def own_exception(x):
    raise Custom(7, "own")  # here


def in_lambda(x):
    return tf.map_fn(
        lambda v: v.nothing if x > 0 else v,  # here
        tf.stack([x, x]),
    )


def collected_in_a_list(x):
    found = []
    for i in tf.range(x):
        found.append(i)
    return tf.stack(found)  # here


FAILING = [
    (missing_else, ValueError, "'y' must also be initialized in the else branch"),
    (missing_main, ValueError, "'y' must also be initialized in the main branch"),
    (missing_place, ValueError, "'box.y' must also be initialized in the else branch"),
    (missing_in_elif, ValueError, "'y' must also be initialized in the else branch"),
    (other_dtype, TypeError, "'y' has dtype int32 in the main branch, but dtype float32 in the else branch"),
    (none_in_else, ValueError, "'y' is None at the end of the else branch."),
    (other_structure, TypeError, "'y' must have the same nested structure in the main and else branches"),
    (no_return, ValueError, "the else branch must also have a return statement."),
    (
        other_return_dtype,
        TypeError,
        "'retval_' has dtype int32 in the main branch, but dtype float32 in the else branch",
    ),
    (other_expression, TypeError, "'x > 0' has dtype int32 in the main branch, but dtype float32"),
    (number_as_condition, ValueError, "condition of if statement expected to be `tf.bool` scalar, got Tensor"),
    (vector_as_condition, ValueError, "expected to be `tf.bool` scalar, got Tensor"),
    (read_before_the_loop, ValueError, "'y' must be defined before the loop"),
    (dtype_changes, TypeError, "'y' has dtype int32 before the loop, but dtype float32 after one iteration"),
    (shape_changes, ValueError, "'y' has shape (1,) before the loop, but shape (2,) after one iteration."),
    (none_after_iteration, ValueError, "'y' is None at the end of the iteration."),
    (structure_changes, TypeError, "'y' does not have the same nested structure after one iteration."),
    (
        bad_invariant,
        ValueError,
        "'x' has shape () before the loop, which does not conform with the shape invariant (1,).",
    ),
    (break_of_python_loop, NotImplementedError, "which depend on a TF condition are not supported in Python for loops"),
    (
        condition_becomes_tensor,
        NotImplementedError,
        "condition of while loop started as non-Tensor, then changed to Tensor",
    ),
    (scalar_iterated, ValueError, "len requires a non-scalar tensor"),
    (unbound, UnboundLocalError, "'y' is used before assignment"),
    (unbound_in_piece, UnboundLocalError, "'z' is used before assignment"),
    (raised_in_branch, ValueError, "boom"),
    (key_error, KeyError, "KeyError: 'k'"),
    (wrong_shape, ValueError, "Dimensions must be equal, but are 3 and 2"),
    (own_exception, Custom, "7: own"),
    (in_lambda, AttributeError, "object has no attribute 'nothing'"),
    (collected_in_a_list, ValueError, "is out of scope and cannot be used here"),
]


@pytest.mark.parametrize(("program", "kind", "words"), FAILING, ids=lambda each: getattr(each, "__name__", None))
def test_errors_name_the_users_line(program, kind, words):
    """The class and the words are TensorFlow's; message and traceback name the user's file, line and function."""
    lines, first = inspect.getsourcelines(program)
    line = first + next(i for i, text in enumerate(lines) if "# here" in text)
    with pytest.raises(kind) as caught:
        tf.function(program)(tf.constant(2))
    message = str(caught.value)
    assert words in message
    assert message.startswith("in user code:\n\n")
    assert f'File "{__file__}", line {line}, in {program.__name__}  *\n        {lines[line - first].strip()}' in message
    frames = traceback.extract_tb(caught.value.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in frames]
    assert (__file__, line) in places
    assert {frame.filename for frame in frames if "stoker/_src" not in frame.filename} == {__file__}


def test_errors_of_functions_in_functions_list_every_line():
    """Lines of the functions on the way are listed once, outermost first, also through an inner tf.function."""

    def deepest(x):
        raise ValueError("deep")

    @tf.function
    def inner(x):
        return deepest(x)

    @tf.autograph.experimental.do_not_convert
    def kept(x):
        return inner(x)

    @tf.function
    def outer(x):
        return kept(x)

    with pytest.raises(ValueError, match="deep") as caught:
        outer(tf.constant(1))
    message = str(caught.value)
    listed = [part.split(", in ")[1].split("\n")[0] for part in message.split("File ")[1:]]
    assert listed == ["outer  *", "kept", "inner  *", "deepest  *"]
    assert message.count("in user code") == 1


def test_op_errors_and_attributes_survive():
    """An OpError keeps its class and message; an exception with its own attributes keeps them."""

    @tf.function
    def f(x):
        raise tf.errors.NotFoundError(None, None, "nobody home")

    with pytest.raises(tf.errors.NotFoundError, match="nobody home") as caught:
        f(tf.constant(1))
    assert "in user code" in caught.value.message

    with pytest.raises(Custom) as own:
        tf.function(own_exception)(tf.constant(1))
    assert own.value.code == 7


def test_errors_that_make_their_own_message_stay():
    """An OSError says what it says."""

    @tf.function
    def f(x):
        with open("/nonexistent/file") as file:
            return file.read()

    with pytest.raises(FileNotFoundError, match=r"^\[Errno 2\]"):
        f(tf.constant(1))


def test_assertions_check_when_the_graph_runs():
    """`assert` on a tensor is checked in each run, on a Python value when tracing."""

    @tf.function
    def f(x, n=1):
        assert x > 0, "must be positive"
        assert n > 0, "n is bad"
        return x

    assert int(f(tf.constant(3))) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        f(tf.constant(-3))
    with pytest.raises(AssertionError, match="n is bad"):
        f(tf.constant(3), -1)


def test_a_variable_that_only_the_loop_defines_needs_an_iteration():
    """The value after a loop that did not run is an error when it runs."""

    @tf.function
    def f(rows):
        for row in rows:
            last = row
        return last

    assert int(f(tf.constant([1, 2]))) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="loop must iterate at least once to initialize last"):
        f(tf.zeros([0], tf.int32))


def test_run_time_errors_name_the_users_line():
    """An op made in a converted branch knows the line it was made at."""

    @tf.function
    def f(x):
        if x > 0:
            tf.debugging.assert_less(x, 0)
        return x

    line = f.python_function.__code__.co_firstlineno + 3
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"made at test_autograph_errors.py:{line} in f"):
        f(tf.constant(1))


def test_python_stays_as_it_was_after_an_error():
    """Variables outside of the function have their old values when a branch cannot be traced."""
    count = 5

    @tf.function
    def f(x):
        nonlocal count
        if x > 0:
            count = 1
        else:
            count = 2.0
        return count

    with pytest.raises(TypeError):
        f(tf.constant(1))
    assert count == 5
