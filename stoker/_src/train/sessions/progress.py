"""`ProgressHook`: a progress bar with the step rate and the loss."""

from __future__ import annotations

import sys
import time
from typing import Any

from tqdm import tqdm

from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.train.sessions.basic_hooks import NanTensorHook, StopAtStepHook
from stoker._src.train.sessions.run_hooks import SessionRunArgs, SessionRunHook
from stoker._src.train.sessions.timers import needed_global_step
from stoker._src.train.training_util import global_step_read


@export("ProgressHook")
class ProgressHook(SessionRunHook):
    """Shows a progress bar with the step, the steps per second, the loss and the remaining time.

    MonitoredTrainingSession adds one if standard error is a terminal and a StopAtStepHook determines the number of steps.

    Args:
        last_step: The global step at which training ends, or the StopAtStepHook that knows it, or None for a bar without an end.
        loss: the tensor to show.
        stream: The stream for the bar. By default standard error.
        refresh_secs: The number of seconds between two reads of the loss.
    """

    def __init__(self, last_step: Any = None, loss: Any = None, stream: Any = None, refresh_secs: float = 0.5) -> None:
        self._last_step, self._loss = last_step, loss
        self._stream, self._refresh_secs = stream, refresh_secs
        self._bar: Any = None

    def begin(self) -> None:
        self._global_step_tensor = needed_global_step(global_step_read(), "ProgressHook")
        self._next_look = 0.0

    def after_create_session(self, session: Any, coord: Any) -> None:
        step = int(session.run(self._global_step_tensor))
        last = self._last_step
        if isinstance(last, StopAtStepHook):
            if last.last_step is None:  # The StopAtStepHook's after_create_session is called after this one.
                last.after_create_session(session, coord)
            last = last.last_step
        self._close()
        self._bar = tqdm(
            total=last, initial=step, unit="step", file=self._stream or sys.stderr, dynamic_ncols=True, leave=True
        )

    def before_run(self, run_context: Any) -> SessionRunArgs:
        self._looks = time.monotonic() >= self._next_look
        asked = {"step": self._global_step_tensor}
        if self._looks and self._loss is not None:
            asked["loss"] = self._loss
        return SessionRunArgs(asked)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._looks:
            self._next_look = time.monotonic() + self._refresh_secs
            if "loss" in run_values.results:
                self._bar.set_postfix(loss=f"{float(run_values.results['loss']):.4g}", refresh=False)
        self._bar.update(int(run_values.results["step"]) - self._bar.n)

    def end(self, session: Any) -> None:
        self._bar.update(int(session.run(self._global_step_tensor)) - self._bar.n)
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def default_progress(hooks: list[Any]) -> ProgressHook | None:
    """Returns the default bar of a training session, or None if standard error is not a terminal."""
    stops = [hook for hook in hooks if isinstance(hook, StopAtStepHook)]
    if not stops or any(isinstance(hook, ProgressHook) for hook in hooks) or not _is_terminal(sys.stderr):
        return None
    losses = [hook._loss_tensor for hook in hooks if isinstance(hook, NanTensorHook)]
    losses += context.get_default_graph().get_collection(GraphKeys.LOSSES)
    return ProgressHook(stops[0], losses[0] if losses else None)


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # There is no stream, or it is closed.
        return False
