"""Ops that select windows of images: glimpses at given positions, random crops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import FLOATS_LIST, STATEFUL, OpDefinition, define
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.random.bits import fills, stateless
from stoker._src.ops.random.bits.philox import PhiloxState, Stream, bits
from stoker._src.ops.random.uniform_normal import generator, get_seed
from stoker._src.ops.support.values import to_numpy, torch_dtype

# ---- ExtractGlimpse ---------------------------------------------------------------------------------------------


def _glimpse_op(name: str) -> OpDefinition:
    return define(
        f"{name}(input: rank=4/any float32, size: vector* host int32, offsets: matrix* float32) -> (glimpse: float32)",
        centered=True,
        normalized=True,
        uniform_noise=True,
        noise="uniform",
    )


EXTRACT_GLIMPSE = _glimpse_op("ExtractGlimpse").not_differentiable()
EXTRACT_GLIMPSE_V2 = _glimpse_op("ExtractGlimpseV2")
_NOISES = ("uniform", "gaussian", "zero")


def _check_glimpse(input: torch.Tensor, size: Any, offsets: torch.Tensor, uniform_noise: bool, noise: str) -> None:
    if input.ndim != 4:
        raise InvalidArgumentError(
            None, None, f"input must be 4-dimensional (batch_size, height, width, depth){list(input.shape)}"
        )
    if not isinstance(size, list) or len(size) != 2:
        raise InvalidArgumentError(
            None, None, f"input must be a vector of size 2 (height, width){list(np.shape(size))}"
        )
    if offsets.ndim != 2:
        raise InvalidArgumentError(None, None, f"input must be a matrix{list(offsets.shape)}")
    if offsets.shape[0] != input.shape[0]:
        raise InvalidArgumentError(None, None, f"first dimension should be batch{list(offsets.shape)}")
    if offsets.shape[1] != 2:
        raise InvalidArgumentError(None, None, f"second dimension should be of size 2 (y,x){list(offsets.shape)}")
    if noise not in _NOISES:
        raise InvalidArgumentError(None, None, f"The noise could only be uniform, gaussian, or zero, got{noise}")
    if uniform_noise and noise != "uniform":
        raise InvalidArgumentError(None, None, "The uniform_noise and noise could not be specified at the same time")


def _filled(image: torch.Tensor, size: Sequence[int], noise: str) -> torch.Tensor:
    """Returns random values for the part of a glimpse outside of the image. They do not depend on a seed."""
    shape = (*size, image.shape[2])
    if noise == "zero" or 0 in shape:
        return image.new_zeros(shape)
    count = math.prod(shape)
    stream = PhiloxState(0, 0).reserve_outputs(count)
    draw = fills.uniform if noise == "uniform" else fills.normal
    drawn = draw(stream, count, torch.float32).reshape(shape).to(image.device)
    if noise == "uniform":
        return image.min() + drawn * (image.max() - image.min())
    pixels = image.reshape(-1, image.shape[2])
    wanted = pixels.mean(0) + drawn * pixels.std(0, unbiased=False)
    return torch.clamp(wanted, pixels.amin(0), pixels.amax(0))


def _glimpses(input: torch.Tensor, size: list[int], begins: list[list[int]], noise: str) -> torch.Tensor:
    _, height, width, channels = input.shape
    result = input.new_empty((len(begins), *size, channels))
    for image, glimpse, (top, left) in zip(input, result, begins):
        bottom, right = min(top + size[0], height), min(left + size[1], width)
        first, start = max(top, 0), max(left, 0)
        inside = first < bottom and start < right
        if not (inside and (bottom - first, right - start) == tuple(size)):
            glimpse.copy_(_filled(image, size, noise))
        if inside:
            glimpse[first - top : bottom - top, start - left : right - left] = image[first:bottom, start:right]
    return result


@EXTRACT_GLIMPSE.kernel
def extract_glimpse_kernel(
    input: torch.Tensor,
    size: Any,
    offsets: torch.Tensor,
    *,
    centered: bool,
    normalized: bool,
    uniform_noise: bool,
    noise: str,
) -> torch.Tensor:
    """The 1.x op: the offset is that of the glimpse's centre, and is halved if `centered`."""
    _check_glimpse(input, size, offsets, uniform_noise, noise)
    sizes = np.array(input.shape[1:3], np.float32)
    places = to_numpy(offsets) * (sizes if normalized else np.float32(1))
    if centered:
        places = places / np.float32(2) + sizes / np.float32(2)
    return _glimpses(
        input, size, np.trunc(places - np.array(size, np.float32) / np.float32(2)).astype(int).tolist(), noise
    )


