"""`tf.contrib.opt`: weight decay apart from the gradient, lazy and other forms of Adam, LARS, averaged and clipped variables."""

from __future__ import annotations

import contextlib
from typing import Any

from stoker._src.base.export import export
from stoker._src.graph import conversion, indexed_slices, scopes
from stoker._src.ops.array import casting, constants, gathering, selection, shaping
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.linalg import norms
from stoker._src.ops.math import arithmetic, clipping, comparison, sorting, unary_functions
from stoker._src.ops.training.rules import ADA_MAX, MOMENTUM
from stoker._src.ops.variables import scatter_ops, variable_functions
from stoker._src.train.checkpoints import saver
from stoker._src.train.optimizers import moving_averages
from stoker._src.train.optimizers.adam import AdamOptimizer
from stoker._src.train.optimizers.descent import MomentumOptimizer
from stoker._src.train.optimizers.optimizer import Optimizer
from stoker._src.train.optimizers.rule_optimizer import Number, RuleOptimizer


@export(v1="contrib.opt.clip_gradients_by_global_norm")
def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: float = 20.0) -> list[Any]:
    """Clips pairs of gradients and variables by the norm of all gradients together."""
    gradients, variables = zip(*gradients_variables)
    return list(zip(clipping.clip_by_global_norm(gradients, clip_norm)[0], variables))


# -- weight decay ------------------------------------------------------------------------------------------------------


@export(v1="contrib.opt.DecoupledWeightDecayExtension")
class DecoupledWeightDecayExtension:
    """Weight decay beside the gradient (Loshchilov and Hutter, 2017): var -= weight_decay * var before each update.

    A base class to be combined with an optimizer. With a sparse gradient only its rows decay. `minimize` and `apply_gradients` take
    `decay_var_list`, the variables that decay; by default all.

    Args:
        weight_decay: a number, a tensor, or a function that returns one. It is not multiplied by the learning rate.
        **kwargs: arguments of the optimizer.
    """

    _decayed: set[int] | None = None

    def __init__(self, weight_decay: Any, **kwargs: Any) -> None:
        self._weight_decay = weight_decay
        super().__init__(**kwargs)

    def minimize(self, loss: Any, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """Computes and applies gradients. See the optimizer, and the class for `decay_var_list`."""
        self._choose(decay_var_list)
        return super().minimize(loss, *args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None, decay_var_list: Any = None
    ) -> Any:
        """Applies gradients. See the optimizer, and the class for `decay_var_list`."""
        if decay_var_list is not None:
            self._choose(decay_var_list)
        return super().apply_gradients(grads_and_vars, global_step, name)  # type: ignore[misc]

    def _choose(self, decay_var_list: Any) -> None:
        self._decayed = None if decay_var_list is None else {id(each) for each in decay_var_list}

    def _decay(self, var: Any, indices: Any = None) -> list[Any]:
        if self._decayed is not None and id(var) not in self._decayed:
            return []
        rate = casting.cast(self._call_if_callable(self._weight_decay), var.dtype.base_dtype)  # type: ignore[attr-defined]
        if indices is None:
            return [var.assign_sub(rate * var.read_value(), self._use_locking)]  # type: ignore[attr-defined]
        return [scatter_ops.scatter_sub(var, indices, rate * gathering.gather(var, indices))]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with scopes.control_dependencies(self._decay(var)):
            return super()._apply_dense(grad, var)  # type: ignore[misc]

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        with scopes.control_dependencies(self._decay(handle)):
            return super()._resource_apply_dense(grad, handle)  # type: ignore[misc]

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        with scopes.control_dependencies(self._decay(var, grad.indices)):
            return super()._apply_sparse(grad, var)  # type: ignore[misc]

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        with scopes.control_dependencies(self._decay(handle, indices)):
            return super()._resource_apply_sparse(grad, handle, indices)  # type: ignore[misc]


@export(v1="contrib.opt.extend_with_decoupled_weight_decay")
def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Any]:
    """The class of an optimizer with weight decay: its first argument is `weight_decay`, the others are those of the optimizer."""

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        """An optimizer with weight decay beside the gradient."""

        def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
            self._weight_decay = weight_decay
            base_optimizer.__init__(self, *args, **kwargs)

    return OptimizerWithDecoupledWeightDecay


