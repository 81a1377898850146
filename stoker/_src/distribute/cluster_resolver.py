"""`tf.distribute.cluster_resolver`: how a process learns the members of its cluster and its own task."""

from __future__ import annotations

import json
import os
from typing import Any

from stoker._src.base.export import export
from stoker._src.distributed.cluster_spec import ClusterSpec


def _target(address: str, rpc_layer: str | None) -> str:
    return f"{rpc_layer}://{address}" if rpc_layer and address else address


@export("distribute.cluster_resolver.ClusterResolver", v1="contrib.cluster_resolver.ClusterResolver")
class ClusterResolver:
    """The base class of resolvers. Subclasses return the cluster. `task_type`, `task_id` and `rpc_layer` are attributes."""

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    @property
    def environment(self) -> str | None:
        """The environment of the job: "" or "google"."""
        return ""

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its cluster is.")

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Returns the session target of this task, or of the given task."""
        raise NotImplementedError(f"{type(self).__name__} does not say which targets its cluster has.")

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Returns the number of accelerators per type. The base class does not know any."""
        return {}


@export("distribute.cluster_resolver.SimpleClusterResolver", v1="contrib.cluster_resolver.SimpleClusterResolver")
class SimpleClusterResolver(ClusterResolver):
    """A resolver for a fixed cluster.

    Args:
        cluster_spec: a ClusterSpec.
        master: the target of this task.
        task_type: the job of this task.
        task_id: the index of this task.
        environment: the environment of the job.
        num_accelerators: the number of accelerators per type.
        rpc_layer: the URL scheme of targets.

    Raises:
        TypeError: `cluster_spec` is not a ClusterSpec.
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: dict[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        self._cluster_spec, self._master = cluster_spec, master
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self._environment, self._num_accelerators = environment, num_accelerators

    @property
    def environment(self) -> str | None:
        return self._environment

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        return self._cluster_spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Returns the session target of this task, or of the given task."""
        if task_type is not None and task_id is not None:
            return _target(self._cluster_spec.task_address(task_type, task_id), rpc_layer or self.rpc_layer)
        return _target(self._master, rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Returns the numbers given to the constructor."""
        return self._num_accelerators or {}


@export("distribute.cluster_resolver.TFConfigClusterResolver", v1="contrib.cluster_resolver.TFConfigClusterResolver")
class TFConfigClusterResolver(ClusterResolver):
    """Reads the environment variable TF_CONFIG.

        TF_CONFIG='{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'

    Args:
        task_type: the job of this task. The default is read from TF_CONFIG.
        task_id: the index of this task. The default is read from TF_CONFIG.
        rpc_layer: the URL scheme of targets. The default is read from TF_CONFIG.
        environment: the environment of the job. The default is read from TF_CONFIG.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type, self._task_id = task_type, task_id
        self._rpc_layer, self._environment = rpc_layer, environment

    @staticmethod
    def _config() -> dict[str, Any]:
        return json.loads(os.environ.get("TF_CONFIG") or "{}")

    def _task(self) -> dict[str, Any]:
        return self._config().get("task") or {}

    @property
    def task_type(self) -> str | None:
        """The job of this task."""
        found = self._task_type if self._task_type is not None else self._task().get("type")
        return None if found is None else str(found)

    @task_type.setter
    def task_type(self, value: str | None) -> None:
        self._task_type = value

    @property
    def task_id(self) -> int | None:
        """The index of this task."""
        found = self._task_id if self._task_id is not None else self._task().get("index")
        return None if found is None else int(found)

    @task_id.setter
    def task_id(self, value: int | None) -> None:
        self._task_id = value

    @property
    def rpc_layer(self) -> str | None:
        """The URL scheme of targets."""
        return self._rpc_layer if self._rpc_layer is not None else self._config().get("rpc_layer")

    @rpc_layer.setter
    def rpc_layer(self, value: str | None) -> None:
        self._rpc_layer = value

    @property
    def environment(self) -> str | None:
        return self._environment if self._environment is not None else self._config().get("environment")

    def cluster_spec(self) -> ClusterSpec:
        """Returns the cluster. It is empty if TF_CONFIG is not set."""
        return ClusterSpec(self._config().get("cluster") or {})

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Returns the session target of this task, or of the given task. It is empty if the cluster has fewer than two tasks.

        Raises:
            ValueError: TF_CONFIG does not name the task of this process.
        """
        spec = self.cluster_spec()
        tasks = spec.as_dict()
        if not tasks or sum(len(addresses) for addresses in tasks.values()) == 1:
            return ""
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            raise ValueError(f"TF_CONFIG does not say which task this is: type {job}, index {index}.")
        return _target(spec.task_address(job, index), rpc_layer or self.rpc_layer)


@export("distribute.cluster_resolver.TPUClusterResolver", v1="contrib.cluster_resolver.TPUClusterResolver")
class TPUClusterResolver(ClusterResolver):
    """Finds TPUs, which stoker does not use: constructing one raises an error. Programs import it for the case that there are TPUs.

    Args:
        tpu: the name or address of the TPUs.
        **kwargs: where and how to find them.

    Raises:
        NotImplementedError: always.
    """

    def __init__(self, tpu: str | None = None, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"TPUClusterResolver({tpu!r}): stoker runs on CPUs and GPUs, not on TPUs. Run the program without TPUs, for example with use_tpu=False."
        )
