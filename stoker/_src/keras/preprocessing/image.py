"""`tf.keras.preprocessing.image`: images in files and as arrays, and their random transformation (`transformations`, `generators`)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.keras.base import default_data_format, floatx

_METHODS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")


def _first(data_format: str | None) -> bool:
    """Whether channels come first.

    Raises:
        ValueError: there is no such format.
    """
    chosen = data_format or default_data_format()
    if chosen not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format: {chosen}")
    return chosen == "channels_first"


@export("keras.preprocessing.image.array_to_img", v2="keras.utils.array_to_img")
def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """An array [height, width, channels] as a PIL image. With `scale` its values are spread over 0 to 255.

    Raises:
        ValueError: it is no image of 1, 3 or 4 channels.
    """
    from PIL import Image  # importing stoker must not import Pillow

    x = np.asarray(x, dtype=dtype or floatx())
    if x.ndim != 3:
        raise ValueError(f"Expected image array to have rank 3 (single image). Got array with shape: {x.shape}")
    if _first(data_format):
        x = x.transpose(1, 2, 0)
    if scale:
        x = x - np.min(x)
        most = np.max(x)
        x = x / most * 255 if most != 0 else x
    channels = x.shape[2]
    if channels in (3, 4):
        return Image.fromarray(x.astype("uint8"))
    if channels == 1:
        wide = np.max(x) > 255  # 32 bits hold what 8 do not
        return Image.fromarray(x[:, :, 0].astype("int32" if wide else "uint8"))
    raise ValueError(f"Unsupported channel number: {channels}")


@export("keras.preprocessing.image.img_to_array", v2="keras.utils.img_to_array")
def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray:
    """A PIL image as an array [height, width, channels].

    Raises:
        ValueError: it has another shape.
    """
    first = _first(data_format)
    x = np.asarray(img, dtype=dtype or floatx())
    if x.ndim == 2:
        return x[None] if first else x[:, :, None]
    if x.ndim != 3:
        raise ValueError(f"Unsupported image shape: {x.shape}")
    return x.transpose(2, 0, 1) if first else x


@export("keras.preprocessing.image.save_img", v2="keras.utils.save_img")
def save_img(
    path: Any, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any
) -> None:
    """Writes an array as an image file."""
    img = array_to_img(x, data_format=data_format, scale=scale)
    if img.mode == "RGBA" and (file_format in ("jpg", "jpeg") or str(path).lower().endswith((".jpg", ".jpeg"))):
        img = img.convert("RGB")  # JPEG files have no transparency
    img.save(path, format={"jpg": "jpeg"}.get(str(file_format), file_format), **kwargs)


@export("keras.preprocessing.image.load_img", v2="keras.utils.load_img")
def load_img(
    path: Any,
    grayscale: bool = False,
    color_mode: str = "rgb",
    target_size: Any = None,
    interpolation: str = "nearest",
) -> Any:
    """The PIL image of a file.

    Args:
        path: the file.
        grayscale: the old way to say color_mode="grayscale".
        color_mode: "rgb", "rgba" or "grayscale".
        target_size: (height, width) to resize to.
        interpolation: how: "nearest", "bilinear", "bicubic", "hamming", "box" or "lanczos".

    Raises:
        ValueError: an argument is unknown.
    """
    from PIL import Image

    modes = {"grayscale": "L", "rgba": "RGBA", "rgb": "RGB"}
    color_mode = "grayscale" if grayscale else color_mode
    if color_mode not in modes:
        raise ValueError('color_mode must be "grayscale", "rgb", or "rgba"')
    if target_size is not None and interpolation not in _METHODS:
        raise ValueError(
            f"Invalid interpolation method {interpolation} specified. Supported methods are {', '.join(_METHODS)}"
        )
    with open(os.fspath(path), "rb") as file:
        img = Image.open(file)
        img.load()
    if color_mode != "grayscale" or img.mode not in ("L", "I;16", "I"):
        img = img.convert(modes[color_mode]) if img.mode != modes[color_mode] else img
    if target_size is None or img.size == (target_size[1], target_size[0]):
        return img
    return img.resize((target_size[1], target_size[0]), Image.Resampling[interpolation.upper()])
