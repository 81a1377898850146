"""Similarity of images (PSNR, SSIM), and differences between neighbouring pixels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.image.conversion import convert_image_dtype
from stoker._src.ops.array import casting, constants, joining, pads, ranges, shaping
from stoker._src.ops.control_flow import assertions
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.nn import activations, conv_api, pool_api, softmax

_MSSSIM_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
_SPACE = [-3, -2]


def _checked_pair(first: Tensor, second: Tensor) -> list[Any]:
    """Returns the assertions that two images can be compared: equal sizes and channels, and batches that broadcast.

    Raises:
        ValueError: The static shapes do not fit.
    """
    shapes = first.static_shape, second.static_shape
    for image, shape in zip((first, second), shapes):
        if shape.rank is not None and shape.rank < 3:
            raise ValueError(f"Shape {image.shape} must have rank at least 3")
    if None not in (shapes[0].rank, shapes[1].rank):
        if not shapes[0][-3:].compatible(shapes[1][-3:]):
            raise ValueError(f"Shapes {first.shape[-3:]} and {second.shape[-3:]} are incompatible")
        for a, b in zip(reversed(shapes[0][:-3].dims), reversed(shapes[1][:-3].dims)):
            if None not in (a, b) and 1 not in (a, b) and a != b:
                raise ValueError(f"Two images are not compatible: {first.shape} and {second.shape}")
    if context.executing_eagerly():
        return []
    sizes = shaping.shape_n([first, second])
    tails = [each[-3:] for each in sizes]
    return [
        assertions.assert_op(comparison.greater_equal(ranges.size(sizes[0]), 3), sizes, summarize=10),
        assertions.assert_op(reductions.reduce_all(comparison.equal(*tails)), sizes, summarize=10),
    ]


@export("image.psnr")
def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """Returns the peak signal-to-noise ratio of images [..., height, width, channels] in decibels, one float32 for each pair.

    Args:
        a: The images.
        b: The images to compare with. Their shape must broadcast.
        max_val: The range of the pixels: 1.0 for floats, 255 for uint8.
        name: A prefix of the ops' names.
    """
    with name_scope(name, "PSNR", [a, b]):
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        max_val = convert_image_dtype(casting.cast(max_val, a.dtype.base_dtype), dtypes.float32)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = reductions.reduce_mean(arithmetic.squared_difference(a, b), [-3, -2, -1])
        peak = arithmetic.truediv(
            arithmetic.multiply(20.0, unary_functions.log(max_val)), unary_functions.log(constants.constant(10.0))
        )
        noise = arithmetic.multiply(float(np.float32(10 / math.log(10))), unary_functions.log(error))
        value = arithmetic.subtract(peak, noise, name="psnr")
        with control_dependencies(_checked_pair(a, b)):
            return shaping.identity(value)


# ---- SSIM -------------------------------------------------------------------------------------------------------


def _gaussian(size: Tensor, sigma: Tensor) -> Tensor:
    """Returns weights [size, size, 1, 1] whose sum is one."""
    at = arithmetic.subtract(
        casting.cast(ranges.range(size), sigma.dtype.base_dtype),
        arithmetic.truediv(casting.cast(arithmetic.subtract(size, 1), sigma.dtype.base_dtype), 2.0),
    )
    exponent = arithmetic.multiply(unary_functions.square(at), arithmetic.truediv(-0.5, unary_functions.square(sigma)))
    both = arithmetic.add(shaping.reshape(exponent, [1, -1]), shaping.reshape(exponent, [-1, 1]))
    weights = softmax.softmax(shaping.reshape(both, [1, -1]))
    return shaping.reshape(weights, joining.stack([size, size, 1, 1]))


def _ssim_per_channel(
    first: Tensor, second: Tensor, max_val: Tensor, filter_size: Any, filter_sigma: Any, k1: Any, k2: Any, as_map: bool
) -> tuple[Tensor, Tensor]:
    """Returns (SSIM, its contrast and structure factor) of float32 images [..., height, width, channels] for each channel.

    With `as_map` they are not averaged over the image.
    """
    size = constants.constant(filter_size, dtypes.int32)
    sigma = constants.constant(filter_sigma, first.dtype.base_dtype)
    sizes = shaping.shape_n([first, second])
    fits = [
        assertions.assert_op(
            reductions.reduce_all(comparison.greater_equal(each[-3:-1], size)),
            [each, size],
            summarize=8,
        )
        for each in sizes
    ]
    with control_dependencies([each for each in fits if each is not None]):
        first = shaping.identity(first)
    kernel = joining.tile(_gaussian(size, sigma), joining.stack([1, 1, sizes[0][-1], 1]))

    def blurred(x: Tensor) -> Tensor:
        shape = shaping.shape(x)
        flat = shaping.reshape(x, joining.concat([[-1], shape[-3:]], 0))
        y = conv_api.depthwise_conv2d(flat, kernel, strides=[1, 1, 1, 1], padding="VALID")
        return shaping.reshape(y, joining.concat([shape[:-3], shaping.shape(y)[1:]], 0))

    c1 = arithmetic.power(arithmetic.multiply(k1, max_val), 2.0)
    c2 = arithmetic.power(arithmetic.multiply(k2, max_val), 2.0)
    means = blurred(first), blurred(second)
    product = arithmetic.multiply(arithmetic.multiply(*means), 2.0)
    squares = arithmetic.add(unary_functions.square(means[0]), unary_functions.square(means[1]))
    luminance = arithmetic.truediv(arithmetic.add(product, c1), arithmetic.add(squares, c1))
    twice = arithmetic.multiply(blurred(arithmetic.multiply(first, second)), 2.0)
    energy = blurred(arithmetic.add(unary_functions.square(first), unary_functions.square(second)))
    structure = arithmetic.truediv(
        arithmetic.add(arithmetic.subtract(twice, product), c2),
        arithmetic.add(arithmetic.subtract(energy, squares), c2),
    )
    value = arithmetic.multiply(luminance, structure)
    if as_map:
        return value, structure
    return reductions.reduce_mean(value, _SPACE), reductions.reduce_mean(structure, _SPACE)


def _pair(img1: Any, img2: Any, max_val: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Checks two images and converts them and their range to float32."""
    img1, img2 = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
    if img1.dtype.base_dtype is not img2.dtype.base_dtype:
        raise TypeError(f"img1 and img2 must have one dtype, got {img1.dtype.name} and {img2.dtype.name}")
    with control_dependencies(_checked_pair(img1, img2)):
        img1 = shaping.identity(img1)
    max_val = convert_image_dtype(casting.cast(max_val, img1.dtype.base_dtype), dtypes.float32)
    return convert_image_dtype(img1, dtypes.float32), convert_image_dtype(img2, dtypes.float32), max_val


