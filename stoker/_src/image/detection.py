"""Selection of boxes, and crops of images at boxes."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, joining, ranges, selection, shaping
from stoker._src.ops.control_flow import functional_loops
from stoker._src.ops.image import cropping, suppression
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions

_NO_THRESHOLD = float("-inf")

# ---- crop_and_resize --------------------------------------------------------------------------------------------


@export(v2="image.crop_and_resize")
def crop_and_resize_v2(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Crops boxes from images and resizes each crop to one size: float32 [boxes, crop height, crop width, channels].

    Args:
        image: [batch, height, width, channels].
        boxes: [boxes, 4] of y1, x1, y2, x2, where 0 is the centre of the first row or column and 1 that of the last. If the first corner is
        beyond
            the second, the crop is flipped.
        box_indices: int32 [boxes], the image of each box.
        crop_size: The height and width of the crops.
        method: "bilinear" or "nearest".
        extrapolation_value: The value of pixels outside of the image.
        name: The op's name.
    """
    return cropping.CROP_AND_RESIZE(
        convert_to_tensor(image), boxes, box_indices, crop_size, method=method, extrapolation_value=extrapolation_value, name=name
    )  # fmt: skip


@export(v1="image.crop_and_resize")
def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Crops boxes from images. See the 2.x form, whose `box_indices` is `box_ind` here."""
    if box_ind is not None and box_indices is not None:
        raise ValueError("Cannot specify both 'box_indices' and 'box_ind'.")
    indices = box_indices if box_ind is None else box_ind
    return crop_and_resize_v2(image, boxes, indices, crop_size, method, extrapolation_value, name)


# ---- suppression ------------------------------------------------------------------------------------------------


@export("image.non_max_suppression")
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _NO_THRESHOLD,
    name: str | None = None,
) -> Tensor:
    """Selects boxes in order of their scores, such that no two overlap much, and returns their indices.

    Args:
        boxes: [boxes, 4], two diagonal corners y1, x1, y2, x2.
        scores: [boxes].
        max_output_size: The largest number of boxes to select.
        iou_threshold: Boxes whose intersection over union with a better box is larger are dropped.
        score_threshold: Boxes with a lower or equal score are dropped.
        name: A prefix of the ops' names.
    """
    with name_scope(name, "non_max_suppression"):
        iou_threshold = convert_to_tensor(iou_threshold, dtypes.float32, name="iou_threshold")
        score_threshold = convert_to_tensor(score_threshold, dtypes.float32, name="score_threshold")
        boxes, scores = convert_to_tensor(boxes), convert_to_tensor(scores)
        return suppression.NON_MAX_SUPPRESSION_V3(boxes, scores, max_output_size, iou_threshold, score_threshold)


@export("image.non_max_suppression_with_scores")
def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _NO_THRESHOLD,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Like `non_max_suppression`, but returns (indices, scores) and can lower the scores of boxes instead of dropping them.

    Args:
        boxes: See `non_max_suppression`.
        scores: See `non_max_suppression`.
        max_output_size: See `non_max_suppression`.
        iou_threshold: See `non_max_suppression`.
        score_threshold: See `non_max_suppression`.
        soft_nms_sigma: If positive, the score of a box is multiplied by `exp(-overlap**2 / (2 * sigma))` for each better box
            (Bodla et al., 2017), and no box is dropped because of its overlap.
        name: A prefix of the ops' names.
    """
    with name_scope(name, "non_max_suppression_with_scores"):
        boxes, scores = convert_to_tensor(boxes), convert_to_tensor(scores)
        limits = {"iou_threshold": iou_threshold, "score_threshold": score_threshold, "soft_nms_sigma": soft_nms_sigma}
        kind = boxes.dtype.base_dtype
        given = [convert_to_tensor(value, kind, name=label) for label, value in limits.items()]
        indices, kept, _ = suppression.NON_MAX_SUPPRESSION_V5(
            boxes, scores, max_output_size, *given, pad_to_max_output_size=False
        )
        return indices, kept


@export("image.non_max_suppression_overlaps")
def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = _NO_THRESHOLD,
    name: str | None = None,
) -> Tensor:
    """Like `non_max_suppression`, but takes a matrix [boxes, boxes] of pairwise overlaps."""
    with name_scope(name, "non_max_suppression_overlaps"):
        threshold = convert_to_tensor(overlap_threshold, dtypes.float32, name="overlap_threshold")
        return suppression.NON_MAX_SUPPRESSION_WITH_OVERLAPS(
            overlaps, scores, max_output_size, threshold, score_threshold
        )


