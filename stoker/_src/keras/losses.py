"""`tf.keras.losses`: functions of true values and predictions, and classes that weight and reduce them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export, export_constant
from stoker._src.graph import conversion, scopes
from stoker._src.keras.serialization import deserialize as _deserialize
from stoker._src.keras.serialization import find
from stoker._src.keras.serialization import serialize as _serialize
from stoker._src.ops.array import casting, ranges, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.math import arithmetic, clipping, comparison, reductions, unary_functions
from stoker._src.ops.nn import activations, cross_entropy, moments

_EPSILON = 1e-7


def _pair(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    y_pred = conversion.convert_to_tensor(y_pred)
    return casting.cast(y_true, y_pred.dtype.base_dtype), y_pred


@export(
    "keras.losses.mean_squared_error",
    "keras.losses.mse",
    "keras.losses.MSE",
    "keras.metrics.mean_squared_error",
    "keras.metrics.mse",
    "keras.metrics.MSE",
)
def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of squared differences over the last dimension."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reductions.reduce_mean(arithmetic.squared_difference(y_pred, y_true), axis=-1)


@export(
    "keras.losses.mean_absolute_error",
    "keras.losses.mae",
    "keras.losses.MAE",
    "keras.metrics.mean_absolute_error",
    "keras.metrics.mae",
    "keras.metrics.MAE",
)
def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of absolute differences over the last dimension."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reductions.reduce_mean(unary_functions.abs(y_pred - y_true), axis=-1)


@export(
    "keras.losses.mean_absolute_percentage_error",
    "keras.losses.mape",
    "keras.losses.MAPE",
    "keras.metrics.mean_absolute_percentage_error",
    "keras.metrics.mape",
    "keras.metrics.MAPE",
)
def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of absolute differences, in percent of the true values."""
    y_true, y_pred = _pair(y_true, y_pred)
    return 100.0 * reductions.reduce_mean(
        unary_functions.abs((y_true - y_pred) / arithmetic.maximum(unary_functions.abs(y_true), _EPSILON)), axis=-1
    )


@export(
    "keras.losses.mean_squared_logarithmic_error",
    "keras.losses.msle",
    "keras.losses.MSLE",
    "keras.metrics.mean_squared_logarithmic_error",
    "keras.metrics.msle",
    "keras.metrics.MSLE",
)
def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of squared differences of log(1 + y)."""
    y_true, y_pred = _pair(y_true, y_pred)
    first, second = (unary_functions.log(arithmetic.maximum(each, _EPSILON) + 1.0) for each in (y_pred, y_true))
    return reductions.reduce_mean(arithmetic.squared_difference(first, second), axis=-1)


def _signs(y_true: Any) -> Any:
    """Labels of 0 and 1 as -1 and 1."""
    binary = reductions.reduce_all(comparison.logical_or(comparison.equal(y_true, 0.0), comparison.equal(y_true, 1.0)))
    return branches_and_loops.cond(binary, lambda: 2.0 * y_true - 1.0, lambda: y_true)


@export("keras.losses.hinge", "keras.metrics.hinge")
def hinge(y_true: Any, y_pred: Any) -> Any:
    """max(1 - y_true * y_pred, 0), with labels -1 and 1 (or 0 and 1)."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reductions.reduce_mean(arithmetic.maximum(1.0 - _signs(y_true) * y_pred, 0.0), axis=-1)


