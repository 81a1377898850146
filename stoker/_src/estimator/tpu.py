"""`TPUEstimator` on machines without TPUs: programs that set `use_tpu=False` train on the CPU or a GPU."""

from __future__ import annotations

import copy
import enum
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base import dtypes, tf_logging
from stoker._src.base.export import export
from stoker._src.estimator import spec as specs
from stoker._src.estimator.estimator import Estimator
from stoker._src.estimator.inputs import argument_names
from stoker._src.estimator.run_config import RunConfig
from stoker._src.estimator.spec import EstimatorSpec, ModeKeys
from stoker._src.formats.protos import Summary
from stoker._src.graph.scopes import device
from stoker._src.layers.losses import Reduction
from stoker._src.ops.array.casting import cast
from stoker._src.ops.variables import variable_scope
from stoker._src.train.optimizers.optimizer import Optimizer
from stoker._src.train.sessions.run_hooks import SessionRunArgs, SessionRunHook
from stoker._src.train.sessions.saving_hooks import StepCounterHook

_BATCH_SIZE_KEY, _CONTEXT_KEY, _USE_TPU_KEY = "batch_size", "context", "use_tpu"
_RESERVED = [_BATCH_SIZE_KEY, _CONTEXT_KEY]
_NO_TPU = (
    "stoker runs on CPUs and GPUs and has no TPUs: pass use_tpu=False to TPUEstimator. The same model function and input function "
    "then train here."
)


def _names(name: str) -> tuple[str, str]:
    return (f"contrib.tpu.{name}", f"estimator.tpu.{name}")


# ---- settings ---------------------------------------------------------------------------------------------------


@export(v1=_names("InputPipelineConfig"))
class InputPipelineConfig:
    """How input functions are called for the cores of a TPU. They mean nothing without one."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


_TPU_FIELDS = (
    "iterations_per_loop",
    "num_shards",
    "num_cores_per_replica",
    "per_host_input_for_training",
    "tpu_job_name",
    "initial_infeed_sleep_secs",
    "input_partition_dims",
    "eval_training_input_configuration",
    "experimental_host_call_every_n_steps",
)
_TPU_CONFIG: Any = namedtuple("TPUConfig", _TPU_FIELDS)


@export(v1=_names("TPUConfig"))
class TPUConfig(_TPU_CONFIG):
    """Settings of a TPU. Without one they are kept and checked, and have no effect.

    Raises:
        ValueError: a number is not positive.
    """

    def __new__(
        cls,
        iterations_per_loop: Any = 2,
        num_shards: int | None = None,
        num_cores_per_replica: int | None = None,
        per_host_input_for_training: Any = True,
        tpu_job_name: str | None = None,
        initial_infeed_sleep_secs: int | None = None,
        input_partition_dims: Any = None,
        eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
        experimental_host_call_every_n_steps: int = 1,
    ) -> TPUConfig:
        _check_iterations(iterations_per_loop)
        if num_shards is not None and num_shards <= 0:
            raise ValueError(f"TPUConfig num_shards must be positive, got {num_shards}")
        if input_partition_dims is not None:
            if len(input_partition_dims) not in (1, 2):
                raise ValueError(
                    f"input_partition_dims must be a list/tuple with one or two elements, got {input_partition_dims}."
                )
            if num_cores_per_replica is None:
                raise ValueError(
                    "input_partition_dims requires setting num_cores_per_replica. Please set num_cores_per_replica."
                )
        if num_cores_per_replica is not None and num_cores_per_replica not in (1, 2, 4, 8, 16, 32, 64, 128):
            raise ValueError(f"num_cores_per_replica must be 1, 2, 4, 8, 16, 32, 64, 128; got {num_cores_per_replica}")
        if per_host_input_for_training is True:
            per_host_input_for_training = InputPipelineConfig.PER_HOST_V1
        elif per_host_input_for_training is False:
            per_host_input_for_training = InputPipelineConfig.PER_SHARD_V1
        return super().__new__(
            cls,
            iterations_per_loop,
            num_shards,
            num_cores_per_replica,
            per_host_input_for_training,
            tpu_job_name,
            initial_infeed_sleep_secs,
            input_partition_dims,
            eval_training_input_configuration,
            experimental_host_call_every_n_steps,
        )


def _check_iterations(value: Any) -> None:
    """Raises ValueError if something is neither a positive number nor a time such as "30s"."""
    number = value[:-1] if isinstance(value, str) and value[-1:] in ("s", "m", "h") else value
    if (isinstance(number, str) and not number.isdigit()) or int(number) <= 0:
        raise ValueError(
            "Invalid TPUConfig `iterations_per_loop` value. Value must be positive integer value or time-based value `<N><s|m|h>` "
            f"where <N> is any positive integer. Found {value!r}."
        )


@export(v1=_names("RunConfig"))
class TPURunConfig(RunConfig):
    """A RunConfig with the settings of a TPU.

    Args:
        tpu_config: a TPUConfig.
        evaluation_master: the target of evaluation sessions. By default that of training.
        master: the target of sessions.
        cluster: a cluster resolver of TPUs. It must be None here.
        kwargs: the arguments of `tf.estimator.RunConfig`.

    Raises:
        NotImplementedError: a cluster of TPUs.
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._tpu_config = tpu_config or TPUConfig()
        self._cluster = cluster
        if cluster is not None:
            raise NotImplementedError(_NO_TPU)
        if master is not None:
            self._master = master
            self._evaluation_master = master
        if evaluation_master is not None:
            self._evaluation_master = evaluation_master

    @property
    def tpu_config(self) -> TPUConfig:
        return self._tpu_config

    @property
    def cluster(self) -> Any:
        return self._cluster

    def replace(self, **kwargs: Any) -> TPURunConfig:
        """As RunConfig.replace; `tpu_config` can be replaced, too."""
        changed = "tpu_config" in kwargs
        tpu_config = kwargs.pop("tpu_config", None)
        result: Any = super().replace(**kwargs)
        if changed:
            result._tpu_config = tpu_config
        return result


