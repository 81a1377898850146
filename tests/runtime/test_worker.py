"""Sessions and the workers they run on: targets, sharing, closing."""

from __future__ import annotations

import threading

import pytest

import stoker.compat.v1 as tf
from stoker._src.runtime import targets
from stoker._src.runtime.targets import LocalRunner, register_session_target
from stoker._src.runtime.worker import Worker


@pytest.fixture
def shared_worker(monkeypatch):
    """A worker that sessions with the target "shared://" run on."""
    monkeypatch.setattr(targets, "_schemes", dict(targets._schemes))
    worker = Worker(tf.ConfigProto())
    register_session_target(
        "shared",
        lambda target, config: LocalRunner(worker, config, shared=True),
        lambda target, containers, config: worker.resources.reset(containers),
    )
    return worker


@pytest.mark.parametrize("target", ["shared", "http://machine:80", "local", "://"])
def test_a_target_that_nobody_serves_is_not_found(target):
    """A session for an unknown kind of place fails with TensorFlow's words."""
    for make in (tf.Session, lambda target: tf.Session.reset(target)):
        with pytest.raises(tf.errors.NotFoundError) as error:
            make(target)
        assert str(error.value).startswith("No session factory registered for the given session options: ")
        assert f'target: "{target}"' in str(error.value)


def test_sessions_on_one_worker_share_resources_by_name(shared_worker):
    """A variable of one graph is the variable of that name in another graph whose session has the same worker."""
    sessions = []
    for start in (1.0, 5.0):
        with tf.Graph().as_default() as graph:
            plain = tf.Variable(start, name="plain", use_resource=False)
            handle = tf.Variable(start, name="handle", use_resource=True)
            queue = tf.FIFOQueue(3, tf.float32, shared_name="queue")
            parts = plain, handle, queue.enqueue(start), queue.dequeue(), tf.global_variables_initializer()
        sessions.append((tf.Session("shared://", graph=graph), parts))
    (one, first), (other, second) = sessions
    one.run(first[4])
    assert other.run([second[0], second[1]]) == [1.0, 1.0]
    other.run(second[4])
    assert one.run([first[0], first[1]]) == [5.0, 5.0]
    one.run(first[2])
    assert other.run(second[3]) == 1.0


def test_containers_keep_resources_apart(shared_worker):
    """Variables of one name in two containers are two, and one container can be reset alone."""
    with tf.Graph().as_default() as graph:
        with tf.container("left"):
            left = tf.Variable(1.0, name="v", use_resource=True)
        with tf.container("right"):
            right = tf.Variable(2.0, name="w", use_resource=True)
        start = tf.global_variables_initializer()
    with tf.Session("shared://", graph=graph) as session:
        session.run(start)
        tf.Session.reset("shared://", ["left"])
    with tf.Session("shared://", graph=graph) as session:
        assert session.run(right) == 2.0
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(left)


def test_closing_a_session_leaves_a_shared_worker_alone(shared_worker):
    """Another session's runs go on waiting, and variables stay."""
    with tf.Graph().as_default() as graph:
        queue = tf.FIFOQueue(1, tf.float32, shared_name="queue")
        put, take = queue.enqueue(3.0), queue.dequeue()
        variable = tf.Variable(4.0, name="v")
        start = tf.global_variables_initializer()
    waiting, closing = tf.Session("shared://", graph=graph), tf.Session("shared://", graph=graph)
    closing.run(start)
    taken = []
    thread = threading.Thread(target=lambda: taken.append(waiting.run(take)))
    thread.start()
    closing.close()
    with pytest.raises(RuntimeError, match="closed"):
        closing.run(variable)
    with tf.Session("shared://", graph=graph) as third:
        assert third.run(variable) == 4.0
        third.run(put)
    thread.join()
    assert taken == [3.0]
    waiting.close()


def test_a_session_of_its_own_worker_forgets_everything():
    """Two ordinary sessions share nothing, and closing one forgets its variables."""
    variable = tf.Variable(4.0, name="v")
    start = tf.global_variables_initializer()
    one, other = tf.Session(), tf.Session()
    one.run(start)
    with pytest.raises(tf.errors.FailedPreconditionError):
        other.run(variable)
    one.close()
    with pytest.raises(RuntimeError, match="closed"):
        one.run(variable)
    with pytest.raises(tf.errors.CancelledError):
        one.list_devices()
    other.close()


def test_a_closed_worker_cancels_the_steps_of_all_sessions(shared_worker):
    """Closing a worker ends the runs that wait in any of its sessions."""
    with tf.Graph().as_default() as graph:
        take = tf.FIFOQueue(1, tf.float32, name="queue").dequeue()
    session = tf.Session("shared://", graph=graph)
    errors = []

    def wait():
        try:
            session.run(take)
        except tf.errors.CancelledError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    shared_worker.close()
    thread.join()
    assert len(errors) == 1
    session.close()