@export("keras.losses.squared_hinge", "keras.metrics.squared_hinge")
def squared_hinge(y_true: Any, y_pred: Any) -> Any:
    """The square of the hinge loss."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reductions.reduce_mean(
        unary_functions.square(arithmetic.maximum(1.0 - _signs(y_true) * y_pred, 0.0)), axis=-1
    )


@export("keras.losses.categorical_hinge")
def categorical_hinge(y_true: Any, y_pred: Any) -> Any:
    """max(0, 1 + the best wrong prediction - the right one), with one-hot labels."""
    y_true, y_pred = _pair(y_true, y_pred)
    right = reductions.reduce_sum(y_true * y_pred, axis=-1)
    wrong = reductions.reduce_max((1.0 - y_true) * y_pred, axis=-1)
    return arithmetic.maximum(0.0, wrong - right + 1.0)


@export("keras.losses.huber_loss", v2="keras.losses.huber")
def huber_loss(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """Squared differences below delta, and linear ones above."""
    y_true, y_pred = _pair(y_true, y_pred)
    error = unary_functions.abs(y_pred - y_true)
    quadratic = arithmetic.minimum(error, delta)
    return 0.5 * quadratic * quadratic + delta * (error - quadratic)


@export("keras.losses.logcosh")
def logcosh(y_true: Any, y_pred: Any) -> Any:
    """log(cosh(difference))."""
    y_true, y_pred = _pair(y_true, y_pred)
    x = y_pred - y_true
    return reductions.reduce_mean(x + activations.softplus(-2.0 * x) - unary_functions.log(2.0), axis=-1)


def _smoothed(y_true: Any, smoothing: Any, categories: Any) -> Any:
    if isinstance(smoothing, (int, float)) and not smoothing:
        return y_true
    if categories is None:
        return y_true * (1.0 - smoothing) + 0.5 * smoothing
    return y_true * (1.0 - smoothing) + smoothing / categories


def _logits_of(probabilities: Any, kind: str) -> Any:
    """The logits that an activation made probabilities of, if the tensor comes from one: they are more accurate."""
    op = getattr(probabilities, "op", None) if not getattr(probabilities, "is_eager", False) else None
    if op is not None and op.type == "Identity":
        op = op._inputs[0].op
    return op._inputs[0] if op is not None and op.type == kind else None


def categorical(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """`tf.keras.backend.categorical_crossentropy`."""
    logits = output if from_logits else _logits_of(output, "Softmax")
    if logits is not None:
        return cross_entropy.softmax_cross_entropy_with_logits_v2(labels=target, logits=logits, axis=axis)
    output = output / reductions.reduce_sum(output, axis, True)
    output = clipping.clip_by_value(output, _EPSILON, 1.0 - _EPSILON)
    return -reductions.reduce_sum(target * unary_functions.log(output), axis)


def sparse_categorical(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """`tf.keras.backend.sparse_categorical_crossentropy`."""
    logits = output if from_logits else _logits_of(output, "Softmax")
    if logits is None:
        logits = unary_functions.log(clipping.clip_by_value(output, _EPSILON, 1.0 - _EPSILON))
    rank = logits.static_shape.rank
    if rank is not None and axis % rank != rank - 1:
        order = [*(i for i in range(rank) if i != axis % rank), axis % rank]
        logits = shaping.transpose(logits, order)
    target = casting.cast(target, dtypes.int64)
    if rank is not None and target.static_shape.rank == rank and target.static_shape[-1] == 1:
        target = shaping.squeeze(target, -1)
    elif target.static_shape.rank is None or target.static_shape.rank == rank:
        target = shaping.reshape(target, shaping.shape(logits)[:-1])
    return cross_entropy.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)


def binary(target: Any, output: Any, from_logits: bool = False) -> Any:
    """`tf.keras.backend.binary_crossentropy`."""
    logits = output if from_logits else _logits_of(output, "Sigmoid")
    if logits is not None:
        return cross_entropy.sigmoid_cross_entropy_with_logits(labels=target, logits=logits)
    output = clipping.clip_by_value(output, _EPSILON, 1.0 - _EPSILON)
    return -(
        target * unary_functions.log(output + _EPSILON) + (1 - target) * unary_functions.log(1 - output + _EPSILON)
    )


for _function, _public in (
    (categorical, "categorical"),
    (sparse_categorical, "sparse_categorical"),
    (binary, "binary"),
):
    export_constant(__name__, _function.__name__, f"keras.backend.{_public}_crossentropy")


@export("keras.losses.categorical_crossentropy", "keras.metrics.categorical_crossentropy")
def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0) -> Any:
    """The cross entropy of one-hot labels."""
    y_true, y_pred = _pair(y_true, y_pred)
    y_true = _smoothed(
        y_true, label_smoothing, casting.cast(shaping.shape(y_true)[1], y_pred.dtype) if label_smoothing else 1
    )
    return categorical(y_true, y_pred, from_logits)


@export("keras.losses.sparse_categorical_crossentropy", "keras.metrics.sparse_categorical_crossentropy")
def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """The cross entropy of integer labels."""
    return sparse_categorical(y_true, conversion.convert_to_tensor(y_pred), from_logits, axis)


@export("keras.losses.binary_crossentropy", "keras.metrics.binary_crossentropy")
def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0) -> Any:
    """The cross entropy of labels 0 and 1."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reductions.reduce_mean(binary(_smoothed(y_true, label_smoothing, None), y_pred, from_logits), axis=-1)


