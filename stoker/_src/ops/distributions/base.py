"""The base of distributions: shapes, names, and the public methods. Subclasses define the formulas."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, selection, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.distributions import divergence
from stoker._src.ops.distributions.checks import checked
from stoker._src.ops.math import comparison, reductions, unary_functions
from stoker._src.ops.nn import softmax


@export(v1="distributions.ReparameterizationType")
class ReparameterizationType:
    """Whether samples are differentiable with respect to a distribution's parameters."""

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")
for _name in ("FULLY_REPARAMETERIZED", "NOT_REPARAMETERIZED"):
    export_constant(__name__, _name, v1=f"distributions.{_name}")


def derived_seed(seed: int | None, salt: str) -> int | None:
    """Derives the seed of a distribution's second random op from that of its first."""
    if seed is None:
        return None
    return int(hashlib.md5(f"{seed}{salt}".encode(), usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF


def same_dtype(*tensors: Tensor) -> None:
    """Raises ValueError unless all values have the dtype of the first, which must be floating point."""
    if not tensors[0].dtype.is_floating:
        raise ValueError(f"Expected floating point type, got {tensors[0].dtype.base_dtype!r}.")
    for tensor in tensors[1:]:
        if tensor.dtype.base_dtype is not tensors[0].dtype.base_dtype:
            first, other = (
                getattr(t, "name", "value") if not context.executing_eagerly() else "value"
                for t in (tensors[0], tensor)
            )
            raise ValueError(
                f"{other}, type={tensor.dtype.base_dtype!r}, must be of the same type ({tensors[0].dtype.base_dtype!r}) as {first}."
            )


def positive(tensor: Tensor, message: str = "Condition x > 0 did not hold.") -> tuple[Any, str]:
    return comparison.greater(tensor, number(0, tensor)), message


def number(value: Any, like: Tensor) -> Tensor:
    """A constant of the dtype of `like`."""
    return constant(value, like.dtype.base_dtype)


def where(condition: Any, x: Any, y: Any) -> Tensor:
    return selection.where_v2(condition, x, y)


def nan(like: Tensor) -> Tensor:
    return number(np.nan, like)


def probabilities(
    logits: Any, probs: Any, *, multidimensional: bool, validate_args: bool, name: str
) -> tuple[Tensor, Tensor]:
    """(logits, probs), each computed from the other if it is missing.

    Raises:
        ValueError: both or neither are given.
    """
    if (logits is None) == (probs is None):
        raise ValueError("Must pass probs or logits, but not both.")
    with name_scope(name, None, [logits, probs]):
        if probs is None:
            logits = convert_to_tensor(logits, name="logits")
            if not logits.dtype.is_floating:
                raise TypeError("logits must having floating type.")
            if multidimensional:
                return logits, softmax.softmax(logits, name="probs")
            return logits, unary_functions.sigmoid(logits, name="probs")
        probs = convert_to_tensor(probs, name="probs")
        if not probs.dtype.is_floating:
            raise TypeError("probs must having floating type.")
        if validate_args:
            one = number(1, probs)
            rules = [(comparison.greater_equal(probs, number(0, probs)), "probs has components less than 0.")]
            if multidimensional:
                off = unary_functions.abs(reductions.reduce_sum(probs, -1) - one)
                rules.append((comparison.less(off, number(1e-5, probs)), "probs does not sum to 1."))
            else:
                rules.append((comparison.less_equal(probs, one), "probs has components greater than 1."))
            probs = checked(probs, rules)
        logits = unary_functions.log(probs, name="logits") if multidimensional else None
        if logits is None:
            logits = unary_functions.log(probs) - unary_functions.log1p(-1.0 * probs)
        return logits, probs


Init = TypeVar("Init", bound=Callable[..., None])


def keeps_arguments(init: Init) -> Init:
    """Decorates the `__init__` of a distribution: its arguments become `parameters`, even if it calls a parent's `__init__`."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def kept(self: Distribution, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        self._parameters = {name: value for name, value in bound.arguments.items() if name != "self"}

    return cast(Init, kept)


@export(v1="distributions.Distribution")
class Distribution:
    """A probability distribution over events, for each member of a batch.

    A sample has the shape `sample_shape + batch_shape + event_shape`. Subclasses implement methods with a leading
    underscore (`_log_prob` or `_prob`, `_sample_n`, `_batch_shape`, `_batch_shape_tensor`, `_event_shape`, ...). A public method
    raises NotImplementedError if the subclass does not implement it.

    Args:
        dtype: the dtype of the samples.
        reparameterization_type: whether samples are differentiable.
        validate_args: whether to check parameters and values at run time.
        allow_nan_stats: whether undefined statistics are NaN; otherwise they raise an error at run time.
        parameters: the constructor arguments of the subclass.
        graph_parents: the tensors that the distribution depends on.
        name: the name scope of its ops.
    """

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any] | None = None,
        graph_parents: list[Tensor] | None = None,
        name: str | None = None,
    ) -> None:
        for i, parent in enumerate(graph_parents or []):
            if parent is None or not isinstance(parent, Tensor):
                raise ValueError(f"Graph parent item {i} is not a Tensor; {parent}.")
        if not name or name[-1] != "/":
            with name_scope(name or type(self).__name__) as scope:
                name = scope
        self._dtype = dtype
        self._reparameterization_type = reparameterization_type
        self._validate_args = validate_args
        self._allow_nan_stats = allow_nan_stats
        self._parameters = dict(parameters or {})
        self._graph_parents = list(graph_parents or [])
        self._name = name

    # -- properties --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor arguments."""
        return {k: v for k, v in self._parameters.items() if not k.startswith("__") and k != "self"}

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        return self._validate_args

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """A copy with some constructor arguments replaced."""
        accepted = inspect.signature(type(self).__init__).parameters
        arguments = {k: v for k, v in self.parameters.items() if k in accepted}
        return type(self)(**{**arguments, **override_parameters_kwargs})

    @classmethod
    def param_shapes(cls, sample_shape: Any, name: str = "DistributionParamShapes") -> dict[str, Tensor]:
        """The shapes of the parameters for a sample shape."""
        with name_scope(name, None, [sample_shape]):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, TensorShape]:
        """As `param_shapes`, for a static shape."""
        known = as_shape(sample_shape)
        if not known.known:
            raise ValueError("sample_shape must be fully defined")
        return {name: TensorShape(constant_value(t)) for name, t in cls.param_shapes(list(known)).items()}

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Tensor]:
        raise NotImplementedError("param_shapes is not implemented for this distribution")

    # -- shapes --------------------------------------------------------------------------------------------------

    def _batch_shape(self) -> Any:
        return TensorShape(None)

    def _event_shape(self) -> Any:
        return TensorShape(None)

    def _batch_shape_tensor(self) -> Tensor:
        raise NotImplementedError(f"batch_shape_tensor is not implemented: {type(self).__name__}")

    def _event_shape_tensor(self) -> Tensor:
        raise NotImplementedError(f"event_shape_tensor is not implemented: {type(self).__name__}")

    @property
    def batch_shape(self) -> TensorShape:
        return TensorShape(as_shape(self._batch_shape()))

    @property
    def event_shape(self) -> TensorShape:
        return TensorShape(as_shape(self._event_shape()))

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape of the batch, as a vector."""
        with self._scope(name):
            known = as_shape(self._batch_shape())
            return _shape_vector(known, "batch_shape") if known.known else self._batch_shape_tensor()

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """The shape of one event, as a vector."""
        with self._scope(name):
            known = as_shape(self._event_shape())
            return _shape_vector(known, "event_shape") if known.known else self._event_shape_tensor()

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Whether an event is a scalar."""
        with self._scope(name):
            return self._is_scalar(as_shape(self._event_shape()), self.event_shape_tensor)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Whether there is only one distribution rather than a batch."""
        with self._scope(name):
            return self._is_scalar(as_shape(self._batch_shape()), self.batch_shape_tensor)

    def _is_scalar(self, known: Shape, shape: Any) -> Tensor:
        if known.rank is not None:
            return constant(known.rank == 0)
        return comparison.equal(shaping.shape(shape())[0], 0)

    # -- samples and probabilities -------------------------------------------------------------------------------

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        raise NotImplementedError(f"sample is not implemented: {type(self).__name__}")

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Draws samples of shape `sample_shape` for each member of the batch."""
        with self._scope(name, [sample_shape]):
            shape = convert_to_tensor(sample_shape, dtypes.int32, name="sample_shape")
            known = constant_value(shape)
            if known is not None:
                shape = constant(np.atleast_1d(known), dtypes.int32, name="sample_shape")
            elif shape.static_shape.rank != 1:
                shape = shaping.reshape(shape, [-1])
            count: Any = int(np.prod(known, dtype=np.int64)) if known is not None else reductions.reduce_prod(shape)
            drawn = self._sample_n(count, seed)
            rest = shaping.shape(drawn)[1:]
            result = shaping.reshape(drawn, joining.concat([shape, rest], 0))
            if known is not None:
                front = Shape(tuple(np.atleast_1d(known).tolist()))
                whole = front.concat(as_shape(self._batch_shape())).concat(as_shape(self._event_shape()))
                if not context.executing_eagerly():
                    result.set_shape(whole)
            return result

    def _either(self, name: str, value: Any, first: str, second: str, convert: Any) -> Tensor:
        """Calls method `first`, or `convert`s the result of `second`, depending on which one the subclass implements."""
        with self._scope(name, [value]):
            value = convert_to_tensor(value, dtype_hint=self._dtype, name="value")
            if self._states(first):
                return getattr(self, first)(value)
            if self._states(second):
                return convert(getattr(self, second)(value))
            raise NotImplementedError(f"{first[1:]} is not implemented: {type(self).__name__}")

    def _states(self, method: str) -> bool:
        return hasattr(type(self), method)

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithm of the density (or probability) at `value`."""
        return self._either(name, value, "_log_prob", "_prob", unary_functions.log)

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The density (or probability) at `value`."""
        return self._either(name, value, "_prob", "_log_prob", unary_functions.exp)

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Tensor:
        """The logarithm of the cumulative distribution function at `value`."""
        return self._either(name, value, "_log_cdf", "_cdf", unary_functions.log)

    def cdf(self, value: Any, name: str = "cdf") -> Tensor:
        """The cumulative distribution function: the probability of a sample of at most `value`."""
        return self._either(name, value, "_cdf", "_log_cdf", unary_functions.exp)

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Tensor:
        """The logarithm of the survival function at `value`."""
        second = "_cdf" if self._states("_cdf") else "_log_cdf"

        def convert(found: Tensor) -> Tensor:
            return unary_functions.log1p(-1.0 * (found if second == "_cdf" else unary_functions.exp(found)))

        return self._either(name, value, "_log_survival_function", second, convert)

    def survival_function(self, value: Any, name: str = "survival_function") -> Tensor:
        """The survival function: the probability of a sample greater than `value`."""
        second = "_cdf" if self._states("_cdf") else "_log_cdf"

        def convert(found: Tensor) -> Tensor:
            return 1.0 - (found if second == "_cdf" else unary_functions.exp(found))

        return self._either(name, value, "_survival_function", second, convert)

    def quantile(self, value: Any, name: str = "quantile") -> Tensor:
        """The inverse of the cumulative distribution function."""
        with self._scope(name, [value]):
            self._require("_quantile")
            return self._quantile(convert_to_tensor(value, self._dtype))  # type: ignore[attr-defined]

    # -- statistics ----------------------------------------------------------------------------------------------

    def _require(self, method: str) -> None:
        if not self._states(method):
            raise NotImplementedError(f"{method[1:]} is not implemented: {type(self).__name__}")

    def _statistic(self, method: str, name: str) -> Tensor:
        with self._scope(name):
            self._require(method)
            return getattr(self, method)()

    def entropy(self, name: str = "entropy") -> Tensor:
        """The Shannon entropy, in nats."""
        return self._statistic("_entropy", name)

    def mean(self, name: str = "mean") -> Tensor:
        return self._statistic("_mean", name)

    def mode(self, name: str = "mode") -> Tensor:
        return self._statistic("_mode", name)

    def covariance(self, name: str = "covariance") -> Tensor:
        """The covariance matrix of vector events."""
        return self._statistic("_covariance", name)

    def variance(self, name: str = "variance") -> Tensor:
        if self._states("_variance") or not self._states("_stddev"):
            return self._statistic("_variance", name)
        with self._scope(name):
            return unary_functions.square(self._stddev())  # type: ignore[attr-defined]

    def stddev(self, name: str = "stddev") -> Tensor:
        if self._states("_stddev"):
            return self._statistic("_stddev", name)
        with self._scope(name):
            if not self._states("_variance"):
                raise NotImplementedError(f"stddev is not implemented: {type(self).__name__}")
            return unary_functions.sqrt(self._variance())  # type: ignore[attr-defined]

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Tensor:
        """The cross entropy: the entropy plus the divergence to `other`."""
        with self._scope(name):
            return self.entropy() + divergence.kl_divergence(self, other)

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Tensor:
        """The Kullback-Leibler divergence from this distribution to `other`."""
        with self._scope(name):
            return divergence.kl_divergence(self, other, allow_nan_stats=self._allow_nan_stats)

    def _or_nan(self, defined: Any, value: Tensor, message: str) -> Tensor:
        """`value` where it is defined. Elsewhere NaN, or an error if NaN is not allowed."""
        if self._allow_nan_stats:
            return where(defined, value, nan(value))
        return checked(value, [(defined, message)])

    @contextlib.contextmanager
    def _scope(self, name: str | None, values: Any = None) -> Iterator[None]:
        with name_scope(self._name), name_scope(name, None, values):
            yield

    def __str__(self) -> str:
        batch = f", batch_shape={self.batch_shape}" if self.batch_shape.rank is not None else ""
        event = f", event_shape={self.event_shape}" if self.event_shape.rank is not None else ""
        return f'tfp.distributions.{type(self).__name__}("{self.name}"{batch}{event}, dtype={self._dtype.name})'

    def __repr__(self) -> str:
        return (
            f"<tfp.distributions.{type(self).__name__} '{self.name}' batch_shape={self.batch_shape} "
            f"event_shape={self.event_shape} dtype={self._dtype.name}>"
        )


def _shape_vector(shape: Shape, name: str) -> Tensor:
    return constant(list(shape), dtypes.int32, shape=[len(shape)], name=name)
