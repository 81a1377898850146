"""`MonitoredSession`: runs with hooks around them. It ends with the input and recovers from lost workers.

MonitoredSession            calls `begin` and `end` of hooks; a context manager
  _MonitoredCore            one session at a time: creates it, and another one when a worker is lost
    _HookedSession          one run: calls hooks before and after it
      Session
"""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.errors import AbortedError, OutOfRangeError, UnavailableError
from stoker._src.base.export import export
from stoker._src.formats.protos import RunMetadata, RunOptions
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.collective.replicas import LostReplicaError
from stoker._src.train.input.coordinator import Coordinator
from stoker._src.train.input.queue_runner import start_queue_runners
from stoker._src.train.sessions.run_hooks import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from stoker._src.train.sessions.scaffold import Scaffold
from stoker._src.train.sessions.session_manager import SessionManager

LOST_WORKER = (AbortedError, UnavailableError)
_RECOVERING = (
    "An error was raised%s. This may be due to a preemption in a connected worker or parameter server. The current session will be "
    "closed and a new session will be created. This error may also occur due to a gRPC failure caused by high memory or network "
    "bandwidth usage in the parameter servers. If this error occurs repeatedly, try increasing the number of parameter servers "
    "assigned to the job. Error: %s"
)


# ---- creators ---------------------------------------------------------------------------------------------------


@export(v1="train.SessionCreator")
class SessionCreator(metaclass=abc.ABCMeta):
    """Creates the sessions of a monitored session."""

    @abc.abstractmethod
    def create_session(self) -> Any:
        """Returns a session that is ready."""
        raise NotImplementedError(f"create_session is not implemented for {self}.")


class _ManagedCreator(SessionCreator):
    def __init__(self, scaffold: Scaffold | None, master: str, config: Any) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master, self._config = master, config
        self._manager: SessionManager | None = None

    def _session_manager(self) -> SessionManager:
        self._scaffold.finalize()
        if self._manager is None:
            self._manager = SessionManager(
                local_init_op=self._scaffold.local_init_op,
                local_init_feed_dict=self._scaffold.local_init_feed_dict,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=context.get_default_graph(),
            )
        return self._manager


@export(v1="train.ChiefSessionCreator")
class ChiefSessionCreator(_ManagedCreator):
    """Creates sessions that restore or initialize the model.

    Args:
        scaffold: The pieces of the graph.
        master: the target of the session.
        config: a ConfigProto.
        checkpoint_dir: The directory from which to restore the newest checkpoint.
        checkpoint_filename_with_path: The checkpoint to restore, instead of `checkpoint_dir`.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path

    def create_session(self) -> Any:
        manager = self._session_manager()
        return manager.prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


@export(v1="train.WorkerSessionCreator")
class WorkerSessionCreator(_ManagedCreator):
    """Creates sessions that wait, at most `max_wait_secs`, until the chief has prepared the model."""

    def __init__(
        self, scaffold: Scaffold | None = None, master: str = "", config: Any = None, max_wait_secs: float = 30 * 60
    ) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Any:
        manager = self._session_manager()
        return manager.wait_for_session(self._master, config=self._config, max_wait_secs=self._max_wait_secs)


# ---- one session, with hooks ------------------------------------------------------------------------------------


def _merged_options(options: Any, more: Any) -> Any:
    """Merges two RunOptions: the result asks for everything that either of them asks for."""
    result = RunOptions()
    if options is not None:
        result.MergeFromString(options.SerializeToString())
    result.trace_level = max(result.trace_level, more.trace_level)
    result.timeout_in_ms = max(result.timeout_in_ms, more.timeout_in_ms)
    if more.inter_op_thread_pool > 0:
        result.inter_op_thread_pool = more.inter_op_thread_pool
    result.output_partition_graphs |= more.output_partition_graphs
    result.report_tensor_allocations_upon_oom |= more.report_tensor_allocations_upon_oom
    result.debug_options.MergeFromString(more.debug_options.SerializeToString())
    return result


class _HookedSession:
    """A session whose runs have hooks around them."""

    def __init__(self, session: Any, hooks: list[SessionRunHook], coord: Coordinator, grace_secs: float) -> None:
        self.session, self.coord = session, coord
        self._hooks, self._grace_secs = hooks, grace_secs
        self.stop_requested = False

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Combines the caller's fetches with those of the hooks."""
        if self.stop_requested or self.coord.should_stop():
            self.coord.raise_requested_exception()
            raise RuntimeError("Run called even after should_stop requested.")
        run_context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self.session)
        all_fetches: dict[Any, Any] = {"caller": fetches}
        feeds = dict(feed_dict) if feed_dict else {}
        fed_by_hooks: dict[Any, Any] = {}
        for hook in self._hooks:
            asked = hook.before_run(run_context)
            if asked is None:
                continue
            if asked.fetches is not None:
                all_fetches[hook] = asked.fetches
            if asked.feed_dict:
                _check_feeds(asked.feed_dict, fed_by_hooks, "two hooks")
                fed_by_hooks.update(asked.feed_dict)
            if asked.options is not None:
                options = _merged_options(options, asked.options)
        _check_feeds(feeds, fed_by_hooks, "a SessionRunHook and user")
        feeds.update(fed_by_hooks)
        if options is not None and run_metadata is None:
            run_metadata = RunMetadata()
        # Runs without options take a shorter path through the session.
        results = self.session.run(all_fetches, feeds or None, options=options, run_metadata=run_metadata)
        if self._hooks:
            shown_options = RunOptions() if options is None else options
            shown_metadata = RunMetadata() if run_metadata is None else run_metadata
            for hook in self._hooks:
                hook.after_run(run_context, SessionRunValues(results.get(hook), shown_options, shown_metadata))
        self.stop_requested = self.stop_requested or run_context.stop_requested
        return results["caller"]

    def call(self, function: Callable[[], Any]) -> Any:
        """Calls a function. If another thread failed first, raises that thread's exception."""
        try:
            return function()
        except LOST_WORKER:
            raise
        except Exception:
            self.coord.raise_requested_exception()
            raise

    def should_stop(self) -> bool:
        self.coord.raise_requested_exception()
        return self.stop_requested or self.coord.should_stop()

    def close(self) -> None:
        """Stops the threads, then closes the session.

        Raises:
            Exception: A thread failed, for another reason than a lost worker.
        """
        self.coord.request_stop()
        try:
            self.coord.join(stop_grace_period_secs=self._grace_secs, ignore_live_threads=True)
        except LOST_WORKER as error:
            tf_logging.info("A worker was lost while the session was being closed: %s", error)
        finally:
            try:
                self.session.close()
            except LOST_WORKER as error:
                tf_logging.info("A worker was lost while the session was being closed: %s", error)


