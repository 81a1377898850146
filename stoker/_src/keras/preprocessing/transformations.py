"""Transformations of single images, as arrays: turned, moved, sheared, enlarged; brighter, and with shifted channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.keras.preprocessing.image import array_to_img, img_to_array


def _places(size: int, where: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Positions inside an axis of that size for positions anywhere, and whether there is something.

    Modes say what is beyond the ends: "nearest" aaaa|abcd|dddd, "reflect" abcddcba|abcd|dcbaabcd, "wrap" abcdabcd|abcd|abcdabcd, "constant".
    """
    if mode == "nearest":
        return np.clip(where, 0, size - 1), np.ones(where.shape, bool)
    if mode == "reflect":
        turned = np.mod(where + 0.5, 2 * size)
        return np.clip(np.where(turned >= size, 2 * size - turned, turned) - 0.5, 0, size - 1), np.ones(
            where.shape, bool
        )
    if mode == "wrap":
        inside = (where >= 0) & (where <= size - 1)
        around = np.mod(where, size - 1) if size > 1 else np.zeros_like(where)
        return np.where(inside, where, around), np.ones(where.shape, bool)
    if mode == "constant":
        return where, (where >= 0) & (where <= size - 1)
    raise ValueError(f"Unknown fill_mode: {mode}")


def _sampled(channel: np.ndarray, matrix: np.ndarray, offset: np.ndarray, mode: str, cval: float) -> np.ndarray:
    """An image whose pixel p is the input at matrix @ p + offset, between four pixels in proportion to their distance."""
    height, width = channel.shape
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    y = matrix[0, 0] * rows + matrix[0, 1] * columns + offset[0]
    x = matrix[1, 0] * rows + matrix[1, 1] * columns + offset[1]
    (y, inside), (x, within) = _places(height, y, mode), _places(width, x, mode)
    top, left = np.clip(np.floor(y), 0, height - 1).astype(int), np.clip(np.floor(x), 0, width - 1).astype(int)
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    down, over = y - top, x - left
    upper = channel[top, left] * (1 - over) + channel[top, right] * over
    lower = channel[bottom, left] * (1 - over) + channel[bottom, right] * over
    return np.where(inside & within, upper * (1 - down) + lower * down, cval)


