"""`replica_device_setter`: variables go to parameter servers, all other ops to the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.devices import DeviceSpec
from stoker._src.base.export import export
from stoker._src.distributed.cluster_spec import ClusterSpec
from stoker._src.graph.tensor import Operation

STANDARD_PS_OPS = (
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator",
)
"""The types of the ops that hold a model's state."""

PsStrategy = Callable[[Operation], int]
"""Chooses the index of the parameter server task for an op."""


class _RoundRobin:
    """Gives out the tasks in turn, in the order in which the ops are created."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._next = 0

    def __call__(self, op: Operation) -> int:
        chosen = self._next
        self._next = (chosen + 1) % self._tasks
        return chosen


class _DeviceChooser:
    """The device function that `replica_device_setter` returns."""

    def __init__(
        self, ps_device: str, worker_device: str, merge_devices: bool, ps_ops: Any, ps_strategy: PsStrategy
    ) -> None:
        self._ps_device = ps_device
        self._worker_device = worker_device
        self._merge_devices = merge_devices
        self._ps_ops = frozenset(ps_ops)
        self._ps_strategy = ps_strategy

    def device_function(self, op: Operation) -> str:
        """The device of `op`. Parts that blocks inside this one have set are kept."""
        if not self._merge_devices and op.device:
            return op.device
        inner = DeviceSpec.from_string(op.device or "")
        if self._ps_device and op.type in self._ps_ops:
            outer = DeviceSpec.from_string(self._ps_device)
            # An op that an inner block has sent to another job gets no task of this one.
            if outer.job and inner.job in (None, outer.job):
                outer.task = self._ps_strategy(op)
        else:
            outer = DeviceSpec.from_string(self._worker_device or "")
        return outer.make_merged_spec(inner).to_string()


def _ps_tasks(cluster: Any, ps_device: str) -> int:
    """The number of tasks that a cluster has in the job of the parameter servers."""
    job = DeviceSpec.from_string(ps_device).job or "ps"
    return len(ClusterSpec(cluster).as_dict().get(job, ()))


@export(v1="train.replica_device_setter")
def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Any = None,
    ps_strategy: PsStrategy | None = None,
) -> Callable[[Operation], str] | None:
    """Returns a device function for `tf.device` that spreads variables over parameter servers.

        with tf.device(tf.train.replica_device_setter(cluster={"ps": ["ps0:2222", "ps1:2222"], "worker": [...]})):
            v1 = tf.get_variable("v1", [3])    # /job:ps/task:0
            v2 = tf.get_variable("v2", [3])    # /job:ps/task:1
            v3 = tf.get_variable("v3", [3])    # /job:ps/task:0
            total = v1 + v2                    # /job:worker

    Args:
        ps_tasks: the number of parameter servers; ignored if `cluster` is given.
        ps_device: the device of the parameter servers; if empty, variables stay with the worker.
        worker_device: the device of all other ops; if empty, they get none.
        merge_devices: whether parts of a device that inner blocks leave open are filled in. If False, an op for which an inner
            block has set any part keeps exactly that.
        cluster: a `ClusterSpec`, a ClusterDef message, or a dictionary from job to addresses.
        ps_ops: the types of ops that belong on parameter servers; by default variables, mutable tables and accumulators.
        ps_strategy: a function from such an op to the index of its task; in turn by default.

    Returns:
        The function, or None (which `tf.device` accepts) if there are no parameter servers.

    Raises:
        TypeError: `cluster` is not a cluster, or `ps_strategy` is not callable.
    """
    if cluster is not None:
        ps_tasks = _ps_tasks(cluster, ps_device)
    if ps_tasks == 0:
        return None
    if ps_strategy is None:
        ps_strategy = _RoundRobin(ps_tasks)
    if not callable(ps_strategy):
        raise TypeError("ps_strategy must be callable")
    chooser = _DeviceChooser(
        ps_device, worker_device, merge_devices, STANDARD_PS_OPS if ps_ops is None else ps_ops, ps_strategy
    )
    return chooser.device_function
