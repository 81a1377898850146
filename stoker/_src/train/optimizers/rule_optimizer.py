"""Optimizers whose update of a variable is one op. The hooks are derived from what each class declares."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.ops.array import casting
from stoker._src.ops.training.updates import UpdateOps
from stoker._src.train.optimizers.optimizer import Optimizer


class Number(NamedTuple):
    """A hyperparameter: the attribute with the user's value, the name of its tensor, and the attribute that holds the tensor."""

    given: str
    name: str
    tensor: str


class RuleOptimizer(Optimizer):
    """The base of optimizers with one training op. A subclass declares

    - `_slot_names`: its slots, in the order of the op (zeros, unless it overrides `_create_slots`),
    - `_hyperparameters`: its numbers, in the order in which their tensors are created,
    - `_before`, `_after`: the attributes with the tensors that the op takes before and after the gradient,
    - `_rule()`: the ops, and `_attributes()`: their attributes besides `use_locking`.
    """

    _slot_names: ClassVar[tuple[str, ...]] = ()
    _hyperparameters: ClassVar[tuple[Number, ...]] = ()
    _before: ClassVar[tuple[str, ...]] = ()
    _after: ClassVar[tuple[str, ...]] = ()

    def _rule(self) -> UpdateOps:
        raise NotImplementedError(f"{type(self).__name__} does not say which ops it is.")

    def _attributes(self) -> dict[str, Any]:
        return {}

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            for slot_name in self._slot_names:
                self._zeros_slot(var, slot_name, self._name)

    def _prepare(self) -> None:
        for given, name, tensor in self._hyperparameters:
            value = self._call_if_callable(getattr(self, given))
            setattr(self, tensor, convert_to_tensor(value, name=name))

    def _numbers(self, var: Any, names: tuple[str, ...]) -> list[Any]:
        dtype = var.dtype.base_dtype
        numbers = [getattr(self, name) for name in names]
        return [each if each.dtype is dtype else casting.cast(each, dtype) for each in numbers]

    def _call(self, op: Any, var: Any, *gradient: Any) -> Any:
        """Adds `op` for `var`, with slots and numbers around the gradient (and indices)."""
        states = [var, *[self.get_slot(var, name) for name in self._slot_names]]
        return op(
            *[state.handle for state in states],
            *self._numbers(var, self._before),
            *gradient,
            *self._numbers(var, self._after),
            use_locking=self._use_locking,
            **self._attributes(),
        )

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._call(self._rule().dense, var, grad).op

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._call(self._rule().resource_dense, handle, grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._call(self._rule().sparse, var, grad.values, grad.indices).op

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._call(self._rule().resource_sparse, handle, grad, indices)
