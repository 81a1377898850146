"""`RunConfig`: the settings of a run, and the place of this process in a cluster, which TF_CONFIG describes."""

from __future__ import annotations

import copy
import inspect
import json
import os
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.export import export
from stoker._src.distributed.cluster_spec import ClusterSpec
from stoker._src.formats.filesystems import path_text
from stoker._src.formats.protos import ConfigProto

_USE_DEFAULT: Any = object()
_BOTH_INTERVALS = "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."
_DEFAULT_SECS = 600
_ONE_PASS = 1  # RewriterConfig.NumIterationsType.ONE
_REPLACEABLE = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "device_fn",
    "protocol",
    "eval_distribute",
    "experimental_distribute",
    "experimental_max_worker_delay_secs",
    "session_creation_timeout_secs",
)


class TaskType:
    """The jobs of a cluster."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


def _check_distribute(config: Any, train_distribute: Any, eval_distribute: Any) -> None:
    if train_distribute is not None and config.train_distribute is not None:
        raise ValueError("Either `train_distribute` or`experimental_distribute.train_distribute` can be set.")
    if eval_distribute is not None and config.eval_distribute is not None:
        raise ValueError("Either `eval_distribute` or`experimental_distribute.eval_distribute` can be set.")
    if config.remote_cluster:
        raise NotImplementedError(
            "experimental_distribute.remote_cluster: one process that drives a cluster is not supported. Start the program on each "
            "machine with TF_CONFIG, or with `stoker launch`."
        )


@export("estimator.RunConfig")
class RunConfig:
    """The settings of an Estimator.

    The environment variable TF_CONFIG, a JSON object, says which task of which cluster this process is:
    `{"cluster": {"chief": ["host:2222"], "worker": [...], "ps": [...]}, "task": {"type": "worker", "index": 0}}`. Without it the
    process works alone. A task of type "evaluator" belongs to no cluster.

    Args:
        model_dir: the directory of checkpoints and summaries.
        tf_random_seed: the seed of the graphs.
        save_summary_steps: steps between two summaries.
        save_checkpoints_steps: steps between two checkpoints.
        save_checkpoints_secs: seconds between two checkpoints. By default 600, unless steps are given.
        session_config: a ConfigProto.
        keep_checkpoint_max: how many checkpoints are kept; 0 or None keeps all.
        keep_checkpoint_every_n_hours: a checkpoint of each such period is kept for good.
        log_step_count_steps: steps between two lines with the loss and the step rate.
        train_distribute: a `tf.distribute.Strategy` for training.
        device_fn: a function from an op to its device. By default variables go to parameter servers if there are any.
        protocol: the protocol of servers; None for gRPC.
        eval_distribute: a `tf.distribute.Strategy` for evaluation.
        experimental_distribute: a `tf.contrib.distribute.DistributeConfig` with both strategies.
        experimental_max_worker_delay_secs: the longest delay of a worker's start. By default 60.
        session_creation_timeout_secs: how long a worker waits for the chief.

    Raises:
        ValueError: both intervals of checkpoints are given, a strategy is given twice, a value is out of range, or TF_CONFIG is not consistent.
        NotImplementedError: `experimental_distribute` names a remote cluster.
    """

    _model_dir: str | None
    _tf_random_seed: int | None
    _save_summary_steps: int | None
    _save_checkpoints_steps: int | None
    _save_checkpoints_secs: float | None
    _session_config: Any
    _keep_checkpoint_max: int | None
    _keep_checkpoint_every_n_hours: float
    _log_step_count_steps: int | None
    _train_distribute: Any
    _device_fn: Any
    _protocol: Any
    _eval_distribute: Any
    _experimental_max_worker_delay_secs: int | None
    _session_creation_timeout_secs: float

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: Any = _USE_DEFAULT,
        save_checkpoints_secs: Any = _USE_DEFAULT,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Any = None,
        protocol: Any = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        if save_checkpoints_steps is _USE_DEFAULT and save_checkpoints_secs is _USE_DEFAULT:
            save_checkpoints_steps, save_checkpoints_secs = None, _DEFAULT_SECS
        elif save_checkpoints_secs is _USE_DEFAULT:
            save_checkpoints_secs = None
        elif save_checkpoints_steps is _USE_DEFAULT:
            save_checkpoints_steps = None
        elif save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError(_BOTH_INTERVALS)
        if experimental_distribute is not None:
            _check_distribute(experimental_distribute, train_distribute, eval_distribute)
            train_distribute = train_distribute or experimental_distribute.train_distribute
            eval_distribute = eval_distribute or experimental_distribute.eval_distribute
        described = json.loads(os.environ.get("TF_CONFIG") or "{}")
        if described:
            tf_logging.info("TF_CONFIG environment variable: %s", described)
        model_dir = _model_dir(described, None if model_dir is None else path_text(model_dir))
        self._set(
            model_dir=model_dir,
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            train_distribute=train_distribute,
            device_fn=device_fn,
            protocol=protocol,
            eval_distribute=eval_distribute,
            experimental_distribute=experimental_distribute,
            experimental_max_worker_delay_secs=experimental_max_worker_delay_secs,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        # The processes of such a strategy have sessions of their own. It has read TF_CONFIG itself.
        trains_together = train_distribute is not None and train_distribute.num_replicas_in_sync > 1
        self._init_from_tf_config({} if trains_together else described)

    def _set(self, **values: Any) -> None:
        """Sets properties, after checking them."""
        _check(values)
        for name, value in values.items():
            setattr(self, f"_{name}", value)

    def _init_from_tf_config(self, described: dict[str, Any]) -> None:
        self._service = _service(described)
        self._cluster_spec = ClusterSpec(described.get("cluster", {}))
        task = described.get("task", {})
        if described.get("cluster"):
            self._init_in_cluster(described, task)
        else:
            self._init_alone(described, task)

    def _init_in_cluster(self, described: dict[str, Any], task: dict[str, Any]) -> None:
        spec = self._cluster_spec
        jobs = spec.as_dict()
        if TaskType.MASTER in jobs:
            _check_master(jobs)
            leader = TaskType.MASTER
        else:
            leader = TaskType.CHIEF
            if leader not in jobs:
                raise ValueError('If "cluster" is set in TF_CONFIG, it must have one "chief" node.')
            if len(jobs[leader]) > 1:
                raise ValueError('The "cluster" in TF_CONFIG must have only one "chief" node.')
        self._task_type, self._task_id = _task(spec, task)
        self._evaluation_master = ""
        if self._task_type == TaskType.EVALUATOR:
            self._cluster_spec = ClusterSpec({})
            self._master = ""
            self._evaluation_master = described.get("eval_session_master", "")
            self._num_ps_replicas = self._num_worker_replicas = 0
            self._is_chief, self._global_id_in_cluster = False, None
            return
        local = f"{self._protocol or 'grpc'}://{spec.task_address(self._task_type, self._task_id)}"
        self._master = described.get("session_master", local)
        self._num_ps_replicas = len(jobs.get(TaskType.PS, ()))
        self._num_worker_replicas = len(jobs.get(TaskType.WORKER, ())) + len(jobs[leader])
        self._is_chief = self._task_type == leader
        self._global_id_in_cluster = _global_id(jobs, self._task_type, self._task_id, leader)
        if self._session_config is None:
            self._session_config = _distributed_session_config(self._task_type, self._task_id)

    def _init_alone(self, described: dict[str, Any], task: dict[str, Any]) -> None:
        self._task_type = task.get("type", TaskType.WORKER)
        self._task_id = int(task.get("index", 0))
        if self._task_type not in (TaskType.WORKER, TaskType.EVALUATOR):
            raise ValueError('If "cluster" is not set in TF_CONFIG, task type must be WORKER or EVALUATOR.')
        if self._task_id != 0:
            raise ValueError('If "cluster" is not set in TF_CONFIG, task index must be 0.')
        self._master = described.get("session_master", "")
        self._evaluation_master = described.get("eval_session_master", "")
        is_worker = self._task_type == TaskType.WORKER
        self._is_chief = is_worker
        self._num_ps_replicas, self._num_worker_replicas = 0, 1 if is_worker else 0
        self._global_id_in_cluster = 0 if is_worker else None

    def replace(self, **kwargs: Any) -> RunConfig:
        """Returns a copy with other values of the constructor's arguments.

        Raises:
            ValueError: an argument is not one of the constructor's, or its value is out of range.
        """
        for name in kwargs:
            if name not in _REPLACEABLE:
                raise ValueError(f"Replacing {name} is not supported. Allowed properties are {list(_REPLACEABLE)}.")
        result = copy.copy(self)
        steps, secs = kwargs.get("save_checkpoints_steps"), kwargs.get("save_checkpoints_secs")
        if steps is not None and secs is not None:
            raise ValueError(_BOTH_INTERVALS)
        if steps is not None:
            kwargs["save_checkpoints_secs"] = None
        if secs is not None:
            kwargs["save_checkpoints_steps"] = None
        if kwargs.get("model_dir") is not None:
            kwargs["model_dir"] = path_text(kwargs["model_dir"])
        result._set(**kwargs)
        return result

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The cluster; empty in a process that works alone."""
        return self._cluster_spec

    @property
    def device_fn(self) -> Any:
        return self._device_fn

    @property
    def evaluation_master(self) -> str:
        """The target of evaluation sessions."""
        return self._evaluation_master

    @property
    def is_chief(self) -> bool:
        return self._is_chief

    @property
    def master(self) -> str:
        """The target of training sessions."""
        return self._master

    @property
    def num_ps_replicas(self) -> int:
        return self._num_ps_replicas

    @property
    def num_worker_replicas(self) -> int:
        """The number of tasks that train, including the chief."""
        return self._num_worker_replicas

    @property
    def task_id(self) -> int:
        return self._task_id

    @property
    def global_id_in_cluster(self) -> int | None:
        """The number of this task among all: the chief is 0, then workers, then parameter servers. None for an evaluator."""
        return self._global_id_in_cluster

    @property
    def task_type(self) -> str:
        return self._task_type

    @property
    def tf_random_seed(self) -> int | None:
        return self._tf_random_seed

    @property
    def save_summary_steps(self) -> int | None:
        return self._save_summary_steps

    @property
    def save_checkpoints_secs(self) -> float | None:
        return self._save_checkpoints_secs

    @property
    def save_checkpoints_steps(self) -> int | None:
        return self._save_checkpoints_steps

    @property
    def session_config(self) -> Any:
        return self._session_config

    @property
    def keep_checkpoint_max(self) -> int | None:
        return self._keep_checkpoint_max

    @property
    def session_creation_timeout_secs(self) -> float:
        return self._session_creation_timeout_secs

    @property
    def keep_checkpoint_every_n_hours(self) -> float:
        return self._keep_checkpoint_every_n_hours

    @property
    def log_step_count_steps(self) -> int | None:
        return self._log_step_count_steps

    @property
    def experimental_max_worker_delay_secs(self) -> int | None:
        return self._experimental_max_worker_delay_secs

    @property
    def model_dir(self) -> str | None:
        return self._model_dir

    @property
    def service(self) -> Any:
        """The entry "service" of TF_CONFIG."""
        return self._service

    @property
    def train_distribute(self) -> Any:
        return self._train_distribute

    @property
    def eval_distribute(self) -> Any:
        return self._eval_distribute

    @property
    def protocol(self) -> Any:
        return self._protocol


