"""Ops on colours: HSV conversion, contrast, hue and saturation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import define, one_of, unchanged
from stoker._src.graph.late_binding import ops
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining
from stoker._src.ops.image.resampling import native
from stoker._src.ops.math import arithmetic, comparison
from stoker._src.ops.support import rows

_ANY_FLOAT = one_of(dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, default=dtypes.float32)
_HALF_OR_FLOAT = one_of(dtypes.float16, dtypes.float32, default=dtypes.float32)

# ---- RGB and HSV ------------------------------------------------------------------------------------------------


def _colours(images: Shape) -> Shape:
    """Returns the shape, whose last size must be 3."""
    if images.rank is None:
        return images
    return images.at_least(1)[:-1].concat(images[-1:].merge(Shape((3,))))


def _check_colours(images: torch.Tensor) -> None:
    if images.ndim == 0:
        raise InvalidArgumentError(None, None, "input must be at least 1D[]")
    if images.shape[-1] != 3:
        raise FailedPreconditionError(
            None, None, f"input must have 3 channels but input only has {images.shape[-1]} channels."
        )


RGB_TO_HSV = define("RGBToHSV(images: T) -> (output: T)", T=_ANY_FLOAT)
HSV_TO_RGB = define("HSVToRGB(images: T) -> (output: T)", T=_ANY_FLOAT).not_differentiable()
RGB_TO_HSV.shape(_colours)
HSV_TO_RGB.shape(_colours)


@RGB_TO_HSV.kernel
def rgb_to_hsv_kernel(images: torch.Tensor) -> torch.Tensor:
    _check_colours(images)
    red, green, blue = images.unbind(-1)
    value = torch.maximum(torch.maximum(red, green), blue)
    range_ = value - torch.minimum(torch.minimum(red, green), blue)
    saturation = torch.where(value > 0, range_ / value, 0)
    norm = 1 / (6 * range_)
    hue = torch.where(
        red == value,
        norm * (green - blue),
        torch.where(green == value, norm * (blue - red) + 2 / 6, norm * (red - green) + 4 / 6),
    )
    hue = torch.where(range_ <= 0, 0, hue)
    return torch.stack([torch.where(hue < 0, hue + 1, hue), saturation, value], -1)


@HSV_TO_RGB.kernel
def hsv_to_rgb_kernel(images: torch.Tensor) -> torch.Tensor:
    _check_colours(images)
    hue, saturation, value = images.unbind(-1)
    sixths = hue * 6
    shares = (
        (sixths - 3).abs_().sub_(1),
        (sixths - 2).abs_().neg_().add_(2),
        (sixths - 4).abs_().neg_().add_(2),
    )
    rest = 1 - saturation
    return torch.stack([(rest + saturation * share.clamp_(0, 1)) * value for share in shares], -1)


@RGB_TO_HSV.grad
def rgb_to_hsv_grad(op: Operation, g: Tensor) -> Tensor:
    """Computes the saturation from the largest channel (the first of equals) and the smallest (the last), with TensorFlow's rules.

    Black has saturation 0, and gray has hue 0.
    """
    images = op.inputs[0]
    dtype = images.dtype.base_dtype
    channels = joining.unstack(images, axis=-1)
    red, green, blue = channels
    to_hue, to_saturation, to_value = joining.unstack(g, axis=-1)

    def number(condition: Any) -> Any:
        return casting.cast(condition, dtype)

    def ratio(a: Any, b: Any) -> Any:
        return arithmetic.divide_no_nan(a, b)

    is_red = number(comparison.logical_and(red >= green, red >= blue))
    is_green = (1 - is_red) * number(green >= blue)
    brightest = (is_red, is_green, 1 - is_red - is_green)
    low_blue = number(comparison.logical_and(blue <= red, blue <= green))
    low_green = (1 - low_blue) * number(green <= red)
    darkest = (1 - low_blue - low_green, low_green, low_blue)
    most = arithmetic.maximum(arithmetic.maximum(red, green), blue)
    least = arithmetic.minimum(arithmetic.minimum(red, green), blue)
    range_ = most - least
    positive = number(least > 0)
    # The hue is proportional to the difference of the two channels that follow the largest one in the circle.
    differences = (green - blue, blue - red, red - green)
    difference = sum(share * each for share, each in zip(brightest, differences))
    per_range = ratio(to_hue, 6 * range_)
    by_range = ratio(per_range * difference, range_)
    result = []
    for i in range(3):
        before, after = (
            brightest[i - 2],
            brightest[i - 1],
        )  # the largest channels for which channel i is subtracted and added
        slope = per_range * (after - before) - by_range * (brightest[i] - darkest[i])
        slope += to_saturation * (ratio(ratio(least, most), most) * brightest[i] - ratio(darkest[i] * positive, most))
        result.append(slope + to_value * brightest[i])
    return joining.stack(result, axis=-1)


@export("image.rgb_to_hsv")
def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Converts RGB in the last dimension to hue, saturation and value, all in [0, 1]. Hue 0 is red, 1/3 green, 2/3 blue."""
    return RGB_TO_HSV(images, name=name)


