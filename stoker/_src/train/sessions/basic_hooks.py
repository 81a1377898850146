"""Hooks that observe runs: they log values, feed inputs, stop the program or wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import tf_logging
from stoker._src.base.errors import OutOfRangeError
from stoker._src.base.export import export
from stoker._src.formats.gfile import GFile
from stoker._src.formats.protos import RunOptions
from stoker._src.graph import context
from stoker._src.runtime.trace import Timeline
from stoker._src.summary.file_writer import FileWriterCache
from stoker._src.train.sessions.run_hooks import SessionRunArgs, SessionRunHook, hook_names
from stoker._src.train.sessions.timers import (
    NeverTriggerTimer,
    SecondOrStepTimer,
    StepEstimate,
    Timer,
    needed_global_step,
)
from stoker._src.train.training_util import global_step_read


def _element(item: Any) -> Any:
    """Returns the tensor, op or variable that an item refers to in the current graph.

    Raises:
        ValueError: It belongs to another graph.
        KeyError: The graph has nothing of that name.
    """
    graph = context.get_default_graph()
    if not isinstance(item, str):
        if getattr(item, "graph", None) is graph:
            return item
        raise ValueError(f"Passed {item} should have graph attribute that is equal to current graph {graph}.")
    return graph.as_graph_element(item if ":" in item else f"{item}:0")


@export(**hook_names("LoggingTensorHook"))
class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors at level INFO, every given number of runs or seconds, and optionally at the end.

    Args:
        tensors: A dictionary from labels to tensors or names, or a list of tensors and names.
        every_n_iter: The number of runs between two lines.
        every_n_secs: The number of seconds between two lines.
        at_end: Whether to log once more at the end.
        formatter: A function that returns the line for {tag: value}.

    Raises:
        ValueError: Both intervals are given, or none of the three, or `every_n_iter` is not positive.
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[Any, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if isinstance(tensors, dict):
            self._tensors, self._tag_order = dict(tensors), sorted(tensors)
        else:
            self._tag_order = list(tensors)
            self._tensors = {item: item for item in self._tag_order}
        self._formatter, self._at_end = formatter, at_end
        self._timer: Timer = (
            NeverTriggerTimer() if only_at_end else SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter)
        )

    def begin(self) -> None:
        self._timer.reset()
        self._iter_count = 0
        self._current_tensors = {tag: _element(tensor) for tag, tensor in self._tensors.items()}

    def before_run(self, run_context: Any) -> SessionRunArgs | None:
        self._should_trigger = self._timer.should_trigger_for_step(self._iter_count)
        return SessionRunArgs(self._current_tensors) if self._should_trigger else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._should_trigger:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session: Any) -> None:
        if self._at_end:
            self._log_tensors(session.run(self._current_tensors))

    def _log_tensors(self, tensor_values: dict[Any, Any]) -> None:
        elapsed, _ = self._timer.update_last_triggered_step(self._iter_count)
        with np.printoptions(suppress=True):
            if self._formatter is not None:
                tf_logging.info(self._formatter(tensor_values))
                return
            line = ", ".join(f"{tag} = {tensor_values[tag]!s}" for tag in self._tag_order)
        tf_logging.info("%s", line if elapsed is None else f"{line} ({elapsed:.3f} sec)")


@export(**hook_names("StopAtStepHook"))
class StopAtStepHook(SessionRunHook):
    """Requests a stop at a given global step, or after a number of steps.

    Args:
        num_steps: The number of steps, counted from the global step at the start.
        last_step: the global step to stop at.

    Raises:
        ValueError: Not exactly one of the two is given.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps, self._last_step = num_steps, last_step

    def begin(self) -> None:
        self._global_step_tensor = needed_global_step(global_step_read(), "StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._last_step is None:
            self._last_step = int(session.run(self._global_step_tensor)) + (self._num_steps or 0)

    @property
    def last_step(self) -> int | None:
        """The global step to stop at. None before the session is created, if it depends on the initial step."""
        return self._last_step

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        assert self._last_step is not None  # the session was made
        # The fetched step may be from before or after the run, so it is read again near the end.
        if run_values.results + 1 >= self._last_step:
            if run_context.session.run(self._global_step_tensor) >= self._last_step:
                run_context.request_stop()


@export(**hook_names("NanLossDuringTrainingError"))
class NanLossDuringTrainingError(RuntimeError):
    """The loss is NaN."""

    def __str__(self) -> str:
        return "NaN loss during training."


@export(**hook_names("NanTensorHook"))
class NanTensorHook(SessionRunHook):
    """Ends training when the loss is NaN.

    Args:
        loss_tensor: the loss.
        fail_on_nan_loss: Whether to raise NanLossDuringTrainingError instead of requesting a stop.
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor, self._fail_on_nan_loss = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if not np.isnan(run_values.results):
            return
        if self._fail_on_nan_loss:
            tf_logging.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError
        tf_logging.warning("Model diverged with loss = NaN.")
        run_context.request_stop()


@export(**hook_names("GlobalStepWaiterHook"))
class GlobalStepWaiterHook(SessionRunHook):
    """Delays the first run until the global step, which other workers increment, has reached a number."""

    _POLL_SECS = 0.5

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step

    def begin(self) -> None:
        self._worker_is_started = False
        self._global_step_tensor = needed_global_step(global_step_read(), "GlobalStepWaiterHook")

    def before_run(self, run_context: Any) -> None:
        if self._worker_is_started:
            return
        if self._wait_until_step > 0:
            tf_logging.info("Waiting for global step %d before starting training.", self._wait_until_step)
            logged = 0
            while (current := run_context.session.run(self._global_step_tensor)) < self._wait_until_step:
                if current - logged > 1000:
                    tf_logging.info(
                        "Waiting for global step %d before starting training. Current step is %d.",
                        self._wait_until_step,
                        current,
                    )
                    logged = current
                time.sleep(self._POLL_SECS)
        self._worker_is_started = True


@export(**hook_names("FinalOpsHook"))
class FinalOpsHook(SessionRunHook):
    """Evaluates tensors at the end.

    Args:
        final_ops: The fetches, in any structure.
        final_ops_feed_dict: The feeds.
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._final_ops, self._final_ops_feed_dict = final_ops, final_ops_feed_dict
        self._final_ops_values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """The values. Available after the end."""
        return self._final_ops_values

    def end(self, session: Any) -> None:
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(self._final_ops, feed_dict=self._final_ops_feed_dict)
        except (OutOfRangeError, StopIteration) as error:
            tf_logging.warning(
                "An OutOfRangeError or StopIteration exception is raised by the code in FinalOpsHook. This typically means "
                "the Ops running by the FinalOpsHook have a dependency back to some input source, which should not happen: "
                "the input has ended when they run. %s",
                error,
            )
            raise


@export(**hook_names("FeedFnHook"))
class FeedFnHook(SessionRunHook):
    """Feeds every run with the result of a function."""

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())