def default_session_config() -> Any:
    """Returns the ConfigProto of a run whose config has none."""
    config = ConfigProto(allow_soft_placement=True)
    config.graph_options.rewrite_options.meta_optimizer_iterations = _ONE_PASS
    return config


def _distributed_session_config(task_type: str, task_id: int) -> Any:
    """Returns the ConfigProto of a task of a cluster: it uses parameter servers and does not wait for other workers. None for other jobs."""
    filters = {
        TaskType.MASTER: ["/job:ps", "/job:master"],
        TaskType.CHIEF: ["/job:ps", "/job:chief"],
        TaskType.WORKER: ["/job:ps", f"/job:worker/task:{task_id}"],
        TaskType.PS: ["/job:ps", "/job:worker", "/job:chief", "/job:master"],
    }
    if task_type not in filters:
        return None
    config = default_session_config()
    config.device_filters.extend(filters[task_type])
    return config


def _check(values: dict[str, Any]) -> None:
    """Raises ValueError if a setting is out of its range."""
    for name, least, words in (
        ("save_summary_steps", 0, ">= 0"),
        ("save_checkpoints_steps", 0, ">= 0"),
        ("save_checkpoints_secs", 0, ">= 0"),
        ("keep_checkpoint_max", 0, ">= 0"),
    ):
        if values.get(name) is not None and values[name] < least:
            raise ValueError(f"{name} should be {words}")
    for name in ("keep_checkpoint_every_n_hours", "log_step_count_steps", "session_creation_timeout_secs"):
        if values.get(name) is not None and values[name] <= 0:
            raise ValueError(f"{name} should be > 0")
    if "model_dir" in values and values["model_dir"] is not None and not values["model_dir"]:
        raise ValueError("model_dir should be non-empty")
    if values.get("session_config") is not None and not isinstance(values["session_config"], ConfigProto):
        raise ValueError("session_config must be instance of ConfigProto")
    seed = values.get("tf_random_seed")
    if seed is not None and (isinstance(seed, float) or not hasattr(seed, "__index__")):
        raise ValueError("tf_random_seed must be integer.")
    delay = values.get("experimental_max_worker_delay_secs")
    if delay is not None and not hasattr(delay, "__index__"):
        raise ValueError("experimental_max_worker_delay_secs must be an integer if set.")
    if values.get("device_fn") is not None and _argument_names(values["device_fn"]) != ["op"]:
        raise ValueError('device_fn must be callable with exactly one argument "op".')
    if values.get("protocol") not in (None, "grpc", "grpc+verbs"):
        raise ValueError("protocol should be grpc or grpc+verbs")