@export(
    "keras.losses.kullback_leibler_divergence",
    "keras.losses.kld",
    "keras.losses.KLD",
    "keras.metrics.kullback_leibler_divergence",
    "keras.metrics.kld",
    "keras.metrics.KLD",
)
def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Any:
    """y_true * log(y_true / y_pred), summed over the last dimension."""
    y_true, y_pred = _pair(y_true, y_pred)
    y_true, y_pred = (clipping.clip_by_value(each, _EPSILON, 1.0) for each in (y_true, y_pred))
    return reductions.reduce_sum(y_true * unary_functions.log(y_true / y_pred), axis=-1)


@export("keras.losses.poisson", "keras.metrics.poisson")
def poisson(y_true: Any, y_pred: Any) -> Any:
    """y_pred - y_true * log(y_pred)."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reductions.reduce_mean(y_pred - y_true * unary_functions.log(y_pred + _EPSILON), axis=-1)


@export(
    "keras.losses.cosine_similarity",
    v1=(
        "keras.losses.cosine_proximity",
        "keras.losses.cosine",
        "keras.metrics.cosine_proximity",
        "keras.metrics.cosine",
    ),
)
def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """The negative cosine of the angle between vectors: -1 for equal directions."""
    y_true, y_pred = _pair(y_true, y_pred)
    return -reductions.reduce_sum(
        moments.l2_normalize(y_true, axis=axis) * moments.l2_normalize(y_pred, axis=axis), axis=axis
    )


# ---- classes --------------------------------------------------------------------------------------------------------


class Reduction:
    """How a loss makes one number of the losses of examples."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        return (cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE)

    @classmethod
    def validate(cls, key: str) -> None:
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


export_constant(__name__, "Reduction", v2=("keras.losses.Reduction", "losses.Reduction"))


