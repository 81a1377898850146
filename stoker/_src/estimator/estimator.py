"""`tf.estimator.Estimator`: trains, evaluates, uses and exports the model that a function describes."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.deprecation import deprecated
from stoker._src.base.errors import OutOfRangeError
from stoker._src.base.export import export
from stoker._src.distribute.contexts import has_strategy
from stoker._src.distribute.strategy import get_loss_reduction, get_strategy
from stoker._src.estimator import exporting
from stoker._src.estimator.eval_files import write_results
from stoker._src.estimator.evaluation import StopAfterNEvalsHook, evaluate_once
from stoker._src.estimator.inputs import argument_names, features_of, takes_any_name, tensors_of
from stoker._src.estimator.run_config import RunConfig, default_session_config
from stoker._src.estimator.spec import EstimatorSpec, ModeKeys, is_metric_object
from stoker._src.estimator.warm_starting import start_warm, warm_start_settings
from stoker._src.formats.filesystems import path_text
from stoker._src.graph import context
from stoker._src.graph.graph import Graph
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import device
from stoker._src.layers.metrics import mean
from stoker._src.ops.collective import replicas
from stoker._src.ops.control_flow.grouping import group
from stoker._src.ops.random.uniform_normal import set_random_seed
from stoker._src.ops.summary.summary_ops import scalar_summary
from stoker._src.train.checkpoints.reader import list_variables, load_variable
from stoker._src.train.checkpoints.saver import Saver
from stoker._src.train.checkpoints.state import latest_checkpoint
from stoker._src.train.device_setter import STANDARD_PS_OPS, replica_device_setter
from stoker._src.train.sessions.basic_hooks import LoggingTensorHook, NanTensorHook, StopAtStepHook
from stoker._src.train.sessions.monitored import ChiefSessionCreator, MonitoredSession
from stoker._src.train.sessions.monitored_training import MonitoredTrainingSession
from stoker._src.train.sessions.run_hooks import SessionRunHook
from stoker._src.train.sessions.saving_hooks import CheckpointSaverHook, CheckpointSaverListener
from stoker._src.train.training_util import create_global_step, get_global_step, global_step_read

LOSS_METRIC_KEY = "loss"
_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "self", "config"}


@export("estimator.Estimator")
class Estimator:
    """Trains, evaluates, uses and exports a model.

        def model_fn(features, labels, mode, params):
            ...
            return tf.estimator.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

        estimator = tf.estimator.Estimator(model_fn, "model", params={"learning_rate": 0.1})
        estimator.train(input_fn, steps=1000)

    Each call builds a graph of its own: the input function gives features and labels, the model function the ops. Variables live in the
    checkpoints of `model_dir`, from which every call continues.

    Args:
        model_fn: a function of `features`, and optionally `labels`, `mode`, `params` and `config`, that returns an EstimatorSpec.
        model_dir: the directory of checkpoints and summaries. By default that of `config`, or a temporary one.
        config: a RunConfig.
        params: hyperparameters, passed to the model function.
        warm_start_from: a checkpoint, a SavedModel or WarmStartSettings, from which variables start.

    Raises:
        ValueError: the model function has other arguments, or an argument does not fit.
    """

    # Subclasses that replace some of the members below name them here.
    _REPLACED: frozenset[str] = frozenset()

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: Any = None,
        config: Any = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        self._check_overrides()
        self._config = _config_with_directory(config, model_dir)
        assert self._config.model_dir is not None  # it was chosen
        self._model_dir: str = self._config.model_dir
        self._session_config = self._config.session_config
        tf_logging.info("Using config: %s", str(vars(self._config)))
        self._device_fn = self._config.device_fn or _device_fn_of(self._config)
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        _check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy(params if params is not None else {})
        self._warm_start_settings = warm_start_settings(warm_start_from)

    def _check_overrides(self) -> None:
        """Raises ValueError if a subclass replaces a method that others of this class rely on."""
        allowed = {"model_fn", "_train_model", "_REPLACED", *self._REPLACED}
        members = {name for name in vars(Estimator) if not name.startswith("__")} - allowed
        replaced = {name for name in members if getattr(Estimator, name, None) is not getattr(type(self), name, None)}
        if replaced:
            raise ValueError(
                f"Subclasses of Estimator cannot override members of Estimator. {type(self)} does override {sorted(replaced)}"
            )

    # ---- what it is made of -------------------------------------------------------------------------------------

    @property
    def model_dir(self) -> str:
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        """A copy of the RunConfig."""
        return copy.deepcopy(self._config)

    @property
    def params(self) -> Any:
        """A copy of the hyperparameters."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., Any]:
        """The model function with the hyperparameters given: a function of `features`, `labels`, `mode` and `config`."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    def get_variable_names(self) -> list[str]:
        """Returns the names of the variables in the newest checkpoint.

        Raises:
            ValueError: there is no checkpoint.
        """
        self._check_trained()
        return [name for name, _ in list_variables(self._model_dir)]

    def get_variable_value(self, name: str) -> Any:
        """Returns the value of a variable in the newest checkpoint.

        Raises:
            ValueError: there is no checkpoint.
        """
        self._check_trained()
        return load_variable(self._model_dir, name)

    def latest_checkpoint(self) -> str | None:
        """Returns the path of the newest checkpoint, or None."""
        return latest_checkpoint(self._model_dir)

    def eval_dir(self, name: str | None = None) -> str:
        """Returns the directory of the summaries of an evaluation."""
        return os.path.join(self._model_dir, "eval" if not name else f"eval_{name}")

    def _check_trained(self) -> None:
        if latest_checkpoint(self._model_dir) is None:
            raise ValueError(f"Could not find trained model in model_dir: {self._model_dir}.")

    # ---- training -----------------------------------------------------------------------------------------------

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Any = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> Estimator:
        """Trains the model.

        Args:
            input_fn: a function that returns a Dataset of (features, labels), or the two as tensors.
            hooks: SessionRunHooks.
            steps: the number of steps of this call. Without steps training ends with the input.
            max_steps: the global step to end at.
            saving_listeners: CheckpointSaverListeners.

        Returns:
            This Estimator.

        Raises:
            ValueError: both numbers of steps are given, or one is not positive.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        if max_steps is not None and _saved_step(self._model_dir) >= max_steps:
            tf_logging.info("Skipping training since max_steps has already saved.")
            return self
        all_hooks = checked_hooks(hooks)
        all_hooks.extend(self._steps_to_hooks(steps, max_steps))
        loss = self._train_model(input_fn, all_hooks, _checked_listeners(saving_listeners))
        tf_logging.info("Loss for final step: %s.", loss)
        return self

    def _steps_to_hooks(self, steps: int | None, max_steps: int | None) -> list[Any]:
        return [] if steps is None and max_steps is None else [StopAtStepHook(steps, max_steps)]

    def _train_model(self, input_fn: Callable[..., Any], hooks: list[Any], saving_listeners: list[Any]) -> Any:
        with self._new_graph(), self._strategy_scope(self._config.train_distribute):
            create_global_step()
            global_step_read()
            features, labels, input_hooks = tensors_of(self._call_input_fn(input_fn, ModeKeys.TRAIN))
            call = self._in_replica(self._config.train_distribute)
            spec = call(lambda: self._call_model_fn(features, labels, ModeKeys.TRAIN, self.config))
            if self._config.train_distribute is not None:
                loss = self._config.train_distribute.reduce(get_loss_reduction(), spec.loss)
                spec = spec._replace(loss=loss)
            return self._train_with_spec(spec, [*input_hooks, *hooks], saving_listeners)

    def _train_with_spec(self, spec: EstimatorSpec, hooks: list[Any], saving_listeners: list[Any]) -> Any:
        config = self._config
        if self._warm_start_settings is not None:
            start_warm(self._warm_start_settings)
        graph = context.get_default_graph()
        if not any(each.op.name == "loss" for each in graph.get_collection(GraphKeys.SUMMARIES)):
            scalar_summary("loss", spec.loss)
        graph.add_to_collection(GraphKeys.LOSSES, spec.loss)
        worker_hooks = [*hooks, NanTensorHook(spec.loss)]
        if config.log_step_count_steps is not None:
            shown = {"loss": spec.loss, "step": get_global_step()}
            worker_hooks.append(LoggingTensorHook(shown, every_n_iter=config.log_step_count_steps))
        worker_hooks.extend(spec.training_hooks)
        if spec.scaffold.saver is None and not graph.get_collection(GraphKeys.SAVERS):
            saver = Saver(
                sharded=True,
                max_to_keep=config.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
                defer_build=True,
                save_relative_paths=True,
            )
            graph.add_to_collection(GraphKeys.SAVERS, saver)
        chief_hooks = self._saving_hooks(spec, [*worker_hooks, *spec.training_chief_hooks], saving_listeners)
        loss, trained = None, False
        with MonitoredTrainingSession(
            master=config.master,
            is_chief=config.is_chief,
            checkpoint_dir=self._model_dir,
            scaffold=spec.scaffold,
            hooks=worker_hooks,
            chief_only_hooks=[*chief_hooks, *spec.training_chief_hooks],
            save_checkpoint_secs=0,
            save_summaries_steps=config.save_summary_steps,
            config=self._session_config,
            max_wait_secs=config.session_creation_timeout_secs,
            log_step_count_steps=config.log_step_count_steps,
        ) as session:
            while not session.should_stop():
                _, loss = session.run([spec.train_op, spec.loss])
                trained = True
        if not trained:
            tf_logging.warning("Training with estimator made no steps. Perhaps input is empty or misspecified.")
        return loss

    def _saving_hooks(self, spec: EstimatorSpec, hooks: list[Any], saving_listeners: list[Any]) -> list[Any]:
        """Returns the chief's hook that saves checkpoints, unless the program has one. Listeners go to the one or the other."""
        config = self._config
        savers = [hook for hook in hooks if isinstance(hook, CheckpointSaverHook)]
        made = []
        if not savers and (config.save_checkpoints_secs or config.save_checkpoints_steps):
            made = [
                CheckpointSaverHook(
                    self._model_dir,
                    save_secs=config.save_checkpoints_secs,
                    save_steps=config.save_checkpoints_steps,
                    scaffold=spec.scaffold,
                )
            ]
            savers = made
        if saving_listeners:
            if not savers:
                raise ValueError(
                    "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
                    "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
                )
            savers[0]._listeners.extend(saving_listeners)
        return made

    # ---- evaluation ---------------------------------------------------------------------------------------------

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint and writes the metrics as summaries to `eval_dir(name)`.

        Args:
            input_fn: a function that returns a Dataset of (features, labels), or the two as tensors.
            steps: the number of batches. Without steps evaluation ends with the input.
            hooks: SessionRunHooks.
            checkpoint_path: the checkpoint. By default the newest one; variables are initialized if there is none.
            name: a name for this evaluation, if there are several.

        Returns:
            The metrics by name, with `loss` (the mean over batches) and `global_step`.

        Raises:
            ValueError: `steps` is not positive.
        """
        all_hooks = checked_hooks(hooks)
        all_hooks.extend(self._evaluation_steps_to_hooks(steps))
        checkpoint_path = self._checkpoint_or_latest(checkpoint_path, "evaluate")
        with self._new_graph(), self._strategy_scope(self._config.eval_distribute):
            scaffold, update_op, eval_dict, all_hooks = self._build_evaluation(input_fn, all_hooks, checkpoint_path)
            return self._run_evaluation(checkpoint_path, scaffold, update_op, eval_dict, all_hooks, self.eval_dir(name))

    def _evaluation_steps_to_hooks(self, steps: int | None) -> list[Any]:
        if steps is None:
            return []
        if steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        return [StopAfterNEvalsHook(steps)]

    def _build_evaluation(
        self, input_fn: Callable[..., Any], hooks: list[Any], checkpoint_path: str | None
    ) -> tuple[Any, Any, dict[str, Any], list[Any]]:
        """Builds the graph of an evaluation. Returns the scaffold, what a batch runs, what is read at the end, and all hooks."""
        create_global_step()
        features, labels, input_hooks = tensors_of(self._call_input_fn(input_fn, ModeKeys.EVAL))
        call = self._in_replica(self._config.eval_distribute)
        spec = call(lambda: self._call_model_fn(features, labels, ModeKeys.EVAL, self.config))
        if self._warm_start_settings is not None and checkpoint_path is None:
            start_warm(self._warm_start_settings)
        metrics = {name: _pair(metric) for name, metric in spec.eval_metric_ops.items()}
        if LOSS_METRIC_KEY in metrics:
            raise ValueError(
                f'Metric with name "{LOSS_METRIC_KEY}" is not allowed, because Estimator already defines a default metric with '
                "the same name."
            )
        metrics[LOSS_METRIC_KEY] = mean(spec.loss)
        if GraphKeys.GLOBAL_STEP in metrics:
            raise ValueError(
                f"Metric with name `{GraphKeys.GLOBAL_STEP}` is not allowed, because Estimator already defines a default metric "
                "with the same name."
            )
        update_op = group(*(update for _, update in (metrics[name] for name in sorted(metrics))))
        eval_dict = {name: value for name, (value, _) in metrics.items()}
        eval_dict[GraphKeys.GLOBAL_STEP] = get_global_step()
        return spec.scaffold, update_op, eval_dict, [*input_hooks, *hooks, *spec.evaluation_hooks]

    def _run_evaluation(
        self, checkpoint_path: str | None, scaffold: Any, update_op: Any, eval_dict: Any, hooks: list[Any], folder: str
    ) -> dict[str, Any]:
        results = evaluate_once(
            checkpoint_path,
            master=self._config.evaluation_master,
            scaffold=scaffold,
            eval_ops=update_op,
            final_ops=eval_dict,
            hooks=hooks,
            config=self._session_config,
        )
        write_results(folder, results, int(results[GraphKeys.GLOBAL_STEP]), checkpoint_path)
        return results

    # ---- prediction ---------------------------------------------------------------------------------------------

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields the predictions for features.

        Args:
            input_fn: a function that returns a Dataset of features, or features as tensors. Labels are ignored.
            predict_keys: names of the predictions to yield. By default all.
            hooks: SessionRunHooks.
            checkpoint_path: the checkpoint. By default the newest one; variables are initialized if there is none.
            yield_single_examples: whether to yield example by example instead of batches.

        Raises:
            ValueError: no prediction has one of the names, or the predictions of a batch have different lengths.
        """
        all_hooks = checked_hooks(hooks)
        checkpoint_path = self._checkpoint_or_latest(checkpoint_path, "predict")
        graph = Graph()
        with self._new_graph(graph):
            create_global_step()
            features, input_hooks = features_of(self._call_input_fn(input_fn, ModeKeys.PREDICT))
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self.config)
            if self._warm_start_settings is not None and checkpoint_path is None:
                start_warm(self._warm_start_settings)
            predictions = _chosen_predictions(spec.predictions, predict_keys)
            creator = ChiefSessionCreator(
                checkpoint_filename_with_path=checkpoint_path,
                master=self._config.master,
                scaffold=spec.scaffold,
                config=self._session_config,
            )
            session = MonitoredSession(creator, [*input_hooks, *all_hooks, *spec.prediction_hooks])
        # The graph is the default one only while something runs, never while the program uses what was yielded.
        failed = True
        try:
            while True:
                with graph.as_default():
                    if session.should_stop():
                        break
                    try:
                        batch = session.run(predictions)
                    except (OutOfRangeError, StopIteration):
                        break
                if not yield_single_examples:
                    yield batch
                elif isinstance(batch, dict):
                    for position in range(_batch_length(batch)):
                        yield {name: value[position] for name, value in batch.items()}
                else:
                    yield from batch
            failed = False
        except GeneratorExit:
            failed = False
            raise
        finally:
            with graph.as_default():
                session._close_internal(failed=failed)

    # ---- export -------------------------------------------------------------------------------------------------

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Any,
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Exports the model as a SavedModel to a directory below `export_dir_base` whose name is the time.

        Args:
            export_dir_base: the directory.
            serving_input_receiver_fn: a function that returns a ServingInputReceiver.
            assets_extra: files to copy: paths below `assets.extra` of the model, and where they come from.
            as_text: whether to write the graph as text.
            checkpoint_path: the checkpoint. By default the newest one.
            experimental_mode: the mode of the model function.

        Returns:
            The path of the model.

        Raises:
            ValueError: there is no receiver function, or no checkpoint.
        """
        if not serving_input_receiver_fn:
            raise ValueError("An input_receiver_fn must be defined.")
        receivers = {experimental_mode: serving_input_receiver_fn}
        return self._export(export_dir_base, receivers, assets_extra, as_text, checkpoint_path, True)

    @deprecated(None, "This function has been renamed, use `export_saved_model` instead.")
    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Any,
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """The older name of `export_saved_model`.

        Args:
            strip_default_attrs: whether to leave out attributes that have their default values.
            The others: as for `export_saved_model`.
        """
        if not serving_input_receiver_fn:
            raise ValueError("An input_receiver_fn must be defined.")
        receivers = {ModeKeys.PREDICT: serving_input_receiver_fn}
        return self._export(export_dir_base, receivers, assets_extra, as_text, checkpoint_path, strip_default_attrs)

    def experimental_export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: dict[str, Any],
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
    ) -> bytes:
        """Exports the graphs of several modes as one SavedModel.

        Args:
            input_receiver_fn_map: for each mode, a function that returns a receiver.
            The others: as for `export_saved_model`.

        Raises:
            ValueError: there is no mode, or no checkpoint.
        """
        return self._export(export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path, True)

    def _export(
        self, base: Any, receivers: dict[str, Any], extra: Any, as_text: bool, checkpoint: Any, strip: bool
    ) -> bytes:
        checkpoint = checkpoint or latest_checkpoint(self._model_dir)
        if not checkpoint:
            raise ValueError(f"Couldn't find trained model at {self._model_dir}.")
        return exporting.export_all(self, path_text(base), receivers, extra, as_text, path_text(checkpoint), strip)

    # ---- graphs -------------------------------------------------------------------------------------------------

    @contextmanager
    def _new_graph(self, graph: Graph | None = None) -> Iterator[Graph]:
        """A graph with the seed of the config, whose ops have the devices that it gives."""
        with (graph or Graph()).as_default() as made, device(self._device_fn):
            set_random_seed(self._config.tf_random_seed)  # type: ignore[arg-type] (None is no seed)
            yield made

    @contextmanager
    def _strategy_scope(self, strategy: Any) -> Iterator[None]:
        with ExitStack() as stack:
            # An evaluation during training is not part of its strategy.
            stack.enter_context(replicas.entered(None, None))
            if strategy is not None:
                stack.enter_context(strategy.scope())
                replicas.average_losses()
            yield

    def _in_replica(self, strategy: Any) -> Callable[[Callable[[], Any]], Any]:
        return (lambda function: function()) if strategy is None else strategy.extended.call_for_each_replica

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        """Calls an input function with those of `mode`, `params` and `config` that it takes."""
        names = argument_names(input_fn)
        known = {"mode": mode, "params": self.params, "config": self.config}
        if has_strategy():
            known["input_context"] = get_strategy()._input_context()
        with device("/cpu:0"):
            return input_fn(**{name: value for name, value in known.items() if name in names})

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        """Calls the model function with the arguments that it takes.

        Raises:
            ValueError: it takes no labels but there are some, or it does not return an EstimatorSpec.
        """
        names = argument_names(self._model_fn)
        open_ended = takes_any_name(self._model_fn)
        known: dict[str, Any] = {"mode": mode, "params": self.params, "config": config}
        arguments = {name: value for name, value in known.items() if name in names}
        if "labels" in names:
            arguments["labels"] = labels
        elif labels is not None and not open_ended:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        tf_logging.info("Calling model_fn.")
        spec = self._model_fn(features=features, **arguments)
        tf_logging.info("Done calling model_fn.")
        if not isinstance(spec, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return spec

    def _checkpoint_or_latest(self, checkpoint_path: Any, purpose: str) -> str | None:
        if checkpoint_path:
            return path_text(checkpoint_path)
        latest = latest_checkpoint(self._model_dir)
        if latest is None:
            tf_logging.info(
                "Could not find trained model in model_dir: %s, running initialization to %s.", self._model_dir, purpose
            )
        return latest


def checked_hooks(hooks: Any) -> list[Any]:
    """Returns hooks as a list.

    Raises:
        TypeError: one is not a SessionRunHook.
    """
    hooks = list(hooks or [])
    for hook in hooks:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"Hooks must be a SessionRunHook, given: {hook}")
    return hooks


def _checked_listeners(listeners: Any) -> list[Any]:
    listeners = list(listeners or [])
    for listener in listeners:
        if not isinstance(listener, CheckpointSaverListener):
            raise TypeError(f"saving_listeners must be a list of CheckpointSaverListener, given: {listener}")
    return listeners


def _config_with_directory(config: Any, model_dir: Any) -> RunConfig:
    """Returns a copy of the config (or the default one) that has a model directory and a session config.

    Raises:
        ValueError: it is not a RunConfig, or two directories are given.
    """
    if config is None:
        config = RunConfig()
        tf_logging.info("Using default config.")
    elif not isinstance(config, RunConfig):
        raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
    config = copy.copy(config)
    given = None if model_dir is None else path_text(model_dir)
    if given is not None and config.model_dir is not None and given != config.model_dir:
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. In constructor: "
            f"'{given}', in `RunConfig`: '{config.model_dir}' "
        )
    directory = given or config.model_dir
    if directory is None:
        directory = tempfile.mkdtemp()
        tf_logging.warning("Using temporary folder as model directory: %s", directory)
    config._model_dir = directory
    if config.session_config is None:
        config._session_config = default_session_config()
    return config


def _device_fn_of(config: RunConfig) -> Any:
    """Returns the function that places variables on parameter servers, or None if there are none."""
    if not config.num_ps_replicas:
        return None
    return replica_device_setter(
        ps_tasks=config.num_ps_replicas,
        worker_device=f"/job:{config.task_type}/task:{config.task_id}",
        merge_devices=True,
        ps_ops=list(STANDARD_PS_OPS),
        cluster=config.cluster_spec,
    )


def _check_model_fn(model_fn: Callable[..., Any], params: Any) -> None:
    names = set(argument_names(model_fn))
    if takes_any_name(model_fn):
        return
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params ({params}) is passed to Estimator."
        )
    if params is None and "params" in names:
        tf_logging.warning(
            "Estimator's model_fn (%s) includes params argument, but params are not passed to Estimator.", model_fn
        )
    other = sorted(names - _MODEL_FN_ARGUMENTS)
    if other:
        raise ValueError(f"model_fn ({model_fn}) has following not expected args: {other}")


def _saved_step(model_dir: str) -> int:
    """Returns the global step of the newest checkpoint, 0 if there is none."""
    try:
        return int(load_variable(model_dir, GraphKeys.GLOBAL_STEP))
    except Exception:
        return 0


def _pair(metric: Any) -> tuple[Any, Any]:
    """Returns (value, update op) of a metric."""
    if not is_metric_object(metric):
        return metric
    value = metric.result()
    return value, group(*metric.updates)


def _chosen_predictions(predictions: Any, keys: Any) -> Any:
    if not keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    chosen = {name: value for name, value in predictions.items() if name in keys}
    if not chosen:
        raise ValueError(f"Expected to run at least one output from {sorted(predictions)}, provided {keys}.")
    return chosen


def _batch_length(batch: dict[str, Any]) -> int:
    length: int | None = None
    for name, value in batch.items():
        size = value.shape[0] if hasattr(value, "shape") else len(value)
        if length is not None and size != length:
            raise ValueError(
                f"Batch length of predictions should be same. {name} has different batch length than others."
            )
        length = size
    return length or 0
