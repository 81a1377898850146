"""The optimizers of `tf.keras.optimizers`: SGD, Adam, RMSprop, Adagrad, Adadelta, Adamax, Nadam and Ftrl."""

from __future__ import annotations

from typing import Any, ClassVar

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import scopes
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.keras.optimizers import Optimizer
from stoker._src.ops.array import casting, constants, gathering, scattering, shaping
from stoker._src.ops.math import arithmetic, unary_functions
from stoker._src.ops.training import rules

_KERAS_MOMENTUM_ROWS: Any = rules.KERAS_MOMENTUM.resource_sparse


class _ByRule(Optimizer):
    """Optimizers whose update of a variable is one op.

    A subclass declares its slots, its hyperparameters besides the learning rate, and the order of the op's numbers.
    """

    slots: ClassVar[tuple[str, ...]] = ()
    epsilon: float | None = None  # what the root of squared gradients is increased by, if the rule has one

    def __init__(self, name: str, learning_rate: Any, kwargs: dict[str, Any], **hypers: Any) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        for key, value in hypers.items():
            self._set_hyper(key, value)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **({} if self.epsilon is None else {"epsilon": self.epsilon})}

    def _create_slots(self, var_list: list[Any]) -> None:
        for name in self.slots:
            for variable in var_list:
                self.add_slot(variable, name, self._first(name))

    def _first(self, slot: str) -> float:
        """The initial value of a slot."""
        return 0.0

    def _call(
        self, op: Any, variable: Any, before: list[Any], gradient: list[Any], after: Any = (), **attrs: Any
    ) -> Any:
        handles = [variable.handle, *[self.get_slot(variable, name).handle for name in self.slots]]
        numbers = [[casting.cast(each, variable.dtype.base_dtype) for each in group] for group in (before, after)]
        return op(*handles, *numbers[0], *gradient, *numbers[1], **attrs)


@export("keras.optimizers.SGD")
class SGD(_ByRule):
    """Gradient descent, with momentum and Nesterov's form of it."""

    def __init__(
        self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, name: str = "SGD", **kwargs: Any
    ) -> None:
        super().__init__(name, learning_rate, kwargs, momentum=momentum)
        self._has_momentum = hasattr(momentum, "static_shape") or callable(momentum) or momentum > 0
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self.nesterov = nesterov

    def _create_slots(self, var_list: list[Any]) -> None:
        if self._has_momentum:
            for variable in var_list:
                self.add_slot(variable, "momentum")

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        rate = casting.cast(self._rate, var.dtype.base_dtype)
        if not self._has_momentum:
            return rules.GRADIENT_DESCENT.resource_dense(var.handle, rate, grad, use_locking=False)
        slot = self.get_slot(var, "momentum")
        return rules.KERAS_MOMENTUM.resource_dense(
            var.handle, slot.handle, rate, grad, self._number("momentum", var), use_nesterov=self.nesterov
        )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        rate = casting.cast(self._rate, var.dtype.base_dtype)
        if not self._has_momentum:
            return var.scatter_sub(IndexedSlices(grad * rate, indices))
        slot = self.get_slot(var, "momentum")
        return _KERAS_MOMENTUM_ROWS(
            var.handle, slot.handle, rate, grad, indices, self._number("momentum", var), use_nesterov=self.nesterov
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "nesterov": self.nesterov}