@export(**hook_names("ProfilerHook"))
class ProfilerHook(SessionRunHook):
    """Traces runs at intervals. Writes each trace to `timeline-<step>.json`, which chrome://tracing opens, and to the event file.

    Args:
        save_steps: The number of steps between two traces.
        save_secs: The number of seconds between two traces.
        output_dir: The directory of the files.
        show_dataflow: Whether arrows show the flow of tensors.
        show_memory: Whether the trace shows memory use.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: Any = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._output_dir = os.fspath(output_dir)
        self._show_dataflow, self._show_memory = show_dataflow, show_memory
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._writer = FileWriterCache.get(self._output_dir)

    def begin(self) -> None:
        self._estimate, self._first = StepEstimate(), None
        self._traced: set[int] = set()
        self._global_step_tensor = needed_global_step(global_step_read(), "ProfilerHook")

    def before_run(self, run_context: Any) -> SessionRunArgs:
        next_step = self._estimate.next_step
        if next_step is None:
            self._first = int(run_context.session.run(self._global_step_tensor))
        self._should_trace = next_step is not None and self._timer.should_trigger_for_step(next_step)
        options = RunOptions(trace_level=RunOptions.FULL_TRACE) if self._should_trace else None
        return SessionRunArgs(self._global_step_tensor, options=options)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        seen = int(run_values.results)
        if self._first is None and not self._should_trace:
            self._estimate.after(seen)
            return
        step = int(run_context.session.run(self._global_step_tensor))
        self._estimate.correct(self._first, seen, step)
        if self._should_trace:
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata)
        else:
            self._timer.update_last_triggered_step(step - 1)
        self._first = None

    def _save(self, step: int, run_metadata: Any) -> None:
        path = os.path.join(self._output_dir, f"timeline-{step}.json")
        tf_logging.info("Saving timeline for %d into '%s'.", step, path)
        timeline = Timeline(run_metadata.step_stats)
        with GFile(path, "w") as file:
            file.write(timeline.generate_chrome_trace_format(self._show_dataflow, self._show_memory))
        if step not in self._traced:  # a step may come again after a lost session, and its tag may not
            self._traced.add(step)
            self._writer.add_run_metadata(run_metadata, f"step_{step}")