class ExportSavedModelApiVersion(enum.Enum):
    """Versions of the export for TPUs."""

    V1 = 1
    V2 = 2


# ---- what a model function returns ------------------------------------------------------------------------------

_SPEC_FIELDS = (
    "mode",
    "predictions",
    "loss",
    "train_op",
    "eval_metrics",
    "export_outputs",
    "scaffold_fn",
    "host_call",
    "training_hooks",
    "evaluation_hooks",
    "prediction_hooks",
)
_SPEC: Any = namedtuple("TPUEstimatorSpec", _SPEC_FIELDS)


@export(v1=_names("TPUEstimatorSpec"))
class TPUEstimatorSpec(_SPEC):
    """What the model function of a TPUEstimator returns.

    Args:
        mode, predictions, loss, train_op, export_outputs, training_hooks, evaluation_hooks, prediction_hooks: as for EstimatorSpec.
        eval_metrics: a function that returns metrics by name, and its arguments: a list of tensors, or tensors by name.
        scaffold_fn: a function that returns a Scaffold.
        host_call: a function and its arguments, as in `eval_metrics`. It runs at every step, usually to write summaries.

    Raises:
        ValueError: `eval_metrics` or `host_call` is not a function with arguments.
    """

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metrics: Any = None,
        export_outputs: Any = None,
        scaffold_fn: Any = None,
        host_call: Any = None,
        training_hooks: Any = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> TPUEstimatorSpec:
        for name, call in (("eval_metrics", eval_metrics), ("host_call", host_call)):
            if call is not None:
                _check_call(name, call)
        hooks = [specs.checked_hooks(each) for each in (training_hooks, evaluation_hooks, prediction_hooks)]
        return super().__new__(
            cls,
            mode,
            predictions,
            loss,
            train_op,
            eval_metrics,
            export_outputs,
            scaffold_fn,
            host_call,
            *hooks,
        )

    def as_estimator_spec(self) -> EstimatorSpec:
        """Returns the EstimatorSpec that runs without a TPU."""
        hooks = []
        if self.host_call is not None:
            hooks.append(_HostCallHook(_called(self.host_call)))
        metrics = None if self.eval_metrics is None else _called(self.eval_metrics)
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=metrics,
            export_outputs=self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn else None,
            training_hooks=[*self.training_hooks, *hooks],
            evaluation_hooks=[*self.evaluation_hooks, *hooks],
            prediction_hooks=[*self.prediction_hooks, *hooks],
        )


