"""Batch normalization."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import colocate_with, control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.base import InputSpec, Layer, as_public, called_once, dims, known_flag, smart_cond
from stoker._src.layers.core import ONES, ZEROS
from stoker._src.ops.array import casting, constants, joining, shaping
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.nn import activations, batch_norm, moments
from stoker._src.ops.variables import variable_scope
from stoker._src.ops.variables.variables import ResourceVariable


@export(v1="layers.BatchNormalization")
class BatchNormalization(Layer):
    """Normalizes by the mean and variance of the batch in training, and by their moving averages otherwise.

    Variables: `gamma`, `beta` (trainable), `moving_mean`, `moving_variance` (not trainable). In training, the updates of the
    averages are added to UPDATE_OPS and must be run with the training step (Ioffe and Szegedy, 2015).

    Args:
        axis: the dimension, or dimensions, with separate statistics, usually the channels.
        momentum: the momentum of the moving averages.
        epsilon: a small number added to the variance.
        center, scale: whether to use `beta` and `gamma`.
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer: initializers of the variables.
        beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: regularizers and constraints of the variables.
        renorm: whether to use batch renormalization (Ioffe, 2017), which corrects the batch statistics towards the averages
            `renorm_mean` and `renorm_stddev`. `moving_variance` is then computed from `moving_stddev`.
        renorm_clipping: bounds of the corrections, as tensors or numbers, with any of the keys "rmin", "rmax" and "dmax".
        renorm_momentum: the momentum of the renormalization averages.
        fused: whether to use the fused op; None uses it if possible. If it is not possible, several ops are used.
        trainable: whether gamma and beta are trainable.
        virtual_batch_size: the size of groups of examples that are normalized separately.
        adjustment: a function from the input's shape to (scale, bias), applied to normalized values in training.
        name: the layer's name.

    Raises:
        TypeError: `axis` is not an integer or a list of integers.
        ValueError: an axis is out of range, a renorm bound is unknown, or virtual batches are combined with axis 0 or
            an adjustment.
    """

    _parameter_order: tuple[str, str] = ("gamma", "beta")  # in which they are created

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = ZEROS,
        gamma_initializer: Any = ONES,
        moving_mean_initializer: Any = ZEROS,
        moving_variance_initializer: Any = ONES,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, **kwargs)
        many = isinstance(axis, (list, tuple))
        if not all(isinstance(each, int) for each in (axis if many else [axis])):
            raise TypeError(f"Expected an int or a list/tuple of ints for the argument 'axis', but received: {axis!r}")
        self.axis = list(axis) if many else [axis]
        self.renorm, self.renorm_clipping, self.renorm_momentum = renorm, renorm_clipping or {}, renorm_momentum
        if renorm and set(self.renorm_clipping) - {"rmax", "rmin", "dmax"}:
            raise ValueError(
                f"Received invalid keys for `renorm_clipping` argument: {renorm_clipping}. Supported values: "
                "['rmax', 'rmin', 'dmax']."
            )
        self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.fused = None if fused is None else bool(fused)
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None
        self.moving_stddev: Any = None
        self.renorm_mean: Any = None
        self.renorm_stddev: Any = None

    def build(self, input_shape: Any) -> None:
        if not as_shape(input_shape).rank:
            raise ValueError(f"Input has undefined rank. Received: input_shape={TensorShape(as_shape(input_shape))}")
        sizes = dims(input_shape)
        self._settle_axes(sizes)
        shape = [sizes[self.axis[0]]]
        if len(self.axis) > 1 or self.virtual_batch_size is not None:
            shape = [size if i in self.axis else 1 for i, size in enumerate(sizes)]
        if self.virtual_batch_size is not None:  # the batch is split into two dimensions
            shape.insert(1, 1)
            self.axis = [axis + 1 for axis in self.axis]
        # Statistics of half-precision inputs are kept in float32.
        kind = dtypes.float32 if self._dtype in (dtypes.float16, dtypes.bfloat16) else self._variable_dtype
        for name in self._parameter_order:
            if {"gamma": self.scale, "beta": self.center}[name]:
                settings = (getattr(self, f"{name}_{part}") for part in ("initializer", "regularizer", "constraint"))
                initializer, regularizer, constraint = settings
                weight = self.add_weight(name, shape, kind, initializer, regularizer, constraint=constraint)
                setattr(self, name, weight)

        def statistic(name: str, initializer: Any) -> Any:
            # Averages are assigned as a whole, so they are not partitioned.
            scope = variable_scope.get_variable_scope()
            partitioner = scope.partitioner
            scope.set_partitioner(None)
            try:
                return self.add_weight(name, shape, kind, initializer, trainable=False)
            finally:
                scope.set_partitioner(partitioner)

        means, variances = self.moving_mean_initializer, self.moving_variance_initializer
        self.moving_mean = statistic("moving_mean", means)
        self.moving_variance = statistic("moving_variance", variances)
        if self.renorm:
            # The standard deviation starts as the square root of the initial variance.
            roots = variances if variances is ONES else _root_of(variances)
            self.moving_stddev = statistic("moving_stddev", roots)
            self.renorm_mean = statistic("renorm_mean", means)
            self.renorm_stddev = statistic("renorm_stddev", roots)
        super().build(input_shape)

    def _settle_axes(self, sizes: list[Any]) -> None:
        """Checks the axes, makes them non-negative, and decides whether to use the fused op."""
        rank = len(sizes)
        if any(not -rank <= axis < rank for axis in self.axis):
            raise ValueError(
                "Invalid value for `axis` argument. Expected 0 <= axis < inputs.rank (with "
                f"inputs.rank={rank}). Received: axis={tuple(self.axis)}"
            )
        self.axis = [axis % rank for axis in self.axis]
        if len(set(self.axis)) != len(self.axis):
            raise ValueError(f"Duplicate axis: {tuple(self.axis)}")
        if self.virtual_batch_size is not None:
            if self.virtual_batch_size <= 0:
                raise ValueError(
                    "`virtual_batch_size` must be a positive integer that divides the true batch size of the input "
                    f"tensor. Received: virtual_batch_size={self.virtual_batch_size}"
                )
            if 0 in self.axis:
                raise ValueError(
                    "When using `virtual_batch_size`, the batch dimension must be 0 and thus axis cannot include 0. "
                    f"Received axis={self.axis}"
                )
            if self.adjustment is not None:
                raise ValueError("When using `virtual_batch_size`, adjustment cannot be specified")
        if any(sizes[axis] is None for axis in self.axis):
            raise ValueError(
                f"Input has undefined `axis` dimension. Received input with shape {as_public(sizes)} and axis={tuple(self.axis)}"
            )
        whole = not self.renorm and self.virtual_batch_size is None and self.adjustment is None
        single = self._variable_dtype in (dtypes.float32, dtypes.float16, dtypes.bfloat16)
        fusible = whole and single and rank in (4, 5) and self.axis in ([1], [rank - 1])
        self.fused = fusible and self.fused is not False
        self.input_spec = InputSpec(ndim=rank, axes={axis: sizes[axis] for axis in self.axis})

    def call(self, inputs: Any, training: Any = False) -> Tensor:
        if self.fused:
            return self._fused_call(inputs, training)
        if self.virtual_batch_size is None:
            return self._plain_call(inputs, training)
        sizes = shaping.shape(inputs)
        parts = joining.concat([[self.virtual_batch_size, -1], sizes[1:]], 0)
        outputs = self._plain_call(shaping.reshape(inputs, parts), training)
        return shaping.reshape(outputs, sizes)

    def _fused_call(self, inputs: Any, training: Any) -> Tensor:
        letters = "DHW"[5 - inputs.static_shape.rank :]
        layout = f"NC{letters}" if self.axis == [1] else f"N{letters}C"
        size = inputs.static_shape[self.axis[0]]
        kind = self.moving_mean.dtype.base_dtype
        gamma = self.gamma if self.scale else constants.constant(1.0, kind, [size])
        beta = self.beta if self.center else constants.constant(0.0, kind, [size])

        def by_batch() -> Any:
            return list(batch_norm.fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon, data_format=layout))

        def by_averages() -> Any:
            return list(
                batch_norm.fused_batch_norm(
                    inputs,
                    gamma,
                    beta,
                    self.moving_mean,
                    self.moving_variance,
                    self.epsilon,
                    layout,
                    is_training=False,
                )
            )

        output, mean, variance = smart_cond(training, by_batch, by_averages)
        if known_flag(training) is not False:
            self._update(self.moving_mean, mean, self._momentum(self.momentum, training))
            self._update(self.moving_variance, variance, self._momentum(self.momentum, training))
        return output

    def _momentum(self, momentum: float, training: Any) -> Any:
        """The momentum in training. Otherwise it is 1, which leaves the averages unchanged."""
        if known_flag(training):
            return float(momentum)
        kind = self.moving_mean.dtype.base_dtype
        return smart_cond(training, lambda: constants.constant(momentum, kind), lambda: constants.constant(1.0, kind))

    def _update(self, average: Any, value: Any, momentum: Any) -> None:
        self.add_update(self._moved(average, value, momentum))

    def _moved(self, average: Any, value: Any, momentum: Any) -> Any:
        """Updates a moving average: average -= (average - value) * (1 - momentum)."""
        with name_scope("AssignMovingAvg") as scope, colocate_with(average):
            kind = average.dtype.base_dtype
            rate = (
                constants.constant(1.0 - momentum, kind, name="decay")
                if isinstance(momentum, float)
                else 1.0 - momentum
            )
            step = (average - casting.cast(value, kind)) * rate
            name = None if isinstance(average, ResourceVariable) else scope  # AssignMovingAvg/AssignSubVariableOp
            return average.assign_sub(step, name=name, read_value=False)

    def _plain_call(self, inputs: Any, training: Any) -> Tensor:
        rank = inputs.static_shape.rank
        apart = self.axis if self.virtual_batch_size is None else [1, *self.axis]
        others = [i for i in range(rank) if i not in apart]
        scale = self._along(self.gamma, rank) if self.scale else None
        offset = self._along(self.beta, rank) if self.center else None
        trained = known_flag(training)
        if trained is False:
            mean, variance = self.moving_mean, self.moving_variance
        else:
            if self.adjustment is not None:
                scale, offset = _composed(self._adjustments(inputs, training), scale, offset)
            mean, variance = self._moments(inputs, others, len(apart) > 1)
            shared_mean, shared_variance = mean, variance
            if self.virtual_batch_size is not None:
                shared_mean = reductions.reduce_mean(mean, axis=1, keepdims=True)
                shared_variance = reductions.reduce_mean(variance, axis=1, keepdims=True)
            if self.renorm:
                found = self._corrections(shared_mean, shared_variance, training)
                scale, offset = _composed([self._along(each, rank) for each in found], scale, offset)
            self._note(shared_mean, shared_variance, training)
            if trained is None:
                batch_mean, batch_variance, like = mean, variance, shaping.zeros_like
                # All virtual batches share the same averages.
                mean = smart_cond(training, lambda: batch_mean, lambda: self.moving_mean + like(batch_mean))
                variance = smart_cond(
                    training, lambda: batch_variance, lambda: self.moving_variance + like(batch_variance)
                )
        outputs = moments.batch_normalization(
            inputs,
            self._along(mean, rank),
            self._along(variance, rank),
            None if offset is None else casting.cast(offset, inputs.dtype.base_dtype),
            None if scale is None else casting.cast(scale, inputs.dtype.base_dtype),
            self.epsilon,
        )
        outputs.set_shape(inputs.static_shape)
        return outputs

    def _moments(self, inputs: Any, axes: list[int], keepdims: bool) -> tuple[Any, Any]:
        """The mean and variance of a batch."""
        return moments.moments(inputs, axes, keep_dims=keepdims)

    def _adjustments(self, inputs: Any, training: Any) -> tuple[Any, Any]:
        scale, bias = self.adjustment(shaping.shape(inputs))
        return (
            smart_cond(training, lambda: scale, lambda: shaping.ones_like(scale)),
            smart_cond(training, lambda: bias, lambda: shaping.zeros_like(bias)),
        )

    def _corrections(self, mean: Any, variance: Any, training: Any) -> tuple[Any, Any]:
        """The corrections that turn values normalized by the batch into values normalized by `renorm_mean` and `renorm_stddev`."""
        deviation = self._deviation(variance)
        ratio = deviation / self.renorm_stddev
        shift = (mean - self.renorm_mean) / self.renorm_stddev
        bounds = {key: convert_to_tensor(value, ratio.dtype) for key, value in self.renorm_clipping.items()}
        if "rmin" in bounds:
            ratio = arithmetic.maximum(ratio, bounds["rmin"])
        if "rmax" in bounds:
            ratio = arithmetic.minimum(ratio, bounds["rmax"])
        if "dmax" in bounds:
            shift = arithmetic.minimum(arithmetic.maximum(shift, -bounds["dmax"]), bounds["dmax"])
        return (
            shaping.stop_gradient(smart_cond(training, lambda: ratio, lambda: shaping.ones_like(ratio))),
            shaping.stop_gradient(smart_cond(training, lambda: shift, lambda: shaping.zeros_like(shift))),
        )

    def _deviation(self, variance: Any) -> Any:
        return unary_functions.SQRT(variance + self.epsilon)

    def _note(self, mean: Any, variance: Any, training: Any) -> None:
        """Adds the updates of all averages."""
        momentum = self._momentum(self.momentum, training)
        if not self.renorm:
            self._update(self.moving_mean, mean, momentum)
            self._update(self.moving_variance, variance, momentum)
            return
        slow, deviation = self._momentum(self.renorm_momentum, training), self._deviation(variance)
        aims = [
            self._moved(self.renorm_mean, mean, slow),
            self._moved(self.renorm_stddev, deviation, slow),
        ]
        with control_dependencies(aims[:1]):
            self._update(self.moving_mean, mean, momentum)
        with control_dependencies(aims[1:]):
            moved = self._moved(self.moving_stddev, deviation, momentum)
        with control_dependencies([moved]):
            stddev = self.moving_stddev.read_value()
            found = activations.relu(stddev * stddev - self.epsilon)
            self.add_update(self.moving_variance.assign(found, name="AssignNewValue", read_value=False))

    def _along(self, vector: Any, rank: int) -> Any:
        """Reshapes a statistic so that it broadcasts along its dimension."""
        if vector.static_shape.rank == rank or self.axis == [rank - 1]:
            return vector
        shape = [1] * rank
        shape[self.axis[0]] = vector.static_shape[0]
        return shaping.reshape(vector, shape)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return as_public(dims(input_shape))


def _composed(inner: Any, scale: Any, offset: Any) -> tuple[Any, Any]:
    """The scale and offset of the composition (x * inner scale + inner offset) * scale + offset."""
    if scale is not None:
        inner = inner[0] * scale, inner[1] * scale
    return inner[0], inner[1] if offset is None else inner[1] + offset


def _root_of(initializer: Any) -> Any:
    def initialize(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Any:
        made = initializer() if isinstance(initializer, type) else initializer
        return unary_functions.SQRT(made(shape, dtype))

    return initialize


@export(v1="layers.batch_normalization")
def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = ZEROS,
    gamma_initializer: Any = ONES,
    moving_mean_initializer: Any = ZEROS,
    moving_variance_initializer: Any = ONES,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Tensor:
    """Applies a new `BatchNormalization` layer."""
    return called_once(BatchNormalization, locals())