@export("keras.preprocessing.image.apply_affine_transform")
def apply_affine_transform(
    x: Any,
    theta: float = 0,
    tx: float = 0,
    ty: float = 0,
    shear: float = 0,
    zx: float = 1,
    zy: float = 1,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    order: int = 1,
) -> np.ndarray:
    """Turns (theta, degrees), moves (tx, ty), shears (degrees) and enlarges (by 1 / zx, 1 / zy) an image around its middle.

    Raises:
        NotImplementedError: the interpolation is not linear (`order`).
    """
    if order != 1:
        raise NotImplementedError(f"Interpolation of order {order}; 1 is linear.")
    matrix = np.eye(3)
    angle, slant = np.deg2rad(theta), np.deg2rad(shear)
    if theta:
        matrix = matrix @ [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
    if tx or ty:
        matrix = matrix @ [[1, 0, tx], [0, 1, ty], [0, 0, 1]]
    if shear:
        matrix = matrix @ [[1, -np.sin(slant), 0], [0, np.cos(slant), 0], [0, 0, 1]]
    if zx != 1 or zy != 1:
        matrix = matrix @ [[zx, 0, 0], [0, zy, 0], [0, 0, 1]]
    x = np.asarray(x)
    if np.array_equal(matrix, np.eye(3)):
        return x
    middle = [x.shape[row_axis] / 2.0 - 0.5, x.shape[col_axis] / 2.0 - 0.5]
    to, back = np.eye(3), np.eye(3)
    to[:2, 2], back[:2, 2] = middle, np.negative(middle)
    matrix = to @ matrix @ back
    if col_axis > row_axis:  # the matrix is of x and y, and arrays have y before x
        matrix = matrix[[1, 0, 2]][:, [1, 0, 2]]
    channels = np.moveaxis(x, (channel_axis, row_axis, col_axis), (0, 1, 2))
    made = np.stack([_sampled(each, matrix[:2, :2], matrix[:2, 2], fill_mode, cval) for each in channels])
    return np.moveaxis(made.astype(x.dtype), (0, 1, 2), (channel_axis, row_axis, col_axis))


@export("keras.preprocessing.image.apply_channel_shift")
def apply_channel_shift(x: Any, intensity: float, channel_axis: int = 0) -> np.ndarray:
    """Adds a number to the values, within the range that they have."""
    return np.clip(np.asarray(x) + intensity, np.min(x), np.max(x))


@export("keras.preprocessing.image.apply_brightness_shift")
def apply_brightness_shift(x: Any, brightness: float, scale: bool = True) -> np.ndarray:
    """Makes an image brighter or darker by a factor. With `scale`, or if they do not fit, its values are spread over 0 to 255 before."""
    from PIL import ImageEnhance  # importing stoker must not import Pillow

    least, most = np.min(x), np.max(x)
    fits = least >= 0 and most <= 255
    img = ImageEnhance.Brightness(array_to_img(x, scale=scale or not fits)).enhance(brightness)
    found = img_to_array(img)
    return found if scale or fits else found / 255 * (most - least) + least


def _randomly(x: Any, row_axis: int, col_axis: int, channel_axis: int, fill_mode: str, cval: float, **how: Any) -> Any:
    places = {"row_axis": row_axis, "col_axis": col_axis, "channel_axis": channel_axis}
    return apply_affine_transform(x, **how, **places, fill_mode=fill_mode, cval=cval)


@export("keras.preprocessing.image.random_rotation")
def random_rotation(
    x: Any,
    rg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """Turns an image by at most `rg` degrees."""
    theta = np.random.uniform(-rg, rg)
    return _randomly(x, row_axis, col_axis, channel_axis, fill_mode, cval, theta=theta, order=interpolation_order)


@export("keras.preprocessing.image.random_shift")
def random_shift(
    x: Any,
    wrg: float,
    hrg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """Moves an image by at most the parts `wrg` of its width and `hrg` of its height."""
    tx = np.random.uniform(-hrg, hrg) * x.shape[row_axis]
    ty = np.random.uniform(-wrg, wrg) * x.shape[col_axis]
    return _randomly(x, row_axis, col_axis, channel_axis, fill_mode, cval, tx=tx, ty=ty, order=interpolation_order)


@export("keras.preprocessing.image.random_shear")
def random_shear(
    x: Any,
    intensity: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """Shears an image by at most `intensity` degrees."""
    shear = np.random.uniform(-intensity, intensity)
    return _randomly(x, row_axis, col_axis, channel_axis, fill_mode, cval, shear=shear, order=interpolation_order)


@export("keras.preprocessing.image.random_zoom")
def random_zoom(
    x: Any,
    zoom_range: Any,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """Enlarges an image by factors from a range.

    Raises:
        ValueError: the range is not two numbers.
    """
    if len(zoom_range) != 2:
        raise ValueError(f"`zoom_range` should be a tuple or list of two floats. Received: {zoom_range}")
    zx, zy = (1, 1) if tuple(zoom_range) == (1, 1) else np.random.uniform(zoom_range[0], zoom_range[1], 2)
    return _randomly(x, row_axis, col_axis, channel_axis, fill_mode, cval, zx=zx, zy=zy, order=interpolation_order)


@export("keras.preprocessing.image.random_channel_shift")
def random_channel_shift(x: Any, intensity_range: float, channel_axis: int = 0) -> np.ndarray:
    """Adds a number of at most `intensity_range` to the values."""
    return apply_channel_shift(x, np.random.uniform(-intensity_range, intensity_range), channel_axis)


@export("keras.preprocessing.image.random_brightness")
def random_brightness(x: Any, brightness_range: Any, scale: bool = True) -> np.ndarray:
    """Makes an image brighter or darker by a factor from a range.

    Raises:
        ValueError: the range is not two numbers.
    """
    if len(brightness_range) != 2:
        raise ValueError(f"`brightness_range should be tuple or list of two floats. Received: {brightness_range}")
    return apply_brightness_shift(x, np.random.uniform(*brightness_range), scale)