@EXTRACT_GLIMPSE_V2.kernel
def extract_glimpse_v2_kernel(
    input: torch.Tensor,
    size: Any,
    offsets: torch.Tensor,
    *,
    centered: bool,
    normalized: bool,
    uniform_noise: bool,
    noise: str,
) -> torch.Tensor:
    """The 2.x op: the offset is that of the glimpse's corner, unless it is `centered` and `normalized`."""
    _check_glimpse(input, size, offsets, uniform_noise, noise)
    sizes, half = np.array(input.shape[1:3], np.float32), np.float32(2)
    places = to_numpy(offsets) * (sizes if normalized else np.float32(1))
    if centered and normalized:
        places = places / half + sizes / half - np.array(size, np.float32) / half
    elif centered:
        places = places + sizes / half
    return _glimpses(input, size, np.trunc(places).astype(int).tolist(), noise)


def _glimpse_shape(input: Shape, size: Any, offsets: Shape) -> Shape:
    batch, _, _, channels = input.of_rank(4)
    batch = Shape((batch,)).merge(offsets.of_rank(2).merge(Shape((None, 2)))[:1])[0]
    rows, columns = (None, None) if size is None or size.shape != (2,) else (int(each) for each in size)
    return Shape((batch, rows, columns, channels))


EXTRACT_GLIMPSE.shape(_glimpse_shape, values=["size"])
EXTRACT_GLIMPSE_V2.shape(_glimpse_shape, values=["size"])


@export(v1="image.extract_glimpse")
def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Tensor:
    """Extracts windows from images, the 1.x form; see the 2.x form. With `uniform_noise=False` the noise is Gaussian.

    `offsets` are those of the windows' centres. If `centered`, numbers from -1 to 1 (or half of the given pixels) count from the image's centre.
    """
    noise = "uniform" if uniform_noise else "gaussian"
    return EXTRACT_GLIMPSE(
        input, size, offsets, centered=centered, normalized=normalized, uniform_noise=uniform_noise, noise=noise, name=name
    )  # fmt: skip