def _check_feeds(first: Any, second: Any, who: str) -> None:
    both = [tensor for tensor in second if tensor in first]
    if both:
        raise RuntimeError(f"Same tensor is fed by {who}. Conflict(s): {both}")


class StepContext:
    """The argument of the functions that `run_step_fn` calls."""

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session = session
        self._run_with_hooks_fn = run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The session itself. Its runs have no hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Runs like `MonitoredSession.run`."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the loop by raising an exception.

        Raises:
            StopIteration: always.
        """
        raise StopIteration("step_fn has requested the iterations to stop.")


class _MonitoredCore:
    """Base class of MonitoredSession and SingularMonitoredSession."""

    StepContext = StepContext

    def __init__(
        self, session_creator: Any, hooks: Any, should_recover: bool, stop_grace_period_secs: float = 120
    ) -> None:
        self._graph = context.get_default_graph()
        self._graph_was_finalized = self._graph.finalized
        self._hooks: list[SessionRunHook] = list(hooks or [])
        self._should_recover, self._grace_secs = should_recover, stop_grace_period_secs
        for hook in self._hooks:
            hook.begin()
        self._creator = session_creator or ChiefSessionCreator()
        self._sess: _HookedSession | None = self._recovering(" while a session was being created", self._create)

    def _create(self) -> _HookedSession:
        session = self._creator.create_session()
        coord = Coordinator(clean_stop_exception_types=())
        if context.get_default_graph().get_collection(GraphKeys.QUEUE_RUNNERS):
            start_queue_runners(sess=session, coord=coord)
        for hook in self._hooks:
            hook.after_create_session(session, coord)
        return _HookedSession(session, self._hooks, coord, self._grace_secs)

    def _recovering(self, when: str, function: Callable[[], Any]) -> Any:
        """Calls a function, and calls it again after each lost worker if this session recovers from that."""
        while True:
            try:
                return function()
            except LOST_WORKER as error:
                if not self._recovers_from(error):
                    raise
                tf_logging.info(_RECOVERING, when, error)
                self._drop()

    def _recovers_from(self, error: Exception) -> bool:
        # Replicas that train together start again together, which is not this session's to do.
        return self._should_recover and not isinstance(error, LostReplicaError)

    def _drop(self) -> None:
        """Closes the session of a lost worker. Its errors are ignored because they are consequences of the loss."""
        lost, self._sess = getattr(self, "_sess", None), None
        if lost is not None:
            try:
                lost.close()
            except Exception as error:
                tf_logging.info("Closing the session of a lost worker failed: %s", error)
            self._is_lost = True

    _is_lost = False

    def _session(self) -> _HookedSession:
        """Returns the session, recreated if a worker was lost."""
        if self._sess is None:
            if not self._is_lost:
                raise RuntimeError("Session is already closed.")
            self._sess = self._create()
            self._is_lost = False
        return self._sess

    @property
    def graph(self) -> Any:
        """The graph; None after `close`."""
        return None if self._sess is None and not self._is_lost else self._graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs like `Session.run`, with the hooks around it.

        Raises:
            RuntimeError: `should_stop()` is already true, or a tensor is fed twice.
        """

        def run() -> Any:
            session = self._session()
            return session.call(lambda: session.run(fetches, feed_dict, options, run_metadata))

        return self._recovering("", run)

    def run_step_fn(self, step_fn: Callable[[Any], Any]) -> Any:
        """Calls a function with a StepContext, which gives it access to the session with and without hooks.

        Returns:
            The result of the function.

        Raises:
            StopIteration: The function requested a stop.
            ValueError: The function's only argument is not called `step_context`.
        """
        names = _argument_names(step_fn)
        if names != ("step_context",):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and `step_context` arguments if it's an "
                f"instance method. Got {names} instead."
            )

        def run() -> Any:
            session = self._session()
            return session.call(lambda: step_fn(StepContext(session.session, session.run)))

        return self._recovering("", run)

    def should_stop(self) -> bool:
        """Returns whether to end the loop: a hook or thread requested it, or the session is closed."""
        if self._sess is None:
            return not self._is_lost
        try:
            return self._sess.should_stop()
        except LOST_WORKER as error:
            if not self._recovers_from(error):
                return True
            tf_logging.info(_RECOVERING, "", error)
            self._drop()
            return False
        except Exception:
            # The next run or `close` raises it.
            return True

    def close(self) -> None:
        """Ends the hooks, stops the threads and closes the session.

        Raises:
            RuntimeError: The session is already closed.
        """
        self._close_internal()

    def _close_internal(self, failed: bool = False) -> None:
        if self._sess is None and not self._is_lost:
            raise RuntimeError("Session is already closed.")
        try:
            if not failed:
                session = self._session()
                for hook in self._hooks:
                    hook.end(session.session)
        finally:
            session, self._sess, self._is_lost = self._sess, None, False
            try:
                if session is not None:
                    session.close()
            finally:
                if not self._graph_was_finalized:
                    self._graph._unsafe_unfinalize()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> bool:
        is_end = exception_type is not None and issubclass(exception_type, (OutOfRangeError, StopIteration))
        self._close_internal(failed=exception_type is not None and not is_end)
        return is_end


