"""Ops that decode and encode images: JPEG, PNG, GIF and BMP. The codecs are in `formats/images`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.formats import images
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import INT32, STRING, OpDefinition, define, one_of, unregistered
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting
from stoker._src.ops.math import arithmetic, comparison
from stoker._src.ops.strings import string_ops
from stoker._src.ops.support.rows import Input
from stoker._src.ops.support.values import from_numpy, to_numpy


def _file(contents: np.ndarray) -> bytes:
    if contents.ndim:
        raise InvalidArgumentError(None, None, f"`contents` must be scalar but got shape{list(contents.shape)}")
    return contents.item()


def _rows_of(op: Operation, inputs: list[Input], of_files: OpDefinition) -> list[Any] | None:
    """The pictures of several files, which must have one size, as one tensor."""
    if inputs[0].rank != 0:
        return None
    attrs = {name: value for name, value in op.attrs.items() if not name.startswith("_")}
    made = of_files(inputs[0].tensor, **attrs)
    made.set_shape(Shape((None, *op.outputs[0].static_shape)))
    return [made]


def _text(contents: bytes) -> np.ndarray:
    return np.array(contents, dtype=object)


def _pixels(contents: Shape, channels: int) -> Shape:
    contents.of_rank(0)
    if channels < 0:
        raise InvalidArgumentError(None, None, f"channels must be non-negative, got {channels}")
    return Shape((None, None, channels or None))


_JPEG_ATTRS: dict[str, Any] = {
    "channels": INT32(0),
    "ratio": INT32(1),
    "fancy_upscaling": True,
    "try_recover_truncated": False,
    "acceptable_fraction": 1.0,
    "dct_method": "",
}

# ---- JPEG -------------------------------------------------------------------------------------------------------

DECODE_JPEG = define("DecodeJpeg(contents: string) -> (image: uint8)", **_JPEG_ATTRS)


@DECODE_JPEG.kernel
def decode_jpeg_kernel(
    contents: np.ndarray,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> torch.Tensor:
    return from_numpy(
        images.decode_jpeg(
            _file(contents), channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method
        )
    )


DECODE_JPEGS = unregistered("DecodeJpegs(contents: string) -> (images: uint8)", **_JPEG_ATTRS)
DECODE_JPEG.rows(lambda op, inputs: _rows_of(op, inputs, DECODE_JPEGS))


@DECODE_JPEGS.kernel
def decode_jpegs_kernel(
    contents: np.ndarray,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> torch.Tensor:
    how = (channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method)
    return from_numpy(images.together(images.decode_jpeg(each, *how) for each in contents.tolist()))


DECODE_JPEGS.shape(lambda contents: UNKNOWN_SHAPE)


@DECODE_JPEG.shape
def decode_jpeg_shape(contents: Shape, *, channels: int) -> Shape:
    return _pixels(contents, channels)


@export("io.decode_jpeg", "image.decode_jpeg")
def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decodes a JPEG file to uint8 [height, width, channels]. PNG and single-frame GIF files are accepted, too.

    Args:
        contents: The file, a scalar string.
        channels: 0 as stored, 1 for grayscale, 3 for RGB.
        ratio: The factor by which to reduce the size: 1, 2, 4 or 8.
        fancy_upscaling: Whether to interpolate the colour planes instead of repeating their pixels.
        try_recover_truncated: Whether to return the available part of a truncated file.
        acceptable_fraction: The fraction of the lines that must be available for that.
        dct_method: "", "INTEGER_FAST" or "INTEGER_ACCURATE"; a hint.
        name: The op's name.
    """
    return DECODE_JPEG(
        contents,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method or "",
        name=name,
    )


DECODE_AND_CROP_JPEG = define(
    "DecodeAndCropJpeg(contents: string, crop_window: vector=4 host int32) -> (image: uint8)", **_JPEG_ATTRS
)


