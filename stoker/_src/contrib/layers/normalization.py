"""Normalizations of `tf.contrib.layers`: by batch, layer, instance, group and length."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, shapes
from stoker._src.base.export import export
from stoker._src.contrib.framework.arg_scopes import add_arg_scope
from stoker._src.contrib.framework.variables import model_variable
from stoker._src.contrib.layers.common import (
    add_to_collections,
    both,
    channel_dimension,
    checked_layout,
    finished,
    get_variable_collections,
    layer_scope,
)
from stoker._src.graph import conversion, keys, public, scopes
from stoker._src.layers import normalization
from stoker._src.ops.array import shaping
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.nn import moments
from stoker._src.ops.variables import initializers as variables_initializers
from stoker._src.ops.variables import variable_scope
from stoker._src.train.optimizers.moving_averages import assign_moving_average

_LAYOUTS = ("NCHW", "NHWC")


class _BatchNormalization(normalization.BatchNormalization):
    """Batch normalization with weighted examples, a corrected moving mean, and updates that go where they are asked to."""

    def __init__(self, weights: Any, debiased: bool, updates_collections: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._example_weights, self._debiased = weights, debiased
        self._updates_collections = updates_collections
        self._lists_updates = updates_collections is not None
        self.made: list[Any] = []  # the updates, where they are to be run before the output

    def add_update(self, updates: Any) -> None:
        if self._updates_collections is None:
            self.made.append(updates)
        else:
            public.add_to_collections(self._updates_collections, updates)

    def _moments(self, inputs: Any, axes: list[int], keepdims: bool) -> tuple[Any, Any]:
        if self._example_weights is None:
            return super()._moments(inputs, axes, keepdims)
        return moments.weighted_moments(inputs, axes, self._example_weights, keep_dims=keepdims)

    def _moved(self, average: Any, value: Any, momentum: Any) -> Any:
        debiased = self._debiased and average is self.moving_mean
        return assign_moving_average(average, value, momentum, zero_debias=debiased)


@export(v1=both("batch_norm"))
@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: dict[str, Any] | None = None,
    param_regularizers: dict[str, Any] | None = None,
    updates_collections: Any = keys.GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: dict[str, Any] | None = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Any:
    """Normalizes each channel by its mean and variance in the batch, or by their moving averages (Ioffe and Szegedy, 2015).

    Args:
        inputs: a tensor of rank 2 or more.
        decay: the fraction of the moving averages that each update keeps.
        center, scale: whether to add `beta` and to multiply by `gamma`.
        epsilon: a small number added to the variance.
        activation_fn: a function of the result; None for none.
        param_initializers, param_regularizers: dictionaries with the keys "beta", "gamma", "moving_mean" and "moving_variance".
        updates_collections: the collections of the updates of the averages; None to run them before the result.
        is_training: whether to use the statistics of the batch; a Python bool or a tensor.
        reuse, variables_collections, outputs_collections, trainable, scope: as in `convolution`.
        batch_weights: a weight for each example, in the statistics of the batch.
        fused: whether to use the fused op where it is possible, which None does.
        data_format: "NHWC" or "NCHW".
        zero_debias_moving_mean: whether the moving mean is corrected for its start at zero.
        renorm, renorm_clipping, renorm_decay, adjustment: as in `tf.layers.batch_normalization`.

    Raises:
        ValueError: the data format is unknown, the rank is unknown, or arguments exclude each other.
    """
    if fused and (batch_weights is not None or renorm or adjustment is not None):
        excluded = "use of batch_weights" if batch_weights is not None else "renorm" if renorm else "use of adjustment"
        raise ValueError(f"{excluded} is not supported for fused batch norm.")
    layout = checked_layout(data_format, _LAYOUTS)
    inputs = conversion.convert_to_tensor(inputs)
    rank = inputs.get_shape().ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank")
    initializers, regularizers = param_initializers or {}, param_regularizers or {}
    with layer_scope(scope, "BatchNorm", inputs, reuse) as opened:
        # The fused op takes images: rows are images of one pixel. Its estimate of the variance is the unbiased one.
        as_images = rank == 2 and fused is not False and batch_weights is None and not renorm and adjustment is None
        channels = channel_dimension(inputs.get_shape(), data_format, min_rank=2)
        values = inputs
        if as_images:
            shape = [-1, channels, 1, 1] if layout == "channels_first" else [-1, 1, 1, channels]
            values = shaping.reshape(inputs, shape)
        weights = None
        if batch_weights is not None:
            weights = shaping.reshape(conversion.convert_to_tensor(batch_weights), [-1] + [1] * (rank - 1))
        given = {f"{name}_initializer": initializers[name] for name in ("beta", "gamma", "moving_mean", "moving_variance") if name in initializers}  # fmt: skip
        # Without any of these 1.15 leaves the work to tf.layers, which creates gamma first.
        plain = updates_collections == keys.GraphKeys.UPDATE_OPS and not (as_images or zero_debias_moving_mean)
        layer = _BatchNormalization(
            weights,
            zero_debias_moving_mean,
            updates_collections,
            axis=1 if layout == "channels_first" else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            beta_regularizer=regularizers.get("beta"),
            gamma_regularizer=regularizers.get("gamma"),
            renorm=renorm,
            renorm_clipping=renorm_clipping,
            renorm_momentum=renorm_decay,
            adjustment=adjustment,
            fused=False if weights is not None else fused,
            trainable=trainable,
            name=opened.name,
            dtype=inputs.dtype.base_dtype,
            _scope=opened,
            _reuse=reuse,
            **given,
        )
        if not plain or batch_weights is not None:
            layer._parameter_order = ("beta", "gamma")
        outputs = layer.apply(values, training=is_training)
        for name in ("beta", "gamma", "moving_mean", "moving_variance"):
            if getattr(layer, name) is not None:
                add_to_collections(getattr(layer, name), variables_collections, name)
        if layer.made:
            with scopes.control_dependencies(layer.made):
                outputs = shaping.identity(outputs)
        if as_images:
            outputs = shaping.reshape(outputs, shaping.shape(inputs))
        outputs.set_shape(inputs.get_shape())
        return finished(outputs, opened.name, activation_fn, outputs_collections)


def _parameters(
    shape: Any,
    dtype: Any,
    center: bool,
    scale: bool,
    initializers: dict[str, Any] | None,
    variables_collections: Any,
    trainable: bool,
) -> tuple[Any, Any]:
    """The variables `beta` and `gamma` of a normalization; None for one that it does not use."""

    def made(name: str, wanted: bool, default: Any) -> Any:
        if not wanted:
            return None
        return model_variable(
            name,
            shape=shape,
            dtype=dtype,
            initializer=(initializers or {}).get(name, default),
            collections=get_variable_collections(variables_collections, name),
            trainable=trainable,
        )

    beta = made("beta", center, variables_initializers.Zeros())
    return beta, made("gamma", scale, variables_initializers.Ones())


@export(v1=both("layer_norm"))
@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:
    """Normalizes each example by its own mean and variance (Ba, Kiros and Hinton, 2016).

    Args:
        inputs: a tensor of known rank.
        center, scale: whether to add `beta` and to multiply by `gamma`.
        begin_norm_axis: the first of the dimensions that share mean and variance.
        begin_params_axis: the first of the dimensions of `beta` and `gamma`.
        others: as in `batch_norm`.

    Raises:
        ValueError: the rank or a size is unknown, or an axis is out of range.
    """
    with variable_scope.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as opened:
        inputs = conversion.convert_to_tensor(inputs)
        rank, dtype = inputs.get_shape().ndims, inputs.dtype.base_dtype
        if rank is None:
            raise ValueError(f"Inputs {inputs.name} has undefined rank.")
        first = begin_norm_axis + rank if begin_norm_axis < 0 else begin_norm_axis
        if begin_params_axis >= rank or first >= rank:
            raise ValueError(
                f"begin_params_axis ({begin_params_axis}) and begin_norm_axis ({first}) must be < rank(inputs) ({rank})"
            )
        shape = inputs.get_shape()[begin_params_axis:]
        if not shape.is_fully_defined():
            raise ValueError(
                f"Inputs {inputs.name}: shape(inputs)[{begin_params_axis}:] is not fully defined: {inputs.get_shape()}"
            )
        beta, gamma = _parameters(shape, dtype, center, scale, None, variables_collections, trainable)
        mean, variance = moments.moments(inputs, list(range(first, rank)), keep_dims=True)
        # Half precision has no room for 1e-12.
        epsilon = 1e-3 if dtype in (dtypes.float16, dtypes.bfloat16) else 1e-12
        outputs = moments.batch_normalization(
            inputs, mean, variance, offset=beta, scale=gamma, variance_epsilon=epsilon
        )
        outputs.set_shape(inputs.get_shape())
        return finished(outputs, opened.name, activation_fn, outputs_collections)


@export(v1=both("instance_norm"))
@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: dict[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Normalizes each channel of each example by its own mean and variance (Ulyanov, Vedaldi and Lempitsky, 2016).

    The arguments are those of `batch_norm`.

    Raises:
        ValueError: the data format is unknown, or the rank or the number of channels is.
    """
    checked_layout(data_format, _LAYOUTS)
    inputs = conversion.convert_to_tensor(inputs)
    rank = inputs.get_shape().ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    with variable_scope.variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as opened:
        axis = 1 if data_format == "NCHW" else rank - 1
        channels = channel_dimension(inputs.get_shape(), data_format)
        if channels is None:
            raise ValueError(f"Inputs {inputs.name} has undefined channels dimension ({inputs.get_shape()}).")
        dtype = inputs.dtype.base_dtype
        along = [channels if i == axis else 1 for i in range(rank)]
        both_of = _parameters([channels], dtype, center, scale, param_initializers, variables_collections, trainable)
        beta, gamma = (None if each is None else shaping.reshape(each, along) for each in both_of)
        mean, variance = moments.moments(inputs, [i for i in range(1, rank) if i != axis], keep_dims=True)
        outputs = moments.batch_normalization(inputs, mean, variance, beta, gamma, epsilon, name="instancenorm")
        outputs.set_shape(inputs.get_shape())
        return finished(outputs, opened.name, activation_fn, outputs_collections)


