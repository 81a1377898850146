"""Estimators made of others, and evaluation inside of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export
from stoker._src.estimator.estimator import Estimator
from stoker._src.estimator.inputs import argument_names
from stoker._src.estimator.spec import ModeKeys
from stoker._src.graph.graph import Graph
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import name_scope
from stoker._src.ops.array.constants import placeholder
from stoker._src.ops.variables.variable_functions import global_variables
from stoker._src.train.sessions.run_hooks import SessionRunHook
from stoker._src.train.sessions.scaffold import Scaffold
from stoker._src.train.sessions.timers import SecondOrStepTimer

_METRIC_ARGUMENTS = {"features", "labels", "predictions", "config"}


@export("estimator.add_metrics", v1="contrib.estimator.add_metrics")
def add_metrics(estimator: Any, metric_fn: Callable[..., dict[str, Any]]) -> Estimator:
    """Returns an Estimator with the same model and more metrics.

    Args:
        estimator: the Estimator.
        metric_fn: a function of some of `features`, `labels`, `predictions` and `config` that returns metrics by name. They replace metrics
            of the same name.

    Raises:
        ValueError: the function has other arguments.
    """
    names = argument_names(metric_fn)
    other = sorted(set(names) - _METRIC_ARGUMENTS)
    if other:
        raise ValueError(f"metric_fn ({metric_fn}) has following not expected args: {other}")

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        known = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        added = metric_fn(**{name: known[name] for name in names})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **added})

    return Estimator(
        model_fn,
        model_dir=estimator.model_dir,
        config=estimator.config,
        warm_start_from=estimator._warm_start_settings,
    )


@export("estimator.experimental.InMemoryEvaluatorHook", v1="contrib.estimator.InMemoryEvaluatorHook")
class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates during training, with the variables of the training session instead of a checkpoint.

    Args:
        estimator: the Estimator.
        input_fn: the input function of the evaluation.
        steps: the number of batches; None for all.
        hooks: hooks of the evaluation.
        name: the name of the evaluation.
        every_n_iter: the number of training steps between two evaluations.

    Raises:
        ValueError: `every_n_iter` is not positive, or training is distributed.
    """

    def __init__(
        self,
        estimator: Any,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Any = None,
        name: str | None = None,
        every_n_iter: int | None = 100,
    ) -> None:
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise ValueError("InMemoryEvaluator supports only single machine (aka Local) setting.")
        self._estimator, self._input_fn, self._steps, self._name = estimator, input_fn, steps, name
        self._hooks = list(hooks or [])
        self._timer = SecondOrStepTimer(every_steps=every_n_iter)

    def begin(self) -> None:
        self._timer.reset()
        self._iter_count = 0
        estimator = self._estimator
        with estimator._new_graph(Graph()) as graph:
            self._graph = graph
            hooks = [*self._hooks, *estimator._evaluation_steps_to_hooks(self._steps)]
            # The checkpoint only says whether variables are warm-started; the hook gives them values.
            built = estimator._build_evaluation(self._input_fn, hooks, "memory")
            self._scaffold, self._update_op, self._eval_dict, self._all_hooks = built
            self._feeds: dict[str, Any] = {}
            self._assigns = []
            with name_scope("in_memory_evaluation"):
                for variable in global_variables():
                    fed = placeholder(variable.dtype.base_dtype, variable.shape)
                    self._feeds[variable.op.name] = fed
                    self._assigns.append(variable.assign(fed, read_value=False))

    def after_create_session(self, session: Any, coord: Any) -> None:
        if not hasattr(self, "_variables"):
            trained = {
                variable.op.name: variable for variable in session.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
            }
            missing = sorted(set(self._feeds) - set(trained))
            if missing:
                raise ValueError(f"Variables of the evaluation are not in the training graph: {missing}")
            self._variables = {name: trained[name] for name in self._feeds}
        self._evaluate(session)

    def _evaluate(self, train_session: Any) -> None:
        values = train_session.run({name: variable._as_graph_element() for name, variable in self._variables.items()})
        feeds = {self._feeds[name]: value for name, value in values.items()}

        def start(scaffold: Any, session: Any) -> None:
            del scaffold
            session.run(self._assigns, feeds)

        with self._graph.as_default():
            self._graph._unsafe_unfinalize()
            self._estimator._run_evaluation(
                None,
                Scaffold(init_fn=start, copy_from_scaffold=self._scaffold),
                self._update_op,
                self._eval_dict,
                self._all_hooks,
                self._estimator.eval_dir(self._name),
            )
        self._timer.update_last_triggered_step(self._iter_count)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._iter_count += 1
        if self._timer.should_trigger_for_step(self._iter_count):
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        if self._timer.last_triggered_step() != self._iter_count:
            self._evaluate(session)
