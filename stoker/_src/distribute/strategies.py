"""The strategies: variables mirrored within one process or over several, and a single device."""

from __future__ import annotations

import enum
from typing import Any

from stoker._src.base.devices import canonical_name
from stoker._src.base.export import export
from stoker._src.distribute.cluster_resolver import TFConfigClusterResolver
from stoker._src.distribute.strategy import Strategy, StrategyExtended
from stoker._src.ops.collective import groups


@export("distribute.CrossDeviceOps")
class CrossDeviceOps:
    """How values of several devices are combined. In stoker, torch.distributed decides: gloo on CPUs, NCCL on GPUs."""


@export("distribute.ReductionToOneDevice")
class ReductionToOneDevice(CrossDeviceOps):
    """Accepted for compatibility. See `CrossDeviceOps`."""

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None) -> None:
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn


@export("distribute.NcclAllReduce")
class NcclAllReduce(CrossDeviceOps):
    """Accepted for compatibility. See `CrossDeviceOps`."""

    def __init__(self, num_packs: int = 1) -> None:
        self.num_packs = num_packs


@export("distribute.HierarchicalCopyAllReduce")
class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Accepted for compatibility. See `CrossDeviceOps`."""

    def __init__(self, num_packs: int = 1) -> None:
        self.num_packs = num_packs


@export("distribute.experimental.CollectiveCommunication", v2="distribute.experimental.CommunicationImplementation")
class CollectiveCommunication(enum.Enum):
    """The library for collective ops. torch.distributed selects one by the device of the tensors."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


def _single_device(devices: Any) -> str:
    """Returns the device of the single replica of a process.

    Raises:
        NotImplementedError: several devices are given.
    """
    chosen = [] if devices is None else [devices] if isinstance(devices, str) else list(devices)
    if len(chosen) > 1 and len(chosen) != groups.size():
        raise NotImplementedError(
            f"{len(chosen)} replicas in one process ({', '.join(map(str, chosen))}): a replica is a process here. "
            f"Start the program with `python -m stoker launch --workers {len(chosen)}`."
        )
    return canonical_name(chosen[0]) if len(chosen) == 1 else ""


@export("distribute.MirroredStrategy")
class MirroredStrategy(Strategy):
    """Every replica has a copy of the variables. Gradients are summed over the replicas.

    TensorFlow runs one replica per GPU of a machine. In stoker, each replica is a process started by `stoker launch`, with its own GPU if
    there are enough of them.

    Args:
        devices: one device, or one device per process, from which each process picks its own.
        cross_device_ops: accepted for compatibility.

    Raises:
        NotImplementedError: several devices are given for one process.
    """

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        super().__init__(StrategyExtended(self, _single_device(devices)))
        self.cross_device_ops = cross_device_ops


@export("distribute.experimental.MultiWorkerMirroredStrategy", v2="distribute.MultiWorkerMirroredStrategy")
class MultiWorkerMirroredStrategy(Strategy):
    """Every worker has a copy of the variables. Gradients are summed over the workers.

    The workers are the processes started by `stoker launch`, or else the tasks of the cluster described by the resolver or TF_CONFIG. The first
    worker listens at its address.

    Args:
        communication: a CollectiveCommunication, accepted for compatibility.
        cluster_resolver: a ClusterResolver. The default reads TF_CONFIG.
        communication_options: accepted for compatibility.

    Raises:
        ValueError: the cluster has workers, but the task of this process is unknown.
    """

    def __init__(
        self,
        communication: Any = CollectiveCommunication.AUTO,
        cluster_resolver: Any = None,
        communication_options: Any = None,
    ) -> None:
        self._cluster_resolver = cluster_resolver or TFConfigClusterResolver()
        self.communication, self.communication_options = communication, communication_options
        _join_cluster(self._cluster_resolver)
        super().__init__(StrategyExtended(self))


def _join_cluster(resolver: Any) -> None:
    """Adds this process to the process group of a cluster, which consists of the chief, if any, and the workers."""
    cluster = resolver.cluster_spec().as_dict()
    tasks = [
        (job, index, address)
        for job in ("chief", "master", "worker")
        for index, address in enumerate(resolver.cluster_spec().job_tasks(job) if job in cluster else ())
    ]
    if len(tasks) < 2 or groups.size() > 1:
        return
    mine = [
        number for number, (job, index, _) in enumerate(tasks) if (job, index) == (resolver.task_type, resolver.task_id)
    ]
    if not mine:
        raise ValueError(
            f"The cluster has {len(tasks)} workers, but its task {resolver.task_type}:{resolver.task_id} is none of them."
        )
    groups.join(mine[0], len(tasks), tasks[0][2])


@export("distribute.OneDeviceStrategy")
class OneDeviceStrategy(Strategy):
    """All variables and ops are on one device.

    Args:
        device: the device.
    """

    def __init__(self, device: str) -> None:
        super().__init__(StrategyExtended(self, canonical_name(device)))

    @property
    def num_replicas_in_sync(self) -> int:
        return 1


@export("distribute.experimental.CentralStorageStrategy")
class CentralStorageStrategy(Strategy):
    """Variables are placed on one device, and one device computes.

    TensorFlow copies variables from the CPU to several GPUs at each step. With a single device nothing is copied.

    Args:
        compute_devices: one device.
        parameter_device: the device of the variables.

    Raises:
        NotImplementedError: several devices are given.
    """

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        super().__init__(StrategyExtended(self, _single_device(parameter_device or compute_devices)))

    @property
    def num_replicas_in_sync(self) -> int:
        return 1
