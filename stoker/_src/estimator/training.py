"""`train_and_evaluate`: training with evaluations in between, in one process or in a cluster that TF_CONFIG describes."""

from __future__ import annotations

import os
import time
from collections import namedtuple
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.export import export
from stoker._src.distributed.server import Server
from stoker._src.estimator.estimator import Estimator
from stoker._src.estimator.exporters import Exporter
from stoker._src.estimator.run_config import RunConfig, TaskType
from stoker._src.formats.protos import ConfigProto
from stoker._src.graph.keys import GraphKeys
from stoker._src.train.sessions.run_hooks import SessionRunHook
from stoker._src.train.sessions.saving_hooks import CheckpointSaverListener
from stoker._src.train.sessions.timers import SecondOrStepTimer

_MAX_DELAY_SECS = 60
_DELAY_SECS_PER_WORKER = 5
_TRAIN: Any = namedtuple("TrainSpec", ["input_fn", "max_steps", "hooks"])
_EVAL_FIELDS = ("input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs")
_EVAL: Any = namedtuple("EvalSpec", _EVAL_FIELDS)


def _checked(input_fn: Any, hooks: Any) -> tuple[Any, ...]:
    if not callable(input_fn):
        raise TypeError(f"`input_fn` must be callable, given: {input_fn}")
    hooks = tuple(hooks or [])
    for hook in hooks:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All hooks must be `SessionRunHook` instances, given: {hook}")
    return hooks


@export("estimator.TrainSpec")
class TrainSpec(_TRAIN):
    """How `train_and_evaluate` trains.

    Args:
        input_fn: the input function.
        max_steps: the global step to end at; None to end with the input.
        hooks: SessionRunHooks.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: `max_steps` is not positive.
    """

    def __new__(cls, input_fn: Any, max_steps: int | None = None, hooks: Any = None) -> TrainSpec:
        hooks = _checked(input_fn, hooks)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        return super().__new__(cls, input_fn, max_steps, hooks)


