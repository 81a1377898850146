"""Hooks that write checkpoints, summaries and the step rate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.export import export
from stoker._src.formats.protos import SessionLog, Summary
from stoker._src.graph import context
from stoker._src.graph.interchange.meta_graph import export_scoped_meta_graph
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.io.files import write_graph
from stoker._src.summary.file_writer import FileWriterCache
from stoker._src.train.checkpoints.leftovers import remove_leftovers
from stoker._src.train.sessions.run_hooks import SessionRunArgs, SessionRunHook, hook_names
from stoker._src.train.sessions.timers import SecondOrStepTimer, StepEstimate, needed_global_step
from stoker._src.train.training_util import get_global_step, global_step_read


@export(**hook_names("CheckpointSaverListener"))
class CheckpointSaverListener:
    """Base class of listeners to a CheckpointSaverHook. Each method may be overridden."""

    def begin(self) -> None:
        """Called before the session is created."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """Called after a checkpoint is written. Returning True ends training."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end, after the last checkpoint."""


@export(**hook_names("CheckpointSaverHook"))
class CheckpointSaverHook(SessionRunHook):
    """Writes checkpoints: when the session is created, every given number of seconds or steps, and at the end.

    Args:
        checkpoint_dir: The directory of the checkpoints.
        save_secs: The number of seconds between two checkpoints.
        save_steps: The number of steps between two checkpoints.
        saver: The saver. By default the scaffold's, or the one in the collection SAVERS.
        checkpoint_basename: The prefix of the file names.
        scaffold: The scaffold, which has the saver.
        listeners: CheckpointSaverListeners.
        save_graph_def: whether to write the graph: as `graph.pbtxt`, to the event file, and as a meta graph with each checkpoint.

    Raises:
        ValueError: Both `saver` and `scaffold` are given, or not exactly one interval.
    """

    def __init__(
        self,
        checkpoint_dir: Any,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        tf_logging.info("Create CheckpointSaverHook.")
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver, self._scaffold = saver, scaffold
        self._checkpoint_dir = os.fspath(checkpoint_dir)
        self._save_path = os.path.join(self._checkpoint_dir, checkpoint_basename)
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners or [])
        self._save_graph_def = save_graph_def

    def begin(self) -> None:
        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step_tensor = needed_global_step(global_step_read(), "CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        step = int(session.run(self._global_step_tensor))
        remove_leftovers(self._checkpoint_dir, os.path.basename(self._save_path))
        if self._save_graph_def:
            self._write_graph()
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def _write_graph(self) -> None:
        """Writes the graph, which is final only when the session has been created."""
        graph = context.get_default_graph()
        write_graph(graph.as_graph_def(add_shapes=True), self._checkpoint_dir, "graph.pbtxt")
        saver_def = getattr(self._get_saver(), "saver_def", None)
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(export_scoped_meta_graph(graph=graph, saver_def=saver_def))

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        # The fetched step may be from before or after the run, so it is read again where that matters.
        if self._timer.should_trigger_for_step(run_values.results + 1):
            step = int(run_context.session.run(self._global_step_tensor))
            if self._timer.should_trigger_for_step(step):
                self._timer.update_last_triggered_step(step)
                if self._save(run_context.session, step):
                    run_context.request_stop()

    def end(self, session: Any) -> None:
        last_step = int(session.run(self._global_step_tensor))
        if last_step != self._timer.last_triggered_step():
            self._save(session, last_step)
        for listener in self._listeners:
            listener.end(session, last_step)
        self._summary_writer.flush()

    def _save(self, session: Any, step: int) -> bool:
        """Writes a checkpoint. Returns whether a listener requested a stop."""
        tf_logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        self._get_saver().save(session, self._save_path, global_step=step, write_meta_graph=self._save_graph_def)
        log = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(log, step)
        stop = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                tf_logging.info("A CheckpointSaverListener requested that training be stopped. listener: %s", listener)
                stop = True
        return stop

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        savers = context.get_default_graph().get_collection(GraphKeys.SAVERS)
        if not savers:
            raise RuntimeError(
                f"No items in collection {GraphKeys.SAVERS}. Please add a saver to the collection or provide a saver or scaffold."
            )
        if len(savers) > 1:
            raise RuntimeError(
                f"More than one item in collection {GraphKeys.SAVERS}. Please indicate which one to use by passing it to the constructor."
            )
        self._saver = savers[0]
        return self._saver


_STEP_STANDS = (
    "It seems that global step (tf.train.get_global_step) has not been increased. Current value (could be stable): %s vs previous "
    "value: %s. You could increase the global step by passing tf.train.get_global_step() to Optimizer.apply_gradients or "
    "Optimizer.minimize."
)


@export(**hook_names("StepCounterHook"))
class StepCounterHook(SessionRunHook):
    """Measures the steps per second, logs them at level INFO and writes them as the summary `global_step/sec`.

    Args:
        every_n_steps: The number of steps between two measurements.
        every_n_secs: The number of seconds between two measurements.
        output_dir: The directory of the summaries.
        summary_writer: The writer of the summaries.

    Raises:
        ValueError: Not exactly one interval is given.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_steps=every_n_steps, every_secs=every_n_secs)
        self._summary_writer, self._output_dir = summary_writer, output_dir
        self._last_global_step: Any = None

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._global_step_tensor = needed_global_step(global_step_read(), "StepCounterHook")
        self._summary_tag = f"{get_global_step().op.name}/sec"

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        seen = run_values.results
        if self._timer.should_trigger_for_step(seen + 1):
            step = int(run_context.session.run(self._global_step_tensor))
            if self._timer.should_trigger_for_step(step):
                elapsed_secs, elapsed_steps = self._timer.update_last_triggered_step(step)
                if elapsed_secs is not None and elapsed_steps is not None:
                    self._log_and_record(elapsed_steps, elapsed_secs, step)
        if seen == self._last_global_step:
            tf_logging.log_first_n(tf_logging.WARN, _STEP_STANDS, 5, seen, self._last_global_step)
        self._last_global_step = seen

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        steps_per_sec = elapsed_steps / max(elapsed_time, 1e-9)
        if self._summary_writer is not None:
            value = Summary.Value(tag=self._summary_tag, simple_value=steps_per_sec)
            self._summary_writer.add_summary(Summary(value=[value]), global_step)
        tf_logging.info("%s: %g", self._summary_tag, steps_per_sec)


@export(**hook_names("SummarySaverHook"))
class SummarySaverHook(SessionRunHook):
    """Writes summaries: at the first run, then every given number of steps or seconds.

    Args:
        save_steps: The number of steps between two summaries.
        save_secs: The number of seconds between two summaries.
        output_dir: The directory of the summaries.
        summary_writer: The writer of the summaries.
        scaffold: The scaffold, which has the summary op.
        summary_op: The summary op, or a list of them.

    Raises:
        ValueError: Not exactly one interval is given, or not exactly one of `scaffold` and `summary_op`.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op, self._scaffold = summary_op, scaffold
        self._summary_writer, self._output_dir = summary_writer, output_dir
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._estimate, self._first = StepEstimate(), None
        self._global_step_tensor = needed_global_step(global_step_read(), "SummarySaverHook")

    def before_run(self, run_context: Any) -> SessionRunArgs:
        next_step = self._estimate.next_step
        if next_step is None and self._summary_writer is not None:
            self._first = int(run_context.session.run(self._global_step_tensor))
        self._should_write = next_step is None or self._timer.should_trigger_for_step(next_step)
        asked = {"global_step": self._global_step_tensor}
        if self._should_write and (summaries := self._get_summary_op()) is not None:
            asked["summary"] = summaries
        return SessionRunArgs(asked)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._summary_writer is None:
            return
        seen = int(run_values.results["global_step"])
        if not self._should_write:
            self._estimate.after(seen)
            return
        step = int(run_context.session.run(self._global_step_tensor))
        if self._first is not None:
            self._summary_writer.add_session_log(SessionLog(status=SessionLog.START), step)
        self._estimate.correct(self._first, seen, step)
        self._first = None
        self._timer.update_last_triggered_step(step)
        for summary in run_values.results.get("summary", ()):
            self._summary_writer.add_summary(summary, step)

    def end(self, session: Any = None) -> None:
        if self._summary_writer is not None:
            self._summary_writer.flush()

    def _get_summary_op(self) -> list[Any] | None:
        op = self._summary_op
        if op is None and self._scaffold.summary_op is not None:
            op = self._scaffold.summary_op
        if op is None:
            return None
        return list(op) if isinstance(op, (list, tuple)) else [op]
