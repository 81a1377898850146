"""What a run can fail with: one test for each `tf.errors` class, with the op, its NodeDef, the code and the user's line."""

from __future__ import annotations

import errno
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base import errors
from stoker._src.graph import definition
from stoker._src.graph.definition import STATEFUL, define

HERE = Path(__file__).name


def failing(session, fetch, kind, code, *, feed_dict=None, options=None):
    """Runs `fetch`, which must fail with `kind`; checks everything an OpError carries and returns it."""
    with pytest.raises(kind) as caught:
        session.run(fetch, feed_dict, options=options)
    error = caught.value
    assert type(error) is kind and error.error_code == code
    assert error.message and error.message in str(error)
    if error.op is not None:
        assert error.node_def.name == error.op.name and error.node_def.op == error.op.type
        assert error.op.graph is session.graph
        assert f'node "{error.op.name}", made at {HERE}:' in str(error)
    return error


def test_invalid_argument_names_sizes_and_the_users_line():
    """InvalidArgumentError: what was found, what was expected, and where the op was made."""
    x = tf.placeholder(tf.float32, [None, None])
    line = inspect.currentframe().f_lineno + 1
    product = tf.matmul(x, tf.ones([5, 2]), name="product")
    with tf.Session() as session:
        error = failing(session, product, tf.errors.InvalidArgumentError, 3, feed_dict={x: np.ones([4, 3])})
    assert error.op is product.op
    assert "3" in error.message and "5" in error.message
    assert f"{HERE}:{line} in test_invalid_argument" in str(error)


def test_placeholder_that_was_not_fed():
    """InvalidArgumentError with TensorFlow's words, which scripts look for."""
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.Session() as session:
        error = failing(session, x + 1, tf.errors.InvalidArgumentError, 3)
    assert error.message.startswith("You must feed a value for placeholder tensor")
    assert error.op is x.op


def test_failed_precondition_for_uninitialized_variables():
    """FailedPreconditionError names the variable, of either kind."""
    old = tf.Variable(1.0, name="old", use_resource=False)
    new = tf.Variable(1.0, name="new", use_resource=True)
    with tf.Session() as session:
        for variable in (old, new):
            error = failing(session, variable + 1.0, tf.errors.FailedPreconditionError, 9)
            assert f"Attempting to use uninitialized value {variable.op.name}" in error.message


def test_out_of_range_at_the_end_of_a_queue():
    """OutOfRangeError when a closed queue runs dry: what input loops wait for."""
    queue = tf.FIFOQueue(3, [tf.float32], name="queue")
    take = queue.dequeue()
    with tf.Session() as session:
        session.run([queue.enqueue(1.0)])
        session.run(queue.close())
        assert session.run(take) == 1.0
        error = failing(session, take, tf.errors.OutOfRangeError, 11)
    assert "is closed and has insufficient elements (requested 1, current size 0)" in error.message


def test_cancelled_when_a_queue_is_closed():
    """CancelledError for an enqueue into a closed queue."""
    queue = tf.FIFOQueue(3, [tf.float32], name="queue")
    put = queue.enqueue(1.0)
    with tf.Session() as session:
        session.run(queue.close())
        error = failing(session, put, tf.errors.CancelledError, 1)
    assert error.op is put


def test_deadline_exceeded_by_a_run_with_a_timeout():
    """DeadlineExceededError after RunOptions.timeout_in_ms; the session goes on working."""
    queue = tf.FIFOQueue(1, [tf.float32], name="queue")
    take = queue.dequeue()
    with tf.Session() as session:
        failing(session, take, tf.errors.DeadlineExceededError, 4, options=tf.RunOptions(timeout_in_ms=20))
        session.run(queue.enqueue(2.0))
        assert session.run(take) == 2.0


def test_deadline_of_the_whole_session():
    """ConfigProto.operation_timeout_in_ms bounds every run."""
    queue = tf.FIFOQueue(1, [tf.float32])
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=20)) as session:
        failing(session, queue.dequeue(), tf.errors.DeadlineExceededError, 4)


def test_not_found_for_a_file_that_is_not_there(tmp_path):
    """NotFoundError names the file."""
    contents = tf.read_file(str(tmp_path / "missing"))
    with tf.Session() as session:
        error = failing(session, contents, tf.errors.NotFoundError, 5)
    assert "missing" in error.message


def test_data_errors_of_parsing():
    """InvalidArgumentError for text that is not a number, with the text."""
    number = tf.string_to_number(tf.constant("12x"))
    with tf.Session() as session:
        error = failing(session, number, tf.errors.InvalidArgumentError, 3)
    assert "12x" in error.message


def test_assertions_say_what_they_saw():
    """tf.Assert fails with its data in the message."""
    check = tf.Assert(tf.constant(False), ["seen:", tf.constant([1, 2])], name="check")
    with tf.Session() as session:
        error = failing(session, check, tf.errors.InvalidArgumentError, 3)
    assert "seen:" in error.message and "1 2" in error.message.replace(",", "")


