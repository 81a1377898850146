"""Timers that determine when a hook becomes active: every given number of seconds or steps."""

from __future__ import annotations

import time
from typing import Any

from stoker._src.base.export import export
from stoker._src.train.sessions.run_hooks import hook_names


class NeverTriggerTimer:
    """A timer that never fires."""

    def should_trigger_for_step(self, step: int) -> bool:
        return False

    def update_last_triggered_step(self, step: int) -> tuple[None, None]:
        return None, None

    def last_triggered_step(self) -> None:
        return None

    def reset(self) -> None:
        """There is nothing to reset."""


@export(**hook_names("SecondOrStepTimer"))
class SecondOrStepTimer:
    """Triggers at the first step, then every given number of seconds or steps.

    Raises:
        ValueError: Not exactly one of the two is given.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        self._every_secs, self._every_steps = every_secs, every_steps
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self.reset()

    def reset(self) -> None:
        """Resets the timer."""
        self._last_triggered_step: int | None = None
        self._last_triggered_time: float = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Returns whether to trigger at this step. It triggers only once for a step."""
        if self._last_triggered_step is None:
            return True
        if self._last_triggered_step == step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_triggered_time + self._every_secs
        return step >= self._last_triggered_step + (self._every_steps or 0)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Records that the timer triggered at this step.

        Returns:
            Seconds and steps since the previous time; None at the first time.
        """
        now = time.time()
        elapsed: tuple[float | None, int | None] = (None, None)
        if self._last_triggered_step is not None:
            elapsed = now - self._last_triggered_time, step - self._last_triggered_step
        self._last_triggered_time, self._last_triggered_step = now, step
        return elapsed

    def last_triggered_step(self) -> int | None:
        """Returns the step at which the timer last triggered, or None."""
        return self._last_triggered_step


Timer = SecondOrStepTimer | NeverTriggerTimer


class StepEstimate:
    """The global step after each run, estimated from the step that the run fetched so that it need not be read again.

    The fetched step is usually from before the update in the run. If the update could run at once, for example that of a counter, it is from after it.
    """

    def __init__(self) -> None:
        self._step: int | None = None
        self._lag = 1

    @property
    def next_step(self) -> int | None:
        """The step after the next run; None before the first one."""
        return None if self._step is None else self._step + 1

    def after(self, seen: int) -> int:
        """Returns the estimated step after a run that fetched `seen`."""
        self._step = seen + self._lag
        return self._step

    def correct(self, before: int | None, seen: int, step: int) -> None:
        """Learns from a run that fetched `seen`, with the step before it (None: as estimated) and the one after it, which was read again."""
        before = self._step if before is None else before
        if before is not None and step > before:  # a run without an update shows nothing
            self._lag = min(step - seen, 1)
        self._step = step


def needed_global_step(step: Any, who: str) -> Any:
    """Returns the global step tensor for a hook.

    Raises:
        RuntimeError: There is none.
    """
    if step is None:
        raise RuntimeError(f"Global step should be created to use {who}.")
    return step