@export("image.ssim")
def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: Any = 11,
    filter_sigma: Any = 1.5,
    k1: Any = 0.01,
    k2: Any = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """Returns the structural similarity of images [..., height, width, channels] (Wang et al., 2004) in (-1, 1], one for each pair.

    Channels are compared separately and averaged. Colours are not converted.

    Args:
        img1: The images.
        img2: The images to compare with. Their shape must broadcast, and they must be at least as large as the filter.
        max_val: The range of the pixels: 1.0 for floats, 255 for uint8.
        filter_size: The height and width of the Gaussian window.
        filter_sigma: The standard deviation of the window.
        k1: Stabilizes the luminance term.
        k2: Stabilizes the contrast term. Values up to 0.4 are sensible.
        return_index_map: Whether to return the similarity at each position of the window, [..., height, width], instead of the mean.
    """
    with name_scope(None, "SSIM", [img1, img2]):
        first, second, peak = _pair(img1, img2, max_val)
        value, _ = _ssim_per_channel(first, second, peak, filter_size, filter_sigma, k1, k2, return_index_map)
        return reductions.reduce_mean(value, [-1])


def _halved(images: Tensor) -> Tensor:
    """Averages images [..., height, width, channels] over 2x2 squares. An odd row or column is mirrored."""
    shape = shaping.shape(images)
    flat = shaping.reshape(images, joining.concat([[-1], shape[-3:]], 0))
    known = flat.static_shape.of_rank(4)
    if None in known[1:3]:
        odd: Any = arithmetic.floormod(shape[-3:-1], 2)
        paddings: Any = joining.stack([[0, 0], joining.stack([0, odd[0]]), joining.stack([0, odd[1]]), [0, 0]])
    else:
        paddings = [[0, 0], [0, known[1] % 2], [0, known[2] % 2], [0, 0]]
    if not isinstance(paddings, list) or any(map(any, paddings)):
        flat = pads.pad(flat, paddings, mode="SYMMETRIC")
    pooled = pool_api.avg_pool(flat, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    return shaping.reshape(pooled, joining.concat([shape[:-3], shaping.shape(pooled)[1:]], 0))


@export("image.ssim_multiscale")
def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Any = _MSSSIM_WEIGHTS,
    filter_size: Any = 11,
    filter_sigma: Any = 1.5,
    k1: Any = 0.01,
    k2: Any = 0.03,
) -> Tensor:
    """Returns the product of SSIM terms at several scales, each half the size of the one before (Wang et al., 2003), in [0, 1].

    Args:
        img1: Images [..., height, width, channels].
        img2: The images to compare with. Their shape must broadcast.
        max_val: The range of the pixels: 1.0 for floats, 255 for uint8.
        power_factors: The exponent of each scale, starting with the full size.
        filter_size: See `ssim`. The images must be at least this large at the smallest scale.
        filter_sigma: See `ssim`.
        k1: See `ssim`.
        k2: See `ssim`.
    """
    with name_scope(None, "MS-SSIM", [img1, img2]):
        first, second, peak = _pair(img1, img2, max_val)
        factors: list[Tensor] = []
        value = None
        for scale in range(len(power_factors)):
            with name_scope(None, f"Scale{scale}", [first, second]):
                if scale:
                    first, second = _halved(first), _halved(second)
                value, structure = _ssim_per_channel(first, second, peak, filter_size, filter_sigma, k1, k2, False)
                factors.append(activations.relu(structure))
        # The last scale includes the luminance.
        factors[-1] = activations.relu(value)
        powers = arithmetic.power(joining.stack(factors, axis=-1), list(power_factors))
        return reductions.reduce_mean(reductions.reduce_prod(powers, [-1]), [-1])


