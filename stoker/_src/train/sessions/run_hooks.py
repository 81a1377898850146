"""`SessionRunHook`, and the objects that a monitored session exchanges with its hooks."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from stoker._src.base.export import export

_ARGS = namedtuple("SessionRunArgs", ["fetches", "feed_dict", "options"])
_VALUES = namedtuple("SessionRunValues", ["results", "options", "run_metadata"])


def _names(name: str) -> dict[str, Any]:
    """Returns the public names of a hook or a related class: the older ones in `tf.train` and those in `tf.estimator`."""
    return {"v1": (f"train.{name}", f"estimator.{name}"), "v2": f"estimator.{name}"}


hook_names = _names


@export(**_names("SessionRunArgs"))
class SessionRunArgs(_ARGS):
    """The contribution of a hook to a run: fetches in any structure, feeds, and RunOptions."""

    def __new__(cls, fetches: Any, feed_dict: Any = None, options: Any = None) -> SessionRunArgs:
        return super().__new__(cls, fetches, feed_dict, options)

    def __getstate__(self) -> None:
        """Copies and pickles as a plain tuple."""


@export(**_names("SessionRunValues"))
class SessionRunValues(_VALUES):
    """The results of a run for a hook: the values of its fetches in their structure (None for ops), the options and the metadata."""

    def __getstate__(self) -> None:
        """Copies and pickles as a plain tuple."""


@export(**_names("SessionRunContext"))
class SessionRunContext:
    """One run. The same object is passed to `before_run` and `after_run` of all hooks."""

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """The fetches and feeds of the program itself."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session that runs."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook requested a stop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Makes `should_stop()` of the monitored session true after this run."""
        self._stop_requested = True


@export(**_names("SessionRunHook"))
class SessionRunHook:
    """Base class of hooks around the runs of a monitored session. Each method may be overridden."""

    def begin(self) -> None:
        """Called once before the session is created: the last opportunity to change the graph."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called after a session is created, at the start and after each recovery. The graph is final."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run. The result is added to the run."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each successful run, with the values of the fetches that `before_run` requested."""

    def end(self, session: Any) -> None:
        """Called at the end, while the session is still open. Not called if an exception ends the session."""
