"""Queues that collect the gradients of replicas, as `SyncReplicasOptimizer` of TensorFlow 0.12 did."""

from __future__ import annotations

from typing import Any

from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import control_dependencies, device
from stoker._src.ops.array import joining
from stoker._src.ops.control_flow import branches_and_loops, grouping
from stoker._src.ops.math import comparison, reductions
from stoker._src.ops.resources import queues
from stoker._src.ops.variables import reports, variable_functions
from stoker._src.ops.variables.variables import Variable


class GradientQueues:
    """Collects the gradients in one queue per variable. The chief takes them out and sums them.

    Each replica has a local step. A replica whose local step is not the global step drops its gradients. The queues are emptied after
    each update: what is left in them then is stale.
    """

    def __init__(self, global_step: Any, replica_id: int, replicas: int) -> None:
        with device(global_step.device):
            local_steps = [
                Variable(0, trainable=False, dtype=global_step.dtype.base_dtype, name=f"sync_rep_local_step_{i}")
                for i in range(replicas)
            ]
        self._global_step = global_step
        self._local_step = local_steps[replica_id]
        with device(self._local_step.device):
            self.local_step_init_op = variable_functions.assign(self._local_step, global_step)
            self._all_steps = [variable_functions.assign(each, global_step) for each in local_steps]
        self.ready_for_local_init_op = reports.report_uninitialized_variables(variable_functions.global_variables())
        self._queues: list[tuple[queues.FIFOQueue, str]] = []

    def push(self, pairs: list[tuple[Any, Any]], required: int) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Returns the op by which a replica hands in its gradients, and the pairs that the chief applies."""
        fresh = comparison.equal(self._local_step.value(), self._global_step.value())
        pushed, collected = [], []
        for gradient, variable in pairs:
            if gradient is None:
                collected.append((None, variable))
                continue
            with device(variable.device):
                sparse = isinstance(gradient, IndexedSlices)
                parts = [gradient.values, gradient.indices] if sparse else [gradient]
                queue = queues.FIFOQueue(
                    -1,
                    [part.dtype.base_dtype for part in parts],
                    # The rows of a sparse gradient differ in number from replica to replica.
                    shapes=None if sparse else [variable.get_shape()],
                    name="gradient_queue",
                    shared_name=f"{variable.name}/gradient_queue",
                )
                self._queues.append((queue, variable.device))
                pushed.append(branches_and_loops.cond(fresh, _enqueue(queue, parts), grouping.no_op))
                collected.append((_summed(queue, gradient, required), variable))
        return pushed, collected

    def applied(self, update: Any) -> Any:
        """Empties the queues after the update."""
        emptied = []
        with control_dependencies([update]):
            for queue, place in self._queues:
                with device(place):
                    emptied.append(_emptied(queue))
        return grouping.group(*emptied)

    def take_token(self, token: Any) -> Any:
        """The replica's training op."""
        return variable_functions.assign(self._local_step, token)

    def chief_init_op(self) -> Any:
        """Sets all local steps to the global step."""
        return grouping.group(*self._all_steps)


def _enqueue(queue: queues.FIFOQueue, parts: list[Any]) -> Any:
    return lambda: grouping.group(queue.enqueue(parts))


def _summed(queue: queues.FIFOQueue, like: Any, required: int) -> Any:
    """The sum of `required` gradients."""
    if not isinstance(like, IndexedSlices):
        return reductions.reduce_sum(queue.dequeue_many(required), 0)
    taken = [queue.dequeue() for _ in range(required)]
    values = joining.concat([values for values, _ in taken], 0)
    return IndexedSlices(values, joining.concat([indices for _, indices in taken], 0), like.dense_shape)


def _emptied(queue: queues.FIFOQueue) -> Any:
    """Takes everything out of a queue. Without known shapes, elements cannot be taken together."""
    if all(shape.is_fully_defined() for shape in queue.shapes):
        return queue.dequeue_many(queue.size())

    def take(count: Any) -> Any:
        with control_dependencies(list(queue.dequeue())):
            return count - 1

    return branches_and_loops.while_loop(lambda count: count > 0, take, [queue.size()])