@export("keras.optimizers.Adam")
class Adam(_ByRule):
    """Adam (Kingma and Ba, 2014), also as AMSGrad (Reddi et al., 2018)."""

    slots = ("m", "v")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str = "Adam",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, kwargs, beta_1=beta_1, beta_2=beta_2)
        self.epsilon, self.amsgrad = epsilon or 1e-7, amsgrad
        if amsgrad:
            self.slots = ("m", "v", "vhat")  # type: ignore[misc]

    def _prepare(self, dtype: Any) -> None:
        super()._prepare(dtype)
        step = casting.cast(self.iterations + 1, dtype)
        self._betas = casting.cast(self._get_hyper("beta_1"), dtype), casting.cast(self._get_hyper("beta_2"), dtype)
        self._powers = arithmetic.power(self._betas[0], step), arithmetic.power(self._betas[1], step)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        rule = rules.ADAM_WITH_AMSGRAD if self.amsgrad else rules.ADAM
        return self._call(
            rule.resource_dense, var, [*self._powers, self._rate, *self._betas, self.epsilon], [grad], use_locking=False
        )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        kind = var.dtype.base_dtype
        beta_1, beta_2 = (casting.cast(each, kind) for each in self._betas)
        power_1, power_2 = (casting.cast(each, kind) for each in self._powers)
        rate = casting.cast(self._rate, kind) * unary_functions.sqrt(1 - power_2) / (1 - power_1)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        first = m.assign(m * beta_1)
        with scopes.control_dependencies([first]):
            first = m.scatter_add(IndexedSlices(grad * (1 - beta_1), indices))
        second = v.assign(v * beta_2)
        with scopes.control_dependencies([second]):
            second = v.scatter_add(IndexedSlices(grad * grad * (1 - beta_2), indices))
        root = unary_functions.sqrt(second)
        if self.amsgrad:
            highest = self.get_slot(var, "vhat")
            root = unary_functions.sqrt(highest.assign(arithmetic.maximum(highest, second)))
        return var.assign_sub(rate * first / (root + self.epsilon))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "amsgrad": self.amsgrad}