def _check_call(name: str, call: Any) -> None:
    if not isinstance(call, (tuple, list)):
        raise ValueError(f"{name} should be tuple or list")
    if len(call) != 2:
        raise ValueError(f"{name} should have two elements")
    if not callable(call[0]):
        raise TypeError(f"{name}[0] should be callable")
    if not isinstance(call[1], (tuple, list, dict)):
        raise ValueError(f"{name}[1] should be tuple or list, or dict")
    if isinstance(call[1], (tuple, list)):
        names = argument_names(call[0])
        if names and len(call[1]) > len(names):
            raise RuntimeError(
                f"In TPUEstimatorSpec.{name}, length of tensors {len(call[1])} does not match method args of the function, which "
                f"takes {len(names)}."
            )


def _called(call: Any) -> Any:
    function, arguments = call
    return function(**arguments) if isinstance(arguments, dict) else function(*arguments)


class _HostCallHook(SessionRunHook):
    """Runs what a host call returned at every step."""

    def __init__(self, tensors: Any) -> None:
        self._tensors = tensors

    def before_run(self, run_context: Any) -> SessionRunArgs | None:
        return None if self._tensors is None else SessionRunArgs(self._tensors)


class ExamplesPerSecondHook(StepCounterHook):
    """Logs steps and examples per second.

    Args:
        batch_size: the number of examples of a step.
        every_n_steps, every_n_secs, output_dir, summary_writer: as for StepCounterHook.
    """

    def __init__(
        self,
        batch_size: int,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
    ) -> None:
        self._batch_size = batch_size
        super().__init__(every_n_steps, every_n_secs, output_dir, summary_writer)

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        super()._log_and_record(elapsed_steps, elapsed_time, global_step)
        rate = self._batch_size * elapsed_steps / max(elapsed_time, 1e-9)
        if self._summary_writer is not None:
            value = Summary.Value(tag="examples/sec", simple_value=rate)
            self._summary_writer.add_summary(Summary(value=[value]), global_step)
        tf_logging.info("examples/sec: %g", rate)


# ---- the Estimator ----------------------------------------------------------------------------------------------