@export(v1="contrib.opt.MomentumWOptimizer")
class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Momentum with weight decay beside the gradient. The arguments are those of `tf.train.MomentumOptimizer`."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


@export(v1="contrib.opt.AdamWOptimizer")
class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with weight decay beside the gradient. The arguments are those of `tf.train.AdamOptimizer`."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )


# -- forms of Adam -----------------------------------------------------------------------------------------------------


class _RowsOfAdam(AdamOptimizer):
    """Adam whose sparse update is written for the rows of the gradient."""

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._move_rows(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._move_rows(grad, handle, indices)

    def _move_rows(self, grad: Any, var: Any, indices: Any) -> Any:
        """Updates the slots and the variable at the distinct `indices`."""
        raise NotImplementedError(f"{type(self).__name__} does not update rows.")

    def _set_rows(self, var: Any, indices: Any, rows_m: Any, rows_v: Any, step: Any) -> Any:
        """Sets the rows of the slots, and takes `step` from those of the variable."""
        kept = [
            scatter_ops.scatter_update(self.get_slot(var, name), indices, rows, use_locking=self._use_locking)
            for name, rows in zip(self._slot_names, (rows_m, rows_v))
        ]
        moved = scatter_ops.scatter_sub(var, indices, step, use_locking=self._use_locking)
        return grouping.group(moved, *kept)

    def _tensors(self, var: Any) -> list[Any]:
        """Learning rate, beta1, beta2 and epsilon in the dtype of a variable."""
        return self._numbers(var, ("_lr_t", "_beta1_t", "_beta2_t", "_epsilon_t"))


@export(v1="contrib.opt.LazyAdamOptimizer")
class LazyAdamOptimizer(_RowsOfAdam):
    """Adam that leaves rows alone which a sparse gradient does not have: neither their moments nor their values change.

    This costs less than Adam for large tables, and is another algorithm. The arguments are those of `tf.train.AdamOptimizer`.
    """

    def _move_rows(self, grad: Any, var: Any, indices: Any) -> Any:
        power1, power2 = self._powers(var)
        rate, beta1, beta2, epsilon = self._tensors(var)
        rate = rate * unary_functions.sqrt(1 - power2) / (1 - power1)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rows_m = beta1 * gathering.gather(m, indices) + (1 - beta1) * grad
        rows_v = beta2 * gathering.gather(v, indices) + (1 - beta2) * unary_functions.square(grad)
        step = rate * rows_m / (unary_functions.sqrt(rows_v) + epsilon)
        return self._set_rows(var, indices, rows_m, rows_v, step)


@export(v1="contrib.opt.NadamOptimizer")
class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov momentum (Dozat, 2016). The arguments are those of `tf.train.AdamOptimizer`."""

    def _attributes(self) -> dict[str, Any]:
        return {"use_nesterov": True}

    def _direction(self, m: Any, beta1: Any, grad: Any, indices: Any) -> Any:
        """The rows of the gradient count once more in the direction of the step."""
        return beta1 * m + (1 - beta1) * conversion.convert_to_tensor(
            indexed_slices.IndexedSlices(grad, indices, shaping.shape(m))
        )


@export(v1="contrib.opt.AdaMaxOptimizer")
class AdaMaxOptimizer(_RowsOfAdam):
    """AdaMax (Kingma and Ba, 2014, section 7.1): Adam with the largest recent gradient in place of the second moment.

    m = beta1 * m + (1 - beta1) * g;  v = max(beta2 * v, |g|)
    var -= learning_rate / (1 - beta1^t) * m / (v + epsilon)

    A sparse gradient changes its rows only. The arguments are those of `tf.train.AdamOptimizer`.
    """

    _powers_of = {"beta1_power": AdamOptimizer._powers_of["beta1_power"]}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _rule(self) -> Any:
        return ADA_MAX

    def _move_rows(self, grad: Any, var: Any, indices: Any) -> Any:
        (power,) = self._powers(var)
        rate, beta1, beta2, epsilon = self._tensors(var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rows_m = beta1 * gathering.gather(m, indices) + (1 - beta1) * grad
        rows_v = arithmetic.maximum(beta2 * gathering.gather(v, indices), unary_functions.abs(grad))
        return self._set_rows(var, indices, rows_m, rows_v, rate / (1 - power) * rows_m / (rows_v + epsilon))


# -- LARS --------------------------------------------------------------------------------------------------------------


@export(v1="contrib.opt.LARSOptimizer")
class LARSOptimizer(RuleOptimizer):
    """Momentum with a learning rate for each layer (You, Gitman and Ginsburg, 2017).

    local rate = learning_rate * eeta * |var| / (|g| + weight_decay * |var| + epsilon)
    accumulation = momentum * accumulation + local rate * (g + weight_decay * var);  var -= accumulation

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        momentum: a number.
        weight_decay, eeta, epsilon: numbers of the local rate.
        name: the name of the training op and of the slots.
        skip_list: parts of names of variables that have neither a local rate nor decay.
        use_nesterov: whether to use Nesterov momentum.
    """

    _slot_names = ("momentum",)
    _hyperparameters = (
        Number("_learning_rate", "learning_rate", "_learning_rate_tensor"),
        Number("_momentum", "momentum", "_momentum_tensor"),
    )

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Any = None,
        use_nesterov: bool = False,
    ) -> None:
        if momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be positive: {weight_decay}")
        super().__init__(use_locking=False, name=name)
        self._learning_rate, self._momentum = learning_rate, momentum
        self._weight_decay, self._eeta, self._epsilon = weight_decay, eeta, epsilon
        self._skip_list, self._use_nesterov = skip_list, use_nesterov

    def _rule(self) -> Any:
        return MOMENTUM

    def _attributes(self) -> dict[str, Any]:
        return {"use_nesterov": self._use_nesterov}

    def compute_lr(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """The learning rate of a variable, and its gradient with the decay."""
        (rate,) = self._numbers(var, ("_learning_rate_tensor",))
        if self._skip_list is not None and any(part in var.name for part in self._skip_list):
            return rate, grad
        length, slope = norms.norm(var, ord=2), norms.norm(grad, ord=2)
        trust = self._eeta * length / (slope + self._weight_decay * length + self._epsilon)
        one = shaping.ones_like(length)
        trust = selection.where(
            comparison.greater(length, 0), selection.where(comparison.greater(slope, 0), trust, one), one
        )
        return rate * trust, grad + self._weight_decay * var

    def _call(self, op: Any, var: Any, *gradient: Any) -> Any:
        rate, grad = self.compute_lr(gradient[0], var)
        (momentum,) = self._numbers(var, ("_momentum_tensor",))
        slot = self.get_slot(var, "momentum")
        one = constants.constant(1.0, var.dtype.base_dtype)
        return op(
            var.handle, slot.handle, one, grad * rate, *gradient[1:], momentum, use_locking=False, **self._attributes()
        )

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError("LARSOptimizer does not update rows; give it a dense gradient.")

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        raise NotImplementedError("LARSOptimizer does not update rows; give it a dense gradient.")


# -- averages and bounds of variables ----------------------------------------------------------------------------------


@export(v1="contrib.opt.MovingAverageOptimizer")
class MovingAverageOptimizer(Optimizer):
    """An optimizer that keeps moving averages of what it trains, and a saver that saves them in place of the variables.

    Args:
        opt: the optimizer.
        average_decay, num_updates: as in `tf.train.ExponentialMovingAverage`.
        sequential_update: whether averages are updated after the variables, and not at the same time.
    """

    def __init__(
        self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True
    ) -> None:
        super().__init__(opt._use_locking, opt._name)
        self._optimizer = opt
        self._ema = moving_averages.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._swapped_variable_name_map: dict[str, str] | None = None
        self._sequential_update = sequential_update

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        pairs = list(grads_and_vars)
        train_op = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        variables = [variable for gradient, variable in pairs if gradient is not None]
        self._swapped_variable_name_map = {}
        with scopes.control_dependencies([train_op] if self._sequential_update else []):
            averaged = self._ema.apply(variables)
        for each in variables:
            average = self._ema.average(each)
            assert average is not None
            self._swapped_variable_name_map[each.op.name] = average.op.name
        return grouping.group(train_op, averaged, name="train_with_avg")

    def average_name(self, var: Any) -> str:
        """The name of the average of a variable."""
        return self._ema.average_name(var)

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Any:
        """A `tf.train.Saver` that stores averages under the names of their variables, and variables under those of the averages.

        Args:
            var_list: variables, or a dictionary by name; by default all global variables.
            name: the name scope of the saver.
            **kwargs: more arguments of `tf.train.Saver`.

        Raises:
            RuntimeError: `apply_gradients` has not been called.
            ValueError: a variable or its average is missing in `var_list`.
        """
        if self._swapped_variable_name_map is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        if var_list is None:
            var_list = variable_functions.global_variables()
        named = dict(var_list) if isinstance(var_list, dict) else {each.op.name: each for each in var_list}
        swapped = dict(named)
        for variable, average in self._swapped_variable_name_map.items():
            for each in (variable, average):
                if each not in named:
                    raise ValueError(f"Variable to swap {each} is not in variables to save.")
            swapped[variable], swapped[average] = named[average], named[variable]
        return saver.Saver(swapped, name=name, **kwargs)


@export(v1="contrib.opt.VariableClippingOptimizer")
class VariableClippingOptimizer(Optimizer):
    """An optimizer that bounds the length of parts of its variables after each step.

    Args:
        opt: the optimizer.
        vars_to_clip_dims: {variable: the dimensions of a part}. With a sparse gradient of rows only these are clipped.
        max_norm: the largest length.
        use_locking: whether the assignments lock.
        colocate_clip_ops_with_vars: whether to clip where the variables are.
        name: the name.
    """

    def __init__(
        self,
        opt: Any,
        vars_to_clip_dims: dict[Any, Any],
        max_norm: float,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt, self._max_norm = opt, max_norm
        self._vars_to_clip_dims = vars_to_clip_dims
        self._colocate = colocate_clip_ops_with_vars

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot_names(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        pairs = list(grads_and_vars)
        with scopes.NameScope(name, self._name) as scope:
            update = self._opt.apply_gradients(pairs, global_step=global_step)
            clipped = []
            with scopes.control_dependencies([update]):
                for gradient, variable in pairs:
                    if gradient is None or variable not in self._vars_to_clip_dims:
                        continue
                    with scopes.colocate_with(variable) if self._colocate else contextlib.nullcontext():
                        clipped.append(self._clip(gradient, variable))
            return grouping.group(*clipped, name=scope) if clipped else grouping.group(update, name=scope)

    def _clip(self, gradient: Any, variable: Any) -> Any:
        dims = self._vars_to_clip_dims[variable]
        if not isinstance(gradient, indexed_slices.IndexedSlices):
            return variable.assign(
                clipping.clip_by_norm(variable.read_value(), self._max_norm, dims), use_locking=self._use_locking
            )
        if 0 in dims:
            raise ValueError(
                f"A sparse gradient changes rows of {variable.name}; parts of all rows cannot be clipped by it."
            )
        indices = sorting.unique(gradient.indices)[0]
        rows = clipping.clip_by_norm(gathering.gather(variable, indices), self._max_norm, dims)
        return scatter_ops.scatter_update(variable, indices, rows, use_locking=self._use_locking)
