"""The current position of a program with respect to strategies: `ReduceOp`, `ReplicaContext`, `InputContext` and functions that query them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.ops.array import constants, shaping
from stoker._src.ops.collective import collectives, groups, replicas


@export("distribute.ReduceOp")
class ReduceOp(enum.Enum):
    """The ways to combine the values of replicas."""

    SUM = "SUM"
    MEAN = "MEAN"


def reduce_op_of(value: Any) -> ReduceOp:
    """Returns the ReduceOp with the given name. A ReduceOp is returned unchanged.

    Raises:
        ValueError: the name is unknown.
    """
    return ReduceOp(value.upper()) if isinstance(value, str) else ReduceOp(value)


def all_reduced(strategy: Any, reduce_op: Any, value: Any) -> Any:
    """Reduces the tensors of a structure over all replicas. IndexedSlices are concatenated."""
    op = reduce_op_of(reduce_op)
    if strategy.num_replicas_in_sync == 1:
        return value
    leaves = nest.flatten(value)
    dense = [i for i, leaf in enumerate(leaves) if not isinstance(leaf, IndexedSlices)]
    final = "Div" if op is ReduceOp.MEAN else "Id"
    totals = collectives.all_reduce_all([convert_to_tensor(leaves[i]) for i in dense], "Add", final)
    for i, total in zip(dense, totals):
        leaves[i] = total
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, IndexedSlices):
            values, indices = collectives.all_gather_all([leaf.values, leaf.indices])
            if op is ReduceOp.MEAN:
                values = values / groups.size()
            leaves[i] = IndexedSlices(values, indices, leaf.dense_shape)
    return nest.pack_sequence_as(value, leaves)


def all_gathered(strategy: Any, value: Any, axis: int) -> Any:
    """Concatenates the tensors of a structure over all replicas along `axis`."""

    def gathered(tensor: Any) -> Any:
        tensor = convert_to_tensor(tensor)
        if strategy.num_replicas_in_sync == 1:
            return shaping.identity(tensor)
        if axis == 0:
            return collectives.all_gather(tensor)
        rank = tensor.static_shape.rank
        if rank is None:
            raise ValueError("all_gather along another axis than 0 needs a tensor of known rank.")
        order = list(range(rank))
        order[0], order[axis] = order[axis], order[0]
        return shaping.transpose(collectives.all_gather(shaping.transpose(tensor, order)), order)

    return nest.map_structure(gathered, value)


@export("distribute.ReplicaContext")
class ReplicaContext:
    """The interface of a function called by `Strategy.run` to its replica.

    Args:
        strategy: the strategy.
        replica_id_in_sync_group: the number of the replica. The default is the replica of this process.
    """

    def __init__(self, strategy: Any, replica_id_in_sync_group: Any = None) -> None:
        self._strategy = strategy
        self._replica_id = groups.rank() if replica_id_in_sync_group is None else replica_id_in_sync_group

    @property
    def strategy(self) -> Any:
        """The strategy of this replica."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas that are kept in sync."""
        return self._strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The number of this replica, as a tensor."""
        return constants.constant(self._replica_id)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of this replica."""
        return tuple(self._strategy.extended.worker_devices)

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """Returns the sum or mean of a value, or of a structure of values, over all replicas.

        Args:
            reduce_op: a ReduceOp or its name.
            value: the contribution of this replica.
            options: accepted for compatibility. Messages are always bucketed.
        """
        return all_reduced(self._strategy, reduce_op, value)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """Concatenates the values of all replicas along `axis`. Their sizes along this axis may differ."""
        return all_gathered(self._strategy, value, axis)

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Calls `merge_fn(strategy, *args, **kwargs)` outside the replica."""
        with replicas.entered(self._strategy, None):
            return merge_fn(self._strategy, *args, **(kwargs or {}))

    def __enter__(self) -> ReplicaContext:
        self._entered = replicas.entered(self._strategy, self)
        self._entered.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.__exit__(*error)


@export("distribute.InputReplicationMode")
class InputReplicationMode(enum.Enum):
    """How an input function is called: once per worker."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@export("distribute.InputContext")
class InputContext:
    """Tells an input function which part of the input to produce."""

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def num_input_pipelines(self) -> int:
        """The number of input pipelines: one per process."""
        return self._num_input_pipelines

    @property
    def input_pipeline_id(self) -> int:
        """The number of this pipeline."""
        return self._input_pipeline_id

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return self._num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns the number of elements of a global batch that one replica gets.

        Raises:
            ValueError: the batch is not divisible by the number of replicas.
        """
        if global_batch_size % self._num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self._num_replicas_in_sync}."
            )
        return global_batch_size // self._num_replicas_in_sync

    def __str__(self) -> str:
        return f"tf.distribute.InputContext(input pipeline id {self._input_pipeline_id}, total: {self._num_input_pipelines})"


@export("distribute.has_strategy")
def has_strategy() -> bool:
    """Returns whether this code runs in the scope of a strategy other than the default one."""
    return replicas.current()[0] is not None


@export("distribute.in_cross_replica_context")
def in_cross_replica_context() -> bool:
    """Returns whether this code runs in the scope of a strategy but outside replicas."""
    strategy, replica = replicas.current()
    return strategy is not None and replica is None