@export(v1=_names("TPUEstimator"))
class TPUEstimator(Estimator):
    """An Estimator whose input functions get the size of a batch in `params["batch_size"]`, for programs written for TPUs.

    Args:
        model_fn: the model function. It returns a TPUEstimatorSpec or an EstimatorSpec.
        model_dir: the directory of checkpoints and summaries.
        config: a `tf.contrib.tpu.RunConfig`.
        params: hyperparameters. `batch_size` and `use_tpu` are added.
        use_tpu: must be False.
        train_batch_size, eval_batch_size, predict_batch_size: the sizes of batches.
        batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu, embedding_config_spec, export_saved_model_api_version: settings of TPUs.
        warm_start_from: as for Estimator.

    Raises:
        NotImplementedError: `use_tpu` is True.
        ValueError: `config` is not for TPUs, or `params` has reserved names.
    """

    _REPLACED = frozenset({"train", "evaluate", "predict", "_call_input_fn", "_call_model_fn"})

    def __init__(
        self,
        model_fn: Any = None,
        model_dir: Any = None,
        config: Any = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: Any = None,
        export_saved_model_api_version: Any = ExportSavedModelApiVersion.V1,
    ) -> None:
        if not isinstance(config, TPURunConfig):
            raise ValueError("`config` must be provided with type `tpu_config.RunConfig`")
        if params is not None and any(name in params for name in _RESERVED):
            raise ValueError(f"{_RESERVED} are reserved keys but existed in params {params}.")
        if use_tpu:
            if train_batch_size is None:
                raise ValueError("`train_batch_size` cannot be `None`")
            raise NotImplementedError(_NO_TPU)
        if embedding_config_spec is not None:
            raise NotImplementedError("embedding_config_spec describes embeddings in the memory of a TPU.")
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        self._log_every_n_steps = config.log_step_count_steps
        # Steps and examples are counted by a hook of this class.
        config = copy.copy(config)
        config._log_step_count_steps = None
        super().__init__(
            model_fn,
            model_dir=model_dir,
            config=config,
            params=params if params is not None else {},
            warm_start_from=warm_start_from,
        )

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Any = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> TPUEstimator:
        """As Estimator.train, with the rate of examples in the log."""
        result: Any = super().train(input_fn, hooks, steps, max_steps, saving_listeners)
        tf_logging.info("training_loop marked as finished")
        return result

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """As Estimator.evaluate."""
        result = super().evaluate(input_fn, steps, hooks, checkpoint_path, name)
        tf_logging.info("evaluation_loop marked as finished")
        return result

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """As Estimator.predict."""
        yield from super().predict(input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples)
        tf_logging.info("prediction_loop marked as finished")

    def _params_with(self, **added: Any) -> Any:
        """Returns a copy of the hyperparameters (a dictionary or an HParams) with more of them."""
        params = self.params
        for name, value in added.items():
            if hasattr(params, "set_hparam"):
                params.set_hparam(name, value) if name in params else params.add_hparam(name, value)
            else:
                params[name] = value
        return params

    def _sizes(self, mode: str) -> dict[str, int]:
        size = self._batch_sizes[mode]
        return {} if size is None else {_BATCH_SIZE_KEY: size}

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        names = argument_names(input_fn)
        known = {"mode": mode, "params": self._params_with(**self._sizes(mode)), "config": self.config}
        self._has_input = True
        with device("/cpu:0"):
            return input_fn(**{name: value for name, value in known.items() if name in names})

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        names = argument_names(self._model_fn)
        # An exported model has no batches of its own.
        sizes = self._sizes(mode) if getattr(self, "_has_input", False) else {}
        self._has_input = False
        known = {"mode": mode, "config": config, "params": self._params_with(**sizes, **{_USE_TPU_KEY: False})}
        arguments = {name: value for name, value in known.items() if name in names}
        if "labels" in names:
            arguments["labels"] = labels
        elif labels is not None:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        tf_logging.info("Calling model_fn.")
        tf_logging.info("Running %s on CPU", mode)
        spec = self._model_fn(features=features, **arguments)
        tf_logging.info("Done calling model_fn.")
        if isinstance(spec, TPUEstimatorSpec):
            spec = spec.as_estimator_spec()
        if not isinstance(spec, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        size = self._batch_sizes[ModeKeys.TRAIN]
        if mode == ModeKeys.TRAIN and sizes and size is not None and self._log_every_n_steps:
            counter = ExamplesPerSecondHook(size, self._log_every_n_steps, output_dir=self.model_dir)
            spec = spec._replace(training_hooks=(*spec.training_hooks, counter))
        return spec


# ---- functions of TPU programs ----------------------------------------------------------------------------------


@export(v1=("contrib.tpu.CrossShardOptimizer", "tpu.CrossShardOptimizer"))
class CrossShardOptimizer(Optimizer):
    """Averages gradients over the shards of a TPU. There is one shard here, so that it is the optimizer it wraps.

    Args:
        opt: the optimizer.
        reduction: how gradients of shards are combined: SUM or MEAN.
        name: the name.
        group_assignment: groups of shards.

    Raises:
        ValueError: another reduction.
    """

    def __init__(
        self,
        opt: Optimizer,
        reduction: str = Reduction.MEAN,
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:
        if reduction not in (Reduction.SUM, Reduction.MEAN):
            raise ValueError(f"Unsupported reduction: {reduction}.")
        super().__init__(False, name)
        self._opt, self._reduction, self._group_assignment = opt, reduction, group_assignment

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Returns the gradients of the wrapped optimizer."""
        return self._opt.compute_gradients(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients with the wrapped optimizer."""
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        return self._opt.variables()


@export(v1=("contrib.tpu.cross_replica_sum", "tpu.cross_replica_sum"))
def cross_replica_sum(x: Any, group_assignment: Any = None, name: str | None = None) -> Any:
    """Not supported: it sums over the replicas of a TPU.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(_NO_TPU)


@export(v1=("contrib.tpu.bfloat16_scope", "tpu.bfloat16_scope"))
@contextmanager
def bfloat16_scope() -> Iterator[Any]:
    """A variable scope in which variables that are asked for as bfloat16 are float32, and are cast where they are read."""
    with variable_scope.variable_scope("", custom_getter=_bfloat16_getter) as scope:
        yield scope


def _bfloat16_getter(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    asked = kwargs.get("dtype")
    if asked is None or dtypes.as_dtype(asked) is not dtypes.bfloat16:
        return getter(*args, **kwargs)
    return cast(getter(*args, **{**kwargs, "dtype": dtypes.float32}), dtypes.bfloat16)
