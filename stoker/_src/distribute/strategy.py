"""`Strategy` distributes a program. Each replica is a process, so a strategy runs a function once and reduces over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.data.dataset import Dataset
from stoker._src.distribute import shared_input
from stoker._src.distribute.contexts import (
    InputContext,
    InputReplicationMode,
    ReduceOp,
    ReplicaContext,
    all_gathered,
    all_reduced,
    reduce_op_of,
)
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import device, init_scope
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.collective import groups, replicas
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.math import reductions
from stoker._src.ops.variables import variable_functions
from stoker._src.ops.variables.creators import variable_creator_scope
from stoker._src.train.optimizers.replicated import broadcast


@export("distribute.StrategyExtended")
class StrategyExtended:
    """The parts of a strategy that libraries use.

    Args:
        container_strategy: the strategy that owns this object.
        device: the device of the replica. "" is the default device.
    """

    def __init__(self, container_strategy: Any, device: str = "") -> None:
        self._container_strategy = container_strategy
        self._device = device

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices that compute."""
        return (self._device or "/device:CPU:0",)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices that hold variables."""
        return self.worker_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        return False

    @property
    def experimental_between_graph(self) -> bool:
        """Each process builds its own graph."""
        return groups.size() > 1

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process writes checkpoints. Only the first one does."""
        return groups.rank() == 0

    @property
    def should_save_summary(self) -> bool:
        """Whether this process writes summaries. Only the first one does."""
        return groups.rank() == 0

    def call_for_each_replica(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Calls `fn` in the replica of this process."""
        strategy = self._container_strategy
        with replicas.entered(strategy, ReplicaContext(strategy)), device(self._device):
            return fn(*args, **(kwargs or {}))

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """Returns the sum or mean of a value over all replicas. The result is available on every destination."""
        return all_reduced(self._container_strategy, reduce_op, value)

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> list[Any]:
        """Does the work of `reduce_to` for many values with few messages."""
        return all_reduced(self._container_strategy, reduce_op, [value for value, _ in value_destination_pairs])

    def update(self, var: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        """Calls `fn(var, *args, **kwargs)` to update the copy of a variable in this process."""
        result = fn(var, *args, **(kwargs or {}))
        return grouping.group(result) if group and not context.executing_eagerly() else result

    def update_non_slot(
        self, colocate_with: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """Calls `fn(*args, **kwargs)` to update variables that are not slots."""
        result = fn(*args, **(kwargs or {}))
        return grouping.group(result) if group and not context.executing_eagerly() else result

    def value_container(self, value: Any) -> Any:
        """Returns the variable that a copy belongs to, which is the copy itself."""
        return value

    def read_var(self, v: Any) -> Any:
        """Returns the value of a variable."""
        return v.value()

    def non_slot_devices(self, var_list: Any) -> Any:
        """Returns the devices on which an optimizer places variables other than slots."""
        return min(var_list, key=lambda variable: variable.name)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was created in this strategy's scope."""
        return getattr(v, "_distribute_strategy", None) is self._container_strategy

    @contextmanager
    def colocate_vars_with(self, colocate_with_variable: Any) -> Iterator[None]:
        """Places the variables created inside on the device of another variable."""
        with device(getattr(colocate_with_variable, "device", "")):
            yield


@export("distribute.Strategy")
class Strategy:
    """The base class of strategies.

        strategy = tf.distribute.MirroredStrategy()
        with strategy.scope():
            ...                                  # variables start with the values of the first process
        train = strategy.run(step_fn, (inputs,)) # optimizers sum gradients over all processes
        loss = strategy.reduce("MEAN", loss)

    Args:
        extended: a StrategyExtended.
    """

    def __init__(self, extended: StrategyExtended) -> None:
        self._extended = extended

    @property
    def extended(self) -> StrategyExtended:
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas: the processes started by `stoker launch`, or the tasks of the cluster."""
        return groups.size()

    @property
    def cluster_resolver(self) -> Any:
        """The resolver that the strategy was given, or None."""
        return getattr(self, "_cluster_resolver", None)

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Makes this the current strategy. Variables created inside start with the values of the first process.

        Raises:
            RuntimeError: another strategy is current.
        """
        known, _ = replicas.current()
        if known is not None and known is not self:
            raise RuntimeError(f"Mixing different tf.distribute.Strategy objects: {known} is not {self}")
        with (
            replicas.entered(self, None),
            variable_creator_scope(self._create_variable),
            device(self._extended._device),
        ):
            yield self

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        variable = next_creator(**kwargs)
        if replicas.current()[0] is not self:
            return variable  # of a part of the program that is apart from this strategy, such as an evaluation during training
        if self.num_replicas_in_sync > 1 and variable.dtype != dtypes.string:
            # The initial value itself stays that of this process, because what depends on it may run in one process alone.
            with init_scope():
                if context.executing_eagerly():
                    variable.assign(broadcast(variable.value()))
                elif variable.initial_value is not None:
                    variable_functions.start_with(variable, broadcast(variable.initial_value))
        variable._distribute_strategy = self
        return variable

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        """Calls `fn(*args, **kwargs)` in the replica of this process and returns its result."""
        with self.scope() if replicas.current()[0] is None else replicas.entered(self, None):
            return self._extended.call_for_each_replica(fn, args, kwargs)

    def experimental_run_v2(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """The name of `run` before TensorFlow 2.2."""
        return self.run(fn, args, kwargs)

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """Calls `run` with the next input of an iterator."""
        return self.run(fn) if input_iterator is None else self.run(fn, (input_iterator.get_next(),))

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """Returns the sum or mean of a value over all replicas, and over its dimension `axis` if given.

        A mean over an axis gives every element the same weight, even if the replicas have different numbers of elements.
        """
        op = reduce_op_of(reduce_op)
        if axis is None:
            return nest.map_structure(
                lambda each: shaping.identity(convert_to_tensor(each)), all_reduced(self, op, value)
            )

        def over_axis(each: Any) -> Any:
            each = convert_to_tensor(each)
            total = reductions.reduce_sum(each, axis)
            if op is ReduceOp.SUM:
                return all_reduced(self, op, total)
            count = casting.cast(shaping.shape(each)[axis], total.dtype)
            total, count = all_reduced(self, ReduceOp.SUM, (total, count))
            return total / count

        return nest.map_structure(over_axis, value)

    def gather(self, value: Any, axis: int) -> Any:
        """Concatenates the values of all replicas along `axis`."""
        return all_gathered(self, value, axis)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Returns the values of the replicas of this process, of which there is one."""
        return (value,)

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """The earlier name of `experimental_local_results`."""
        return (value,)

    def group(self, value: Any, name: str | None = None) -> Any:
        """Returns an op that runs `value` in all replicas of this process."""
        return grouping.group(value, name=name)

    # -- input ---------------------------------------------------------------------------------------------------

    def _input_context(self) -> InputContext:
        return InputContext(groups.size(), groups.rank(), self.num_replicas_in_sync)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any = None) -> Any:
        """Returns the dataset of this process, which is the result of `dataset_fn` for its InputContext."""
        return dataset_fn(self._input_context())

    def experimental_distribute_datasets_from_function(self, dataset_fn: Any, options: Any = None) -> Any:
        """The earlier name of `distribute_datasets_from_function`."""
        return dataset_fn(self._input_context())

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """Returns the part of a dataset of batches for this process: its rows of each batch, in the order of the ranks.

        Every process reads the dataset, so a shuffle needs a seed. Batches are as equal as their number of rows allows.

        Raises:
            ValueError: an element of the dataset is not a batch.
        """
        return shared_input.own_rows(dataset, groups.rank(), self.num_replicas_in_sync)

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """Returns a dataset of the rows of arrays. They are constants of the graph, so no session is needed to store them."""
        return Dataset.from_tensor_slices(numpy_input)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[Any], Any]) -> Any:
        """Returns the result of `value_fn` for this replica."""
        return value_fn(ReplicaContext(self))

    def make_input_fn_iterator(
        self,
        input_fn: Callable[[InputContext], Any],
        replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
    ) -> Any:
        """Returns an iterator over the result of `input_fn(InputContext)`: a dataset, or a function that returns the next input.

        Raises:
            ValueError: the mode is not PER_WORKER.
        """
        if replication_mode is not InputReplicationMode.PER_WORKER:
            raise ValueError(f"Input replication mode not supported: {replication_mode}")
        return shared_input.InputIterator(input_fn(self._input_context()))

    def make_dataset_iterator(self, dataset: Any) -> Any:
        """Returns an iterator over the part of a dataset for this process, as of `experimental_distribute_dataset`."""
        return shared_input.InputIterator(self.experimental_distribute_dataset(dataset))

    # -- sessions ------------------------------------------------------------------------------------------------

    def configure(
        self, session_config: Any = None, cluster_spec: Any = None, task_type: Any = None, task_id: Any = None
    ) -> None:
        """Accepted for compatibility. Processes are configured when they start."""

    def update_config_proto(self, config_proto: Any) -> Any:
        """Returns the session configuration for this strategy, which is `config_proto` unchanged."""
        return config_proto

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """Places the variables created inside on the device of another variable."""
        return self._extended.colocate_vars_with(colocate_with_variable)


class _DefaultStrategy(Strategy):
    """The strategy outside of all scopes. It has one replica."""

    def __init__(self) -> None:
        super().__init__(StrategyExtended(self))

    @property
    def num_replicas_in_sync(self) -> int:
        return 1

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        return fn(*args, **(kwargs or {}))

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        known, _ = replicas.current()
        if known is not None:
            raise RuntimeError("Mixing different tf.distribute.Strategy objects.")
        yield self

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        op = reduce_op_of(reduce_op)
        if axis is None:
            return value
        over = reductions.reduce_sum if op is ReduceOp.SUM else reductions.reduce_mean
        return nest.map_structure(lambda each: over(each, axis), value)


_DEFAULT = _DefaultStrategy()
_DEFAULT_CONTEXT = ReplicaContext(_DEFAULT, 0)


@export("distribute.get_strategy")
def get_strategy() -> Strategy:
    """Returns the current strategy. Outside of all scopes it has a single replica."""
    return replicas.current()[0] or _DEFAULT


@export("distribute.get_replica_context")
def get_replica_context() -> ReplicaContext | None:
    """Returns the context of the current replica, or None in the scope of a strategy outside replicas."""
    strategy, replica = replicas.current()
    return _DEFAULT_CONTEXT if strategy is None else replica


@export("distribute.experimental_set_strategy")
def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Makes a strategy the current one without a scope. None removes it.

    Raises:
        RuntimeError: called inside a scope.
    """
    if replicas.inside():
        raise RuntimeError(
            "Must not nest tf.distribute.Strategy scopes: experimental_set_strategy cannot be called inside of a scope."
        )
    replicas.set_default(strategy)


@export(v1="distribute.get_loss_reduction")
def get_loss_reduction() -> ReduceOp:
    """Returns how optimizers combine the losses of replicas: by sum, and in a model function of an Estimator by mean, if the last loss was none."""
    return ReduceOp.MEAN if replicas.losses_are_means() else ReduceOp.SUM
