"""`Optimizer`: from a loss to a training op. The update rules are in the other modules of this folder.

A subclass overrides hooks that start with an underscore. They have TensorFlow's names, so that optimizers written for it work:
`_create_slots` and `_prepare` are called once per `apply_gradients`; one of `_apply_dense`, `_resource_apply_dense`,
`_apply_sparse`, `_resource_apply_sparse` is called for each variable; `_finish` is called at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import DType
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import colocate_with, control_dependencies, init_scope, name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.trackable import Pending, Trackable
from stoker._src.ops.array import shaping
from stoker._src.ops.collective import replicas
from stoker._src.ops.control_flow import gradients, grouping
from stoker._src.ops.math import segment_reductions, sorting
from stoker._src.ops.variables import state_ops, variable_functions
from stoker._src.ops.variables.partitioned import PartitionedVariable
from stoker._src.ops.variables.variables import RefVariable, ResourceVariable, Variable
from stoker._src.runtime.eager import tape
from stoker._src.train.optimizers import slot_creator


def variables_graph() -> Any:
    """The graph that owns new variables: not a function body, but the graph around it. None in eager mode."""
    if context.executing_eagerly():
        return None
    graph = context.get_default_graph()
    while graph.building_function and graph.outer is not None:
        graph = graph.outer
    return graph if hasattr(graph, "get_operations") else None


def sum_duplicates(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """(values, indices) in which each index occurs once, with its values summed."""
    unique, positions = sorting.UNIQUE(indices)
    total = shaping.shape(unique)[0]
    return segment_reductions.UNSORTED_SEGMENT_SUM(values, positions, total), unique


@export(v1="train.Optimizer")
class Optimizer(Trackable):
    """The base class of all optimizers.

        step = SomeOptimizer(0.1).minimize(loss)           # an op; run it to train
        opt.apply_gradients([(clip(g), v) for g, v in opt.compute_gradients(loss)])

    Args:
        use_locking: whether concurrent runs update a variable one after the other. Here they always do.
        name: the name of the training op, and of the slots.

    Raises:
        ValueError: the name is empty.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._slots: dict[str, dict[Any, Any]] = {}
        self._non_slot_dict: dict[Any, Any] = {}
        self._waiting_slots: dict[tuple[str, Any], list[Pending]] = {}

    def get_name(self) -> str:
        """The name given to the constructor."""
        return self._name

    # -- the two steps of training -------------------------------------------------------------------------------

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Any:
        """Returns an op that updates variables to reduce `loss`: `compute_gradients`, then `apply_gradients`.

        Args:
            loss: a scalar tensor; in eager mode a function without arguments that returns one.
            global_step: a variable to increment by one after the update.
            var_list: the variables to update (a list or tuple); the graph's trainable variables by default.
            gate_gradients: GATE_NONE, GATE_OP or GATE_GRAPH.
            aggregation_method: a `tf.AggregationMethod`.
            colocate_gradients_with_ops: whether to place gradients on the devices of their ops.
            name: the name of the op; the optimizer's by default.
            grad_loss: the initial gradient, for the loss.

        Raises:
            ValueError: no variable has a gradient.
        """
        pairs = self.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        if all(gradient is None for gradient, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support gradients, "
                f"between variables {[str(variable) for _, variable in pairs]} and loss {loss}."
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Computes (gradient, variable) for each variable. The gradient is a tensor, an `IndexedSlices`, or None if the loss
        does not depend on the variable.

        Args:
            As for `minimize`.

        Raises:
            TypeError: `var_list` contains an object that is neither a variable nor a tensor.
            ValueError: the loss is not a tensor, the gate is unknown, there are no variables, or a dtype cannot be trained.
            RuntimeError: in eager mode, if `loss` is not a function.
        """
        if callable(loss) and not isinstance(loss, (Tensor, Variable)):
            return self._watched_gradients(loss, var_list, grad_loss)
        if context.executing_eagerly():
            raise RuntimeError(
                "`loss` passed to Optimizer.compute_gradients should be a function when eager execution is enabled."
            )
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH.  "
                f"Not {gate_gradients}"
            )
        if not isinstance(loss, (Tensor, Variable, PartitionedVariable)):
            raise ValueError(f"loss must be a tensor that depends on variables, not {loss!r}.")
        loss = self._scale_loss(convert_to_tensor(loss))
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        trained = _variables_of(var_list)
        found = gradients.gradients(
            loss,
            trained,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == self.GATE_GRAPH:
            found = _all_at_once(found)
        self._assert_valid_dtypes(
            [v for g, v in zip(found, trained) if g is not None and v.dtype.base_dtype is not dtypes.resource]
        )
        return list(zip(found, trained))

    def _watched_gradients(self, loss: Callable[[], Any], var_list: Any, grad_loss: Any) -> list[tuple[Any, Any]]:
        with tape.GradientTape() as watching:
            if var_list is not None:
                watching.watch(_variables_of(var_list))
            value = self._scale_loss(loss())
        if var_list is None:
            var_list = watching.watched_variables()
        trained = _variables_of(var_list)
        found = watching.gradient(value, trained, grad_loss)
        return list(zip(found, trained))

    @staticmethod
    def _scale_loss(loss_value: Any) -> Any:
        """A hook that returns what `compute_gradients` differentiates instead of the loss."""
        return replicas.share_of(loss_value)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Returns an op that applies gradients to their variables (in eager mode, applies them at once).

        Args:
            grads_and_vars: pairs from `compute_gradients`. Pairs whose gradient is None are skipped.
            global_step: a variable to increment by one after the update.
            name: the name of the op; the optimizer's by default.

        Raises:
            TypeError: an entry is not a pair of a gradient and a variable.
            ValueError: there are no pairs, or none has a gradient.
        """
        pairs = [_checked_pair(entry) for entry in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        trained = [variable for gradient, variable in pairs if gradient is not None]
        if not trained:
            raise ValueError(f"No gradients provided for any variable: {[str(variable) for _, variable in pairs]}.")
        strategy, replica = replicas.current()
        if strategy is not None:
            if replica is None:
                raise RuntimeError(
                    "Use `strategy.run` (or `_distributed_apply()`) instead of `apply_gradients()` in a cross-replica context."
                )
            if strategy.num_replicas_in_sync > 1:
                pairs = list(zip(replica.all_reduce("SUM", [g for g, _ in pairs if g is not None]), trained))
        # While a function is traced, the optimizer's variables belong to the graph around it.
        with init_scope() if context.target().building_function else control_dependencies(None):
            self._create_slots(trained)
        updates = []
        with name_scope(name, self._name) as scope:
            self._prepare()
            with updates_together():
                for gradient, variable in pairs:
                    if gradient is None:
                        continue
                    with name_scope("update_" + _scope_name(variable)), beside(variable):
                        updates.append(self._update(gradient, variable))
            if global_step is None:
                train_op = self._finish(updates, scope)
            else:
                train_op = self._count(global_step, self._finish(updates, "update"), scope)
        if context.executing_eagerly():
            return None
        if isinstance(train_op, Tensor):
            train_op = train_op.op
        collection = context.get_default_graph().get_collection_ref(GraphKeys.TRAIN_OP)
        if train_op not in collection:
            collection.append(train_op)
        return train_op

    def _count(self, global_step: Any, finished: Any, scope: str) -> Any:
        """Increments the step after the update has finished."""
        with control_dependencies([finished]), beside(global_step):
            if isinstance(global_step, ResourceVariable):
                one = convert_to_tensor(1, global_step.dtype, name="value")
                return state_ops.ASSIGN_ADD_VARIABLE_OP(global_step.handle, one, name=scope)
            return variable_functions.assign_add(global_step, 1, name=scope)

    def _update(self, gradient: Any, variable: Any) -> Any:
        """The op that updates one variable with the hook for its kind, and then applies its constraint."""
        sparse = isinstance(gradient, IndexedSlices)
        constraint = getattr(variable, "constraint", None)
        if sparse and constraint is not None:
            raise RuntimeError("Cannot use a constraint function on a sparse variable.")
        if isinstance(variable, ResourceVariable):
            if sparse:
                return self._resource_apply_sparse_duplicate_indices(gradient.values, variable, gradient.indices)
            updated = self._resource_apply_dense(gradient, variable)
        elif isinstance(variable, RefVariable):
            if sparse:
                return self._apply_sparse_duplicate_indices(gradient, variable)
            updated = self._apply_dense(gradient, variable)
        else:
            raise NotImplementedError("Trying to update a Tensor ", variable)
        if constraint is None:
            return updated
        with control_dependencies([] if updated is None else [updated]):
            return variable.assign(constraint(variable.value()), read_value=False)

    # -- slots ---------------------------------------------------------------------------------------------------

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot called `name` of a variable, or None."""
        slots = self._slots.get(name)
        return None if slots is None else slots.get(_key(var))

    def get_slot_names(self) -> list[str]:
        """The sorted names of the slots that exist."""
        return sorted(self._slots)

    def variables(self) -> list[Any]:
        """Slots and other variables of the optimizer in the current graph, sorted by name."""
        eager = context.executing_eagerly()
        graph = None if eager else context.get_default_graph()

        def here(variable: Any) -> bool:
            return eager or variable.graph is graph

        own = [variable for variable in self._non_slot_variables() if here(variable)]
        slots = [slot for by_variable in self._slots.values() for slot in by_variable.values() if here(slot)]
        return sorted(own + slots, key=lambda variable: variable.name)

    def _slot_dict(self, slot_name: str) -> dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        """The slot. If it does not exist, it is created with the initial value `val` and a variable named `op_name`."""
        return self._slot(var, slot_name, lambda: slot_creator.create_slot(var, val, op_name))

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Any:
        """The slot. If it does not exist, it is created with an initializer."""
        return self._slot(
            var,
            slot_name,
            lambda: slot_creator.create_slot_with_initializer(var, initializer, shape, dtype, op_name),
        )

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        """The slot. If it does not exist, it is created with zeros."""
        return self._slot(var, slot_name, lambda: slot_creator.create_zeros_slot(var, op_name))

    def _slot(self, var: Any, slot_name: str, make: Callable[[], Any]) -> Any:
        slots = self._slot_dict(slot_name)
        key = _key(var)
        if key not in slots:
            slots[key] = made = make()
            for pending in sorted(self._waiting_slots.pop((slot_name, key), ()), key=lambda each: each.uid):
                pending.restore(made)
        return slots[key]

    # -- checkpoints of objects ----------------------------------------------------------------------------------

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """The variables of the current graph that are not slots. Slots belong to a variable and the optimizer."""
        graph = variables_graph()
        named = sorted(self._non_slot_dict.items(), key=lambda each: each[0][0])
        own = {name: variable for (name, owner), variable in named if owner is graph}
        return {**super()._trackable_children(save_type, **kwargs), **own}

    def _defer_slot(self, slot_name: str, var: Any, pending: Pending) -> None:
        """Keeps the checkpointed value of a slot that does not exist yet."""
        self._waiting_slots.setdefault((slot_name, _key(var)), []).append(pending)

    def _restore_slot(self, slot_name: str, var: Any, pending: Pending, value: Callable[[], Any] | None) -> None:
        """Restores a slot: at once if it exists or can be created from `value`, else when it is created."""
        slot = self.get_slot(var, slot_name)
        if slot is None and value is not None:
            self._slot_dict(slot_name)[_key(var)] = slot = slot_creator.create_slot(var, value(), slot_name)
        if slot is None:
            self._defer_slot(slot_name, var, pending)
        else:
            pending.restore(slot)

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Any:
        """Creates or returns a variable of the optimizer itself, placed with another variable."""
        key = (name, variables_graph())
        found = self._non_slot_dict.get(key)
        if found is None:
            with beside(colocate_with):
                found = Variable(
                    initial_value,
                    name=name,
                    trainable=False,
                    use_resource=isinstance(colocate_with, ResourceVariable),
                )
            self._non_slot_dict[key] = found
            self._handle_deferred_dependencies(name, found)
        return found

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Any:
        return self._non_slot_dict.get((name, None if context.executing_eagerly() else graph))

    def _non_slot_variables(self) -> list[Any]:
        return list(self._non_slot_dict.values())

    # -- hooks for subclasses ------------------------------------------------------------------------------------

    def _valid_dtypes(self) -> set[DType]:
        """The dtypes that can be trained."""
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _assert_valid_dtypes(self, tensors: Any) -> None:
        valid = self._valid_dtypes()
        for tensor in tensors:
            dtype = tensor.dtype.base_dtype
            if dtype not in valid:
                raise ValueError(f"Invalid type {dtype!r} for {tensor.name}, expected: {list(valid)}.")

    def _create_slots(self, var_list: list[Any]) -> None:
        """Creates the slots of these variables."""

    def _prepare(self) -> None:
        """Creates the tensors of the hyperparameters, inside the optimizer's scope."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        """The op that updates a reference variable with a dense gradient."""
        raise NotImplementedError(f"{type(self).__name__} does not update reference variables by dense gradients.")

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        """The op that updates a resource variable with a dense gradient."""
        raise NotImplementedError(f"{type(self).__name__} does not update resource variables by dense gradients.")

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        """The op that updates rows of a reference variable. Indices are distinct."""
        raise NotImplementedError(f"{type(self).__name__} does not update reference variables by sparse gradients.")

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        """The op that updates rows of a resource variable. Indices are distinct."""
        raise NotImplementedError(f"{type(self).__name__} does not update resource variables by sparse gradients.")

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        """Sums the values of repeated rows, then calls `_apply_sparse`."""
        values, indices = sum_duplicates(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        """Sums the values of repeated rows, then calls `_resource_apply_sparse`."""
        values, unique = sum_duplicates(grad, indices)
        return self._resource_apply_sparse(values, handle, unique)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        """The op for the whole update, named `name_scope`."""
        return grouping.group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: Any) -> Any:
        """The value of a hyperparameter, which may be a function."""
        return param() if callable(param) and not isinstance(param, (Tensor, Variable)) else param

    def __getstate__(self) -> Any:
        if not self._slots and not self._non_slot_dict:
            return self.__dict__
        raise TypeError(
            f"{type(self).__name__} holds variables of a graph or of eager mode and cannot be copied or pickled."
        )


def _variables_of(var_list: Any) -> list[Any]:
    """The variables to train. The slices of a partitioned variable are listed separately.

    Raises:
        TypeError: an entry is neither a variable nor a tensor.
        ValueError: there are no variables.
    """
    if var_list is None:
        graph = context.get_default_graph()
        var_list = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) + graph.get_collection(
            GraphKeys.TRAINABLE_RESOURCE_VARIABLES
        )
    found: list[Any] = []
    for item in nest.flatten(var_list):
        if isinstance(item, PartitionedVariable):
            found.extend(item)
        elif isinstance(item, (Variable, Tensor)):
            found.append(item)
        else:
            raise TypeError(f"Argument is not a tf.Variable: {item!r} of type {type(item).__name__} in var_list.")
    if not found:
        raise ValueError("No variables to optimize.")
    return found


def _all_at_once(found: list[Any]) -> list[Any]:
    """The gradients, each available only when all of them are."""
    parts = [g.values if isinstance(g, IndexedSlices) else g for g in found]
    if all(part is None for part in parts):
        return found
    gated = grouping.tuple_v1(parts)
    return [
        IndexedSlices(part, g.indices, g.dense_shape) if isinstance(g, IndexedSlices) else part
        for g, part in zip(found, gated)
    ]


def _checked_pair(entry: Any) -> tuple[Any, Any]:
    if not isinstance(entry, (tuple, list)) or len(entry) != 2:
        raise TypeError(f"Each entry of grads_and_vars must be a pair (gradient, variable), not {entry!r}.")
    gradient, variable = entry
    if not isinstance(variable, (Variable, Tensor)):
        raise TypeError(f"Argument is not a tf.Variable: {variable!r} of type {type(variable).__name__}.")
    if gradient is None or isinstance(gradient, IndexedSlices):
        return gradient, variable
    try:
        gradient = convert_to_tensor(gradient)
    except TypeError:
        raise TypeError(f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {gradient!r}") from None
    return gradient, variable


def _key(var: Any) -> Any:
    """The key of a variable for slots: its name in its graph; in eager mode, the variable itself."""
    if slot_creator.is_eager(var):
        return var.ref()
    return var.op.graph, var.op.name


def _scope_name(var: Any) -> str:
    return var._name if slot_creator.is_eager(var) else var.op.name


def updates_together() -> Any:
    """A context in which updates that share their numbers become one call. A plan of a graph finds them by itself."""
    return context.target().updates_together() if context.executing_eagerly() else nullcontext()


def beside(var: Any) -> Any:
    """Places ops created inside on the device of a variable."""
    if isinstance(var, Operation):
        return colocate_with(var)
    return nullcontext() if slot_creator.is_eager(var) else colocate_with(var.op)
