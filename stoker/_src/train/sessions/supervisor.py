"""`Supervisor`: the training loop of programs older than MonitoredSession, with services that run in their own threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from stoker._src.base import dtypes, tf_logging
from stoker._src.base.deprecation import deprecated
from stoker._src.base.export import export
from stoker._src.formats.protos import SessionLog, Summary
from stoker._src.graph import context
from stoker._src.graph.interchange.meta_graph import export_scoped_meta_graph
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.control_flow.grouping import group
from stoker._src.ops.io.files import write_graph
from stoker._src.ops.resources.tables import tables_initializer
from stoker._src.ops.summary.summary_ops import merge_all
from stoker._src.ops.variables.reports import report_uninitialized_variables
from stoker._src.ops.variables.variable_functions import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
)
from stoker._src.summary.file_writer import FileWriter
from stoker._src.train import training_util
from stoker._src.train.checkpoints.leftovers import remove_leftovers
from stoker._src.train.checkpoints.saver import Saver
from stoker._src.train.input.coordinator import Coordinator, LooperThread
from stoker._src.train.sessions.session_manager import SessionManager


@export(v1="train.Supervisor")
class Supervisor:
    """Creates a session that is ready for training, saves checkpoints and writes summaries in the background.

        supervisor = tf.train.Supervisor(logdir="/tmp/mydir")
        with supervisor.managed_session() as session:
            while not supervisor.should_stop():
                session.run(train_op)

    The graph becomes final. An argument with the value `USE_DEFAULT` is taken from the graph's collections or created. None turns the piece off.

    Args:
        graph: The graph. By default the current one.
        ready_op: Returns the names of uninitialized variables.
        ready_for_local_init_op: Like `ready_op`, but checked before `local_init_op` runs. By default there is none.
        is_chief: Whether this process initializes, restores, saves and summarizes. The others wait for it.
        init_op: Initializes the model. By default all global variables.
        init_feed_dict: feeds of `init_op`.
        local_init_op: By default initializes local variables and tables.
        logdir: The directory of checkpoints and event files.
        summary_op: Returns the summaries. By default all summaries of the graph.
        saver: By default a saver of all variables.
        global_step: By default the graph's global step.
        save_summaries_secs: seconds between two summaries; 0 for none.
        save_model_secs: seconds between two checkpoints; 0 for none.
        recovery_wait_secs: Seconds between two checks whether the model is ready.
        stop_grace_secs: How long threads may take to stop.
        checkpoint_basename: The prefix of the names of checkpoints.
        session_manager: Creates the sessions.
        summary_writer: By default a FileWriter for `logdir`.
        init_fn: A function that is called with the session after `init_op`.
        local_init_run_options: RunOptions of `local_init_op`.

    Raises:
        RuntimeError: in eager mode.
        ValueError: This is not the chief, and a variable has no device.
    """

    USE_DEFAULT = 0

    @deprecated(None, "Please switch to tf.train.MonitoredTrainingSession")
    def __init__(
        self,
        graph: Any = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: Any = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: Any = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        if context.executing_eagerly():
            raise RuntimeError("Supervisors are incompatible with eager execution.")
        self._graph = context.get_default_graph() if graph is None else graph
        self._is_chief, self._init_feed_dict, self._init_fn = is_chief, init_feed_dict, init_fn
        self._stop_grace_secs = stop_grace_secs
        self._coord = Coordinator()
        with self._graph.as_default():
            self._ready_op = self._piece(ready_op, GraphKeys.READY_OP, report_uninitialized_variables)
            self._ready_for_local_init_op = self._piece(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None
            )
            self._init_op = self._piece(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._local_init_op = self._piece(
                local_init_op,
                GraphKeys.LOCAL_INIT_OP,
                lambda: group(local_variables_initializer(), tables_initializer()),
            )
            self._saver = self._piece(saver, GraphKeys.SAVERS, lambda: Saver() if global_variables() else None)
            self._summary_op = self._piece(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self._global_step = self._piece(global_step, GraphKeys.GLOBAL_STEP, self._default_global_step)
        self._logdir = self._save_path = None
        self._summary_writer: Any = None
        self._save_summaries_secs = self._save_model_secs = None
        self._meta_graph_def: Any = None
        self._is_graph_written = False
        if is_chief:
            self._save_summaries_secs, self._save_model_secs = save_summaries_secs, save_model_secs
            self._meta_graph_def = export_scoped_meta_graph(
                graph=self._graph, saver_def=None if self._saver is None else self._saver.saver_def
            )
            if logdir:
                self._logdir = os.fspath(logdir)
                self._save_path = os.path.join(self._logdir, checkpoint_basename)
            if not (isinstance(summary_writer, int) and summary_writer == Supervisor.USE_DEFAULT):
                self._summary_writer = summary_writer
            elif self._logdir:
                self._summary_writer = FileWriter(self._logdir)
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._check_devices()
        self._graph.finalize()

    def _piece(self, given: Any, key: str, make: Callable[[], Any]) -> Any:
        """Returns the given piece. By default it is the first of a collection, or it is created and stored there."""
        if not (isinstance(given, int) and given == Supervisor.USE_DEFAULT):
            return given
        found = self._graph.get_collection(key)
        if found:
            return found[0]
        made = make()
        if made is not None:
            self._graph.add_to_collection(key, made)
        return made

    def _default_global_step(self) -> Any:
        try:
            step = self._graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
        if step.dtype.base_dtype in (dtypes.int32, dtypes.int64):
            return step
        tf_logging.warning("Found 'global_step' is not an int type: %s", step.dtype)
        return None

    def _check_devices(self) -> None:
        if not self._is_chief:
            for op in self._graph.get_operations():
                if op.type in ("Variable", "VariableV2") and not op.device:
                    raise ValueError(f"When using replicas, all Variables must have their device set: {op}")

    # -- what it is made of -------------------------------------------------------------------------------------------

    @property
    def is_chief(self) -> bool:
        return self._is_chief

    @property
    def session_manager(self) -> Any:
        return self._session_manager

    @property
    def coord(self) -> Coordinator:
        return self._coord

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def summary_writer(self) -> Any:
        return self._summary_writer

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def save_summaries_secs(self) -> Any:
        return self._save_summaries_secs

    @property
    def global_step(self) -> Any:
        return self._global_step

    @property
    def saver(self) -> Any:
        return self._saver

    @property
    def save_model_secs(self) -> Any:
        return self._save_model_secs

    @property
    def save_path(self) -> Any:
        return self._save_path

    # -- sessions -----------------------------------------------------------------------------------------------------

    @contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A context with a session that is ready, and with running services and queue runners.

        At the end, threads are stopped and the session is closed. Exceptions of the block or of a thread are raised, except for the end
        of the input (OutOfRangeError).
        """
        session = None
        try:
            session = self.prepare_or_wait_for_session(
                master=master, config=config, start_standard_services=start_standard_services
            )
            yield session
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    with suppress(Exception):  # `stop` has raised the relevant error.
                        session.close()

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """Returns a session that is ready. The chief prepares it, the others wait for that.

        Args:
            master: the target of the session.
            config: a ConfigProto.
            wait_for_checkpoint: Whether the chief waits until there is a checkpoint.
            max_wait_secs: The longest time to wait.
            start_standard_services: whether to start services and queue runners.
        """
        self._coord.clear_stop()
        if self._summary_writer is not None:
            self._summary_writer.reopen()
        if self._is_chief:
            if self._save_path:
                remove_leftovers(self._logdir, os.path.basename(self._save_path))
            session = self._session_manager.prepare_session(
                master,
                init_op=self.init_op,
                saver=self.saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                tf_logging.info("Starting standard services.")
                self.start_standard_services(session)
        else:
            session = self._session_manager.wait_for_session(master, config=config, max_wait_secs=max_wait_secs)
        if start_standard_services:
            tf_logging.info("Starting queue runners.")
            self.start_queue_runners(session)
        return session

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self._summary_writer is not None and not self._is_graph_written:
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(self._meta_graph_def)
            self._is_graph_written = True

    def start_standard_services(self, sess: Any) -> list[LooperThread] | None:
        """Starts the threads that write summaries, count steps and save checkpoints.

        Returns:
            The threads. None if there is no `logdir`, which they need.

        Raises:
            RuntimeError: This process is not the chief.
        """
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors can write events."
            )
        if not self._logdir:
            tf_logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        if self._global_step is not None and self._summary_writer is not None:
            # Without a step, TensorBoard could not tell which earlier events are obsolete.
            step = training_util.global_step(sess, self._global_step)
            self._summary_writer.add_session_log(SessionLog(status=SessionLog.START), step)
        threads: list[LooperThread] = []
        if self._save_summaries_secs and self._summary_writer is not None:
            if self._summary_op is not None:
                threads.append(_SummaryThread(self, sess, self._save_summaries_secs))
            if self._global_step is not None:
                threads.append(_StepCounterThread(self, sess, self._save_summaries_secs))
        if self._saver is not None and self._save_model_secs:
            threads.append(_CheckpointThread(self, sess, self._save_model_secs))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(self, sess: Any, queue_runners: Any = None) -> list[Any]:
        """Starts queue runners, by default those of the graph, and returns their threads.

        Raises:
            RuntimeError: in eager mode.
        """
        if context.executing_eagerly():
            raise RuntimeError("Queues are not compatible with eager execution.")
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        threads: list[Any] = []
        for runner in queue_runners:
            threads.extend(runner.create_threads(sess, coord=self._coord, daemon=True, start=True))
        return threads

    def loop(
        self, timer_interval_secs: float | None, target: Callable[..., Any], args: Any = None, kwargs: Any = None
    ) -> LooperThread:
        """Calls a function in a thread until the supervisor stops: at intervals, or continuously if `timer_interval_secs` is None."""
        thread = LooperThread(self._coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        thread.start()
        return thread

    # -- the end ------------------------------------------------------------------------------------------------------

    def stop(self, threads: Any = None, close_summary_writer: bool = True, ignore_live_threads: bool = False) -> None:
        """Stops services and threads and waits for them. Does not close the session.

        Args:
            threads: Threads to wait for, in addition to those that were started here.
            close_summary_writer: Whether to close the event file.
            ignore_live_threads: Whether threads may still run after the grace period.

        Raises:
            Exception: A thread failed.
            RuntimeError: a thread did not stop.
        """
        self._coord.request_stop()
        try:
            self._coord.join(
                threads, stop_grace_period_secs=self._stop_grace_secs, ignore_live_threads=ignore_live_threads
            )
        finally:
            if close_summary_writer and self._summary_writer is not None:
                # Without a step, because the session may be closed.
                self._summary_writer.add_session_log(SessionLog(status=SessionLog.STOP))
                self._summary_writer.close()
                self._is_graph_written = False

    def request_stop(self, ex: Any = None) -> None:
        """Requests that all threads stop. `stop` raises the exception."""
        self._coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Returns whether a stop was requested."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> Any:
        """A context whose exceptions request a stop and are suppressed."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until a stop is requested."""
        self._coord.wait_for_stop()

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Writes a summary, as a message or as bytes, by default with the session's current step.

        Raises:
            TypeError: It is not a summary.
            RuntimeError: There is no writer because there is no `logdir`.
        """
        if self._summary_writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if not (isinstance(summary, bytes) or hasattr(summary, "value")):
            raise TypeError(f"A summary must be a Summary message or its bytes, not {type(summary)!r}.")
        if global_step is None and self._global_step is not None:
            global_step = training_util.global_step(sess, self._global_step)
        self._summary_writer.add_summary(summary, global_step)

    # 0.12's names.
    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


class _Service(LooperThread):
    """A thread that performs a service for a supervisor at intervals."""

    def __init__(self, supervisor: Supervisor, session: Any, seconds: float) -> None:
        super().__init__(supervisor.coord, seconds)
        self._supervisor, self._session = supervisor, session


class _SummaryThread(_Service):
    """Writes summaries."""

    def run_loop(self) -> None:
        supervisor = self._supervisor
        if supervisor.global_step is None:
            summary, step = self._session.run(supervisor.summary_op), None
        else:
            summary, step = self._session.run([supervisor.summary_op, supervisor.global_step])
        tf_logging.info("Recording summary at step %s.", step)
        supervisor.summary_writer.add_summary(summary, step)


class _StepCounterThread(_Service):
    """Writes the number of steps per second."""

    def __init__(self, supervisor: Supervisor, session: Any, seconds: float) -> None:
        super().__init__(supervisor, session, seconds)
        self._tag = f"{supervisor.global_step.op.name}/sec"

    def start_loop(self) -> None:
        self._last_time = time.monotonic()
        self._last_step = training_util.global_step(self._session, self._supervisor.global_step)

    def run_loop(self) -> None:
        step = training_util.global_step(self._session, self._supervisor.global_step)
        now = time.monotonic()
        made, elapsed = step - self._last_step, now - self._last_time
        self._last_step, self._last_time = step, now
        steps_per_sec = made / elapsed if elapsed > 0 else float("inf")
        value = Summary.Value(tag=self._tag, simple_value=steps_per_sec)
        self._supervisor.summary_writer.add_summary(Summary(value=[value]), step)
        tf_logging.info("%s: %g", self._tag, steps_per_sec)


class _CheckpointThread(_Service):
    """Saves checkpoints."""

    def run_loop(self) -> None:
        supervisor = self._supervisor
        tf_logging.info("Saving checkpoint to path %s", supervisor.save_path)
        supervisor.saver.save(self._session, supervisor.save_path, global_step=supervisor.global_step)
        if supervisor.summary_writer is not None and supervisor.global_step is not None:
            step = training_util.global_step(self._session, supervisor.global_step)
            log = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=supervisor.save_path)
            supervisor.summary_writer.add_session_log(log, step)


@export(v1="train.basic_train_loop")
def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    master: str = "",
) -> None:
    """Calls `train_step_fn(session, *args, **kwargs)` in a managed session until the supervisor is to stop."""
    with supervisor.managed_session(master) as session:
        while not supervisor.should_stop():
            train_step_fn(session, *(args or ()), **(kwargs or {}))