@export("image.non_max_suppression_padded")
def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _NO_THRESHOLD,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, Tensor]:
    """Like `non_max_suppression`, but returns (indices, number of valid ones), for one set of boxes or for a batch.

    Args:
        boxes: [..., boxes, 4].
        scores: [..., boxes].
        max_output_size: See `non_max_suppression`.
        iou_threshold: See `non_max_suppression`.
        score_threshold: See `non_max_suppression`.
        pad_to_max_output_size: Whether to pad with zeros up to `max_output_size`. Required for a batch.
        name: A prefix of the ops' names.
        sorted_input: Whether the boxes are already sorted by score, best first.
        canonicalized_coordinates: Whether the first corner is the upper left. This does not affect the result.
        tile_size: How many boxes TensorFlow processes together. This does not affect the result.

    Raises:
        ValueError: A batch without padding.
    """
    with name_scope(name, "non_max_suppression_padded"):
        boxes, scores = convert_to_tensor(boxes), convert_to_tensor(scores)
        kind = dtypes.float32
        limits = [
            convert_to_tensor(iou_threshold, kind, name="iou_threshold"),
            convert_to_tensor(score_threshold, kind, name="score_threshold"),
        ]
        rank = boxes.static_shape.rank
        if rank is not None and rank > 2 and not pad_to_max_output_size:
            raise ValueError(
                f"'pad_to_max_output_size' (value {pad_to_max_output_size}) must be True for batched input"
            )

        # TensorFlow's own loop drops boxes that overlap by the threshold or more, where the op wants more than the threshold.
        least = limits[0]
        most = arithmetic.NEXT_AFTER(least, casting.cast(0.0, kind))
        overlap = selection.where_v2(comparison.greater(least, 0.0), most, casting.cast(1.0, kind))

        threshold = constant_value(limits[1])
        bounded = threshold is not None and threshold > _NO_THRESHOLD

        def chosen(boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
            order = casting.cast(scores, kind)
            # Boxes without a positive coordinate count as padding.
            allowed = reductions.reduce_any(comparison.greater(boxes, 0), -1)
            by_rank = sorted_input or not bounded
            if by_rank and threshold != _NO_THRESHOLD:
                unbounded = comparison.equal(limits[1], _NO_THRESHOLD)
                enough = comparison.logical_or(comparison.greater(order, limits[1]), unbounded)
                allowed = comparison.logical_and(allowed, enough)
            if sorted_input:
                order = unary_functions.negative(casting.cast(ranges.range(shaping.shape(order)[0]), kind))
            elif by_rank:
                # NaN ranks first.
                nan = comparison.not_equal(order, order)
                order = selection.where_v2(nan, casting.cast(float("inf"), kind), arithmetic.maximum(order, kind.min))
            order = selection.where_v2(allowed, order, casting.cast(_NO_THRESHOLD, kind))
            # The op itself applies a known threshold, which neither NaN nor -inf exceeds, to scores.
            least_score = _NO_THRESHOLD if by_rank else limits[1]
            return tuple(
                suppression.NON_MAX_SUPPRESSION_V4(
                    boxes, order, max_output_size, overlap, least_score, pad_to_max_output_size=pad_to_max_output_size
                )
            )

        if rank is None or rank == 2:
            return chosen(boxes, scores)
        leading = shaping.shape(boxes)[:-2]
        flat_boxes = shaping.reshape(boxes, joining.concat([[-1], shaping.shape(boxes)[-2:]], 0))
        flat_scores = shaping.reshape(scores, joining.concat([[-1], shaping.shape(scores)[-1:]], 0))
        if flat_boxes.static_shape.dims is not None and flat_boxes.static_shape.dims[0] == 1:
            indices, counts = chosen(flat_boxes[0], flat_scores[0])  # a single image needs no loop
        else:
            indices, counts = functional_loops.map_fn(
                lambda pair: chosen(*pair), (flat_boxes, flat_scores), dtype=(dtypes.int32, dtypes.int32)
            )
        size = convert_to_tensor(max_output_size, dtypes.int32)
        result = shaping.reshape(indices, joining.concat([leading, shaping.expand_dims(size, 0)], 0))
        return result, shaping.reshape(counts, leading)


@export("image.combined_non_max_suppression")
def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _NO_THRESHOLD,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> Any:
    """Applies `non_max_suppression` to each class of each image of a batch and returns the best boxes of all classes.

    Args:
        boxes: [batch, boxes, q, 4] of y1, x1, y2, x2. q is 1, or the number of classes if each class has its own boxes.
        scores: [batch, boxes, classes].
        max_output_size_per_class: The largest number of boxes of a class.
        max_total_size: The largest number of boxes of an image.
        iou_threshold: See `non_max_suppression`.
        score_threshold: See `non_max_suppression`.
        pad_per_class: Whether outputs have `min(max_total_size, max_output_size_per_class * classes)` rows instead of `max_total_size`.
        clip_boxes: Whether to clip the selected boxes to [0, 1].
        name: A prefix of the ops' names.

    Returns:
        (boxes [batch, rows, 4], scores [batch, rows], classes [batch, rows] as floats, the number of valid rows [batch]). Unused rows are
        zero.
    """
    with name_scope(name, "combined_non_max_suppression"):
        iou_threshold = convert_to_tensor(iou_threshold, dtypes.float32, name="iou_threshold")
        score_threshold = convert_to_tensor(score_threshold, dtypes.float32, name="score_threshold")
        total = convert_to_tensor(max_total_size, dtypes.int32)
        return suppression.COMBINED_NON_MAX_SUPPRESSION(
            boxes, scores, max_output_size_per_class, total, iou_threshold, score_threshold, pad_per_class=pad_per_class, clip_boxes=clip_boxes
        )  # fmt: skip