def matched(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Adds or removes a last dimension of 1, so that both have as many dimensions."""
    difference = (y_pred.static_shape.rank or 0) - (y_true.static_shape.rank or 0)
    if difference == 1 and y_pred.static_shape[-1] == 1:
        y_pred = shaping.squeeze(y_pred, -1)
    elif difference == -1 and y_true.static_shape[-1] == 1:
        y_true = shaping.squeeze(y_true, -1)
    return y_true, y_pred


def weighted(losses: Any, sample_weight: Any) -> Any:
    """Losses times weights, which may lack or have additional dimensions of 1."""
    if sample_weight is None:
        return losses
    weights = casting.cast(sample_weight, losses.dtype.base_dtype)
    ranks = losses.static_shape.rank, weights.static_shape.rank
    if None not in ranks:
        if ranks[1] == ranks[0] + 1 and weights.static_shape[-1] == 1:
            weights = shaping.squeeze(weights, -1)
        elif ranks[0] == ranks[1] + 1:
            weights = shaping.expand_dims(weights, -1)
    return losses * weights


def reduced(losses: Any, reduction: str) -> Any:
    if reduction == Reduction.NONE:
        return losses
    total = reductions.reduce_sum(losses)
    if reduction == Reduction.SUM:
        return total
    return total / casting.cast(ranges.size(losses), total.dtype)


@export("keras.losses.Loss", v2="losses.Loss")
class Loss:
    """The base of losses: `call(y_true, y_pred)` gives the losses of examples, which are weighted and reduced."""

    def __init__(self, reduction: str = Reduction.AUTO, name: str | None = None) -> None:
        Reduction.validate(reduction)
        self.reduction, self.name = reduction, name

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        with scopes.NameScope((self.name or type(self).__name__).strip("<>_")):
            return reduced(weighted(self.call(y_true, y_pred), sample_weight), self.reduction)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The losses of examples."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def get_config(self) -> dict[str, Any]:
        return {"reduction": self.reduction, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**config)


class LossFunctionWrapper(Loss):
    """A function as a loss object."""

    def __init__(
        self, fn: Callable[..., Any], reduction: str = Reduction.AUTO, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(reduction, name)
        self.fn, self._arguments = fn, kwargs

    def call(self, y_true: Any, y_pred: Any) -> Any:
        y_pred = conversion.convert_to_tensor(y_pred)
        y_true = conversion.convert_to_tensor(y_true)
        if self.fn is not sparse_categorical_crossentropy:
            y_true, y_pred = matched(y_true, y_pred)
        return self.fn(y_true, y_pred, **self._arguments)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._arguments}


def _loss_class(class_name: str, function: Callable[..., Any], doc: str, **options: Any) -> type[Any]:
    """A class for a function, with the function's options as arguments of the constructor."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        names = [*options, "reduction", "name"]
        if len(args) > len(names):
            raise TypeError(f"{class_name} takes at most {len(names)} arguments: {names}")
        given = {**options, **dict(zip(names, args)), **kwargs}
        unknown = set(given) - set(names)
        if unknown:
            raise TypeError(f"{class_name} got an unexpected keyword argument: {', '.join(sorted(unknown))}")
        reduction, name = given.pop("reduction", Reduction.AUTO), given.pop("name", function.__name__)
        LossFunctionWrapper.__init__(self, function, reduction, name, **given)

    made = type(class_name, (LossFunctionWrapper,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})
    return export(f"keras.losses.{class_name}", v2=f"losses.{class_name}")(made)


MeanSquaredError = _loss_class("MeanSquaredError", mean_squared_error, "The mean of squared differences.")
MeanAbsoluteError = _loss_class("MeanAbsoluteError", mean_absolute_error, "The mean of absolute differences.")
MeanAbsolutePercentageError = _loss_class(
    "MeanAbsolutePercentageError", mean_absolute_percentage_error, "The mean of differences in percent."
)
MeanSquaredLogarithmicError = _loss_class(
    "MeanSquaredLogarithmicError", mean_squared_logarithmic_error, "The mean of squared differences of logarithms."
)
BinaryCrossentropy = _loss_class(
    "BinaryCrossentropy",
    binary_crossentropy,
    "The cross entropy of labels 0 and 1.",
    from_logits=False,
    label_smoothing=0,
)
CategoricalCrossentropy = _loss_class(
    "CategoricalCrossentropy",
    categorical_crossentropy,
    "The cross entropy of one-hot labels.",
    from_logits=False,
    label_smoothing=0,
)
SparseCategoricalCrossentropy = _loss_class(
    "SparseCategoricalCrossentropy",
    sparse_categorical_crossentropy,
    "The cross entropy of integer labels.",
    from_logits=False,
)
Hinge = _loss_class("Hinge", hinge, "max(1 - y_true * y_pred, 0).")
SquaredHinge = _loss_class("SquaredHinge", squared_hinge, "The square of the hinge loss.")
CategoricalHinge = _loss_class("CategoricalHinge", categorical_hinge, "The hinge loss of one-hot labels.")
Poisson = _loss_class("Poisson", poisson, "y_pred - y_true * log(y_pred).")
LogCosh = _loss_class("LogCosh", logcosh, "The logarithm of the hyperbolic cosine of the difference.")
KLDivergence = _loss_class("KLDivergence", kullback_leibler_divergence, "The Kullback-Leibler divergence.")
Huber = _loss_class("Huber", huber_loss, "Squared differences below delta, linear ones above.", delta=1.0)
CosineSimilarity = _loss_class("CosineSimilarity", cosine_similarity, "The negative cosine of the angle.", axis=-1)


@export("keras.losses.serialize")
def serialize(loss: Any) -> Any:
    """The configuration of a loss, or the name of a function."""
    return _serialize(loss)


@export("keras.losses.deserialize")
def deserialize(name: Any, custom_objects: Any = None) -> Any:
    """The loss that a configuration describes, or the function of a name."""
    return _deserialize(name, "losses", custom_objects)


@export("keras.losses.get")
def get(identifier: Any) -> Any:
    """A loss from a function, an object, a name or a configuration; None for None.

    Raises:
        ValueError: it cannot be interpreted.
    """
    if identifier is None:
        return None
    if isinstance(identifier, str):
        return find("losses", identifier)
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if callable(identifier):
        return identifier
    raise ValueError(f"Could not interpret loss function identifier: {identifier}")
