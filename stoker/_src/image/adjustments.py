"""Adjusts brightness, contrast, gamma, hue, saturation and JPEG quality, by fixed or random amounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.image import checks
from stoker._src.image.conversion import convert_image_dtype, in_float
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.image import codecs, colour
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.random import stateless_random, uniform_normal

# ---- by given amounts -------------------------------------------------------------------------------------------


@export("image.adjust_brightness")
def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Adds `delta` (normally in [0, 1), on the scale of float images) to every pixel. The result is clipped to the dtype's range."""
    with name_scope(None, "adjust_brightness", [image, delta]) as scope:

        def compute(pixels: Tensor) -> Tensor:
            return arithmetic.add(pixels, casting.cast(delta, pixels.dtype.base_dtype), name=scope)

        return in_float(image, compute, saturate=True)


@export("image.adjust_contrast")
def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Multiplies the distance of each pixel from the mean of its channel by `contrast_factor`, separately for each image."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]) as scope:
        images = convert_to_tensor(images, name="images")
        return in_float(
            images, lambda pixels: colour.ADJUST_CONTRAST_V2(pixels, contrast_factor, name=scope), saturate=True
        )


@export("image.adjust_gamma")
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """Returns `gain * pixel ** gamma` for every pixel, on the scale of float images. The result is clipped to the dtype's range.

    Raises:
        ValueError: `gamma` is negative.
    """
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):

        def compute(pixels: Tensor) -> Tensor:
            exponent = gamma
            is_negative = gamma < 0 if not checks.is_tensor(gamma) else None
            if is_negative:
                raise ValueError("Gamma should be a non-negative real number.")
            if checks.is_tensor(gamma):
                checked = checks.requirement(
                    comparison.greater_equal(gamma, casting.cast(0, gamma.dtype)),
                    "Gamma should be a non-negative real number.",
                )
                exponent = checks.after(checked, gamma) if checked else gamma
            return gain * pixels**exponent

        return in_float(image, compute, saturate=True)


@export("image.adjust_hue")
def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Rotates the hues of an image.

    Args:
        image: An image with RGB in the last dimension.
        delta: The rotation in [-1, 1], where 1 is a full turn.
        name: A prefix of the ops' names.

    Raises:
        ValueError: `delta` is out of range (in eager mode).
    """
    with name_scope(name, "adjust_hue", [image]):
        if context.executing_eagerly() and not -1 <= float(delta) <= 1:
            raise ValueError("delta must be in the interval [-1, 1]")
        return in_float(image, lambda pixels: colour.ADJUST_HUE(pixels, delta))


@export("image.adjust_saturation")
def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Multiplies the saturation of an image with RGB in the last dimension. The saturation is clipped to [0, 1]."""
    with name_scope(name, "adjust_saturation", [image]):
        return in_float(image, lambda pixels: colour.ADJUST_SATURATION(pixels, saturation_factor))