@export("image.hsv_to_rgb")
def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Converts hue, saturation and value in the last dimension to RGB. The inverse of `rgb_to_hsv`."""
    return HSV_TO_RGB(images, name=name)


# ---- AdjustContrast ---------------------------------------------------------------------------------------------

ADJUST_CONTRAST_V2 = define(
    "AdjustContrastv2(images: rank>2/any T, contrast_factor: scalar/any float32) -> (output: T)", T=_HALF_OR_FLOAT
)
ADJUST_CONTRAST = define(
    "AdjustContrast(images: rank>2/any T, contrast_factor: scalar/any float32, min_value: scalar/any float32, max_value: scalar/any float32) "
    "-> (output: float32)",
    T=(dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64),
)
ADJUST_CONTRAST_V2.shape(unchanged)
ADJUST_CONTRAST.shape(unchanged)


def _check_adjusted(images: torch.Tensor, **factors: torch.Tensor) -> None:
    if images.ndim < 3:
        raise InvalidArgumentError(None, None, f"input must be at least 3-D, got shape{list(images.shape)}")
    for name, factor in factors.items():
        if factor.ndim:
            raise InvalidArgumentError(None, None, f"{name} must be scalar: {list(factor.shape)}")


@ADJUST_CONTRAST_V2.kernel
def adjust_contrast_v2_kernel(images: torch.Tensor, contrast_factor: torch.Tensor) -> torch.Tensor:
    _check_adjusted(images, contrast_factor=contrast_factor)
    mean = images.mean((-3, -2), keepdim=True, dtype=torch.float32 if images.dtype is torch.float16 else None)
    return ((images - mean) * contrast_factor.to(mean.device) + mean).to(images.dtype)


@ADJUST_CONTRAST_V2.rows
def adjust_contrast_v2_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    images, factor = inputs
    if not images.stacked or not factor.stacked:
        return rows.again(op, [each.tensor for each in inputs]) if images.stacked else None
    if images.rank != 3 or op.outputs[0].dtype is not dtypes.float32:
        return None
    mean = ops.reduce_mean(images.tensor, [1, 2], keepdims=True)
    return [(images.tensor - mean) * ops.reshape(factor.tensor, [-1, 1, 1, 1]) + mean]


@ADJUST_CONTRAST.kernel
def adjust_contrast_kernel(
    images: torch.Tensor, contrast_factor: torch.Tensor, min_value: torch.Tensor, max_value: torch.Tensor
) -> torch.Tensor:
    """The op of GraphDefs before version 2. It clips its result."""
    _check_adjusted(images, contrast_factor=contrast_factor, min_value=min_value, max_value=max_value)
    adjusted = adjust_contrast_v2_kernel(images.to(torch.float32), contrast_factor)
    return adjusted.clamp(min_value.to(images.device), max_value.to(images.device))


# ---- AdjustHue, AdjustSaturation --------------------------------------------------------------------------------

ADJUST_HUE = define("AdjustHue(images: rank>2/any T, delta: scalar/any float32) -> (output: T)", T=_HALF_OR_FLOAT)
ADJUST_SATURATION = define(
    "AdjustSaturation(images: rank>2/any T, scale: scalar/any float32) -> (output: T)", T=_HALF_OR_FLOAT
)
ADJUST_HUE.shape(unchanged)
ADJUST_SATURATION.shape(unchanged)


def _check_coloured(images: torch.Tensor, **factor: torch.Tensor) -> None:
    _check_adjusted(images, **factor)
    if images.shape[-1] != 3:
        raise InvalidArgumentError(
            None, None, f"input must have 3 channels but instead has {images.shape[-1]} channels."
        )


def _by_pixel(function: Callable[..., None], images: torch.Tensor, amount: float) -> torch.Tensor:
    images = images.contiguous()
    result = torch.empty_like(images)
    function(result.numpy(), images.numpy(), amount, torch.get_num_threads())
    return result


def _is_native(images: torch.Tensor) -> bool:
    return native is not None and images.device.type == "cpu" and images.dtype is torch.float32


def _hue(channels: tuple[torch.Tensor, ...], most: torch.Tensor, range_: torch.Tensor) -> torch.Tensor:
    """Returns hues from 0 to 6; 0 for gray."""
    red, green, blue = channels
    hue = torch.where(
        red == most, green - blue, torch.where(green == most, blue - red + 2 * range_, red - green + 4 * range_)
    )
    hue = torch.where(range_ > 0, hue / range_, 0)
    return torch.where(hue < 0, hue + 6, hue)


def _coloured(hue: torch.Tensor, least: torch.Tensor, range_: torch.Tensor) -> torch.Tensor:
    """Returns the colours with these hues whose channels are between `least` and `least + range_`."""
    shares = ((hue - 3).abs() - 1, 2 - (hue - 2).abs(), 2 - (hue - 4).abs())
    return torch.stack([least + range_ * share.clamp_(0, 1) for share in shares], -1)


@ADJUST_HUE.kernel
def adjust_hue_kernel(images: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    _check_coloured(images, delta=delta)
    if images.dtype is torch.float16:
        return adjust_hue_kernel(images.float(), delta).half()
    turn = delta * 6 % 6
    if _is_native(images):
        return _by_pixel(native.adjust_hue, images, turn.item())
    channels = images.unbind(-1)
    most, least = images.amax(-1), images.amin(-1)
    hue = (_hue(channels, most, most - least) + turn.to(images.device)) % 6
    return _coloured(hue, least, most - least)


@ADJUST_SATURATION.kernel
def adjust_saturation_kernel(images: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    _check_coloured(images, scale=scale)
    if images.dtype is torch.float16:
        return adjust_saturation_kernel(images.float(), scale).half()
    if _is_native(images):
        return _by_pixel(native.adjust_saturation, images, scale.item())
    channels = images.unbind(-1)
    most, least = images.amax(-1), images.amin(-1)
    saturation = torch.where(most > 0, (most - least) / most, 0)
    range_ = (saturation * scale.to(images.device)).clamp_(0, 1) * most
    return _coloured(_hue(channels, most, most - least), most - range_, range_)
