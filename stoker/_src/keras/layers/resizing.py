"""Layers that repeat, pad or crop along the spatial dimensions."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.image import resize
from stoker._src.keras.base import Layer, default_data_format
from stoker._src.layers.base import InputSpec, checked_format, spatial_tuple
from stoker._src.ops.array import constants, joining, pads, shaping
from stoker._src.ops.math import sequences


class _Spatial(Layer):
    """The base: `rank` spatial dimensions, before or after the channels."""

    rank: int

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = checked_format(data_format or default_data_format())
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def _first(self) -> int:
        """The first spatial dimension."""
        return 2 if self.data_format == "channels_first" and self.rank > 1 else 1


class _UpSampling(_Spatial):
    def __init__(self, size: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self.size: Any = spatial_tuple(size, self.rank, "size")

    def call(self, inputs: Any) -> Any:
        for i, times in enumerate(self.size):
            if times > 1:
                inputs = _repeated(inputs, times, self._first + i)
        return inputs


def _repeated(x: Any, times: int, axis: int) -> Any:
    """x with each element along `axis` repeated."""
    sizes = list(x.static_shape)
    if None in sizes[1:]:
        return sequences.repeat(x, times, axis=axis)
    rows = joining.tile(
        shaping.expand_dims(x, axis + 1), [times if i == axis + 1 else 1 for i in range(len(sizes) + 1)]
    )
    sizes[axis] *= times
    outputs = shaping.reshape(rows, [-1, *sizes[1:]])
    outputs.set_shape(sizes)
    return outputs


@export("keras.layers.UpSampling1D")
class UpSampling1D(_UpSampling):
    """Repeats each time step."""

    rank = 1

    def __init__(self, size: int = 2, **kwargs: Any) -> None:
        super().__init__(size, "channels_last", **kwargs)

    def call(self, inputs: Any) -> Any:
        time = inputs.static_shape[1]
        if time is None:
            return super().call(inputs)
        # As images of one row, which have an op of their own.
        return shaping.squeeze(
            resize.resize_v2(shaping.expand_dims(inputs, 1), [1, time * self.size[0]], method="nearest"), [1]
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "size": self.size[0]}


@export("keras.layers.UpSampling2D")
class UpSampling2D(_UpSampling):
    """Enlarges images: by repeating pixels ("nearest"), or "bilinear"."""

    rank = 2

    def __init__(
        self, size: Any = (2, 2), data_format: str | None = None, interpolation: str = "nearest", **kwargs: Any
    ) -> None:
        super().__init__(size, data_format, **kwargs)
        if interpolation not in ("nearest", "bilinear"):
            raise ValueError(
                f'`interpolation` argument should be one of `"nearest"` or `"bilinear"`. Received: {interpolation!r}'
            )
        self.interpolation = interpolation

    def call(self, inputs: Any) -> Any:
        first = self._first
        known = [inputs.static_shape[first + i] for i in range(2)]
        if None in known:
            wanted = shaping.shape(inputs)[first : first + 2] * constants.constant(self.size, dtypes.int32)
        else:
            wanted = constants.constant([size * times for size, times in zip(known, self.size)], dtypes.int32)
        images = shaping.transpose(inputs, [0, 2, 3, 1]) if first == 2 else inputs
        images = resize.resize_v2(images, wanted, method=self.interpolation)
        outputs = shaping.transpose(images, [0, 3, 1, 2]) if first == 2 else images
        shape = list(inputs.static_shape)
        for i in range(2):
            shape[first + i] = None if known[i] is None else known[i] * self.size[i]
        outputs.set_shape(shape)
        return outputs


@export("keras.layers.UpSampling3D")
class UpSampling3D(_UpSampling):
    """Repeats the elements of volumes."""

    rank = 3

    def __init__(self, size: Any = (2, 2, 2), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(size, data_format, **kwargs)


def _pairs(value: Any, rank: int, name: str) -> tuple[tuple[int, int], ...]:
    """(before, after) for each dimension, from a number, a number for each, or pairs."""
    if isinstance(value, int):
        return ((value, value),) * rank
    if rank == 1 and len(value) == 2 and all(isinstance(each, int) for each in value):
        return (tuple(value),)
    if len(value) != rank:
        raise ValueError(f"`{name}` should have {rank} elements. Found: {value}")
    return tuple((each, each) if isinstance(each, int) else tuple(each) for each in value)


class _Padding(_Spatial):
    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self.padding = _pairs(padding, self.rank, "padding")

    def call(self, inputs: Any) -> Any:
        paddings = [[0, 0]] * (self.rank + 2)
        for i, pair in enumerate(self.padding):
            paddings[self._first + i] = list(pair)
        return pads.pad(inputs, paddings)


@export("keras.layers.ZeroPadding1D")
class ZeroPadding1D(_Padding):
    """Zeros before and after sequences."""

    rank = 1

    def __init__(self, padding: Any = 1, **kwargs: Any) -> None:
        super().__init__(padding, "channels_last", **kwargs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "padding": self.padding[0]}


@export("keras.layers.ZeroPadding2D")
class ZeroPadding2D(_Padding):
    """Zeros around images."""

    rank = 2


@export("keras.layers.ZeroPadding3D")
class ZeroPadding3D(_Padding):
    """Zeros around volumes."""

    rank = 3


class _Cropping(_Spatial):
    def __init__(self, cropping: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self.cropping = _pairs(cropping, self.rank, "cropping")

    def call(self, inputs: Any) -> Any:
        kept = [slice(None)] * (self.rank + 2)
        for i, (before, after) in enumerate(self.cropping):
            kept[self._first + i] = slice(before, -after if after else None)
        return inputs[tuple(kept)]


@export("keras.layers.Cropping1D")
class Cropping1D(_Cropping):
    """Cuts time steps off both ends."""

    rank = 1

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any) -> None:
        super().__init__(cropping, "channels_last", **kwargs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "cropping": self.cropping[0]}


@export("keras.layers.Cropping2D")
class Cropping2D(_Cropping):
    """Cuts the borders off images."""

    rank = 2

    def __init__(self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(cropping, data_format, **kwargs)


@export("keras.layers.Cropping3D")
class Cropping3D(_Cropping):
    """Cuts the borders off volumes."""

    rank = 3

    def __init__(self, cropping: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(cropping, data_format, **kwargs)
