"""Batch normalization."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.scopes import colocate_with, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.base import InputSpec, Layer, as_public, dims, known_flag, smart_cond
from stoker._src.layers.core import ONES, ZEROS
from stoker._src.ops import array, casting, constants
from stoker._src.ops.nn import batch_norm, moments


@export(v1="layers.BatchNormalization")
class BatchNormalization(Layer):
    """Normalizes by the mean and variance of the batch in training, and by their moving averages otherwise.

    Variables: `gamma`, `beta` (trained), `moving_mean`, `moving_variance` (not trained). In training, the updates of the
    averages join UPDATE_OPS and must be run with the step (Ioffe and Szegedy, 2015).

    Args:
        axis: the dimension, or dimensions, with statistics of their own: channels.
        momentum: of the moving averages.
        epsilon: added to the variance.
        center, scale: whether there is a `beta`, a `gamma`.
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer: of the variables.
        beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: of the variables.
        renorm, renorm_clipping, renorm_momentum: batch renormalization: not supported.
        fused: whether to use one op for all; None for where that is possible.
        trainable: whether gamma and beta are trained.
        virtual_batch_size, adjustment: not supported.
        name: the layer's name.

    Raises:
        NotImplementedError: renorm, virtual_batch_size or adjustment are asked for.
        ValueError: fused is asked for where there is no fused form.
    """

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
        for value, label in (
            (renorm or renorm_clipping or renorm_momentum != 0.99, "Batch renormalization (renorm)"),
            (virtual_batch_size is not None, "virtual_batch_size"),
            (adjustment is not None, "adjustment"),
        ):
            if value:
                raise NotImplementedError(f"{label} of BatchNormalization is not supported.")
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else [int(axis)]
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.fused = fused
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None

    def build(self, input_shape: Any) -> None:
        sizes = dims(input_shape)
        rank = len(sizes)
        for axis in self.axis:
            if not -rank <= axis < rank:
                raise ValueError(
                    f"Invalid axis. Expected 0 <= axis < inputs.rank (with inputs.rank={rank}). Received: layer.axis={self.axis}"
                )
        self.axis = [axis % rank for axis in self.axis]
        if any(sizes[axis] is None for axis in self.axis):
            raise ValueError(
                f"Input has undefined `axis` dimension. Received input with shape {sizes}. Axis value: {self.axis}"
            )
        fusible = rank == 4 and self.axis in ([1], [3])
        if self.fused and not fusible:
            raise ValueError(
                f"Fused batch normalization wants inputs of rank 4 and channels along axis 1 or 3. Received: rank {rank}, axis {self.axis}."
            )
        self.fused = fusible if self.fused is None else self.fused
        self.input_spec = InputSpec(ndim=rank, axes={axis: sizes[axis] for axis in self.axis})
        if len(self.axis) == 1:
            shape = [sizes[self.axis[0]]]
        else:
            shape = [sizes[i] if i in self.axis else 1 for i in range(rank)]
        # Statistics of half precision are kept in float32.
        kind = dtypes.float32 if self._dtype in (dtypes.float16, dtypes.bfloat16) else self._dtype
        if self.scale:
            self.gamma = self.add_weight(
                "gamma", shape, kind, self.gamma_initializer, self.gamma_regularizer, constraint=self.gamma_constraint
            )
        if self.center:
            self.beta = self.add_weight(
                "beta", shape, kind, self.beta_initializer, self.beta_regularizer, constraint=self.beta_constraint
            )
        self.moving_mean = self.add_weight("moving_mean", shape, kind, self.moving_mean_initializer, trainable=False)
        self.moving_variance = self.add_weight(
            "moving_variance", shape, kind, self.moving_variance_initializer, trainable=False
        )

    def call(self, inputs: Any, training: Any = False) -> Tensor:
        return self._fused_call(inputs, training) if self.fused else self._plain_call(inputs, training)

    def _fused_call(self, inputs: Any, training: Any) -> Tensor:
        layout = "NCHW" if self.axis == [1] else "NHWC"
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
            # Outside of training a momentum of 1 leaves the averages as they are.
            momentum = smart_cond(
                training,
                lambda: constants.constant(self.momentum, kind),
                lambda: constants.constant(1.0, kind),
            )
            self._update(self.moving_mean, mean, momentum)
            self._update(self.moving_variance, variance, momentum)
        return output

    def _update(self, average: Any, value: Any, momentum: Any) -> None:
        """average -= (average - value) * (1 - momentum), with every training step."""
        with name_scope("AssignMovingAvg") as scope, colocate_with(average):
            kind = average.dtype.base_dtype
            rate = (
                constants.constant(1.0 - momentum, kind, name="decay")
                if isinstance(momentum, float)
                else 1.0 - momentum
            )
            step = (average - casting.cast(value, kind)) * rate
            update = average.assign_sub(step, name=scope, read_value=False)
        self.add_update(update)

    def _plain_call(self, inputs: Any, training: Any) -> Tensor:
        rank = inputs.static_shape.rank
        others = [i for i in range(rank) if i not in self.axis]
        trained = known_flag(training)
        if trained is False:
            mean, variance = self.moving_mean, self.moving_variance
        else:
            mean, variance = moments.moments(inputs, others, keep_dims=len(self.axis) > 1)
            batch_mean, batch_variance = mean, variance
            if trained is None:
                mean = smart_cond(training, lambda: batch_mean, self.moving_mean.value)
                variance = smart_cond(training, lambda: batch_variance, self.moving_variance.value)
            momentum: Any = float(self.momentum)
            if trained is None:
                kind = self.moving_mean.dtype.base_dtype
                momentum = smart_cond(
                    training, lambda: constants.constant(self.momentum, kind), lambda: constants.constant(1.0, kind)
                )
            self._update(self.moving_mean, mean, momentum)
            self._update(self.moving_variance, variance, momentum)
        outputs = moments.batch_normalization(
            inputs,
            self._along(mean, rank),
            self._along(variance, rank),
            None if not self.center else self._along(self.beta, rank),
            None if not self.scale else self._along(self.gamma, rank),
            self.epsilon,
        )
        outputs.set_shape(inputs.static_shape)
        return outputs

    def _along(self, vector: Any, rank: int) -> Any:
        """A statistic shaped so that it broadcasts along its dimension."""
        if len(self.axis) > 1 or self.axis == [rank - 1]:
            return vector
        shape = [1] * rank
        shape[self.axis[0]] = vector.static_shape[0]
        return array.reshape(vector, shape)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return as_public(dims(input_shape))


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
    """Normalizes a batch: a `BatchNormalization` layer, called once."""
    layer = BatchNormalization(
        axis,
        momentum,
        epsilon,
        center,
        scale,
        beta_initializer,
        gamma_initializer,
        moving_mean_initializer,
        moving_variance_initializer,
        beta_regularizer,
        gamma_regularizer,
        beta_constraint,
        gamma_constraint,
        renorm,
        renorm_clipping,
        renorm_momentum,
        fused,
        trainable,
        virtual_batch_size,
        adjustment,
        name,
        _reuse=reuse,
        _scope=name,
    )
    return layer.apply(inputs, training=training)
