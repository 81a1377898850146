"""Training in several processes that hold the same variables and average their gradients.

Each process computes the gradients of its part of the batch. The collective ops of `ops/collective` average them, and each process applies the
same update to its own variables, so that these stay equal. Start the processes with `python -m stoker launch --workers N script.py`.
"""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import name_scope
from stoker._src.ops.array import casting
from stoker._src.ops.collective import collectives, groups
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.variables import variable_functions
from stoker._src.train.optimizers.optimizer import Optimizer
from stoker._src.train.sessions.run_hooks import SessionRunHook


def reduced(grads_and_vars: Any, mean: bool) -> list[tuple[Any, Any]]:
    """The pairs with gradients summed, or averaged, over all processes. Sparse gradients become the rows of all of them."""
    pairs = list(grads_and_vars)
    if groups.size() == 1:
        return pairs
    with name_scope(None, "all_reduce"):
        dense = [i for i, (gradient, _) in enumerate(pairs) if gradient is not None and not _is_sparse(gradient)]
        sparse = [i for i, (gradient, _) in enumerate(pairs) if _is_sparse(gradient)]
        totals = collectives.all_reduce_all(
            [convert_to_tensor(pairs[i][0]) for i in dense], "Add", "Div" if mean else "Id"
        )
        parts = [part for i in sparse for part in (pairs[i][0].values, pairs[i][0].indices)]
        gathered = iter(collectives.all_gather_all(parts))
        for i, total in zip(dense, totals):
            pairs[i] = total, pairs[i][1]
        for i in sparse:
            values, indices = next(gathered), next(gathered)
            if mean:
                values = values / groups.size()
            pairs[i] = IndexedSlices(values, indices, pairs[i][0].dense_shape), pairs[i][1]
    return pairs


def _is_sparse(gradient: Any) -> bool:
    return isinstance(gradient, IndexedSlices)


@export("distribute.wrap")
def wrap(optimizer: Optimizer) -> Optimizer:
    """Wraps an optimizer so that it averages the gradients of all processes: one step is that of one process with all of their batches.

        optimizer = stoker.distribute.wrap(tf.train.AdamOptimizer(1e-3))
        train = optimizer.minimize(loss, global_step=step)    # the loss: a mean over this process's examples

    `compute_gradients` returns the averages, so that clipping by the global norm is as in one process. The variables must start with the same
    values: `MonitoredTrainingSession` sees to that, and in other sessions `broadcast_variables()` is run after the initializer.

    Args:
        optimizer: a `tf.train.Optimizer`.

    Raises:
        TypeError: it is not an optimizer.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"wrap takes a tf.train.Optimizer, not {optimizer!r}.")
    return ReplicatedOptimizer(optimizer)


class ReplicatedOptimizer(Optimizer):
    """The optimizer that `wrap` returns."""

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(optimizer._use_locking, optimizer.get_name())
        self._optimizer = optimizer
        self._track_trackable(optimizer, "optimizer")

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The gradients of the wrapped optimizer, averaged over all processes. Arguments as for `Optimizer.compute_gradients`."""
        return reduced(self._optimizer.compute_gradients(*args, **kwargs), mean=True)

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Applies gradients from `compute_gradients` with the wrapped optimizer."""
        return self._optimizer.apply_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The slot of the wrapped optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        """The slot names of the wrapped optimizer."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        """The variables of the wrapped optimizer."""
        return self._optimizer.variables()


_SENT_AS = {
    dtypes.bfloat16: dtypes.float32,
    **dict.fromkeys((dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16), dtypes.int32),
}


def broadcast(tensor: Any) -> Any:
    """The value of a tensor in the first process."""
    dtype = tensor.dtype.base_dtype
    if dtype not in _SENT_AS:
        return collectives.broadcast(tensor)
    return casting.cast(collectives.broadcast(casting.cast(tensor, _SENT_AS[dtype])), dtype)


@export("distribute.broadcast_variables")
def broadcast_variables(var_list: Any = None) -> Any:
    """Returns an op that gives variables the values that they have in the first process. In eager mode, does so at once.

    Every process must run it.

    Args:
        var_list: the variables; all global variables of the graph by default.
    """
    chosen = variable_functions.global_variables() if var_list is None else list(var_list)
    if groups.size() == 1:
        return None if context.executing_eagerly() else grouping.no_op(name="broadcast_variables")
    with name_scope(None, "broadcast_variables"):
        assigned = [variable.assign(broadcast(variable.value()), read_value=False) for variable in chosen]
        return grouping.group(*assigned)


@export("distribute.BroadcastHook")
class BroadcastHook(SessionRunHook):
    """Gives the variables of a new session the values of the first process. `MonitoredTrainingSession` adds it in launched processes."""

    def begin(self) -> None:
        self._op = broadcast_variables()

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._op)