def _argument_names(function: Any) -> tuple[str, ...]:
    """Returns the names of the parameters, without `self`."""
    if not callable(function):
        raise TypeError("unsupported callable")
    return tuple(inspect.signature(function).parameters)


@export(v1="train.MonitoredSession")
class MonitoredSession(_MonitoredCore):
    """A session that initializes itself, calls hooks around every run, recovers from lost workers, and ends with the input.

        with tf.train.MonitoredSession(hooks=[...]) as session:
            while not session.should_stop():
                session.run(train_op)

    The hooks begin, the scaffold finalizes the graph, the session is created and initialized or restored, queue runners start, and the hooks are
    notified. A run that fails with AbortedError or UnavailableError is repeated in a new session. Leaving the block ends the hooks, stops
    the threads and closes the session. OutOfRangeError and StopIteration end the block regularly.

    It is not a Session: it cannot be the default session, and `Saver.save` and `start_queue_runners` do not accept it.

    Args:
        session_creator: Creates the sessions. By default a ChiefSessionCreator.
        hooks: SessionRunHooks.
        stop_grace_period_secs: How long threads may take to stop.
    """

    def __init__(self, session_creator: Any = None, hooks: Any = None, stop_grace_period_secs: float = 120) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


@export(v1="train.SingularMonitoredSession")
class SingularMonitoredSession(_MonitoredCore):
    """A monitored session for one process. It does not recover from lost workers, and gives access to its session.

    Args:
        hooks: SessionRunHooks.
        scaffold: The pieces of the graph.
        master: the target of the session.
        config: a ConfigProto.
        checkpoint_dir: The directory from which to restore the newest checkpoint.
        stop_grace_period_secs: How long threads may take to stop.
        checkpoint_filename_with_path: The checkpoint to restore, instead of `checkpoint_dir`.
    """

    def __init__(
        self,
        hooks: Any = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Any = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: Any = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The session itself, for savers and other code that needs one. None after `close`."""
        return None if self._sess is None else self._sess.session
