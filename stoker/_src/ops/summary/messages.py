"""The contents of summaries: `Summary.Value` messages, filled in the same way as TensorFlow's."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import numpy as np
import torch
from google.protobuf.message import DecodeError

from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.extensions import extension
from stoker._src.formats import images
from stoker._src.formats.protos import HistogramProto, Summary, SummaryMetadata, TensorProto
from stoker._src.ops.io.tensor_messages import tensor_bytes
from stoker._src.ops.signal.audio import encode_wav_kernel
from stoker._src.ops.support.values import to_numpy


def invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


def text_of(tag: bytes) -> str:
    return tag.decode(errors="replace")


def dims_text(dims: Any, separator: str = ",") -> str:
    return f"[{separator.join(map(str, dims))}]"


def only(tag: Any, complaint: str) -> str:
    """Returns the text of a scalar string."""
    if tag.ndim:
        raise invalid(complaint)
    return text_of(tag.item())


def message_bytes(values: list[Any]) -> np.ndarray:
    """Returns a Summary of `values` as a scalar string."""
    return np.array(Summary(value=values).SerializeToString(), dtype=object)


# ---- scalars ----------------------------------------------------------------------------------------------------


def scalar_values(tags: np.ndarray, values: torch.Tensor) -> list[Any]:
    if tags.shape != tuple(values.shape):
        only_tag = f" (tag '{text_of(tags.ravel()[0])}')" if tags.size == 1 else ""
        raise invalid(
            f"tags and values not the same shape: {dims_text(tags.shape)} != {dims_text(values.shape)}{only_tag}"
        )
    numbers = values.reshape(-1).to(torch.float32).tolist()
    return [Summary.Value(tag=text_of(tag), simple_value=x) for tag, x in zip(tags.ravel().tolist(), numbers)]


# ---- histograms -------------------------------------------------------------------------------------------------

_LARGEST = sys.float_info.max
_native: Any = extension("stoker._src.ops.native.histograms")


@functools.cache
def _bucket_limits() -> np.ndarray:
    """The upper ends of the buckets. They grow by ten percent, starting with 1e-12, in both directions; the last is unbounded."""
    positive = []
    limit = 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(_LARGEST)
    return np.array([-x for x in reversed(positive)] + [0.0] + positive)


@functools.cache
def _cells() -> np.ndarray:
    """For all numbers whose upper 16 bits are the same: the bucket of the least of them."""
    upper = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
    lower = np.where(upper >> np.uint64(63), np.uint64((1 << 48) - 1), np.uint64(0))
    with np.errstate(invalid="ignore"):
        least = (upper | lower).view(np.float64)
        found = np.searchsorted(_bucket_limits(), least, side="right")
    return np.minimum(found, _bucket_limits().size - 1).astype(np.int32)


def histogram_of(values: torch.Tensor) -> Any:
    """Returns a histogram of the numbers in a vector. Adjacent empty buckets are written as one."""
    if _native is None or not values.is_cpu or not values.is_contiguous() or not values.numel():
        return _histogram_of(to_numpy(values.to(torch.float64)))
    if values.dtype is not torch.float32:
        values = values.to(torch.float64)
    limits, is_double = _bucket_limits(), values.dtype is torch.float64
    counted = _native.histogram(values, values.numel(), is_double, limits, _cells(), np.empty(limits.size))
    has_nan, has_infinity, least, largest, total, squares, ends, counts = counted
    if has_nan or has_infinity:
        return _histogram_of(to_numpy(values.to(torch.float64)))
    return HistogramProto(
        min=least,
        max=largest,
        num=values.numel(),
        sum=total,
        sum_squares=squares,
        bucket_limit=ends,
        bucket=counts,
    )


def _histogram_of(values: np.ndarray) -> Any:
    limits = _bucket_limits()
    message = HistogramProto(min=_LARGEST, max=-_LARGEST)
    counts = np.zeros(limits.size)
    if values.size:
        # The sums are accumulated in the order of the values, as a loop would.
        message.min, message.max, message.num = float(values.min()), float(values.max()), values.size
        with np.errstate(over="ignore", invalid="ignore"):
            message.sum = float(np.add.accumulate(values)[-1])
            message.sum_squares = float(np.add.accumulate(values * values)[-1])
        buckets = np.minimum(np.searchsorted(limits, values, side="right"), limits.size - 1)
        counts = np.bincount(buckets, minlength=limits.size).astype(np.float64)
    filled = counts > 0
    kept = filled.copy()  # each bucket that is not empty, and the last of every run of empty ones
    kept[:-1] |= filled[1:]
    kept[-1] = True
    message.bucket_limit.extend(limits[kept].tolist())
    message.bucket.extend(counts[kept].tolist())
    return message


def histogram_value(tag: np.ndarray, values: torch.Tensor) -> Any:
    name = only(tag, "tags must be scalar")
    histogram = histogram_of(values.reshape(-1))
    if values.is_floating_point() and not math.isfinite(histogram.sum_squares):
        if values.isnan().any():
            raise invalid(f"Nan in summary histogram for: {name}")
        if values.isinf().any():
            raise invalid(f"Infinity in summary histogram for: {name}")
    return Summary.Value(tag=name, histo=histogram)


# ---- images -----------------------------------------------------------------------------------------------------

_ALMOST_ZERO = 1e-6


def _as_bytes(image: np.ndarray, bad_color: np.ndarray) -> np.ndarray:
    """Converts floating point pixels to bytes. The largest becomes 255; if some are negative, zero becomes 128."""
    finite = np.isfinite(image)
    is_whole = finite.all()
    finite = finite.all(axis=-1)
    pixels = image if is_whole else image[finite]
    kind = image.dtype.type
    scale, offset = kind(0), kind(0)
    if pixels.size:
        if pixels.min() < 0:
            largest, full, offset = np.abs(pixels).max(), kind(127), kind(128)
        else:
            largest, full = pixels.max(), kind(255)
        scale = kind(0) if largest < _ALMOST_ZERO else full / largest
    if is_whole:
        return (pixels * scale + offset).astype(np.uint8)
    result = np.empty(image.shape, np.uint8)
    result[finite] = (pixels * scale + offset).astype(np.uint8)
    result[~finite] = bad_color[: image.shape[-1]]
    return result


def _numbered(tag: str, kind: str, count: int, most: int) -> list[str]:
    """Returns the tags of the images or sounds of a batch. If there can be only one, it has no number."""
    return [f"{tag}/{kind}"] if most == 1 else [f"{tag}/{kind}/{i}" for i in range(count)]


def image_values(tag: np.ndarray, tensor: torch.Tensor, bad_color: np.ndarray, max_images: int) -> list[Any]:
    name = only(tag, "Tags must be a scalar")
    if tensor.ndim != 4 or tensor.shape[3] not in (1, 3, 4):
        raise invalid(f"Tensor must be 4-D with last dim 1, 3, or 4, not {dims_text(tensor.shape)}")
    count, height, width, depth = tensor.shape
    if count and not (height and width):
        raise invalid(f"input tensor must have non-zero dims. Found: {dims_text(tensor.shape, ', ')}.")
    if bad_color.dtype != np.uint8:
        raise invalid(f"bad_color must be uint8, got {'float' if bad_color.dtype == np.float32 else bad_color.dtype}")
    if bad_color.ndim != 1:
        raise invalid(f"bad_color must be a vector, got shape {dims_text(bad_color.shape)}")
    batch = to_numpy(tensor[:max_images])
    if batch.dtype != np.uint8 and bad_color.size < depth:
        raise invalid(f"expected depth <= bad_color.size, got depth = {depth}, bad_color.size = {bad_color.size}")
    values = []
    for each, image in zip(_numbered(name, "image", len(batch), max_images), batch):
        pixels = image if image.dtype == np.uint8 else _as_bytes(image, bad_color)
        value = Summary.Value(tag=each)
        value.image.height, value.image.width, value.image.colorspace = height, width, depth
        value.image.encoded_image_string = images.encode_png(pixels)
        values.append(value)
    return values


# ---- audio ------------------------------------------------------------------------------------------------------


def audio_values(tag: np.ndarray, tensor: torch.Tensor, sample_rate: float, max_outputs: int) -> list[Any]:
    name = only(tag, "Tag must be a scalar")
    if tensor.ndim not in (2, 3):
        raise invalid(f"Tensor must be 3-D or 2-D, got: {dims_text(tensor.shape)}")
    if sample_rate <= 0:
        raise invalid("sample_rate must be > 0")
    if tensor.ndim == 2:
        tensor = tensor.unsqueeze(2)
    if tensor.shape[0] and not (tensor.shape[1] and tensor.shape[2]):
        raise invalid("audio is null")
    values = []
    batch = tensor[:max_outputs]
    for each, sound in zip(_numbered(name, "audio", len(batch), max_outputs), batch):
        value = Summary.Value(tag=each)
        value.audio.sample_rate, value.audio.content_type = sample_rate, "audio/wav"
        value.audio.length_frames, value.audio.num_channels = sound.shape
        value.audio.encoded_audio_string = encode_wav_kernel(sound, int(sample_rate)).item()
        values.append(value)
    return values


# ---- tensors ----------------------------------------------------------------------------------------------------


def tensor_message(tensor: Any, dtype: DType) -> Any:
    return TensorProto.FromString(tensor_bytes(tensor, dtype))


def tensor_value(tag: np.ndarray, tensor: Any, dtype: DType, metadata: np.ndarray) -> Any:
    value = Summary.Value(tag=only(tag, "tag must be scalar"), tensor=tensor_message(tensor, dtype))
    serialized = metadata.ravel()[0] if metadata.size == 1 else None
    if metadata.ndim or serialized is None:
        raise invalid("serialized_summary_metadata must be scalar")
    value.metadata.SetInParent()
    try:
        value.metadata.MergeFromString(serialized)
    except DecodeError:  # As in TensorFlow, bytes that are not a message count as an empty message.
        value.metadata.CopyFrom(SummaryMetadata())
    return value


def merged(inputs: list[np.ndarray]) -> np.ndarray:
    """Returns all values of several summaries. Values without a tag may repeat."""
    summaries = [item for each in inputs for item in each.ravel().tolist()]
    seen: set[str] = set()
    for serialized in summaries:
        try:
            summary = Summary.FromString(serialized)
        except DecodeError:
            raise invalid("Could not parse one of the summary inputs") from None
        for value in summary.value:
            if value.tag and value.tag in seen:
                raise invalid(f"Duplicate tag {value.tag} found in summary inputs")
            seen.add(value.tag)
    return np.array(b"".join(summaries), dtype=object)  # messages one after the other have the values of all
