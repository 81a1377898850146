"""Hooks that end training early, by a predicate or by the metrics of evaluations."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes, tf_logging
from stoker._src.base.export import export
from stoker._src.estimator import eval_files
from stoker._src.estimator.estimator import Estimator
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.train.checkpoints.reader import load_variable
from stoker._src.train.checkpoints.state import latest_checkpoint
from stoker._src.train.sessions.basic_hooks import StopAtStepHook
from stoker._src.train.sessions.run_hooks import SessionRunArgs, SessionRunHook
from stoker._src.train.sessions.timers import SecondOrStepTimer, needed_global_step
from stoker._src.train.training_util import global_step_read

_NAMES = "estimator.experimental."


@export(f"{_NAMES}make_early_stopping_hook")
def make_early_stopping_hook(
    estimator: Any,
    should_stop_fn: Callable[[], Any],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends training when `should_stop_fn()` is true. The chief asks it; workers follow.

    Args:
        estimator: the Estimator.
        should_stop_fn: a function that returns a bool.
        run_every_secs: the seconds between two calls.
        run_every_steps: the steps between two calls. Then `run_every_secs` must be None.

    Raises:
        TypeError: `estimator` is not one, or `should_stop_fn` is not callable.
        ValueError: both intervals are given.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if estimator.config.is_chief:
        return _StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)
    return _CheckForStoppingHook()


def _thresholded(
    estimator: Any, name: str, threshold: float, eval_dir: Any, min_steps: int, secs: Any, steps: Any, higher: bool
) -> SessionRunHook:
    folder = eval_dir or estimator.eval_dir()
    beyond = operator.gt if higher else operator.lt
    words = "higher than" if higher else "lower than"

    def should_stop_fn() -> bool:
        for step, metrics in eval_files.read_results(folder).items():
            if step < min_steps or name not in metrics:
                continue
            if beyond(metrics[name], threshold):
                tf_logging.info(
                    'At step %s, metric "%s" has value %s which is %s the configured threshold (%s) for early stopping.',
                    step,
                    name,
                    metrics[name],
                    words,
                    threshold,
                )
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop_fn, secs, steps)


def _without_improvement(
    estimator: Any, name: str, allowed: int, eval_dir: Any, min_steps: int, secs: Any, steps: Any, increase: bool
) -> SessionRunHook:
    folder = eval_dir or estimator.eval_dir()
    better = operator.gt if increase else operator.lt

    def should_stop_fn() -> bool:
        best: float | None = None
        best_step = 0
        for step, metrics in eval_files.read_results(folder).items():
            if step < min_steps or name not in metrics:
                continue
            value = metrics[name]
            if best is None or better(value, best):
                best, best_step = value, step
            elif step >= best_step + allowed:
                tf_logging.info(
                    'No %s in metric "%s" for %s steps, which is greater than or equal to max steps (%s) configured for early '
                    "stopping.",
                    "increase" if increase else "decrease",
                    name,
                    step - best_step,
                    allowed,
                )
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop_fn, secs, steps)


@export(f"{_NAMES}stop_if_higher_hook")
def stop_if_higher_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends training when a metric of an evaluation after `min_steps` is above `threshold`."""
    return _thresholded(
        estimator, metric_name, threshold, eval_dir, min_steps, run_every_secs, run_every_steps, higher=True
    )


@export(f"{_NAMES}stop_if_lower_hook")
def stop_if_lower_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends training when a metric of an evaluation after `min_steps` is below `threshold`."""
    return _thresholded(
        estimator, metric_name, threshold, eval_dir, min_steps, run_every_secs, run_every_steps, higher=False
    )


@export(f"{_NAMES}stop_if_no_increase_hook")
def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends training when a metric of evaluations has not increased for a number of steps."""
    return _without_improvement(
        estimator,
        metric_name,
        max_steps_without_increase,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
        increase=True,
    )


@export(f"{_NAMES}stop_if_no_decrease_hook")
def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: Any = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends training when a metric of evaluations has not decreased for a number of steps."""
    return _without_improvement(
        estimator,
        metric_name,
        max_steps_without_decrease,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
        increase=False,
    )


@export(f"{_NAMES}make_stop_at_checkpoint_step_hook")
def make_stop_at_checkpoint_step_hook(
    estimator: Any, last_step: int, wait_after_file_check_secs: float = 30
) -> SessionRunHook:
    """Returns a hook that ends training at a step. A worker ends when a checkpoint of that step exists.

    Raises:
        ValueError: the Estimator saves no checkpoints.
    """
    config = estimator.config
    if config.save_checkpoints_secs is None and config.save_checkpoints_steps is None:
        raise ValueError("make_stop_at_checkpoint_step_hook needs an Estimator that saves checkpoints.")
    if config.is_chief:
        return StopAtStepHook(last_step=last_step)
    return _StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)


def _stop_variable() -> Any:
    """Returns the variable by which the chief tells workers to stop."""
    with variable_scope.variable_scope("signal_early_stopping", reuse=variable_scope.AUTO_REUSE):
        return variable_scope.get_variable(
            "STOP",
            shape=[],
            dtype=dtypes.bool_,
            initializer=initializers.Constant(False),
            collections=[GraphKeys.GLOBAL_VARIABLES],
            trainable=False,
        )


class _StopOnPredicateHook(SessionRunHook):
    """Asks a function at intervals whether to stop, and tells workers."""

    def __init__(self, should_stop_fn: Callable[[], Any], secs: float | None, steps: int | None) -> None:
        if not callable(should_stop_fn):
            raise TypeError("`should_stop_fn` must be callable.")
        self._should_stop_fn = should_stop_fn
        self._timer = SecondOrStepTimer(every_secs=secs, every_steps=steps)

    def begin(self) -> None:
        self._global_step_tensor = needed_global_step(global_step_read(), "early stopping")
        variable = _stop_variable()
        self._stop_op = variable.assign(True)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = int(run_values.results)
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        if self._should_stop_fn():
            tf_logging.info("Requesting early stopping at global step %d", step)
            run_context.session.run(self._stop_op)
            run_context.request_stop()


class _CheckForStoppingHook(SessionRunHook):
    """Ends training of a worker when the chief said so."""

    def begin(self) -> None:
        self._stop_variable = _stop_variable()

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._stop_variable)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results:
            tf_logging.info("Early stopping requested, suspending run.")
            run_context.request_stop()


class _StopAtCheckpointStepHook(SessionRunHook):
    """Ends training of a worker when a checkpoint of the last step exists."""

    def __init__(self, model_dir: str, last_step: int, wait_secs: float) -> None:
        self._model_dir, self._last_step, self._wait_secs = model_dir, last_step, wait_secs

    def begin(self) -> None:
        self._global_step_tensor = needed_global_step(global_step_read(), "StopAtCheckpointStepHook")

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results + 1 < self._last_step:
            return
        if int(run_context.session.run(self._global_step_tensor)) < self._last_step:
            return
        while not self._is_saved():
            time.sleep(self._wait_secs)
        run_context.request_stop()

    def _is_saved(self) -> bool:
        path = latest_checkpoint(self._model_dir)
        return path is not None and int(load_variable(path, GraphKeys.GLOBAL_STEP)) >= self._last_step
