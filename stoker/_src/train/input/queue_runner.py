"""Queue runners: threads that fill a queue by running its enqueue ops repeatedly."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from stoker._src.base import forking, tf_logging
from stoker._src.base.deprecation import deprecated
from stoker._src.base.errors import (
    OpError,
    OutOfRangeError,
    error_code_from_exception_type,
    exception_type_from_error_code,
)
from stoker._src.base.export import export
from stoker._src.formats.protos import QueueRunnerDef
from stoker._src.graph import context
from stoker._src.graph.graph import current_session
from stoker._src.graph.interchange.meta_graph import (
    in_scope,
    prepend_name_scope,
    register_proto_function,
    strip_name_scope,
)
from stoker._src.graph.keys import GraphKeys
from stoker._src.runtime.session import BaseSession
from stoker._src.train.input.coordinator import Coordinator

_INSTEAD = "To construct input pipelines, use the `tf.data` module."


@export(v1=("train.QueueRunner", "train.queue_runner.QueueRunner"))
class QueueRunner:
    """Fills a queue with threads, one for each of its enqueue ops.

    Each thread runs its op until the coordinator stops or the op raises. An exception of `queue_closed_exception_types` means
    that the input has ended: when the last thread has met one, the queue is closed, and what is in it can still be dequeued.
    When the coordinator stops, the queue is closed with the cancel op, which also ends enqueues that wait.

    Args:
        queue: the queue.
        enqueue_ops: the ops that fill it, one for each thread; an op may be given several times.
        close_op: Closes the queue and keeps pending enqueues. Created by default.
        cancel_op: Closes the queue and cancels pending enqueues. Created by default.
        queue_closed_exception_types: A tuple of exceptions that mean the end of the input. By default OutOfRangeError.
            Add CancelledError when the enqueue ops take from another queue that a runner cancels.
        queue_runner_def: A QueueRunnerDef message that describes the runner.
        import_scope: A name scope to prepend to the names in the message.

    Raises:
        ValueError: both `queue_runner_def` and `queue` are given, or neither, or there are no enqueue ops.
        TypeError: `queue_closed_exception_types` is not a tuple of exceptions.
        RuntimeError: eager mode.
    """

    @deprecated(None, _INSTEAD)
    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Any = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[OpError], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if context.executing_eagerly():
            raise RuntimeError(
                "QueueRunners are not supported when eager execution is enabled. Instead, please use tf.data to get data "
                "into your model."
            )
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops is not None:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._init_from_proto(queue_runner_def, import_scope)
        else:
            self._init_from_args(queue, enqueue_ops, close_op, cancel_op, queue_closed_exception_types)
        self._lock = forking.lock()
        self._runs_per_session: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._exceptions_raised: list[BaseException] = []

    def _init_from_args(self, queue: Any, enqueue_ops: Any, close_op: Any, cancel_op: Any, closed_types: Any) -> None:
        if not queue or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        if closed_types is None:
            closed_types = (OutOfRangeError,)
        if not (
            isinstance(closed_types, tuple)
            and closed_types
            and all(isinstance(kind, type) and issubclass(kind, OpError) for kind in closed_types)
        ):
            raise TypeError(
                "queue_closed_exception_types, when provided, must be a tuple of tf.error types, but saw: "
                f"{closed_types!r}"
            )
        self._queue = queue
        self._enqueue_ops = enqueue_ops
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        self._queue_closed_exception_types = closed_types

    def _init_from_proto(self, queue_runner_def: Any, import_scope: str | None) -> None:
        if not isinstance(queue_runner_def, QueueRunnerDef):
            if not hasattr(queue_runner_def, "SerializeToString"):
                raise TypeError(f"queue_runner_def must be a QueueRunnerDef, not {type(queue_runner_def)!r}.")
            queue_runner_def = QueueRunnerDef.FromString(queue_runner_def.SerializeToString())

        def element(name: str) -> Any:
            return context.get_default_graph().as_graph_element(prepend_name_scope(name, import_scope))

        self._queue = element(queue_runner_def.queue_name)
        self._enqueue_ops = [element(name) for name in queue_runner_def.enqueue_op_name]
        self._close_op = element(queue_runner_def.close_op_name)
        self._cancel_op = element(queue_runner_def.cancel_op_name)
        codes = queue_runner_def.queue_closed_exception_types
        # Messages without exception types mean the default.
        self._queue_closed_exception_types = tuple(map(exception_type_from_error_code, codes)) or (OutOfRangeError,)

    @property
    def queue(self) -> Any:
        """The queue. For a runner from a message, the operation that creates it."""
        return self._queue

    @property
    def enqueue_ops(self) -> Any:
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[OpError], ...]:
        return self._queue_closed_exception_types

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """The exceptions of threads without a coordinator. A coordinator receives those of the others."""
        return self._exceptions_raised

    @property
    def name(self) -> str:
        """The name of the queue's operation."""
        return self._queue.name

    def _run(self, sess: Any, enqueue_op: Any, coord: Coordinator | None) -> None:
        """The body of a thread: runs the op until it raises an exception or the coordinator stops."""
        ended = False
        try:
            enqueue = self._enqueuer(sess, enqueue_op)
            while coord is None or not coord.should_stop():
                try:
                    enqueue()
                except self._queue_closed_exception_types:
                    ended = True
                    if self._left(sess):
                        self._close(sess, self._close_op)
                    return
        except Exception as error:
            if coord is not None:
                if coord.joined:  # The session was closed while the op ran.
                    tf_logging.debug("Ignored exception: %s", error)
                else:
                    coord.request_stop(error)
                return
            tf_logging.error("Exception in QueueRunner: %s", error)
            with self._lock:
                self._exceptions_raised.append(error)
            raise
        finally:
            if not ended:
                self._left(sess)

    def _enqueuer(self, sess: Any, enqueue_op: Any) -> Callable[[], Any]:
        """Returns the function that a thread calls again and again."""
        return _callable(sess, enqueue_op)

    def _left(self, sess: Any) -> bool:
        """Records that one thread of a session has ended. Returns whether it was the last."""
        with self._lock:
            self._runs_per_session[sess] -= 1
            return self._runs_per_session[sess] == 0

    def _close(self, sess: Any, op: Any) -> None:
        try:
            sess.run(op)
        except Exception as error:  # The session may have ended, together with its queues.
            tf_logging.debug("Ignored exception: %s", error)

    def _close_on_stop(self, sess: Any, cancel_op: Any, coord: Coordinator) -> None:
        """The body of the thread that watches the coordinator."""
        coord.wait_for_stop()
        self._close(sess, cancel_op)

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Creates the threads that run the enqueue ops in a session.

        With a coordinator there is one more thread, which cancels the queue when the coordinator stops. All are registered with it.

        Args:
            sess: the session.
            coord: the coordinator that ends the threads and gets their exceptions.
            daemon: whether the threads are daemons.
            start: whether to start them.

        Returns:
            The threads, or none if those of an earlier call for this session are still running.
        """
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), name=f"QueueRunnerThread-{self.name}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord is not None:
            name = f"QueueRunnerThread-{self.name}-close_on_stop"
            threads.append(threading.Thread(target=self._close_on_stop, args=(sess, self._cancel_op, coord), name=name))
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            if daemon:
                thread.daemon = True
            if start:
                thread.start()
        return threads

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns the runner as a QueueRunnerDef, with `export_scope` removed from its names; None if the queue is outside of the scope."""
        if not in_scope(self.name, export_scope):
            return None
        return QueueRunnerDef(
            queue_name=strip_name_scope(self.name, export_scope),
            enqueue_op_name=[strip_name_scope(op.name, export_scope) for op in self._enqueue_ops],
            close_op_name=strip_name_scope(self._close_op.name, export_scope),
            cancel_op_name=strip_name_scope(self._cancel_op.name, export_scope),
            queue_closed_exception_types=[
                error_code_from_exception_type(kind) for kind in self._queue_closed_exception_types
            ],
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """Returns the runner that a QueueRunnerDef describes, in the current graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def _callable(sess: Any, op: Any) -> Callable[[], Any]:
    """Returns a function that runs `op` in a session one or more times: nothing else happens between two runs that fill a queue."""
    if not isinstance(sess, BaseSession):  # A wrapper around a session may have only `run`.
        return lambda: sess.run(op)
    return sess._repeated(op) or sess.make_callable(op)


@export(v1=("train.add_queue_runner", "train.queue_runner.add_queue_runner"))
@deprecated(None, _INSTEAD)
def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a queue runner to a collection of the current graph. `start_queue_runners` starts it."""
    context.get_default_graph().add_to_collection(collection, qr)


@export(v1=("train.start_queue_runners", "train.queue_runner.start_queue_runners"))
@deprecated(None, _INSTEAD)
def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts all queue runners of a session's graph.

    Args:
        sess: The session. By default the default session.
        coord: the coordinator of the threads.
        daemon: whether the threads are daemons, which do not keep a program from ending.
        start: whether to start them.
        collection: the collection that holds the runners.

    Returns:
        The threads.

    Raises:
        ValueError: there is no session.
        TypeError: `sess` is not a session.
        RuntimeError: eager mode.
    """
    if context.executing_eagerly():
        raise RuntimeError("Queues are not compatible with eager execution.")
    if sess is None:
        sess = current_session()
        if sess is None:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass an "
                "explicit session to tf.start_queue_runners(sess=sess)"
            )
    if not isinstance(sess, BaseSession):
        # A monitored session starts the queue runners of its graph by itself.
        if type(sess).__name__ in ("MonitoredSession", "SingularMonitoredSession"):
            return []
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
    runners = sess.graph.get_collection(collection)
    if not runners:
        tf_logging.warning(
            "`tf.train.start_queue_runners()` was called when no queue runners were defined. You can safely remove the call "
            "to this deprecated function."
        )
    return [
        thread for runner in runners for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
    ]


register_proto_function(
    GraphKeys.QUEUE_RUNNERS,
    proto_type=QueueRunnerDef,
    to_proto=QueueRunner.to_proto,
    from_proto=QueueRunner.from_proto,
)