@export("keras.optimizers.RMSprop")
class RMSprop(_ByRule):
    """Divides by a moving root mean square of the gradient (Tieleman and Hinton, 2012); centered, by the standard deviation."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        name: str = "RMSprop",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, kwargs, rho=rho, momentum=momentum)
        self.epsilon, self.centered = epsilon or 1e-7, centered
        self._has_momentum = hasattr(momentum, "static_shape") or callable(momentum) or momentum > 0
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self.slots = ("rms", *(["momentum"] if self._has_momentum else []), *(["mg"] if centered else []))  # type: ignore[misc]

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        if self._has_momentum:
            return self._with_momentum(var, "resource_dense", grad)
        rho, rate = self._number("rho", var), casting.cast(self._rate, var.dtype.base_dtype)
        rms = self.get_slot(var, "rms")
        spread = rms.assign(rho * rms + (1 - rho) * unary_functions.square(grad))
        if self.centered:
            mg = self.get_slot(var, "mg")
            spread = spread - unary_functions.square(mg.assign(rho * mg + (1 - rho) * grad))
        return var.assign_sub(rate * grad / (unary_functions.sqrt(spread) + self.epsilon))

    def _with_momentum(self, var: Any, kind: str, *gradient: Any) -> Any:
        names = ("mg", "rms", "momentum") if self.centered else ("rms", "momentum")
        rule = rules.CENTERED_RMS_PROP if self.centered else rules.RMS_PROP
        numbers = [self._rate, self._get_hyper("rho"), self._get_hyper("momentum"), self.epsilon]
        handles = [var.handle, *[self.get_slot(var, name).handle for name in names]]
        return getattr(rule, kind)(
            *handles, *[casting.cast(each, var.dtype.base_dtype) for each in numbers], *gradient, use_locking=False
        )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        if self._has_momentum:
            return self._with_momentum(var, "resource_sparse", grad, indices)
        kind = var.dtype.base_dtype
        rho, rate = self._number("rho", var), casting.cast(self._rate, kind)
        rms = self.get_slot(var, "rms")
        with scopes.control_dependencies([rms.assign(rms * rho)]):
            squares = rms.scatter_add(IndexedSlices(grad * grad * (1 - rho), indices))
        with scopes.control_dependencies([squares]):  # a lookup in a variable does not wait for its update
            spread = gathering.gather(rms, indices)
        if self.centered:
            mg = self.get_slot(var, "mg")
            with scopes.control_dependencies([mg.assign(mg * rho)]):
                means = mg.scatter_add(IndexedSlices(grad * (1 - rho), indices))
            with scopes.control_dependencies([means]):
                spread = spread - unary_functions.square(gathering.gather(mg, indices))
        return var.scatter_add(IndexedSlices(-rate * grad / (unary_functions.sqrt(spread) + self.epsilon), indices))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "centered": self.centered}


@export("keras.optimizers.Adagrad")
class Adagrad(_ByRule):
    """Divides by the root of the sum of squared gradients (Duchi, Hazan and Singer, 2011)."""

    slots = ("accumulator",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        name: str = "Adagrad",
        **kwargs: Any,
    ) -> None:
        if initial_accumulator_value < 0.0:
            raise ValueError(f"initial_accumulator_value must be non-negative: {initial_accumulator_value}")
        super().__init__(name, learning_rate, kwargs)
        self.epsilon, self.initial_accumulator_value = epsilon or 1e-7, initial_accumulator_value

    def _first(self, slot: str) -> float:
        return self.initial_accumulator_value

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._call(rules.ADAGRAD_V2.resource_dense, var, [self._rate, self.epsilon], [grad], use_locking=False)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._call(
            rules.ADAGRAD_V2.resource_sparse, var, [self._rate, self.epsilon], [grad, indices], use_locking=False
        )

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        # By name or from old configurations, Keras starts with empty accumulators.
        return super().from_config({"initial_accumulator_value": 0.0, **config}, custom_objects)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "initial_accumulator_value": self.initial_accumulator_value,
        }


@export("keras.optimizers.Adadelta")
class Adadelta(_ByRule):
    """Adapts the rate by moving averages of squared gradients and squared updates (Zeiler, 2012)."""

    slots = ("accum_grad", "accum_var")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-7,
        name: str = "Adadelta",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, kwargs, rho=rho)
        self.epsilon = epsilon or 1e-7

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._call(
            rules.ADADELTA.resource_dense,
            var,
            [self._rate, self._get_hyper("rho"), self.epsilon],
            [grad],
            use_locking=False,
        )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._call(
            rules.ADADELTA.resource_sparse,
            var,
            [self._rate, self._get_hyper("rho"), self.epsilon],
            [grad, indices],
            use_locking=False,
        )


@export("keras.optimizers.Adamax")
class Adamax(_ByRule):
    """Adam with the infinity norm (Kingma and Ba, 2014)."""

    slots = ("m", "v")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        name: str = "Adamax",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, kwargs, beta_1=beta_1, beta_2=beta_2)
        self.epsilon = epsilon or 1e-7

    def _prepare(self, dtype: Any) -> None:
        super()._prepare(dtype)
        self._betas = casting.cast(self._get_hyper("beta_1"), dtype), casting.cast(self._get_hyper("beta_2"), dtype)
        self._power = arithmetic.power(self._betas[0], casting.cast(self.iterations + 1, dtype))

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._call(
            rules.ADA_MAX.resource_dense,
            var,
            [self._power, self._rate, *self._betas, self.epsilon],
            [grad],
            use_locking=False,
        )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        kind = var.dtype.base_dtype
        beta_1, beta_2 = (casting.cast(each, kind) for each in self._betas)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        first = beta_1 * gathering.gather(m, indices) + (1 - beta_1) * grad
        norm = arithmetic.maximum(beta_2 * gathering.gather(v, indices), unary_functions.abs(grad))
        rate = -casting.cast(self._rate, kind) / (1 - casting.cast(self._power, kind))
        kept = [m.scatter_update(IndexedSlices(first, indices)), v.scatter_update(IndexedSlices(norm, indices))]
        with scopes.control_dependencies(kept):
            return var.scatter_add(IndexedSlices(rate * first / (norm + self.epsilon), indices))


@export("keras.optimizers.Nadam")
class Nadam(_ByRule):
    """Adam with Nesterov momentum and its schedule of the momentum (Dozat, 2015)."""

    slots = ("m", "v")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        name: str = "Nadam",
        **kwargs: Any,
    ) -> None:
        kwargs = dict(kwargs)
        kwargs["decay"] = kwargs.pop("schedule_decay", kwargs.get("decay", 0.004))
        if hasattr(learning_rate, "get_config"):
            raise ValueError(
                "The Nadam optimizer does not support tf.keras.optimizers.LearningRateSchedules as the learning rate."
            )
        super().__init__(name, learning_rate, kwargs, beta_1=beta_1, beta_2=beta_2)
        self.epsilon = epsilon or 1e-7
        self._product: Any = None

    def _create_slots(self, var_list: list[Any]) -> None:
        if self._product is None:
            self._product = self.add_weight("momentum_cache", [], var_list[0].dtype.base_dtype, 1.0)
            self._weights.append(self._product)
        super()._create_slots(var_list)

    def _prepare(self, dtype: Any) -> None:
        step = casting.cast(self.iterations + 1, dtype)
        self._rate = casting.cast(self._get_hyper("learning_rate"), dtype)
        beta_1, beta_2 = (casting.cast(self._get_hyper(name), dtype) for name in ("beta_1", "beta_2"))
        decay = casting.cast(self._get_hyper("decay"), dtype)
        now, following = (
            beta_1 * (1.0 - 0.5 * arithmetic.power(constants.constant(0.96, dtype), decay * when))
            for when in (step, step + 1)
        )
        product = casting.cast(self._product, dtype) * now
        with scopes.control_dependencies([self._product.assign(product)]):
            self._schedule = (
                shaping.identity(product),
                product * following,
                now,
                following,
                beta_1,
                beta_2,
                arithmetic.power(beta_2, step),
            )

    def _moments(self, grad: Any, m: Any, v: Any, kind: Any) -> tuple[Any, Any, Any]:
        product, product_next, now, following, beta_1, beta_2, power = (
            casting.cast(each, kind) for each in self._schedule
        )
        first = beta_1 * m + (1 - beta_1) * grad
        second = beta_2 * v + (1 - beta_2) * unary_functions.square(grad)
        mean = (1.0 - now) * grad / (1.0 - product) + following * first / (1.0 - product_next)
        return first, second, mean / (unary_functions.sqrt(second / (1.0 - power)) + self.epsilon)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        kind = var.dtype.base_dtype
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        first, second, change = self._moments(grad, m, v, kind)
        with scopes.control_dependencies([change]):
            kept = [m.assign(first), v.assign(second)]
        with scopes.control_dependencies(kept):
            return var.assign_sub(casting.cast(self._rate, kind) * change)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        kind = var.dtype.base_dtype
        dense = scattering.scatter_nd(
            shaping.expand_dims(casting.cast(indices, dtypes.int32), 1), grad, shaping.shape(var)
        )
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        first, second, change = self._moments(dense, m, v, kind)
        with scopes.control_dependencies([change]):
            kept = [m.assign(first), v.assign(second)]
        with scopes.control_dependencies(kept):
            rows = gathering.gather(change, indices)
            return var.scatter_sub(IndexedSlices(casting.cast(self._rate, kind) * rows, indices))


@export("keras.optimizers.Ftrl")
class Ftrl(_ByRule):
    """Follow the regularized leader (McMahan et al., 2013)."""

    slots = ("accumulator", "linear")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0,
        **kwargs: Any,
    ) -> None:
        for label, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise ValueError(f"{label} {value} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power} needs to be negative or zero")
        super().__init__(
            name,
            learning_rate,
            kwargs,
            learning_rate_power=learning_rate_power,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        self.initial_accumulator_value = initial_accumulator_value
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def _first(self, slot: str) -> float:
        return self.initial_accumulator_value if slot == "accumulator" else 0.0

    def _both(self, var: Any, gradient: list[Any], kind: str) -> Any:
        names = ("l1_regularization_strength", "l2_regularization_strength", "learning_rate_power")
        l1, l2, power = (self._get_hyper(name) for name in names)
        shrinkage = self.l2_shrinkage_regularization_strength
        rule = rules.FTRL_V2 if shrinkage > 0 else rules.FTRL
        after = [self._rate, l1, l2, *([shrinkage] if shrinkage > 0 else []), power]
        return self._call(getattr(rule, kind), var, [], gradient, after, use_locking=False)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._both(var, [grad], "resource_dense")

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._both(var, [grad, indices], "resource_sparse")

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "initial_accumulator_value": self.initial_accumulator_value,
            "l2_shrinkage_regularization_strength": self.l2_shrinkage_regularization_strength,
        }
