"""Coordinators and looper threads."""

from __future__ import annotations

import sys
import threading
import traceback

import pytest

import stoker.compat.v1 as tf


def _failing() -> None:
    raise ValueError("the reason")


@pytest.fixture
def stuck():
    """A thread that ends when the test does."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="stuck", daemon=True)
    thread.start()
    yield thread
    release.set()
    thread.join()


def test_a_stop_is_seen_by_everybody_and_can_be_cleared():
    """`should_stop` and `wait_for_stop` tell of a request until `clear_stop`."""
    coord = tf.train.Coordinator()
    assert not coord.should_stop() and not coord.wait_for_stop(0.0)
    coord.request_stop()
    assert coord.should_stop() and coord.wait_for_stop()
    coord.join()
    assert coord.joined
    coord.clear_stop()
    assert not coord.should_stop() and not coord.joined


def test_join_waits_for_given_and_registered_threads():
    """Threads run as long as they like until somebody asks for a stop."""
    coord = tf.train.Coordinator()
    ended: list[str] = []

    def work(name: str) -> None:
        coord.wait_for_stop()
        ended.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("given", "registered")]
    coord.register_thread(threads[1])
    asks = threading.Thread(target=coord.request_stop)
    for thread in (*threads, asks):
        thread.start()
    coord.join([threads[0], asks])
    assert sorted(ended) == ["given", "registered"]


def test_join_ends_with_the_threads_when_nobody_asks_for_a_stop():
    """Threads that are through end a join by themselves."""
    coord = tf.train.Coordinator()
    thread = threading.Thread(target=lambda: None)
    thread.start()
    coord.join([thread])
    assert coord.joined and not coord.should_stop()


@pytest.mark.parametrize("as_tuple", [False, True])
def test_the_first_exception_is_raised_where_the_threads_are_joined(as_tuple: bool):
    """With its own traceback, each time that join is called; later exceptions are dropped."""
    coord = tf.train.Coordinator()
    try:
        _failing()
    except ValueError as error:
        coord.request_stop(sys.exc_info() if as_tuple else error)
    coord.request_stop(KeyError("a second one"))
    for _ in range(2):
        with pytest.raises(ValueError, match="the reason") as caught:
            coord.join()
        assert "_failing" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    with pytest.raises(ValueError, match="the reason"):
        coord.raise_requested_exception()
    coord.clear_stop()
    coord.raise_requested_exception()
    coord.join()


def test_the_end_of_the_input_is_a_stop_in_good_order():
    """OutOfRangeError, or what the coordinator is told, asks for a stop without an exception."""
    coord = tf.train.Coordinator()
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "no more"))
    assert coord.should_stop()
    coord.join()
    coord = tf.train.Coordinator(clean_stop_exception_types=(KeyError,))
    coord.request_stop(KeyError("x"))
    coord.join()


def test_what_is_no_exception_is_refused():
    """A request takes an exception or what sys.exc_info() returned."""
    coord = tf.train.Coordinator()
    with pytest.raises(TypeError, match="takes an exception"):
        coord.request_stop("reason")
    assert not coord.should_stop()


def test_an_exception_after_the_join_is_raised_at_once():
    """Nobody could raise it later."""
    coord = tf.train.Coordinator()
    coord.request_stop()
    coord.join()
    coord.request_stop()
    with pytest.raises(ValueError, match="late"):
        coord.request_stop(ValueError("late"))


def test_stop_on_exception_hands_everything_over():
    """Also exceptions that are no `Exception`; the body's caller goes on."""
    coord = tf.train.Coordinator()
    with coord.stop_on_exception():
        sys.exit(3)
    with pytest.raises(SystemExit):
        coord.join()


def test_threads_that_do_not_end_are_named(stuck: threading.Thread):
    """After the grace period join raises, or goes on where it is told to; a recorded exception comes first."""
    coord = tf.train.Coordinator()
    coord.register_thread(stuck)
    coord.request_stop()
    with pytest.raises(RuntimeError, match="Coordinator stopped with threads still running: stuck"):
        coord.join(stop_grace_period_secs=0.01)
    coord.join([stuck], stop_grace_period_secs=0.01, ignore_live_threads=True)
    coord.clear_stop()
    coord.request_stop(ValueError("first"))
    with pytest.raises(ValueError, match="first"):
        coord.join([stuck], stop_grace_period_secs=0.01)


def test_an_interrupted_program_does_not_wait_for_a_stuck_thread(stuck: threading.Thread):
    """While KeyboardInterrupt ends a program, join gives up long before the grace period of a day is over."""
    coord = tf.train.Coordinator()
    with pytest.raises(KeyboardInterrupt):
        try:
            raise KeyboardInterrupt
        finally:
            coord.request_stop()
            coord.join([stuck], stop_grace_period_secs=86400, ignore_live_threads=True)
    assert stuck.is_alive()


def test_looper_calls_its_target_until_the_stop():
    """With its arguments, at once and then at each interval."""
    coord = tf.train.Coordinator()
    calls: list[tuple[int, int]] = []

    def target(a: int, b: int = 0) -> None:
        calls.append((a, b))
        if len(calls) == 3:
            coord.request_stop()

    looper = tf.train.LooperThread.loop(coord, 0.001, target, args=(1,), kwargs={"b": 2})
    coord.join()
    assert calls == [(1, 2)] * 3 and looper.daemon and not looper.isAlive()


def test_looper_hooks_run_around_the_loop():
    """start_loop once, run_loop each time, stop_loop at the end; an exception ends the thread and goes to the coordinator."""
    seen: list[str] = []

    class Looper(tf.train.LooperThread):
        def start_loop(self) -> None:
            seen.append("start")

        def run_loop(self) -> None:
            seen.append("run")
            if seen.count("run") == 2:
                self._coord.request_stop()

        def stop_loop(self) -> None:
            seen.append("stop")

    coord = tf.train.Coordinator()
    Looper(coord, None).start()
    coord.join()
    assert seen == ["start", "run", "run", "stop"]
    coord = tf.train.Coordinator()
    tf.train.LooperThread.loop(coord, None, _failing)
    with pytest.raises(ValueError, match="the reason"):
        coord.join()


def test_looper_is_an_ordinary_thread():
    """Names, the daemon flag and the rules about starting are threading's; the old accessors are there."""
    coord = tf.train.Coordinator()
    coord.request_stop()
    looper = tf.train.LooperThread(coord, None)
    assert looper.ident is None and looper.isDaemon()
    looper.setName("loops")
    looper.setDaemon(False)
    assert looper.getName() == looper.name == "loops" and "LooperThread(loops" in repr(looper) and not looper.daemon
    with pytest.raises(RuntimeError):
        looper.join()
    looper.start()
    looper.join()
    with pytest.raises(RuntimeError):
        looper.start()


def test_looper_refuses_bad_arguments():
    """No coordinator, or arguments without a target."""
    with pytest.raises(ValueError, match="'coord' argument must be a Coordinator: None"):
        tf.train.LooperThread(None, 1)
    with pytest.raises(ValueError, match="require that you also pass 'target'"):
        tf.train.LooperThread(tf.train.Coordinator(), 1, args=(1,))
