"""Bijectors: invertible functions with the logarithm of their Jacobian's determinant, for transformed distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stoker._src.base.export import export
from stoker._src.contrib.distributions.multivariate import Diagonal, LowerTriangle
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import gathering, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.math import reductions, sorting, unary_functions
from stoker._src.ops.nn import activations


def _sum_last(x: Tensor, count: int) -> Tensor:
    return reductions.reduce_sum(x, list(range(-count, 0))) if count else x


@export(v1="contrib.distributions.bijectors.Bijector")
class Bijector:
    """An invertible function.

    Subclasses define `_forward`, `_inverse`, and `_forward_log_det_jacobian` or `_inverse_log_det_jacobian`, for events of
    `forward_min_event_ndims` (of inputs) or `inverse_min_event_ndims` (of outputs) dimensions.
    """

    def __init__(
        self,
        graph_parents: Any = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: Any = None,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str | None = None,
    ) -> None:
        if forward_min_event_ndims is None and inverse_min_event_ndims is None:
            raise ValueError("Must specify at least one of `forward_min_event_ndims` and `inverse_min_event_ndims`.")
        forward, inverse = forward_min_event_ndims, inverse_min_event_ndims
        self._forward_min = inverse if forward is None else forward
        self._inverse_min = forward if inverse is None else inverse
        self.graph_parents = list(graph_parents or [])
        self.is_constant_jacobian, self.validate_args, self.dtype = is_constant_jacobian, validate_args, dtype
        self.name = name or type(self).__name__.lower()

    @property
    def forward_min_event_ndims(self) -> int:
        return self._forward_min or 0

    @property
    def inverse_min_event_ndims(self) -> int:
        return self._inverse_min or 0

    def _forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError("forward not implemented.")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError("inverse not implemented")

    def forward_event_shape(self, input_shape: Any) -> Any:
        return input_shape

    def forward(self, x: Any, name: str = "forward") -> Tensor:
        """y = g(x)."""
        with name_scope(self.name), name_scope(name):
            return self._forward(convert_to_tensor(x, name="x"))

    def inverse(self, y: Any, name: str = "inverse") -> Tensor:
        """x = g^-1(y)."""
        with name_scope(self.name), name_scope(name):
            return self._inverse(convert_to_tensor(y, name="y"))

    def forward_log_det_jacobian(self, x: Any, event_ndims: int, name: str = "forward_log_det_jacobian") -> Tensor:
        """log |det dg/dx|, summed over the `event_ndims` last dimensions of x."""
        with name_scope(self.name), name_scope(name):
            x = convert_to_tensor(x, name="x")
            rest = self._beyond(event_ndims, self.forward_min_event_ndims)
            if type(self)._forward_log_det_jacobian is not Bijector._forward_log_det_jacobian:
                return _sum_last(self._forward_log_det_jacobian(x), rest)
            return _sum_last(-self._inverse_log_det_jacobian(self._forward(x)), rest)

    def inverse_log_det_jacobian(self, y: Any, event_ndims: int, name: str = "inverse_log_det_jacobian") -> Tensor:
        """log |det dg^-1/dy|, summed over the `event_ndims` last dimensions of y."""
        with name_scope(self.name), name_scope(name):
            y = convert_to_tensor(y, name="y")
            rest = self._beyond(event_ndims, self.inverse_min_event_ndims)
            if type(self)._inverse_log_det_jacobian is not Bijector._inverse_log_det_jacobian:
                return _sum_last(self._inverse_log_det_jacobian(y), rest)
            return _sum_last(-self._forward_log_det_jacobian(self._inverse(y)), rest)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        raise NotImplementedError("forward_log_det_jacobian not implemented.")

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        raise NotImplementedError("inverse_log_det_jacobian not implemented.")

    def _beyond(self, event_ndims: int, least: int) -> int:
        if event_ndims < least:
            raise ValueError(f"event_ndims ({event_ndims}) must be larger than min_event_ndims ({least})")
        return event_ndims - least


class _Scalar(Bijector):
    """A function of each number alone."""

    _constant_jacobian = False

    def __init__(self, validate_args: bool = False, name: str | None = None) -> None:
        super().__init__(
            forward_min_event_ndims=0,
            is_constant_jacobian=self._constant_jacobian,
            validate_args=validate_args,
            name=name,
        )


@export(v1="contrib.distributions.bijectors.Identity")
class Identity(_Scalar):
    """y = x."""

    _constant_jacobian = True

    def _forward(self, x: Tensor) -> Tensor:
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return shaping.zeros_like(x)


@export(v1="contrib.distributions.bijectors.Exp")
class Exp(_Scalar):
    """y = exp(x)."""

    def _forward(self, x: Tensor) -> Tensor:
        return unary_functions.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return unary_functions.log(y)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -unary_functions.log(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return x


@export(v1="contrib.distributions.bijectors.Square")
class Square(_Scalar):
    """y = x^2, for x of 0 and above."""

    def _forward(self, x: Tensor) -> Tensor:
        return unary_functions.square(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return unary_functions.sqrt(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return unary_functions.log(2.0 * x)


@export(v1="contrib.distributions.bijectors.Sigmoid")
class Sigmoid(_Scalar):
    """y = 1 / (1 + exp(-x))."""

    def _forward(self, x: Tensor) -> Tensor:
        return unary_functions.sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return unary_functions.log(y) - unary_functions.log1p(-y)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -unary_functions.log(y) - unary_functions.log1p(-y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -activations.softplus(-x) - activations.softplus(x)


@export(v1="contrib.distributions.softplus_inverse")
def softplus_inverse(x: Any, name: str | None = None) -> Tensor:
    """The number whose softplus is x: log(exp(x) - 1)."""
    with name_scope(name, "softplus_inverse"):
        x = convert_to_tensor(x, name="x")
        return x + unary_functions.log(-unary_functions.expm1(-x))


@export(v1="contrib.distributions.bijectors.Softplus")
class Softplus(_Scalar):
    """y = c log(1 + exp(x / c)), with c = `hinge_softness` or 1."""

    def __init__(self, hinge_softness: Any = None, validate_args: bool = False, name: str = "softplus") -> None:
        super().__init__(validate_args, name)
        self.hinge_softness = None if hinge_softness is None else convert_to_tensor(hinge_softness)

    def _forward(self, x: Tensor) -> Tensor:
        soft = self.hinge_softness
        return activations.softplus(x) if soft is None else soft * activations.softplus(x / soft)

    def _inverse(self, y: Tensor) -> Tensor:
        soft = self.hinge_softness
        return softplus_inverse(y) if soft is None else soft * softplus_inverse(y / soft)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        soft = self.hinge_softness
        return -unary_functions.log(-unary_functions.expm1(-(y if soft is None else y / soft)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        soft = self.hinge_softness
        return -activations.softplus(-(x if soft is None else x / soft))


@export(v1="contrib.distributions.bijectors.AffineScalar")
class AffineScalar(_Scalar):
    """y = scale x + shift."""

    _constant_jacobian = True

    def __init__(
        self, shift: Any = None, scale: Any = None, validate_args: bool = False, name: str = "affine_scalar"
    ) -> None:
        super().__init__(validate_args, name)
        self.shift = None if shift is None else convert_to_tensor(shift, name="shift")
        self.scale = None if scale is None else convert_to_tensor(scale, name="scale")

    def _forward(self, x: Tensor) -> Tensor:
        y = x if self.scale is None else x * self.scale
        return y if self.shift is None else y + self.shift

    def _inverse(self, y: Tensor) -> Tensor:
        x = y if self.shift is None else y - self.shift
        return x if self.scale is None else x / self.scale

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        zero = shaping.zeros_like(x)
        return zero if self.scale is None else zero + unary_functions.log(unary_functions.abs(self.scale))


@export(v1="contrib.distributions.bijectors.Affine")
class Affine(Bijector):
    """y = scale x + shift for vectors x.

    Args:
        shift: a vector, or None.
        scale_identity_multiplier, scale_diag: a multiple of the identity and a diagonal, which are added.
        scale_tril: a lower triangular matrix, to which they are added.
    """

    def __init__(
        self,
        shift: Any = None,
        scale_identity_multiplier: Any = None,
        scale_diag: Any = None,
        scale_tril: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        name: str = "affine",
    ) -> None:
        if scale_perturb_factor is not None or scale_perturb_diag is not None:
            raise NotImplementedError(
                "Affine: scales with a perturbation of low rank (scale_perturb_factor) are missing."
            )
        super().__init__(forward_min_event_ndims=1, is_constant_jacobian=True, validate_args=validate_args, name=name)
        self.shift = None if shift is None else convert_to_tensor(shift, name="shift")
        self._times: Tensor | None = None
        diagonal = None if scale_diag is None else convert_to_tensor(scale_diag, name="scale_diag")
        if scale_identity_multiplier is not None:
            times = convert_to_tensor(scale_identity_multiplier, name="scale_identity_multiplier")[..., None]
            if diagonal is None and scale_tril is None:
                self._times = times
            diagonal = times if diagonal is None else diagonal + times
        self._spread: Any = None if diagonal is None else Diagonal(diagonal)
        if scale_tril is not None:
            matrix = convert_to_tensor(scale_tril, name="scale_tril")
            if diagonal is not None:
                from_diagonal = shaping.zeros_like(matrix[..., 0]) + diagonal
                matrix = matrix + Diagonal(from_diagonal).dense()
            self._spread = LowerTriangle(matrix)

    def _forward(self, x: Tensor) -> Tensor:
        y = x if self._spread is None else self._spread.apply(x)
        return y if self.shift is None else y + self.shift

    def _inverse(self, y: Tensor) -> Tensor:
        x = y if self.shift is None else y - self.shift
        return x if self._spread is None else self._spread.undo(x)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        if self._spread is None:
            return constant(0.0, x.dtype.base_dtype)
        if self._times is not None:  # one number stands for the whole diagonal
            return reductions.reduce_sum(
                unary_functions.log(unary_functions.abs(self._times + shaping.zeros_like(x))), -1
            )
        return self._spread.log_determinant()


@export(v1="contrib.distributions.bijectors.Permute")
class Permute(Bijector):
    """Puts the last dimension into another order: y[..., i] = x[..., permutation[i]]."""

    def __init__(self, permutation: Any, validate_args: bool = False, name: str | None = None) -> None:
        super().__init__(
            forward_min_event_ndims=1, is_constant_jacobian=True, validate_args=validate_args, name=name or "permute"
        )
        self.permutation = convert_to_tensor(permutation, name="permutation")

    def _forward(self, x: Tensor) -> Tensor:
        return gathering.gather(x, self.permutation, axis=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return gathering.gather(y, sorting.argsort(self.permutation), axis=-1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return constant(0.0, x.dtype.base_dtype)


@export(v1="contrib.distributions.bijectors.Invert")
class Invert(Bijector):
    """The inverse of another bijector."""

    def __init__(self, bijector: Bijector, validate_args: bool = False, name: str | None = None) -> None:
        super().__init__(
            forward_min_event_ndims=bijector.inverse_min_event_ndims,
            inverse_min_event_ndims=bijector.forward_min_event_ndims,
            is_constant_jacobian=bijector.is_constant_jacobian,
            validate_args=validate_args,
            dtype=bijector.dtype,
            name=name or f"invert_{bijector.name}",
        )
        self.bijector = bijector

    def forward(self, x: Any, name: str = "forward") -> Tensor:
        return self.bijector.inverse(x, name)

    def inverse(self, y: Any, name: str = "inverse") -> Tensor:
        return self.bijector.forward(y, name)

    def forward_log_det_jacobian(self, x: Any, event_ndims: int, name: str = "forward_log_det_jacobian") -> Tensor:
        return self.bijector.inverse_log_det_jacobian(x, event_ndims, name)

    def inverse_log_det_jacobian(self, y: Any, event_ndims: int, name: str = "inverse_log_det_jacobian") -> Tensor:
        return self.bijector.forward_log_det_jacobian(y, event_ndims, name)


@export(v1="contrib.distributions.bijectors.Chain")
class Chain(Bijector):
    """Bijectors one after another: `Chain([f, g]).forward(x)` is f(g(x))."""

    def __init__(
        self, bijectors: Sequence[Bijector] | None = None, validate_args: bool = False, name: str | None = None
    ) -> None:
        self.bijectors = list(bijectors or [])
        least = max((each.forward_min_event_ndims for each in self.bijectors), default=0)
        named = "_of_".join(["chain", *(each.name for each in self.bijectors)]) if self.bijectors else "identity"
        super().__init__(
            forward_min_event_ndims=least,
            is_constant_jacobian=all(each.is_constant_jacobian for each in self.bijectors),
            validate_args=validate_args,
            name=name or named,
        )

    def _forward(self, x: Tensor) -> Tensor:
        for each in reversed(self.bijectors):
            x = each.forward(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for each in self.bijectors:
            y = each.inverse(y)
        return y

    def forward_log_det_jacobian(self, x: Any, event_ndims: int, name: str = "forward_log_det_jacobian") -> Tensor:
        with name_scope(self.name), name_scope(name):
            x = convert_to_tensor(x, name="x")
            self._beyond(event_ndims, self.forward_min_event_ndims)
            total: Any = constant(0.0, x.dtype.base_dtype)
            for each in reversed(self.bijectors):
                total = total + each.forward_log_det_jacobian(x, event_ndims)
                x = each.forward(x)
            return total

    def inverse_log_det_jacobian(self, y: Any, event_ndims: int, name: str = "inverse_log_det_jacobian") -> Tensor:
        with name_scope(self.name), name_scope(name):
            y = convert_to_tensor(y, name="y")
            self._beyond(event_ndims, self.inverse_min_event_ndims)
            total: Any = constant(0.0, y.dtype.base_dtype)
            for each in self.bijectors:
                total = total + each.inverse_log_det_jacobian(y, event_ndims)
                y = each.inverse(y)
            return total


@export(v1="contrib.distributions.bijectors.Inline")
class Inline(Bijector):
    """A bijector of functions."""

    def __init__(
        self,
        forward_fn: Callable[..., Any] | None = None,
        inverse_fn: Callable[..., Any] | None = None,
        inverse_log_det_jacobian_fn: Callable[..., Any] | None = None,
        forward_log_det_jacobian_fn: Callable[..., Any] | None = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str = "inline",
    ) -> None:
        super().__init__(
            forward_min_event_ndims=forward_min_event_ndims,
            inverse_min_event_ndims=inverse_min_event_ndims,
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            name=name,
        )
        self._functions = (forward_fn, inverse_fn, inverse_log_det_jacobian_fn, forward_log_det_jacobian_fn)

    def _call(self, which: int, name: str, *args: Any) -> Any:
        function = self._functions[which]
        if function is None:
            raise NotImplementedError(f"Cannot call `{name}`: no {name}_fn was given.")
        return function(*args)

    def _forward(self, x: Tensor) -> Tensor:
        return self._call(0, "forward", x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._call(1, "inverse", y)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        if self._functions[2] is None and self._functions[3] is not None:
            return -self._functions[3](self._inverse(y))
        return self._call(2, "inverse_log_det_jacobian", y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        if self._functions[3] is None and self._functions[2] is not None:
            return -self._functions[2](self._forward(x))
        return self._call(3, "forward_log_det_jacobian", x)