@export("image.adjust_jpeg_quality")
def adjust_jpeg_quality(image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Tensor:
    """Applies the losses of JPEG compression to an image.

    Args:
        image: [height, width, 1 or 3].
        jpeg_quality: A quality from 0 to 100.
        dct_method: The decoding method, see `decode_jpeg`.
        name: A prefix of the ops' names.
    """
    with name_scope(name, "adjust_jpeg_quality", [image]):
        image = convert_to_tensor(image, name="image")
        channels = image.static_shape[-1] if image.static_shape.rank else None
        dtype = image.dtype.base_dtype
        pixels = convert_image_dtype(image, dtypes.uint8, saturate=True)
        quality = convert_to_tensor(jpeg_quality, dtypes.int32)
        encoded = codecs.ENCODE_JPEG_VARIABLE_QUALITY(pixels, quality)
        decoded = codecs.decode_jpeg(encoded, channels=channels or 0, dct_method=dct_method)
        return convert_image_dtype(decoded, dtype, saturate=True)


@export("image.per_image_standardization")
def per_image_standardization(image: Any) -> Tensor:
    """Scales each image to mean 0 and variance 1: `(x - mean) / max(standard deviation, 1 / sqrt(number of elements))`.

    Args:
        image: [..., height, width, channels]. Dtypes other than floats are cast to float32 without scaling.

    Raises:
        ValueError: The image has fewer than three dimensions.
    """
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image = checks.at_least_3d(convert_to_tensor(image, name="image"))
        image = casting.cast(image, dtypes.float32)
        count = reductions.reduce_prod(shaping.shape(image)[-3:])
        axes = [-1, -2, -3]
        mean = reductions.reduce_mean(image, axis=axes, keepdims=True)
        deviation = reductions.reduce_std(image, axis=axes, keepdims=True)
        least = unary_functions.rsqrt(casting.cast(count, image.dtype.base_dtype))
        return arithmetic.divide(arithmetic.subtract(image, mean), arithmetic.maximum(deviation, least), name=scope)


# ---- by random amounts ------------------------------------------------------------------------------------------

Draw = Callable[..., Tensor]


def _stateful(seed: int | None) -> Draw:
    return lambda low, high, **kind: uniform_normal.random_uniform([], low, high, seed=seed, **kind)


def _stateless(seed: Any) -> Draw:
    return lambda low, high, **kind: stateless_random.stateless_uniform([], seed, low, high, **kind)


def _check_delta(max_delta: Any, most: float | None = None) -> None:
    if most is not None and max_delta > most:
        raise ValueError(f"max_delta must be <= {most}.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")


def _check_bounds(lower: Any, upper: Any) -> None:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")


def _random_brightness(image: Any, max_delta: Any, draw: Draw) -> Tensor:
    _check_delta(max_delta)
    return adjust_brightness(image, draw(-max_delta, max_delta))


def _random_contrast(image: Any, lower: Any, upper: Any, draw: Draw) -> Tensor:
    _check_bounds(lower, upper)
    return adjust_contrast(image, draw(lower, upper))


def _random_hue(image: Any, max_delta: Any, draw: Draw) -> Tensor:
    _check_delta(max_delta, 0.5)
    return adjust_hue(image, draw(-max_delta, max_delta))


def _random_saturation(image: Any, lower: Any, upper: Any, draw: Draw) -> Tensor:
    _check_bounds(lower, upper)
    return adjust_saturation(image, draw(lower, upper))


def _random_jpeg_quality(image: Any, low: Any, high: Any, draw: Draw) -> Tensor:
    if low < 0 or high < 0 or low > 100 or high > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if low >= high:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    return adjust_jpeg_quality(image, draw(low, high, dtype=dtypes.int32))


@export("image.random_brightness")
def random_brightness(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """Applies `adjust_brightness` with a random number in [-max_delta, max_delta).

    Raises:
        ValueError: `max_delta` is negative.
    """
    return _random_brightness(image, max_delta, _stateful(seed))


@export(v2="image.stateless_random_brightness")
def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """Like `random_brightness`, but determined by the two numbers of `seed` alone."""
    return _random_brightness(image, max_delta, _stateless(seed))


@export("image.random_contrast")
def random_contrast(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """Applies `adjust_contrast` with a random number in [lower, upper).

    Raises:
        ValueError: `upper` is not greater than `lower`, or `lower` is negative.
    """
    return _random_contrast(image, lower, upper, _stateful(seed))


@export(v2="image.stateless_random_contrast")
def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Tensor:
    """Like `random_contrast`, but determined by the two numbers of `seed` alone."""
    return _random_contrast(image, lower, upper, _stateless(seed))


@export("image.random_hue")
def random_hue(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """Applies `adjust_hue` with a random number in [-max_delta, max_delta).

    Raises:
        ValueError: `max_delta` is outside of [0, 0.5].
    """
    return _random_hue(image, max_delta, _stateful(seed))


@export(v2="image.stateless_random_hue")
def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """Like `random_hue`, but determined by the two numbers of `seed` alone."""
    return _random_hue(image, max_delta, _stateless(seed))


@export("image.random_saturation")
def random_saturation(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """Applies `adjust_saturation` with a random number in [lower, upper).

    Raises:
        ValueError: `upper` is not greater than `lower`, or `lower` is negative.
    """
    return _random_saturation(image, lower, upper, _stateful(seed))


@export(v2="image.stateless_random_saturation")
def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """Like `random_saturation`, but determined by the two numbers of `seed` alone."""
    return _random_saturation(image, lower, upper, _stateless(seed))


@export("image.random_jpeg_quality")
def random_jpeg_quality(image: Any, min_jpeg_quality: Any, max_jpeg_quality: Any, seed: int | None = None) -> Tensor:
    """Applies `adjust_jpeg_quality` with a random quality in [min_jpeg_quality, max_jpeg_quality).

    Raises:
        ValueError: A quality is outside of [0, 100], or the minimum is not below the maximum.
    """
    return _random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, _stateful(seed))


@export(v2="image.stateless_random_jpeg_quality")
def stateless_random_jpeg_quality(image: Any, min_jpeg_quality: Any, max_jpeg_quality: Any, seed: Any) -> Tensor:
    """Like `random_jpeg_quality`, but determined by the two numbers of `seed` alone."""
    return _random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, _stateless(seed))