def _argument_names(function: Any) -> list[str] | None:
    return list(inspect.signature(function).parameters) if callable(function) else None


def _model_dir(described: dict[str, Any], given: str | None) -> str | None:
    """Returns the model directory of TF_CONFIG or of the constructor.

    Raises:
        ValueError: it is empty, or the two differ.
    """
    if given == "":
        raise ValueError("model_dir should be non-empty.")
    in_environment = described.get("model_dir")
    if in_environment == "":
        raise ValueError("model_dir in TF_CONFIG should be non-empty.")
    if given and in_environment and given != in_environment:
        raise ValueError(
            f"`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir in TF_CONFIG. "
            f'model_dir: {given}\nTF_CONFIG["model_dir"]: {in_environment}.\n'
        )
    if in_environment:
        tf_logging.info("Using model_dir in TF_CONFIG: %s", in_environment)
    return given or in_environment


def _service(described: dict[str, Any]) -> Any:
    service = described.get("service")
    if service and not isinstance(service, dict):
        raise TypeError(f'If "service" is set in TF_CONFIG, it must be a dict. Given {type(service)}')
    return service


def _check_master(jobs: dict[str, Any]) -> None:
    if TaskType.CHIEF in jobs:
        raise ValueError("If `master` node exists in `cluster`, job `chief` is not supported.")
    if len(jobs[TaskType.MASTER]) > 1:
        raise ValueError('The "cluster" in TF_CONFIG must have only one "master" node.')