# ---- differences ------------------------------------------------------------------------------------------------


@export("image.total_variation")
def total_variation(images: Any, name: str | None = None) -> Tensor:
    """Returns the sum of the absolute differences of neighbouring pixels: a scalar for [height, width, channels], a vector for a batch.

    Raises:
        ValueError: The rank is neither 3 nor 4.
    """
    with name_scope(name, "total_variation"):
        images = convert_to_tensor(images, name="images")
        rank = images.static_shape.rank
        if rank == 3:
            down, across, axes = images[1:, :, :] - images[:-1, :, :], images[:, 1:, :] - images[:, :-1, :], None
        elif rank == 4:
            down = images[:, 1:, :, :] - images[:, :-1, :, :]
            across, axes = images[:, :, 1:, :] - images[:, :, :-1, :], [1, 2, 3]
        else:
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        sums = (reductions.reduce_sum(unary_functions.abs(each), axes) for each in (down, across))
        return arithmetic.add(*sums)


@export("image.image_gradients")
def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """Returns (dy, dx) of images [batch, height, width, channels]: the difference to the next pixel, zero in the last row and column.

    Raises:
        ValueError: The rank is not 4.
    """
    image = convert_to_tensor(image, name="image")
    if image.static_shape.rank != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {image.shape}.")
    shape = shaping.shape(image)
    batch, height, width, depth = joining.unstack(shape, num=4)
    dy = image[:, 1:, :, :] - image[:, :-1, :, :]
    dx = image[:, :, 1:, :] - image[:, :, :-1, :]
    dtype = image.dtype.base_dtype
    last_row = shaping.zeros(joining.stack([batch, 1, width, depth]), dtype)
    last_column = shaping.zeros(joining.stack([batch, height, 1, depth]), dtype)
    return (
        shaping.reshape(joining.concat([dy, last_row], 1), shape),
        shaping.reshape(joining.concat([dx, last_column], 2), shape),
    )


_SOBEL = np.array([[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]], np.float32)


@export("image.sobel_edges")
def sobel_edges(image: Any) -> Tensor:
    """Returns [batch, height, width, channels, 2] with (dy, dx) by Sobel filters. The image is mirrored at its edges.

    Args:
        image: [batch, height, width, channels], at least 2x2, float32 or float64.
    """
    image = convert_to_tensor(image, name="image")
    static = image.static_shape
    shape = shaping.shape(image)
    kernels = constants.constant(_SOBEL.transpose(1, 2, 0)[:, :, None, :], image.dtype.base_dtype)
    filters = joining.tile(kernels, [1, 1, shape[-1], 1], name="sobel_filters")
    padded = pads.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = conv_api.depthwise_conv2d(padded, filters, strides=[1, 1, 1, 1], padding="VALID")
    result = shaping.reshape(edges, joining.concat([shape, [2]], 0))
    if not context.executing_eagerly() and static.rank is not None:
        result.set_shape([*static, 2])
    return result
