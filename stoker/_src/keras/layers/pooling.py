"""Pooling over windows and over all positions."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.keras.base import Layer
from stoker._src.keras.layers.arguments import resolved
from stoker._src.layers import pooling
from stoker._src.layers.base import InputSpec, checked_format
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.math import reductions


class _Arguments:
    """The arguments of pooling layers. Without strides, windows do not overlap."""

    # As convolutions over sequences do: so a converted model reshapes nothing between them.
    _in_rows = True

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        strides = pool_size if strides is None else strides
        super().__init__(**resolved(locals()))


@export("keras.layers.MaxPooling1D", "keras.layers.MaxPool1D")
class MaxPooling1D(_Arguments, pooling.MaxPooling1D, Layer):
    """Max pooling of sequences."""


@export("keras.layers.MaxPooling2D", "keras.layers.MaxPool2D")
class MaxPooling2D(_Arguments, pooling.MaxPooling2D, Layer):
    """Max pooling of images."""


@export("keras.layers.MaxPooling3D", "keras.layers.MaxPool3D")
class MaxPooling3D(_Arguments, pooling.MaxPooling3D, Layer):
    """Max pooling of volumes."""


@export("keras.layers.AveragePooling1D", "keras.layers.AvgPool1D")
class AveragePooling1D(_Arguments, pooling.AveragePooling1D, Layer):
    """Average pooling of sequences."""


@export("keras.layers.AveragePooling2D", "keras.layers.AvgPool2D")
class AveragePooling2D(_Arguments, pooling.AveragePooling2D, Layer):
    """Average pooling of images."""


@export("keras.layers.AveragePooling3D", "keras.layers.AvgPool3D")
class AveragePooling3D(_Arguments, pooling.AveragePooling3D, Layer):
    """Average pooling of volumes."""


class _Global(Layer):
    """The base of pooling over all spatial positions."""

    rank: int
    average: bool
    _more_arguments = ("keepdims",)

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        self.keepdims = kwargs.pop("keepdims", False)
        super().__init__(**kwargs)
        self.data_format = checked_format(resolved({"data_format": data_format})["data_format"])
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any) -> Any:
        first = 2 if self.data_format == "channels_first" else 1
        axes = list(range(first, first + self.rank))
        reduce = reductions.reduce_mean if self.average else reductions.reduce_max
        return reduce(inputs, axis=axes, keepdims=self.keepdims)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **({"keepdims": True} if self.keepdims else {})}


@export("keras.layers.GlobalAveragePooling1D", "keras.layers.GlobalAvgPool1D")
class GlobalAveragePooling1D(_Global):
    """The mean over time, without the steps that a mask says are padding."""

    rank, average = 1, True

    def __init__(self, data_format: str | None = "channels_last", **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self.supports_masking = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        if mask is None:
            return super().call(inputs)
        time = 2 if self.data_format == "channels_first" else 1
        present = casting.cast(shaping.expand_dims(mask, 1 if time == 2 else 2), inputs.dtype.base_dtype)
        total, count = (
            reductions.reduce_sum(x, axis=time, keepdims=self.keepdims) for x in (inputs * present, present)
        )
        return total / count

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return None


@export("keras.layers.GlobalAveragePooling2D", "keras.layers.GlobalAvgPool2D")
class GlobalAveragePooling2D(_Global):
    """The mean over images."""

    rank, average = 2, True


@export("keras.layers.GlobalAveragePooling3D", "keras.layers.GlobalAvgPool3D")
class GlobalAveragePooling3D(_Global):
    """The mean over volumes."""

    rank, average = 3, True


@export("keras.layers.GlobalMaxPooling1D", "keras.layers.GlobalMaxPool1D")
class GlobalMaxPooling1D(_Global):
    """The largest values over time."""

    rank, average = 1, False

    def __init__(self, data_format: str | None = "channels_last", **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)


@export("keras.layers.GlobalMaxPooling2D", "keras.layers.GlobalMaxPool2D")
class GlobalMaxPooling2D(_Global):
    """The largest values over images."""

    rank, average = 2, False


@export("keras.layers.GlobalMaxPooling3D", "keras.layers.GlobalMaxPool3D")
class GlobalMaxPooling3D(_Global):
    """The largest values over volumes."""

    rank, average = 3, False