def _task(spec: ClusterSpec, task: dict[str, Any]) -> tuple[str, int]:
    """Returns type and index of the task that TF_CONFIG describes.

    Raises:
        ValueError: one of the two is missing or not in the cluster.
    """
    kind, index = task.get("type"), task.get("index")
    if not kind:
        raise ValueError('If "cluster" is set in TF_CONFIG, task type must be set.')
    if index is None:
        raise ValueError('If "cluster" is set in TF_CONFIG, task index must be set.')
    index = int(index)
    if index < 0:
        raise ValueError("Task index must be non-negative number.")
    if kind == TaskType.EVALUATOR:
        return kind, index
    note = "Note that these values may be coming from the TF_CONFIG environment variable."
    if kind not in spec.jobs:
        raise ValueError(f"{kind} is not a valid task_type in the cluster_spec:\n{spec}\n\n{note}")
    if index >= spec.num_tasks(kind):
        raise ValueError(f"{index} is not a valid task_id for task_type {kind} in the cluster_spec:\n{spec}\n\n{note}")
    return kind, index


def _global_id(jobs: dict[str, Any], kind: str, index: int, leader: str) -> int:
    """Returns the number of a task among all: the leader first, then workers, parameter servers and other jobs by name."""
    order = [job for job in (leader, TaskType.WORKER, TaskType.PS) if job in jobs]
    order += sorted(job for job in jobs if job not in order)
    return sum(len(jobs[job]) for job in order[: order.index(kind)]) + index