@export("estimator.EvalSpec")
class EvalSpec(_EVAL):
    """How `train_and_evaluate` evaluates and exports.

    Args:
        input_fn: the input function.
        steps: the number of batches; None for all.
        name: the name of the evaluation.
        hooks: SessionRunHooks.
        exporters: an Exporter or several.
        start_delay_secs: how long an evaluator waits before its first evaluation.
        throttle_secs: the least time between the starts of two evaluations.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, or two exporters have the same name.
    """

    def __new__(
        cls,
        input_fn: Any,
        steps: int | None = 100,
        name: str | None = None,
        hooks: Any = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        hooks = _checked(input_fn, hooks)
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        if start_delay_secs < 0:
            raise ValueError(f"Must specify start_delay_secs >= 0, given: {start_delay_secs}")
        if throttle_secs < 0:
            raise ValueError(f"Must specify throttle_secs >= 0, given: {throttle_secs}")
        values = input_fn, steps, name, hooks, _exporters(exporters), start_delay_secs, throttle_secs
        return super().__new__(cls, *values)


def _exporters(given: Any) -> tuple[Exporter, ...]:
    if not given:
        return ()
    if isinstance(given, Exporter):
        return (given,)
    wrong = TypeError(f"`exporters` must be an Exporter, an iterable of Exporter, or `None`, found {given}.")
    try:
        exporters = tuple(given)
    except TypeError:
        raise wrong from None
    names: set[str] = set()
    for exporter in exporters:
        if not isinstance(exporter, Exporter):
            raise wrong
        if not exporter.name:
            raise ValueError(
                "An Exporter cannot have a name that is `None` or empty. All exporter names:"
                f" {[each.name for each in exporters]}"
            )
        if exporter.name in names:
            raise ValueError(
                "`exporters` must have unique names. Such a name is a duplicate: "
                f"{exporter.name}. All exporter names: {[each.name for each in exporters]}"
            )
        names.add(exporter.name)
    return exporters


@export("estimator.train_and_evaluate")
def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> Any:
    """Trains and evaluates a model.

    In one process, an evaluation follows each checkpoint, unless the last one is more recent than `throttle_secs`. In a cluster
    (TF_CONFIG) this process does the work of its task: the chief and the workers train, parameter servers hold variables, an evaluator
    evaluates checkpoints until the last step.

    Returns:
        In one process (metrics, paths of exports) of the last evaluation; None in a cluster.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: TF_CONFIG has a task that does not take part.
    """
    if not isinstance(eval_spec, EvalSpec):
        raise TypeError(f"`eval_spec` must have type `tf.estimator.EvalSpec`. Got: {type(eval_spec)}")
    if not isinstance(estimator, Estimator):
        raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
    if not isinstance(train_spec, TrainSpec):
        raise TypeError(f"`train_spec` must have type `tf.estimator.TrainSpec`. Got: {type(train_spec)}")
    config = estimator.config
    executor = _Executor(estimator, train_spec, eval_spec)
    if not config.cluster_spec and config.task_type != TaskType.EVALUATOR:
        tf_logging.info("Running training and evaluation locally (non-distributed).")
        return executor.run_local()
    tasks = {
        TaskType.CHIEF: executor.run_chief,
        TaskType.MASTER: executor.run_master,
        TaskType.WORKER: executor.run_worker,
        TaskType.PS: executor.run_ps,
        TaskType.EVALUATOR: executor.run_evaluator,
    }
    if not config.task_type or config.task_type not in tasks:
        raise ValueError(f"Task type {config.task_type} is not supported. Supported task types are: {sorted(tasks)}.")
    return tasks[config.task_type]()


class _Evaluator:
    """Evaluates each checkpoint once, and exports it."""

    def __init__(self, estimator: Estimator, eval_spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator, self._eval_spec, self._max_steps = estimator, eval_spec, max_steps
        self._previous: str | None = None
        self.ended = False

    def evaluate_and_export(self) -> tuple[Any, list[Any]] | None:
        """Returns (metrics, paths of exports) of the newest checkpoint; None if there is no new one."""
        spec = self._eval_spec
        latest = self._estimator.latest_checkpoint()
        if latest is None:
            tf_logging.warning("Estimator is not trained yet. Will start an evaluation when a checkpoint is ready.")
            return None
        if latest == self._previous:
            tf_logging.warning(
                "No new checkpoint ready for evaluation. Skip the current evaluation pass as evaluation results are expected to be same for the same checkpoint."
            )
            return None
        metrics = self._estimator.evaluate(
            spec.input_fn, steps=spec.steps, name=spec.name, checkpoint_path=latest, hooks=list(spec.hooks)
        )
        if not isinstance(metrics, dict) or GraphKeys.GLOBAL_STEP not in metrics:
            raise ValueError(
                f"Internal error: `Estimator.evaluate` result should have `global_step` in result. Given {metrics}"
            )
        is_last = bool(self._max_steps) and int(metrics[GraphKeys.GLOBAL_STEP]) >= int(self._max_steps or 0)
        self._previous = latest
        exports = [
            exporter.export(
                estimator=self._estimator,
                export_path=os.path.join(self._estimator.model_dir, "export", exporter.name),
                checkpoint_path=latest,
                eval_result=metrics,
                is_the_final_export=is_last,
            )
            for exporter in spec.exporters
        ]
        self.ended = is_last
        return metrics, exports


class _EvaluateCheckpoints(CheckpointSaverListener):
    """Evaluates checkpoints after they are saved, except the one of the initial values."""

    def __init__(self, evaluator: _Evaluator, throttle_secs: float) -> None:
        self._evaluator, self._throttle_secs = evaluator, throttle_secs
        self.result: tuple[Any, list[Any]] = ({}, [])

    def begin(self) -> None:
        self._timer = SecondOrStepTimer(every_secs=self._throttle_secs)
        self._is_first = True

    def after_save(self, session: Any, global_step_value: int) -> None:
        if self._is_first:
            self._is_first = False
            return
        if self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)
        else:
            tf_logging.info("Skip the current checkpoint eval due to throttle secs (%s secs).", self._throttle_secs)

    def end(self, session: Any, global_step_value: int) -> None:
        if self._timer.last_triggered_step() != global_step_value:
            self._evaluate(global_step_value)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        result = self._evaluator.evaluate_and_export()
        if result is None:
            raise RuntimeError("There was no new checkpoint after the training.")
        self.result = result


class _Executor:
    """The work of each kind of task."""

    def __init__(self, estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
        self._estimator, self._train_spec, self._eval_spec = estimator, train_spec, eval_spec

    def _evaluator(self) -> _Evaluator:
        return _Evaluator(self._estimator, self._eval_spec, self._train_spec.max_steps)

    def _train(self, listeners: list[Any]) -> None:
        self._estimator.train(
            self._train_spec.input_fn,
            max_steps=self._train_spec.max_steps,
            hooks=list(self._train_spec.hooks),
            saving_listeners=listeners,
        )

    def run_local(self) -> tuple[Any, list[Any]]:
        """Trains and evaluates in turn."""
        config = self._estimator.config
        tf_logging.info(
            "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint frequency is determined "
            "based on RunConfig arguments: save_checkpoints_steps %s or save_checkpoints_secs %s.",
            config.save_checkpoints_steps,
            config.save_checkpoints_secs,
        )
        listener = _EvaluateCheckpoints(self._evaluator(), self._eval_spec.throttle_secs)
        self._train([listener])
        return listener.result

    def run_chief(self) -> None:
        self._start_server()
        self._train([])

    def run_master(self) -> None:
        """Trains as the chief and evaluates its checkpoints."""
        self._start_server()
        self._train([_EvaluateCheckpoints(self._evaluator(), self._eval_spec.throttle_secs)])

    def run_worker(self) -> None:
        """Trains. Workers start one after the other, so that the first ones have settled when the next come."""
        config = self._estimator.config
        self._start_server()
        longest = config.experimental_max_worker_delay_secs
        longest = _MAX_DELAY_SECS if longest is None else longest
        delay = min(longest, (config.task_id + 1) * _DELAY_SECS_PER_WORKER)
        if delay > 0:
            tf_logging.info("Waiting %d secs before starting training.", delay)
            time.sleep(delay)
        self._train([])

    def run_ps(self) -> None:
        """Serves variables. It does not return."""
        self._start_server().join()

    def run_evaluator(self) -> None:
        """Evaluates new checkpoints until one has the last step."""
        if self._eval_spec.start_delay_secs:
            tf_logging.info("Waiting %f secs before starting eval.", self._eval_spec.start_delay_secs)
            time.sleep(self._eval_spec.start_delay_secs)
        evaluator = self._evaluator()
        while not evaluator.ended:
            started = time.time()
            evaluator.evaluate_and_export()
            left = self._eval_spec.throttle_secs - (time.time() - started)
            if left > 0 and not evaluator.ended:
                tf_logging.info("Waiting %f secs before starting next eval run.", left)
                time.sleep(left)

    def _start_server(self) -> Server:
        config = self._estimator.config
        _check_cluster(config)
        given = config.session_config
        session_config = ConfigProto(log_device_placement=False)
        if given is not None:
            session_config.gpu_options.CopyFrom(given.gpu_options)
        tf_logging.info("Start Tensorflow server.")
        return Server(
            config.cluster_spec,
            job_name=config.task_type,
            task_index=config.task_id,
            config=session_config,
            protocol=config.protocol,
        )


def _check_cluster(config: RunConfig) -> None:
    if not config.cluster_spec or not config.task_type or config.task_id is None:
        raise RuntimeError(
            "Could not start server; be sure to specify cluster_spec, task_type, and task in RunConfig or set the TF_CONFIG "
            "environment variable."
        )
