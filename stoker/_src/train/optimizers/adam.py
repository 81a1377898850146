"""Adam."""

from __future__ import annotations

from typing import Any, ClassVar

from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import control_dependencies
from stoker._src.ops.array import casting
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.math import unary_functions
from stoker._src.ops.training.rules import ADAM
from stoker._src.ops.training.updates import UpdateOps
from stoker._src.ops.variables import scatter_ops, variable_functions
from stoker._src.train.optimizers.optimizer import beside, variables_graph
from stoker._src.train.optimizers.rule_optimizer import Number, RuleOptimizer


@export(v1="train.AdamOptimizer")
class AdamOptimizer(RuleOptimizer):
    """Adam (Kingma and Ba, 2014, the form just before section 2.1).

    m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
    var -= learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)

    `epsilon` is therefore the paper's "epsilon hat". torch.optim.Adam divides by the corrected sqrt(v) instead, so the two
    differ in the first steps. A sparse gradient has the same effect as the equal dense one: all rows decay and move.

    Slots, as named in checkpoints: `<var>/Adam` (`m`) and `<var>/Adam_1` (`v`); shared by all variables: `beta1_power`
    (beta1^t) and `beta2_power` (beta2^t).

    Args:
        learning_rate, beta1, beta2, epsilon: numbers, tensors, or functions that return one.
        use_locking: see `Optimizer`.
        name: the name of the training op and of the slots.
    """

    _slot_names = ("m", "v")
    _hyperparameters = (
        Number("_lr", "learning_rate", "_lr_t"),
        Number("_beta1", "beta1", "_beta1_t"),
        Number("_beta2", "beta2", "_beta2_t"),
        Number("_epsilon", "epsilon", "_epsilon_t"),
    )
    _powers_of: ClassVar[dict[str, Number]] = {"beta1_power": _hyperparameters[1], "beta2_power": _hyperparameters[2]}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon
        self._read_powers: list[Any] | None = None  # in eager mode, the values during one `apply_gradients`

    def _rule(self) -> UpdateOps:
        return ADAM

    def _get_beta_accumulators(self) -> tuple[Any, ...]:
        """The variables that hold beta1^t and beta2^t."""
        graph = variables_graph()
        return tuple([self._get_non_slot_variable(name, graph) for name in self._powers_of])

    def _powers(self, var: Any) -> list[Any]:
        """beta1^t and beta2^t for `var`. If they have its dtype, the op reads them directly, as in TensorFlow's graphs."""
        dtype = var.dtype.base_dtype
        powers: Any = self._read_powers if context.executing_eagerly() else None
        powers = self._get_beta_accumulators() if powers is None else powers
        return [power if power.dtype.base_dtype is dtype else casting.cast(power, dtype) for power in powers]

    def _create_slots(self, var_list: list[Any]) -> None:
        # The powers are placed with the first variable by name, so that all replicas agree on the place.
        first = min(var_list, key=lambda var: var.name)
        for name, beta in self._powers_of.items():
            self._create_non_slot_variable(self._call_if_callable(getattr(self, beta.given)), name, first)
        super()._create_slots(var_list)

    def _prepare(self) -> None:
        super()._prepare()
        powers: Any = self._get_beta_accumulators() if context.executing_eagerly() else (None,)
        self._read_powers = None if any(each is None for each in powers) else [each.value() for each in powers]

    def _call(self, op: Any, var: Any, *gradient: Any) -> Any:
        slots = [self.get_slot(var, name) for name in self._slot_names]
        return op(
            *[each.handle for each in (var, *slots)],
            *self._powers(var),
            *self._numbers(var, ("_lr_t", "_beta1_t", "_beta2_t", "_epsilon_t")),
            *gradient,
            use_locking=self._use_locking,
            **self._attributes(),
        )

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        def add_rows(slot: Any, indices: Any, rows: Any) -> Any:
            return scatter_ops.SCATTERS["Add"][0](slot.handle, indices, rows, use_locking=self._use_locking)

        return self._sparse(grad.values, var, grad.indices, add_rows)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._sparse(grad, handle, indices, self._resource_scatter_add)

    def _resource_scatter_add(self, x: Any, i: Any, v: Any) -> Any:
        added = scatter_ops.SCATTERS["Add"][1](x.handle, i, v)
        with control_dependencies([added]):
            return x.value()

    def _sparse(self, grad: Any, var: Any, indices: Any, add_rows: Any) -> Any:
        """The update for sparse gradients: all of m and v decay, the rows are added, and all of var moves."""
        power1, power2 = self._powers(var)
        rate, beta1, beta2, epsilon = self._numbers(var, ("_lr_t", "_beta1_t", "_beta2_t", "_epsilon_t"))
        rate = rate * unary_functions.sqrt(1 - power2) / (1 - power1)
        moments = []
        for slot_name, beta, rows in (("m", beta1, grad), ("v", beta2, None)):
            slot = self.get_slot(var, slot_name)
            rows = (grad * grad if rows is None else rows) * (1 - beta)
            decayed = variable_functions.assign(slot, slot.value() * beta, use_locking=self._use_locking)
            with control_dependencies([] if context.executing_eagerly() else [decayed]):
                moments.append(add_rows(slot, indices, rows))
        m, v = moments
        step = rate * self._direction(m, beta1, grad, indices) / (unary_functions.sqrt(v) + epsilon)
        moved = variable_functions.assign_sub(var, step, use_locking=self._use_locking)
        return grouping.group(moved, m, v)

    def _direction(self, m: Any, beta1: Any, grad: Any, indices: Any) -> Any:
        """What takes the place of the first moment in a step, after it has been updated by the rows `grad`."""
        return m

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        held = self._get_beta_accumulators()
        betas = [getattr(self, beta.tensor) for beta in self._powers_of.values()]
        with control_dependencies([] if context.executing_eagerly() else update_ops), beside(held[0]):
            powers = [
                power.assign(now * beta, use_locking=self._use_locking)
                for power, now, beta in zip(held, self._read_powers or held, betas)
            ]
            self._read_powers = None
        return grouping.group(*update_ops, *powers, name=name_scope)
