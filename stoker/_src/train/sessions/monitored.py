"""`MonitoredSession`: runs with hooks around them, that end with the input and go on after a lost worker.

MonitoredSession            counts, begins and ends hooks; a context manager
  _MonitoredCore            one session at a time: makes it, and makes another when a worker is lost
    _HookedSession          one run: hooks before, hooks after
      Session
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.errors import AbortedError, OutOfRangeError, UnavailableError
from stoker._src.base.export import export
from stoker._src.formats.protos import RunMetadata, RunOptions
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
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
class SessionCreator:
    """Makes the sessions of a monitored session."""

    def create_session(self) -> Any:
        """A session that is ready."""
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
    """Makes sessions that restore or initialize the model.

    Args:
        scaffold: the pieces of the graph.
        master: the target of the session.
        config: a ConfigProto.
        checkpoint_dir: where the newest checkpoint is restored from.
        checkpoint_filename_with_path: the checkpoint to restore, in the place of `checkpoint_dir`.
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
    """Makes sessions that wait until the chief has made the model ready, for at most `max_wait_secs`."""

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
    """Both options in one: what either asks for is done."""
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
        """The caller's fetches, together with what hooks ask for."""
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
        # Runs without options have a shorter way through the session.
        results = self.session.run(all_fetches, feeds or None, options=options, run_metadata=run_metadata)
        if self._hooks:
            shown_options = RunOptions() if options is None else options
            shown_metadata = RunMetadata() if run_metadata is None else run_metadata
            for hook in self._hooks:
                hook.after_run(run_context, SessionRunValues(results.get(hook), shown_options, shown_metadata))
        self.stop_requested = self.stop_requested or run_context.stop_requested
        return results["caller"]

    def call(self, function: Callable[[], Any]) -> Any:
        """Runs something; where another thread failed first, raises that thread's exception."""
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
        """Ends the threads, then the session.

        Raises:
            Exception: what a thread failed with, unless a worker was lost.
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
    """What a function gets that `run_step_fn` calls."""

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session = session
        self._run_with_hooks_fn = run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The session itself; its runs have no hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """As `MonitoredSession.run`."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the loop, by an exception.

        Raises:
            StopIteration: always.
        """
        raise StopIteration("step_fn has requested the iterations to stop.")


class _MonitoredCore:
    """What MonitoredSession and SingularMonitoredSession have in common."""

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
        """Calls a function again as long as it fails for a lost worker, if this session is to recover from that."""
        while True:
            try:
                return function()
            except LOST_WORKER as error:
                if not self._should_recover:
                    raise
                tf_logging.info(_RECOVERING, when, error)
                self._drop()

    def _drop(self) -> None:
        """Closes what a lost worker leaves; whatever that raises belongs to the lost worker."""
        lost, self._sess = getattr(self, "_sess", None), None
        if lost is not None:
            try:
                lost.close()
            except Exception as error:
                tf_logging.info("Closing the session of a lost worker failed: %s", error)
            self._is_lost = True

    _is_lost = False

    def _session(self) -> _HookedSession:
        """The session, made again if a worker was lost."""
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
        """Runs as `Session.run`, with the hooks around it.

        Raises:
            RuntimeError: `should_stop()` is true already, or a tensor is fed by two.
        """

        def run() -> Any:
            session = self._session()
            return session.call(lambda: session.run(fetches, feed_dict, options, run_metadata))

        return self._recovering("", run)

    def run_step_fn(self, step_fn: Callable[[Any], Any]) -> Any:
        """Calls a function with a StepContext, by which it can use the session with and without hooks.

        Returns:
            What the function returns.

        Raises:
            StopIteration: it asked to stop.
            ValueError: its only argument is not called `step_context`.
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
        """Whether the loop is to end: a hook or thread asked for it, or the session is closed."""
        if self._sess is None:
            return not self._is_lost
        try:
            return self._sess.should_stop()
        except LOST_WORKER as error:
            if not self._should_recover:
                return True
            tf_logging.info(_RECOVERING, "", error)
            self._drop()
            return False
        except Exception:
            # The run that follows, or `close`, raises it.
            return True

    def close(self) -> None:
        """Lets hooks end, then stops threads and closes the session.

        Raises:
            RuntimeError: it is closed already.
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
    """Names of the parameters, without the object of a method."""
    if not callable(function):
        raise TypeError("unsupported callable")
    return tuple(inspect.signature(function).parameters)


@export(v1="train.MonitoredSession")
class MonitoredSession(_MonitoredCore):
    """A session that makes itself ready, has hooks around every run, goes on after a lost worker, and ends with the input.

        with tf.train.MonitoredSession(hooks=[...]) as session:
            while not session.should_stop():
                session.run(train_op)

    The hooks begin, the scaffold makes the graph final, the session is made, initialized or restored, queue runners start, and hooks hear of
    it. A run that ends with AbortedError or UnavailableError is made again in a new session. Leaving the block lets hooks end, stops
    threads and closes the session; OutOfRangeError and StopIteration end it in good order.

    It is no Session: it cannot be the default session, nor be given to `Saver.save` or `start_queue_runners`.

    Args:
        session_creator: makes sessions; ChiefSessionCreator by default.
        hooks: SessionRunHooks.
        stop_grace_period_secs: how long threads may take to stop.
    """

    def __init__(self, session_creator: Any = None, hooks: Any = None, stop_grace_period_secs: float = 120) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


@export(v1="train.SingularMonitoredSession")
class SingularMonitoredSession(_MonitoredCore):
    """A monitored session of one process: it does not recover from lost workers, and gives out its session.

    Args:
        hooks: SessionRunHooks.
        scaffold: the pieces of the graph.
        master: the target of the session.
        config: a ConfigProto.
        checkpoint_dir: where the newest checkpoint is restored from.
        stop_grace_period_secs: how long threads may take to stop.
        checkpoint_filename_with_path: the checkpoint to restore, in the place of `checkpoint_dir`.
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
        """The session itself: for savers and other code that needs one. None after `close`."""
        return None if self._sess is None else self._sess.session
