"""`SessionRunHook`, and what passes between a monitored session and its hooks."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from stoker._src.base.export import export

_ARGS = namedtuple("SessionRunArgs", ["fetches", "feed_dict", "options"])
_VALUES = namedtuple("SessionRunValues", ["results", "options", "run_metadata"])


def _names(name: str) -> dict[str, Any]:
    """The names of a hook or one of its helpers: the older ones of `tf.train` and those of `tf.estimator`."""
    return {"v1": (f"train.{name}", f"estimator.{name}"), "v2": f"estimator.{name}"}


hook_names = _names


@export(**_names("SessionRunArgs"))
class SessionRunArgs(_ARGS):
    """What a hook adds to a run: fetches in any structure, feeds, and RunOptions."""

    def __new__(cls, fetches: Any, feed_dict: Any = None, options: Any = None) -> SessionRunArgs:
        return super().__new__(cls, fetches, feed_dict, options)

    def __getstate__(self) -> None:
        """A plain tuple holds all there is to copy or pickle."""


@export(**_names("SessionRunValues"))
class SessionRunValues(_VALUES):
    """What a hook gets of a run: the values of its fetches in their structure (None for ops), the options and the metadata."""

    def __getstate__(self) -> None:
        """A plain tuple holds all there is to copy or pickle."""


@export(**_names("SessionRunContext"))
class SessionRunContext:
    """One run, before and after: the same object comes to `before_run` and `after_run` of all hooks."""

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """What the program itself asked for."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session that runs."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked to stop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Makes `should_stop()` of the monitored session true after this run."""
        self._stop_requested = True


@export(**_names("SessionRunHook"))
class SessionRunHook:
    """Something to do around the runs of a monitored session. Each method may be overridden."""

    def begin(self) -> None:
        """Called once before the session is made: the last moment at which the graph can be changed."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called whenever a session was made: at the start, and after a recovery. The graph is final."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; what it returns is added to the run."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run that succeeded, with the values of what `before_run` asked for."""

    def end(self, session: Any) -> None:
        """Called at the end, while the session is still open; not called when an exception ends it."""
