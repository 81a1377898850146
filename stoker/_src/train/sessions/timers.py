"""When a hook does its work: every so many seconds or steps."""

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
        """There is nothing to forget."""


@export(**hook_names("SecondOrStepTimer"))
class SecondOrStepTimer:
    """Fires at the first step it is asked about, then once every so many seconds or steps.

    Raises:
        ValueError: not exactly one of the two is given.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        self._every_secs, self._every_steps = every_secs, every_steps
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self.reset()

    def reset(self) -> None:
        """Forgets that it has fired."""
        self._last_triggered_step: int | None = None
        self._last_triggered_time: float = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether to fire at this step; at one step it fires once."""
        if self._last_triggered_step is None:
            return True
        if self._last_triggered_step == step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_triggered_time + self._every_secs
        return step >= self._last_triggered_step + (self._every_steps or 0)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that it has fired at this step.

        Returns:
            Seconds and steps since the time before, None at the first time.
        """
        now = time.time()
        elapsed: tuple[float | None, int | None] = (None, None)
        if self._last_triggered_step is not None:
            elapsed = now - self._last_triggered_time, step - self._last_triggered_step
        self._last_triggered_time, self._last_triggered_step = now, step
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step at which it fired last, or None."""
        return self._last_triggered_step


Timer = SecondOrStepTimer | NeverTriggerTimer


def needed_global_step(step: Any, who: str) -> Any:
    """The tensor of the global step for a hook.

    Raises:
        RuntimeError: there is none.
    """
    if step is None:
        raise RuntimeError(f"Global step should be created to use {who}.")
    return step