@export(v1=both("group_norm"))
@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Any = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: dict[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Any:
    """Normalizes groups of channels of each example by their own mean and variance (Wu and He, 2018).

    Args:
        inputs: a tensor of known rank.
        groups: the number of groups; a divisor of the number of channels.
        channels_axis: the dimension of the channels.
        reduction_axes: the dimensions that share mean and variance, besides the channels of a group.
        mean_close_to_zero: whether the variance may be computed in one pass, as E[x^2] - E[x]^2.
        others: as in `batch_norm`.

    Raises:
        ValueError: the rank or the number of channels is unknown, groups do not divide it, or axes overlap.
    """
    inputs = conversion.convert_to_tensor(inputs)
    rank = inputs.get_shape().ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    if not -rank <= channels_axis < rank:
        raise ValueError("Axis is out of bounds.")
    axis = channels_axis % rank
    if any(not -rank <= each < rank for each in reduction_axes):
        raise ValueError("Axis is out of bounds.")
    reduced = [each % rank for each in reduction_axes]
    if axis in reduced:
        raise ValueError(
            f"reduction_axes and channels_axis must be mutually exclusive: {reduction_axes}, {channels_axis}"
        )
    channels = shapes.dimension_value(inputs.get_shape()[axis])
    if channels is None:
        raise ValueError(f"Inputs {inputs.name} has undefined channel dimension: {inputs.get_shape()}.")
    if groups > channels:
        raise ValueError(f"Invalid groups {groups} for {channels} channels.")
    if channels % groups:
        raise ValueError(f"{channels} channels is not commensurate with {groups} groups.")
    with variable_scope.variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as opened:
        sizes = shaping.shape(inputs)
        known = inputs.get_shape().as_list()
        outer = [sizes[i] if known[i] is None else known[i] for i in range(rank)]
        split = [*outer[:axis], groups, channels // groups, *outer[axis + 1 :]]
        grouped = shaping.reshape(inputs, split)
        axes = [each + (each > axis) for each in reduced] + [axis + 1]
        along = [1] * (rank + 1)
        along[axis], along[axis + 1] = groups, channels // groups
        dtype = inputs.dtype.base_dtype
        both_of = _parameters([channels], dtype, center, scale, param_initializers, variables_collections, trainable)
        beta, gamma = (None if each is None else shaping.reshape(each, along) for each in both_of)
        if mean_close_to_zero:
            mean = reductions.reduce_mean(grouped, axes, keepdims=True)
            variance = reductions.reduce_mean(
                unary_functions.square(grouped), axes, keepdims=True
            ) - unary_functions.square(mean)
        else:
            mean, variance = moments.moments(grouped, axes, keep_dims=True)
        normalized = moments.batch_normalization(grouped, mean, variance, beta, gamma, epsilon)
        outputs = shaping.reshape(normalized, outer)
        outputs.set_shape(inputs.get_shape())
        return finished(outputs, opened.name, activation_fn, outputs_collections)


@export(v1=both("unit_norm"))
@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """Divides by the Euclidean length along the dimension `dim`.

    Raises:
        ValueError: the rank is unknown, or `dim` is out of range.
    """
    with variable_scope.variable_scope(scope, "UnitNorm", [inputs]):
        inputs = conversion.convert_to_tensor(inputs)
        rank = inputs.get_shape().ndims
        if not rank:
            raise ValueError("The input rank must be known.")
        if dim < 0 or dim >= rank:
            raise ValueError("dim must be positive but smaller than the input rank.")
        lengths = unary_functions.sqrt(
            epsilon + reductions.reduce_sum(unary_functions.square(inputs), dim, keepdims=True)
        )
        return arithmetic.div(inputs, lengths)