@DECODE_AND_CROP_JPEG.kernel
def decode_and_crop_jpeg_kernel(
    contents: np.ndarray,
    crop_window: Any,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> torch.Tensor:
    return from_numpy(
        images.decode_and_crop_jpeg(
            _file(contents),
            crop_window,
            channels,
            ratio,
            fancy_upscaling,
            try_recover_truncated,
            acceptable_fraction,
            dct_method,
        )
    )


@DECODE_AND_CROP_JPEG.shape(values=["crop_window"])
def decode_and_crop_jpeg_shape(contents: Shape, crop_window: Any, *, channels: int) -> Shape:
    whole = _pixels(contents, channels)
    if crop_window is None or len(crop_window) != 4:
        return whole
    return Shape((int(crop_window[2]), int(crop_window[3]), whole[2]))


@export("io.decode_and_crop_jpeg", "image.decode_and_crop_jpeg")
def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """Decodes the window [y, x, height, width] of a JPEG file. For the other arguments see `decode_jpeg`."""
    return DECODE_AND_CROP_JPEG(
        contents,
        crop_window,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method or "",
        name=name,
    )


EXTRACT_JPEG_SHAPE = define(
    "ExtractJpegShape(contents: string) -> (image_shape: output_type)",
    output_type=one_of(dtypes.int32, dtypes.int64, default=dtypes.int32),
)


@EXTRACT_JPEG_SHAPE.kernel
def extract_jpeg_shape_kernel(contents: np.ndarray, *, output_type: DType) -> torch.Tensor:
    return from_numpy(images.extract_jpeg_shape(_file(contents), output_type.as_numpy_dtype))


@EXTRACT_JPEG_SHAPE.shape
def extract_jpeg_shape_shape(contents: Shape) -> Shape:
    contents.of_rank(0)
    return Shape((3,))


@export("io.extract_jpeg_shape", "image.extract_jpeg_shape")
def extract_jpeg_shape(contents: Any, output_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """Returns [height, width, channels] from the header of a JPEG file."""
    return EXTRACT_JPEG_SHAPE(contents, output_type=output_type, name=name)


ENCODE_JPEG = define(
    "EncodeJpeg(image: uint8) -> (contents: string)",
    format=STRING("", allowed=("", "grayscale", "rgb")),
    quality=INT32(95),
    progressive=False,
    optimize_size=False,
    chroma_downsampling=True,
    density_unit=STRING("in", allowed=("in", "cm")),
    x_density=INT32(300),
    y_density=INT32(300),
    xmp_metadata="",
)


@ENCODE_JPEG.kernel
def encode_jpeg_kernel(
    image: torch.Tensor,
    *,
    format: str,
    quality: int,
    progressive: bool,
    optimize_size: bool,
    chroma_downsampling: bool,
    density_unit: str,
    x_density: int,
    y_density: int,
    xmp_metadata: str | bytes,
) -> np.ndarray:
    metadata = xmp_metadata.encode() if isinstance(xmp_metadata, str) else xmp_metadata
    encoded = images.encode_jpeg(
        to_numpy(image),
        format,
        quality,
        progressive,
        optimize_size,
        chroma_downsampling,
        density_unit,
        x_density,
        y_density,
        metadata,
    )
    return _text(encoded)


@ENCODE_JPEG.shape
def encode_jpeg_shape(image: Shape) -> Shape:
    image.of_rank(3)
    return SCALAR


@export("io.encode_jpeg", "image.encode_jpeg")
def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """Encodes uint8 [height, width, 1 or 3] as a JPEG file, a scalar string.

    Args:
        image: The pixels.
        format: "grayscale", "rgb", or "" to choose by the number of channels.
        quality: 0 to 100.
        progressive: Whether to write scans of increasing detail.
        optimize_size: Whether to spend time on a smaller file with the same pixels.
        chroma_downsampling: Whether to store colour at half the resolution.
        density_unit: The unit of the two densities, "in" or "cm".
        x_density: The horizontal number of pixels per unit.
        y_density: The vertical number of pixels per unit.
        xmp_metadata: XMP metadata to embed.
        name: The op's name.
    """
    return ENCODE_JPEG(
        image,
        format=format,
        quality=quality,
        progressive=progressive,
        optimize_size=optimize_size,
        chroma_downsampling=chroma_downsampling,
        density_unit=density_unit,
        x_density=x_density,
        y_density=y_density,
        xmp_metadata=xmp_metadata,
        name=name,
    )


ENCODE_JPEG_VARIABLE_QUALITY = define(
    "EncodeJpegVariableQuality(images: uint8, quality: host int32) -> (contents: string)"
)


@ENCODE_JPEG_VARIABLE_QUALITY.kernel
def encode_jpeg_variable_quality_kernel(pixels: torch.Tensor, quality: Any) -> np.ndarray:
    if isinstance(quality, list):
        raise InvalidArgumentError(None, None, f"quality must be scalar: {list(np.shape(quality))}")
    return _text(images.encode_jpeg(to_numpy(pixels), quality=quality))


@ENCODE_JPEG_VARIABLE_QUALITY.shape
def encode_jpeg_variable_quality_shape(pixels: Shape, quality: Shape) -> Shape:
    pixels.of_rank(3)
    quality.of_rank(0)
    return SCALAR


@export("io.is_jpeg", "image.is_jpeg")
def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Returns whether each string begins like a JPEG file. Other files may do so, too."""
    with name_scope(name, "is_jpeg", None):
        return comparison.equal(string_ops.SUBSTR(contents, 0, 3, name="Substr"), b"\xff\xd8\xff", name="Equal")


# ---- PNG --------------------------------------------------------------------------------------------------------

_PNG_TYPES = one_of(dtypes.uint8, dtypes.uint16, default=dtypes.uint8)
DECODE_PNG = define("DecodePng(contents: string) -> (image: dtype)", channels=INT32(0), dtype=_PNG_TYPES)


@DECODE_PNG.kernel
def decode_png_kernel(contents: np.ndarray, *, channels: int, dtype: DType) -> torch.Tensor:
    return from_numpy(images.decode_png(_file(contents), channels, dtype.as_numpy_dtype))


DECODE_PNGS = unregistered("DecodePngs(contents: string) -> (images: dtype)", channels=INT32(0), dtype=_PNG_TYPES)
DECODE_PNG.rows(lambda op, inputs: _rows_of(op, inputs, DECODE_PNGS))


@DECODE_PNGS.kernel
def decode_pngs_kernel(contents: np.ndarray, *, channels: int, dtype: DType) -> torch.Tensor:
    files = contents.tolist()
    return from_numpy(images.decode_pngs(files, channels, dtype.as_numpy_dtype, torch.get_num_threads()))


DECODE_PNGS.shape(lambda contents: UNKNOWN_SHAPE)


@DECODE_PNG.shape
def decode_png_shape(contents: Shape, *, channels: int) -> Shape:
    return _pixels(contents, channels)


@export("io.decode_png", "image.decode_png")
def decode_png(contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None) -> Tensor:
    """Decodes a PNG file to uint8 or uint16 [height, width, channels]. JPEG and single-frame GIF files are accepted, too.

    Args:
        contents: The file, a scalar string.
        channels: 0 as stored, 1 for grayscale, 3 for RGB, 4 for RGBA.
        dtype: uint8 or uint16.
        name: The op's name.
    """
    return DECODE_PNG(contents, channels=channels, dtype=dtype, name=name)


ENCODE_PNG = define("EncodePng(image: T) -> (contents: string)", compression=-1, T=_PNG_TYPES)


@ENCODE_PNG.kernel
def encode_png_kernel(image: torch.Tensor, *, compression: int) -> np.ndarray:
    pixels = to_numpy(image)
    if pixels.ndim <= 3:
        return _text(images.encode_png(pixels, compression))
    batch = pixels.shape[:-3]
    files = np.empty(int(np.prod(batch)), dtype=object)
    for i, each in enumerate(pixels.reshape(-1, *pixels.shape[-3:])):
        files[i] = images.encode_png(each, compression)
    return files.reshape(batch)


@ENCODE_PNG.shape
def encode_png_shape(image: Shape) -> Shape:
    return UNKNOWN_SHAPE if image.rank is None else image.at_least(3)[:-3]


@export("io.encode_png", "image.encode_png")
def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """Encodes uint8 or uint16 [..., height, width, 1 to 4] as PNG files, one string for each image.

    Args:
        image: The pixels: grayscale, grayscale and alpha, RGB or RGBA.
        compression: The zlib level from 0 to 9, or -1 for its default.
        name: The op's name.
    """
    # Converted first, so that an array of uint16 keeps its dtype.
    return ENCODE_PNG(convert_to_tensor(image), compression=compression, name=name)


# ---- GIF, BMP, any of them --------------------------------------------------------------------------------------

DECODE_GIF = define("DecodeGif(contents: string) -> (image: uint8)")
DECODE_GIF.kernel(lambda contents: from_numpy(images.decode_gif(_file(contents))))


@DECODE_GIF.shape
def decode_gif_shape(contents: Shape) -> Shape:
    contents.of_rank(0)
    return Shape((None, None, None, 3))


@export("io.decode_gif", "image.decode_gif")
def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """Decodes a GIF file to uint8 [frames, height, width, 3]. JPEG and PNG files give one frame."""
    return DECODE_GIF(contents, name=name)


DECODE_BMP = define("DecodeBmp(contents: string) -> (image: uint8)", channels=INT32(0))


@DECODE_BMP.kernel
def decode_bmp_kernel(contents: np.ndarray, *, channels: int) -> torch.Tensor:
    return from_numpy(images.decode_bmp(_file(contents), channels))


@DECODE_BMP.shape
def decode_bmp_shape(contents: Shape, *, channels: int) -> Shape:
    return _pixels(contents, channels)


@export("io.decode_bmp", "image.decode_bmp")
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """Decodes a BMP file to uint8 [height, width, channels]. `channels` is 0 (as stored), 3 or 4."""
    return DECODE_BMP(contents, channels=channels, name=name)


_DECODED = (dtypes.uint8, dtypes.uint16, dtypes.float32)
DECODE_IMAGE = define(
    "DecodeImage(contents: string) -> (image: dtype)",
    channels=INT32(0),
    dtype=one_of(*_DECODED, default=dtypes.uint8),
    expand_animations=True,
)


@DECODE_IMAGE.kernel
def decode_image_kernel(contents: np.ndarray, *, channels: int, dtype: DType, expand_animations: bool) -> torch.Tensor:
    return from_numpy(images.decode_image(_file(contents), channels, dtype.as_numpy_dtype, expand_animations))


@DECODE_IMAGE.shape
def decode_image_shape(contents: Shape, *, channels: int, expand_animations: bool) -> Shape:
    if channels not in (0, 1, 3, 4):
        raise InvalidArgumentError(None, None, f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    pixels = _pixels(contents, channels)
    return UNKNOWN_SHAPE if expand_animations else pixels


@export("io.decode_image", "image.decode_image")
def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Decodes a JPEG, PNG, GIF or BMP file. The format is recognized by the first bytes.

    Args:
        contents: The file, a scalar string.
        channels: None or 0 as stored, or 1, 3 or 4, if the format supports it.
        dtype: The dtype of the pixels. Values are scaled to the range of an integer dtype, or to [0, 1] for floats.
        name: A prefix of the ops' names.
        expand_animations: If True, a GIF gives [frames, height, width, 3]. If False, it gives the first frame, and the rank is static.

    Raises:
        ValueError, InvalidArgumentError: `channels` is not one of those, in a graph or in eager mode.
    """
    wanted = as_dtype(dtype)
    with name_scope(name, "decode_image", None):
        read_as = wanted if wanted in _DECODED else dtypes.uint16
        image = DECODE_IMAGE(
            contents, channels=0 if channels is None else channels, dtype=read_as, expand_animations=expand_animations
        )
        return image if wanted is read_as else _from_uint16(image, wanted)


def _from_uint16(image: Tensor, dtype: DType) -> Tensor:
    """Scales pixels to the full range of another dtype: its maximum for integers, 1 for floats."""
    name = "convert_image"
    if dtype.is_floating:
        return arithmetic.multiply(casting.cast(image, dtype), 1.0 / 65535, name=name)
    if not dtype.is_integer:
        raise AttributeError(f"dtype must be either floating point or integer, got {dtype.name}.")
    steps, found = int(dtype.max) + 1, 65536
    if steps < found:
        return casting.cast(arithmetic.floordiv(image, found // steps), dtype, name=name)
    return arithmetic.multiply(casting.cast(image, dtype), steps // found, name=name)