@export(v2="image.extract_glimpse")
def extract_glimpse_v2(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """Extracts a window of `size` [height, width] from each image [batch, height, width, channels], as float32.

    Args:
        input: The images.
        size: The size of the windows.
        offsets: The positions (y, x) of the windows, [batch, 2].
        centered: Whether offsets count from the image's centre instead of its upper left corner.
        normalized: Whether offsets are relative to the image's size instead of in pixels. If also `centered`, they range from -1 to 1 and
        are those of the windows' centres.
        noise: The values outside of the image: "uniform" between its smallest and largest pixel, "gaussian" with its mean and deviation,
            or "zero".
        name: The op's name.
    """
    return EXTRACT_GLIMPSE_V2(
        input, size, offsets, centered=centered, normalized=normalized, uniform_noise=False, noise=noise, name=name
    )  # fmt: skip


# ---- SampleDistortedBoundingBox ---------------------------------------------------------------------------------

_SIZES = (dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
_LIMITS: dict[str, Any] = {
    "aspect_ratio_range": FLOATS_LIST((0.75, float(np.float32(1.33)))),
    "area_range": FLOATS_LIST((float(np.float32(0.05)), 1.0)),
    "max_attempts": 100,
    "use_image_if_no_bounding_boxes": False,
}
_OUTPUTS = "-> (begin: T, size: T, bboxes: float32)"
SAMPLE_DISTORTED_BOUNDING_BOX = define(
    f"SampleDistortedBoundingBox(image_size: vector* host T, bounding_boxes: rank=3/any host float32) {_OUTPUTS}",
    STATEFUL,
    T=_SIZES,
    seed=0,
    seed2=0,
    min_object_covered=0.1,
    **_LIMITS,
).not_differentiable()
SAMPLE_DISTORTED_BOUNDING_BOX_V2 = define(
    "SampleDistortedBoundingBoxV2(image_size: vector* host T, bounding_boxes: rank=3/any host float32, "
    f"min_object_covered: scalar* host float32) {_OUTPUTS}",
    STATEFUL,
    T=_SIZES,
    seed=0,
    seed2=0,
    **_LIMITS,
).not_differentiable()
STATELESS_SAMPLE_DISTORTED_BOUNDING_BOX = define(
    "StatelessSampleDistortedBoundingBox(image_size: vector* host T, bounding_boxes: rank=3/any host float32, "
    f"min_object_covered: scalar* host float32, seed: vector=2 host Tseed) {_OUTPUTS}",
    T=_SIZES,
    Tseed=INDEX,
    **_LIMITS,
)
_f32 = np.float32
Rectangle = tuple[int, int, int, int]  # left, top, right, bottom


class _Numbers:
    """Draws 32-bit words from a stream, one at a time."""

    def __init__(self, stream: Stream, words: int) -> None:
        self._words = iter(bits(stream, words).tolist())

    def below(self, limit: int) -> int:
        """Returns a uniformly distributed integer in [0, limit). Words that would cause a bias are skipped."""
        if limit & (limit - 1) == 0:
            return next(self._words) & (limit - 1)
        skipped = (2**32 - 1) % limit + 1
        word = next(self._words)
        while word < skipped:
            word = next(self._words)
        return word % limit

    def fraction(self) -> np.float32:
        """Returns a float in [0, 1) from the lower 23 bits of a word."""
        return np.uint32(0x3F800000 | (next(self._words) & 0x7FFFFF)).view(_f32) - _f32(1)


def _random_crop(
    height: int, width: int, areas: Sequence[float], ratio: np.float32, numbers: _Numbers
) -> Rectangle | None:
    """Returns a rectangle inside of the image with this aspect ratio and an area within the bounds, or None if there is none."""
    if height <= 0 or width <= 0:
        return None
    least, most = (_f32(area) * _f32(width) * _f32(height) for area in areas)
    tall = int(np.rint(np.sqrt(least / ratio)))
    tallest = int(np.rint(np.sqrt(most / ratio)))
    if int(np.rint(_f32(tallest) * ratio)) > width:
        # The largest height whose rounded width fits.
        tallest = int((width + 0.5 - 0.0000001) / float(ratio))
        if int(np.rint(_f32(tallest) * ratio)) > width:
            tallest -= 1
    tallest = min(tallest, height)
    tall = min(tall, tallest)
    if tall < tallest:
        tall += numbers.below(tallest - tall + 1)
    wide = int(np.rint(_f32(tall) * ratio))
    # Rounding may have left the bounds by a row.
    if _f32(wide * tall) < least:
        tall += 1
        wide = int(np.rint(_f32(tall) * ratio))
    if _f32(wide * tall) > most:
        tall -= 1
        wide = int(np.rint(_f32(tall) * ratio))
    area = _f32(wide * tall)
    if area < least or area > most or wide > width or tall > height or wide <= 0 or tall <= 0:
        return None
    top = numbers.below(height - tall) if tall < height else 0
    left = numbers.below(width - wide) if wide < width else 0
    return left, top, left + wide, top + tall


def _covers(crop: Rectangle, box: Rectangle, part: float) -> bool:
    """Returns whether a crop covers at least this part of a box."""
    left, top, right, bottom = crop
    x1, y1, x2, y2 = box
    area = (x2 - x1) * (y2 - y1)
    if x2 <= x1 or y2 <= y1 or area <= 0:
        return False
    shared = max(0, min(right, x2) - max(left, x1)) * max(0, min(bottom, y2) - max(top, y1))
    return bool(_f32(shared) / _f32(area) >= _f32(part))


def _in_range(value: Any) -> None:
    if not 0 <= value <= 1:
        raise InvalidArgumentError(None, None, f"All bounding box coordinates must be in [0.0, 1.0]: {value}")


def _check_sampling(
    image_size: Any, boxes: Any, covered: float, ratios: Sequence[float], areas: Sequence[float], attempts: int
) -> None:
    def refuse(text: str) -> None:
        raise InvalidArgumentError(None, None, text)

    if len(ratios) != 2:
        refuse(f"Aspect ratio range field must specify 2 dimensions, got {list(ratios)}")
    if min(ratios) <= 0:
        refuse(f"Aspect ratio range must be non-negative: [{ratios[0]}, {ratios[1]}]")
    if len(areas) != 2:
        refuse(f"Area range field must specify 2 dimensions, got {list(areas)}")
    if min(areas) <= 0:
        refuse(f"Area range must be non-negative: [{areas[0]}, {areas[1]}]")
    if max(areas) > 1:
        refuse(f"Area range must be less then or equal to 1.0: [{areas[0]}, {areas[1]}]")
    if attempts <= 0:
        refuse(f"Max attempts must be non-negative: {attempts}")
    if not covered >= 0:
        refuse(f"Min object covered must be non-negative: {covered}")
    if not isinstance(image_size, list):
        refuse("image_size must be 1-dimensional")
    if len(image_size) != 3:
        refuse(f"image_size must contain 3 elements[{len(image_size)}]")
    shape = np.shape(boxes)
    if len(shape) < 3 and 0 not in shape:
        refuse(f"input boxes must be 3-dimensional [batch, num_boxes, coords]: {list(shape)}")
    if len(shape) == 3 and shape[2] not in (0, 4):
        refuse(f"bounding boxes must have shape [4] or [*, 4], got {list(shape)}")


def _sampled(
    image_size: Any,
    boxes: Any,
    covered: float,
    stream: Stream,
    T: DType,
    ratios: Sequence[float],
    areas: Sequence[float],
    attempts: int,
    whole_if_none: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    height, width = int(image_size[0]), int(image_size[1])
    flat = [box for group in boxes for box in group] if boxes and np.ndim(boxes) == 3 else []
    objects: list[Rectangle] = []
    for y1, x1, y2, x2 in flat:
        for value in (x1, y1, x2, y2):
            _in_range(value)
        objects.append(
            (int(_f32(x1) * _f32(width)), int(_f32(y1) * _f32(height)), int(_f32(x2) * _f32(width)), int(_f32(y2) * _f32(height)))
        )  # fmt: skip
    if not objects:
        if not whole_if_none:
            raise InvalidArgumentError(
                None,
                None,
                "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes.",
            )
        objects.append((0, 0, width, height))
    # One word for the ratio, one for the height and two for the position; more if words are skipped.
    numbers = _Numbers(stream, 4 * attempts * 64)
    crop: Rectangle = (0, 0, width, height)
    for _ in range(attempts):
        ratio = numbers.fraction() * (_f32(ratios[1]) - _f32(ratios[0])) + _f32(ratios[0])
        found = _random_crop(height, width, areas, ratio, numbers)
        if found is not None and any(_covers(found, each, covered) for each in objects):
            crop = found
            break
    left, top, right, bottom = crop
    kind = torch_dtype(T)
    with np.errstate(divide="ignore", invalid="ignore"):
        tall, wide = _f32(height), _f32(width)
        box = [_f32(top) / tall, _f32(left) / wide, _f32(bottom) / tall, _f32(right) / wide]
    return (
        torch.tensor([top, left, 0], dtype=kind),
        torch.tensor([bottom - top, right - left, -1]).to(kind),
        torch.tensor(np.array(box, _f32)).reshape(1, 1, 4),
    )


def _reserve(ctx: Any, seed: int, seed2: int, attempts: int) -> Stream:
    """One block of four words for each attempt. Later attempts may use words that the next execution draws, too."""
    return generator(ctx, seed, seed2).reserve(attempts)


@SAMPLE_DISTORTED_BOUNDING_BOX.kernel
@SAMPLE_DISTORTED_BOUNDING_BOX_V2.kernel
def sample_distorted_bounding_box_kernel(
    image_size: Any,
    bounding_boxes: Any,
    min_object_covered: Any,
    *,
    T: DType,
    seed: int,
    seed2: int,
    aspect_ratio_range: Sequence[float],
    area_range: Sequence[float],
    max_attempts: int,
    use_image_if_no_bounding_boxes: bool,
    ctx: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    limits = aspect_ratio_range, area_range, max_attempts
    _check_sampling(image_size, bounding_boxes, min_object_covered, *limits)
    stream = _reserve(ctx, seed, seed2, max_attempts)
    return _sampled(image_size, bounding_boxes, min_object_covered, stream, T, *limits, use_image_if_no_bounding_boxes)


@STATELESS_SAMPLE_DISTORTED_BOUNDING_BOX.kernel
def stateless_sample_distorted_bounding_box_kernel(
    image_size: Any,
    bounding_boxes: Any,
    min_object_covered: Any,
    seed: Any,
    *,
    T: DType,
    aspect_ratio_range: Sequence[float],
    area_range: Sequence[float],
    max_attempts: int,
    use_image_if_no_bounding_boxes: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    limits = aspect_ratio_range, area_range, max_attempts
    _check_sampling(image_size, bounding_boxes, min_object_covered, *limits)
    stream = stateless.stream_of_seed(seed)
    return _sampled(image_size, bounding_boxes, min_object_covered, stream, T, *limits, use_image_if_no_bounding_boxes)


def _sampled_shape(image_size: Shape, bounding_boxes: Shape, *_: Shape) -> tuple[Shape, Shape, Shape]:
    image_size.of_rank(1).merge(Shape((3,)))
    bounding_boxes.of_rank(3).merge(Shape((None, None, 4)))
    return Shape((3,)), Shape((3,)), Shape((1, 1, 4))


for _definition in (
    SAMPLE_DISTORTED_BOUNDING_BOX,
    SAMPLE_DISTORTED_BOUNDING_BOX_V2,
    STATELESS_SAMPLE_DISTORTED_BOUNDING_BOX,
):
    _definition.shape(_sampled_shape)


def _given(**limits: Any) -> dict[str, Any]:
    """Returns the limits that the caller set. The others have the op's defaults."""
    return {name: value for name, value in limits.items() if value is not None}


@export(v2="image.sample_distorted_bounding_box")
def sample_distorted_bounding_box_v2(
    image_size: Any,
    bounding_boxes: Any,
    seed: int = 0,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """Returns a random window of an image that covers enough of at least one object.

    Args:
        image_size: [height, width, channels].
        bounding_boxes: The boxes of the objects, [batch, boxes, 4] of y_min, x_min, y_max, x_max in [0, 1].
        seed: If not 0, the windows are determined by it (and by the graph's seed).
        min_object_covered: The part of at least one box that the window must cover.
        aspect_ratio_range: The range of width / height. By default 0.75 to 1.33.
        area_range: The range of the area relative to the image. By default 0.05 to 1.
        max_attempts: The number of attempts, by default 100. If all fail, the window is the whole image.
        use_image_if_no_bounding_boxes: Whether the whole image is the object if there are no boxes. Otherwise that is an error.
        name: A prefix of the ops' names.

    Returns:
        (begin, size) as arguments of `tf.slice`, and the window as a box [1, 1, 4] for `draw_bounding_boxes`.
    """
    first, second = get_seed(seed) if seed else (0, 0)
    return sample_distorted_bounding_box(
        image_size,
        bounding_boxes,
        first,
        second,
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
        name,
    )


@export(v1="image.sample_distorted_bounding_box")
def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """Returns a random window of an image that covers enough of at least one object; see the 2.x form. The two seeds are the op's own."""
    with name_scope(name, "sample_distorted_bounding_box"):
        limits = _given(
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            max_attempts=max_attempts,
            use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
        )
        return SAMPLE_DISTORTED_BOUNDING_BOX_V2(
            convert_to_tensor(image_size), bounding_boxes, min_object_covered, seed=seed or 0, seed2=seed2 or 0, **limits
        )  # fmt: skip


@export(v2="image.stateless_sample_distorted_bounding_box")
def stateless_sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: Any,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """Like `sample_distorted_bounding_box`, but determined by the two numbers of `seed` alone."""
    with name_scope(name, "stateless_sample_distorted_bounding_box"):
        limits = _given(
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            max_attempts=max_attempts,
            use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
        )
        return STATELESS_SAMPLE_DISTORTED_BOUNDING_BOX(
            convert_to_tensor(image_size), bounding_boxes, min_object_covered, seed, **limits
        )