_RAISED: list[BaseException] = []
RAISE = define("RaiseForTest(x: float32) -> (y: float32)", STATEFUL).not_differentiable()
RAISE.shape(lambda x: x)
definition._REGISTRY.pop("RaiseForTest")  # an op of this file alone: nobody else is to find it


@RAISE.kernel
def raise_kernel(x):
    raise _RAISED[-1]


CODES = {
    errors.exception_type_from_error_code(code): code for code in range(1, 17)
}  # fmt: skip


@pytest.mark.parametrize("kind", CODES, ids=lambda kind: kind.__name__)
def test_every_class_reaches_the_caller_with_its_op(kind):
    """An error that a kernel raises comes out as it is, with the op that raised it."""
    _RAISED.append(kind(None, None, "went wrong"))
    y = RAISE(tf.constant(1.0), name="culprit")
    with tf.Session() as session:
        error = failing(session, y, kind, CODES[kind])
    assert error.message == "went wrong" and error.op.name == "culprit"
    assert getattr(tf.errors, kind.__name__) is kind
    assert errors.error_code_from_exception_type(kind) == CODES[kind]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (MemoryError("no room"), errors.ResourceExhaustedError),
        (RecursionError("too deep"), errors.ResourceExhaustedError),
        (RuntimeError("could not create a primitive"), errors.ResourceExhaustedError),
        (RuntimeError("can't start new thread"), errors.ResourceExhaustedError),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), errors.ResourceExhaustedError),
        (NotImplementedError("not for bool"), errors.UnimplementedError),
        (RuntimeError("sizes"), errors.InvalidArgumentError),
        (ValueError("value"), errors.InvalidArgumentError),
        (IndexError("index"), errors.InvalidArgumentError),
        (KeyError("key"), errors.InternalError),
        (AssertionError("defect"), errors.InternalError),
    ],
    ids=lambda item: item.__name__ if isinstance(item, type) else repr(item),
)
def test_errors_of_the_engine_are_explained(raised, kind):
    """Nothing but tf.errors leaves a run; the first error stays its cause."""
    _RAISED.append(raised)
    y = RAISE(tf.constant(1.0), name="culprit")
    with tf.Session() as session:
        error = failing(session, y, kind, kind.error_code)
    assert error.op.name == "culprit" and error.__cause__ is raised
    assert "float32[]" in error.message


def test_interrupts_pass_through():
    """KeyboardInterrupt is not turned into anything."""
    _RAISED.append(KeyboardInterrupt())
    y = RAISE(tf.constant(1.0))
    with tf.Session() as session, pytest.raises(KeyboardInterrupt):
        session.run(y)


def test_errors_inside_functions_name_the_inner_op():
    """A failure in a loop's body points at the op in the body, made at the user's line."""
    x = tf.placeholder(tf.float32, [None])
    line = inspect.currentframe().f_lineno + 2
    _, total = tf.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.gather(x, [i], name="inner")[0]), [tf.constant(0), 0.0]
    )
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(total, {x: [1.0]})
    assert "inner" in caught.value.op.name
    assert f"{HERE}:{line}" in str(caught.value)


def test_errors_survive_pickling():
    """An error crosses processes with class, message and code, without its graph."""
    y = tf.check_numerics(tf.constant(np.nan), "bad", name="checked")
    with tf.Session() as session:
        error = failing(session, y, tf.errors.InvalidArgumentError, 3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.message == error.message and again.node_def.name == "checked"


def test_ops_of_a_file_have_no_user_line():
    """An op that came from a GraphDef says so."""
    with tf.Graph().as_default() as other:
        tf.check_numerics(tf.constant(np.nan), "bad", name="checked")
    tf.import_graph_def(other.as_graph_def(), name="")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="made at an unknown place"):
        session.run("checked:0")


def test_shapes_that_cannot_be_are_refused_at_construction():
    """A static mismatch is a ValueError when the op is made, with both sizes."""
    with pytest.raises(ValueError, match=r"3.*5|5.*3"):
        tf.matmul(tf.ones([4, 3]), tf.ones([5, 2]))


def test_a_status_is_raised_when_its_block_ends():
    """raise_exception_on_not_ok_status raises the error of the code that its block set."""
    with tf.errors.raise_exception_on_not_ok_status() as status:
        assert status.code == tf.errors.OK
    with pytest.raises(tf.errors.NotFoundError, match="gone"), tf.errors.raise_exception_on_not_ok_status() as status:
        status.code, status.message = tf.errors.NOT_FOUND, "gone"


def test_a_long_step_ends_when_its_session_closes():
    """Python code in a step may close the session. The ops after it do not run, and the step is cancelled."""
    y = tf.py_func(lambda: (session.close(), np.float32([1.0, 2.0]))[1], [], tf.float32)
    for _ in range(500):
        y = tf.cumsum(y)
    session = tf.Session()
    with pytest.raises(tf.errors.CancelledError, match="A Python function was cancelled"):
        session.run(y)
