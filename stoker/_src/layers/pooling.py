"""Max and average pooling over one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export, named
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.base import (
    InputSpec,
    Layer,
    as_public,
    channels_axis,
    checked_format,
    checked_padding,
    dims,
    output_length,
    spatial_tuple,
)
from stoker._src.ops.array import shaping
from stoker._src.ops.nn import pool_api


class _Pooling(Layer):
    """The base of pooling layers. Subclasses define the number of spatial dimensions and the operation."""

    dimensions: int
    average: bool
    _in_rows = False
    """Whether a sequence is pooled as an image of one row, else of one column."""

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        if strides is None:
            raise ValueError("Argument `strides` must not be None.")
        self.pool_size = spatial_tuple(pool_size, self.dimensions, "pool_size")
        self.strides = spatial_tuple(strides, self.dimensions, "strides", allow_zero=True)
        self.padding, self.data_format = checked_padding(padding), checked_format(data_format)
        self._channels = channels_axis(self.data_format, self.dimensions + 2)
        self.input_spec = InputSpec(ndim=self.dimensions + 2)

    def _spread(self, values: tuple[int, ...]) -> list[int]:
        return [1, 1, *values] if self._channels == 1 else [1, *values, 1]

    def call(self, inputs: Any) -> Tensor:
        if self.dimensions == 1:
            return self._one_dimension(inputs)
        padding = self.padding.upper()
        if self.dimensions == 3:
            layout = "NCDHW" if self._channels == 1 else "NDHWC"
            function = pool_api.avg_pool3d if self.average else pool_api.max_pool3d
        else:
            layout = "NCHW" if self._channels == 1 else "NHWC"
            function = pool_api.avg_pool if self.average else pool_api.max_pool
        windows, strides = self._spread(self.pool_size), self._spread(self.strides)
        name = ("AvgPool" if self.average else "MaxPool") + ("3D" if self.dimensions == 3 else "")
        return function(inputs, windows, strides, padding, data_format=layout, name=name)

    def _one_dimension(self, inputs: Any) -> Tensor:
        """Treats a sequence as an image of width one, or of height one."""
        extra = (3 if self._channels == 1 else 2) - self._in_rows
        window, strides = ((1, *sizes) if self._in_rows else (*sizes, 1) for sizes in (self.pool_size, self.strides))
        wide = shaping.expand_dims(inputs, extra)
        function = pool_api.avg_pool if self.average else pool_api.max_pool
        pooled = function(
            wide,
            self._spread(window),
            self._spread(strides),
            self.padding.upper(),
            data_format="NCHW" if self._channels == 1 else "NHWC",
            name="AvgPool" if self.average else "MaxPool",
        )
        return shaping.squeeze(pooled, [extra])

    def compute_output_shape(self, input_shape: Any) -> Any:
        sizes = dims(input_shape)
        first = 2 if self._channels == 1 else 1
        for i, (window, stride) in enumerate(zip(self.pool_size, self.strides)):
            sizes[first + i] = output_length(sizes[first + i], window, self.padding, stride)
        return as_public(sizes)


@export(v1="layers.MaxPooling1D")
class MaxPooling1D(_Pooling):
    """Max pooling of sequences."""

    dimensions, average = 1, False


@export(v1="layers.MaxPooling2D")
class MaxPooling2D(_Pooling):
    """Max pooling of images."""

    dimensions, average = 2, False


@export(v1="layers.MaxPooling3D")
class MaxPooling3D(_Pooling):
    """Max pooling of volumes."""

    dimensions, average = 3, False


@export(v1="layers.AveragePooling1D")
class AveragePooling1D(_Pooling):
    """Average pooling of sequences."""

    dimensions, average = 1, True


@export(v1="layers.AveragePooling2D")
class AveragePooling2D(_Pooling):
    """Average pooling of images."""

    dimensions, average = 2, True


@export(v1="layers.AveragePooling3D")
class AveragePooling3D(_Pooling):
    """Average pooling of volumes."""

    dimensions, average = 3, True


def _function(layer: type[_Pooling], name: str) -> Callable[..., Tensor]:
    """Makes `tf.layers.<name>`, which creates a pooling layer and calls it once."""

    @export(v1=f"layers.{name}")
    @named(name, layer.__doc__)
    def pooling(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: Any = None,
    ) -> Tensor:
        return layer(pool_size, strides, padding, data_format, name).apply(inputs)

    return pooling


max_pooling1d = _function(MaxPooling1D, "max_pooling1d")
max_pooling2d = _function(MaxPooling2D, "max_pooling2d")
max_pooling3d = _function(MaxPooling3D, "max_pooling3d")
average_pooling1d = _function(AveragePooling1D, "average_pooling1d")
average_pooling2d = _function(AveragePooling2D, "average_pooling2d")
average_pooling3d = _function(AveragePooling3D, "average_pooling3d")
