"""Ops that select among overlapping boxes: hard and soft non-maximum suppression."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import SCALAR, Dim, Shape, merge_dims
from stoker._src.graph.definition import define, one_of
from stoker._src.ops.support.values import from_numpy, to_numpy

_native: Any = extension("stoker._src.ops.native.largest")
_KINDS = one_of(dtypes.float16, dtypes.float32, default=dtypes.float32)
_BOXES = "boxes: matrix* T, scores: vector* T, max_output_size: scalar* host int32"
Overlaps = Callable[[int, np.ndarray], np.ndarray]

NON_MAX_SUPPRESSION = define(
    "NonMaxSuppression(boxes: matrix* float32, scores: vector* float32, max_output_size: scalar* host int32) -> (selected_indices: int32)",
    iou_threshold=0.5,
).not_differentiable()
NON_MAX_SUPPRESSION_V2 = define(
    f"NonMaxSuppressionV2({_BOXES}, iou_threshold: scalar* host T_threshold) -> (selected_indices: int32)",
    T=_KINDS,
    T_threshold=_KINDS,
).not_differentiable()
NON_MAX_SUPPRESSION_V3 = define(
    f"NonMaxSuppressionV3({_BOXES}, iou_threshold: scalar* host T_threshold, score_threshold: scalar* host T_threshold) "
    "-> (selected_indices: int32)",
    T=_KINDS,
    T_threshold=_KINDS,
)
NON_MAX_SUPPRESSION_V4 = define(
    f"NonMaxSuppressionV4({_BOXES}, iou_threshold: scalar* host T_threshold, score_threshold: scalar* host T_threshold) "
    "-> (selected_indices: int32, valid_outputs: int32)",
    T=_KINDS,
    T_threshold=_KINDS,
    pad_to_max_output_size=False,
)
NON_MAX_SUPPRESSION_V5 = define(
    f"NonMaxSuppressionV5({_BOXES}, iou_threshold: scalar* host T, score_threshold: scalar* host T, soft_nms_sigma: scalar* host T) "
    "-> (selected_indices: int32, selected_scores: T, valid_outputs: int32)",
    T=_KINDS,
    pad_to_max_output_size=False,
)
NON_MAX_SUPPRESSION_WITH_OVERLAPS = define(
    "NonMaxSuppressionWithOverlaps(overlaps: matrix* float32, scores: vector* float32, max_output_size: scalar* host int32, "
    "overlap_threshold: scalar* host float32, score_threshold: scalar* host float32) -> (selected_indices: int32)"
).not_differentiable()
COMBINED_NON_MAX_SUPPRESSION = define(
    "CombinedNonMaxSuppression(boxes: rank=4/any float32, scores: rank=3/any float32, max_output_size_per_class: host int32, "
    "max_total_size: host int32, iou_threshold: scalar* host float32, score_threshold: scalar* host float32) "
    "-> (nmsed_boxes: float32, nmsed_scores: float32, nmsed_classes: float32, valid_detections: int32)",
    pad_per_class=False,
    clip_boxes=True,
)

for _definition in (
    NON_MAX_SUPPRESSION,
    NON_MAX_SUPPRESSION_V2,
    NON_MAX_SUPPRESSION_V3,
    NON_MAX_SUPPRESSION_V4,
    NON_MAX_SUPPRESSION_V5,
    NON_MAX_SUPPRESSION_WITH_OVERLAPS,
    COMBINED_NON_MAX_SUPPRESSION,
):
    _definition.planning.on_host = True

# ---- choosing ---------------------------------------------------------------------------------------------------


class _Boxes:
    """The intersection over union of a box and others. It is 0 for boxes without area."""

    def __init__(self, boxes: np.ndarray) -> None:
        self._top, self._bottom = np.minimum(boxes[:, 0], boxes[:, 2]), np.maximum(boxes[:, 0], boxes[:, 2])
        self._left, self._right = np.minimum(boxes[:, 1], boxes[:, 3]), np.maximum(boxes[:, 1], boxes[:, 3])
        self._area = (self._bottom - self._top) * (self._right - self._left)

    def __call__(self, box: int, others: np.ndarray) -> np.ndarray:
        tall = np.minimum(self._bottom[box], self._bottom[others]) - np.maximum(self._top[box], self._top[others])
        wide = np.minimum(self._right[box], self._right[others]) - np.maximum(self._left[box], self._left[others])
        shared, area = np.maximum(tall, 0) * np.maximum(wide, 0), self._area
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = shared / (area[box] + area[others] - shared)
        return np.where((area[box] > 0) & (area[others] > 0), ratio, np.float32(0))

    def chosen(self, order: np.ndarray, most: int, threshold: float) -> list[int] | None:
        """Chooses among boxes in `order` in one pass; None if NumPy must do it."""
        rows = np.stack([self._top, self._left, self._bottom, self._right, self._area], 1)
        if _native is None or rows.dtype != np.float32 or not np.isfinite(rows).all():
            return None
        most = max(0, min(most, len(order)))
        found = np.empty(most, np.int64)
        return found[: _native.suppress(found, rows, order, most, threshold)].tolist()


def _by_rank(scores: np.ndarray) -> np.ndarray:
    """The order of descending scores. Among equals, the first comes first."""
    return np.argsort(-scores, kind="stable")


def _by_heap(scores: np.ndarray) -> np.ndarray:
    """The order of descending scores. Equals are in the order of a binary heap that compares only scores, as in CombinedNonMaxSuppression."""
    if len(np.unique(scores)) == len(scores):
        return _by_rank(scores)
    values = scores.tolist()
    heap: list[int] = []

    def rise(item: int, at: int) -> None:
        while at and values[heap[(at - 1) // 2]] < values[item]:
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
        heap[at] = item

    for item in range(len(values)):
        heap.append(item)
        rise(item, item)
    order = []
    while heap:
        order.append(heap[0])
        last = heap.pop()
        if heap:
            # The hole at the top sinks to the bottom along the larger children. Then the last item rises from there.
            at, size = 0, len(heap)
            while 2 * at + 1 < size:
                child = 2 * at + 2
                if child == size or values[heap[child]] < values[heap[child - 1]]:
                    child -= 1
                heap[at], at = heap[child], child
            rise(last, at)
    return np.array(order, np.int64)


def _hard(
    scores: np.ndarray,
    overlaps: Overlaps,
    most: int,
    threshold: float,
    least_score: float,
    ranked: Callable[[np.ndarray], np.ndarray] = _by_rank,
) -> list[int]:
    """Selects the best box, then the best of those that do not overlap it by more than the threshold, and so on."""
    left = np.flatnonzero(scores > least_score)
    left = left[ranked(scores[left])]
    at_once = overlaps.chosen(left, most, threshold) if isinstance(overlaps, _Boxes) else None
    if at_once is not None:
        return at_once
    chosen: list[int] = []
    while len(left) and len(chosen) < most:
        best, left = int(left[0]), left[1:]
        chosen.append(best)
        if len(left):
            left = left[~(overlaps(best, left) > np.float32(threshold))]
    return chosen


def _soft(
    scores: np.ndarray, overlaps: Overlaps, most: int, least_score: float, sigma: float
) -> tuple[list[int], list[float]]:
    """Lowers the score of boxes that overlap better ones. Boxes are selected by their remaining score."""
    waiting = [(-float(scores[box]), int(box), 0) for box in np.flatnonzero(scores > least_score)]
    heapq.heapify(waiting)
    chosen: list[int] = []
    kept: list[float] = []
    scale = np.float32(-0.5) / np.float32(sigma)
    while waiting and len(chosen) < most:
        negative, box, seen = heapq.heappop(waiting)
        score = found = np.float32(-negative)
        if seen < len(chosen):
            shared = overlaps(box, np.array(chosen[: seen - 1 if seen else None : -1])).astype(np.float32)
            for weight in np.exp(scale * shared * shared):
                score = score * weight
                if score <= least_score:
                    break
        if score == found:
            chosen.append(box)
            kept.append(float(score))
        elif score > least_score:
            heapq.heappush(waiting, (-float(score), box, len(chosen)))
    return chosen, kept


# ---- inputs and outputs -----------------------------------------------------------------------------------------


def _number(name: str, value: Any) -> Any:
    if isinstance(value, list):
        raise InvalidArgumentError(
            None, None, f"{name} must be 0-D, got shape {list(np.shape(value))} (Shape must be rank 0 but is rank {np.ndim(value)})"
        )  # fmt: skip
    return value


def _arrays(boxes: Any, scores: Any) -> tuple[np.ndarray, np.ndarray]:
    boxes, scores = (to_numpy(value).astype(np.float32, copy=False) for value in (boxes, scores))
    if boxes.ndim != 2:
        raise InvalidArgumentError(
            None, None, f"boxes must be 2-D{list(boxes.shape)} (Shape must be rank 2 but is rank {boxes.ndim})"
        )
    if boxes.shape[1] != 4:
        raise InvalidArgumentError(
            None, None, f"boxes must have 4 columns (Dimension must be 4 but is {boxes.shape[1]})"
        )
    _check_scores(scores, len(boxes))
    return boxes, scores


def _check_scores(scores: np.ndarray, count: int) -> None:
    if scores.ndim != 1:
        raise InvalidArgumentError(
            None, None, f"scores must be 1-D{list(scores.shape)} (Shape must be rank 1 but is rank {scores.ndim})"
        )
    if len(scores) != count:
        raise InvalidArgumentError(
            None,
            None,
            f"scores has incompatible shape (Dimensions must be equal, but are {count} and {len(scores)})",
        )


def _limits(max_output_size: Any, iou_threshold: Any, score_threshold: Any = -math.inf) -> tuple[int, float, float]:
    most = _number("max_output_size", max_output_size)
    threshold, least = _number("iou_threshold", iou_threshold), _number("score_threshold", score_threshold)
    if most < 0:
        raise InvalidArgumentError(None, None, f"output size must be non-negative, got {most}")
    if not 0 <= threshold <= 1:
        raise InvalidArgumentError(None, None, f"iou_threshold must be in [0, 1], got {threshold}")
    return most, threshold, least


def _indices(chosen: list[int], padded_to: int | None = None) -> torch.Tensor:
    return from_numpy(np.array(chosen + [0] * max(0, (padded_to or 0) - len(chosen)), np.int32))


@NON_MAX_SUPPRESSION_V3.kernel
def non_max_suppression_v3_kernel(
    boxes: torch.Tensor, scores: torch.Tensor, max_output_size: Any, iou_threshold: Any, score_threshold: Any
) -> torch.Tensor:
    limits = _limits(max_output_size, iou_threshold, score_threshold)
    places, values = _arrays(boxes, scores)
    return _indices(_hard(values, _Boxes(places), *limits))


@NON_MAX_SUPPRESSION_V2.kernel
def non_max_suppression_v2_kernel(
    boxes: torch.Tensor, scores: torch.Tensor, max_output_size: Any, iou_threshold: Any
) -> torch.Tensor:
    return non_max_suppression_v3_kernel(boxes, scores, max_output_size, iou_threshold, -math.inf)


@NON_MAX_SUPPRESSION.kernel
def non_max_suppression_kernel(
    boxes: torch.Tensor, scores: torch.Tensor, max_output_size: Any, *, iou_threshold: float
) -> torch.Tensor:
    return non_max_suppression_v3_kernel(boxes, scores, max_output_size, iou_threshold, -math.inf)


@NON_MAX_SUPPRESSION_V4.kernel
def non_max_suppression_v4_kernel(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    max_output_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    *,
    pad_to_max_output_size: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    limits = _limits(max_output_size, iou_threshold, score_threshold)
    places, values = _arrays(boxes, scores)
    chosen = _hard(values, _Boxes(places), *limits)
    count = torch.tensor(len(chosen), dtype=torch.int32)
    return _indices(chosen, limits[0] if pad_to_max_output_size else None), count


@NON_MAX_SUPPRESSION_V5.kernel
def non_max_suppression_v5_kernel(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    max_output_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    soft_nms_sigma: Any,
    *,
    pad_to_max_output_size: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    most, threshold, least = _limits(max_output_size, iou_threshold, score_threshold)
    if _number("soft_nms_sigma", soft_nms_sigma) < 0:
        raise InvalidArgumentError(None, None, f"soft_nms_sigma_val must be >= 0, got {soft_nms_sigma}")
    places, values = _arrays(boxes, scores)
    overlaps = _Boxes(places)
    if soft_nms_sigma > 0:
        chosen, kept = _soft(values, overlaps, most, least, soft_nms_sigma)
    else:
        chosen = _hard(values, overlaps, most, threshold, least)
        kept = [float(values[box]) for box in chosen]
    padding = most if pad_to_max_output_size else None
    kept += [0.0] * max(0, (padding or 0) - len(kept))
    count = torch.tensor(len(chosen), dtype=torch.int32)
    return _indices(chosen, padding), torch.tensor(kept, dtype=scores.dtype, device=scores.device), count


@NON_MAX_SUPPRESSION_WITH_OVERLAPS.kernel
def non_max_suppression_with_overlaps_kernel(
    overlaps: torch.Tensor, scores: torch.Tensor, max_output_size: Any, overlap_threshold: Any, score_threshold: Any
) -> torch.Tensor:
    most = _number("max_output_size", max_output_size)
    table, values = to_numpy(overlaps), to_numpy(scores)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise InvalidArgumentError(None, None, f"overlaps must be square{list(table.shape)}")
    _check_scores(values, len(table))
    threshold, least = _number("overlap_threshold", overlap_threshold), _number("score_threshold", score_threshold)
    return _indices(_hard(values, lambda box, others: table[others, box], max(0, most), threshold, least))


def _chosen_shape(boxes: Shape, scores: Shape, *limits: Shape) -> Dim:
    count = boxes.of_rank(2).merge(Shape((None, 4)))[0]
    merge_dims(count, scores.of_rank(1)[0])
    return None


def _padded_size(most: Any, pads: bool) -> Dim:
    return int(most) if pads and most is not None and most.ndim == 0 and most >= 0 else None


NON_MAX_SUPPRESSION.shape(lambda *shapes: Shape((_chosen_shape(*shapes),)))
NON_MAX_SUPPRESSION_V2.shape(lambda *shapes: Shape((_chosen_shape(*shapes),)))
NON_MAX_SUPPRESSION_V3.shape(lambda *shapes: Shape((_chosen_shape(*shapes),)))


@NON_MAX_SUPPRESSION_V4.shape(values=["max_output_size"])
def non_max_suppression_v4_shape(
    boxes: Shape,
    scores: Shape,
    most: Any,
    iou_threshold: Shape,
    score_threshold: Shape,
    *,
    pad_to_max_output_size: bool,
) -> tuple[Shape, Shape]:
    _chosen_shape(boxes, scores)
    return Shape((_padded_size(most, pad_to_max_output_size),)), SCALAR


@NON_MAX_SUPPRESSION_V5.shape(values=["max_output_size"])
def non_max_suppression_v5_shape(
    boxes: Shape,
    scores: Shape,
    most: Any,
    iou_threshold: Shape,
    score_threshold: Shape,
    soft_nms_sigma: Shape,
    *,
    pad_to_max_output_size: bool,
) -> tuple[Shape, Shape, Shape]:
    _chosen_shape(boxes, scores)
    size = Shape((_padded_size(most, pad_to_max_output_size),))
    return size, size, SCALAR


@NON_MAX_SUPPRESSION_WITH_OVERLAPS.shape
def non_max_suppression_with_overlaps_shape(overlaps: Shape, scores: Shape, *limits: Shape) -> Shape:
    rows, columns = overlaps.of_rank(2)
    merge_dims(merge_dims(rows, columns), scores.of_rank(1)[0])
    return Shape((None,))


# ---- CombinedNonMaxSuppression ----------------------------------------------------------------------------------


def _check_combined(boxes: np.ndarray, scores: np.ndarray) -> None:
    if boxes.ndim != 4 or boxes.shape[3] != 4:
        raise InvalidArgumentError(None, None, f"boxes must be 4-D with 4 columns, got {list(boxes.shape)}")
    if scores.ndim != 3:
        raise InvalidArgumentError(None, None, f"scores must be 3-D, got {list(scores.shape)}")
    if boxes.shape[:2] != scores.shape[:2]:
        raise InvalidArgumentError(
            None, None, f"boxes and scores must agree in batch and number: {list(boxes.shape)}, {list(scores.shape)}"
        )
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise InvalidArgumentError(
            None, None, f"third dimension of boxes must be either 1 or num classes, got {boxes.shape[2]} for {scores.shape[2]} classes"
        )  # fmt: skip


@COMBINED_NON_MAX_SUPPRESSION.kernel
def combined_non_max_suppression_kernel(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    *,
    pad_per_class: bool,
    clip_boxes: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    per_class, total = (
        _number("max_size_per_class", max_output_size_per_class),
        _number("max_total_size", max_total_size),
    )
    if per_class <= 0:
        raise InvalidArgumentError(None, None, f"max_size_per_class must be positive, got {per_class}")
    if total <= 0:
        raise InvalidArgumentError(None, None, f"max_total_size must be > 0, got {total}")
    _, threshold, least = _limits(total, iou_threshold, score_threshold)
    places, values = to_numpy(boxes), to_numpy(scores)
    _check_combined(places, values)
    batch, _, classes = values.shape
    size = min(total, per_class * classes) if pad_per_class else total
    out_boxes = np.zeros((batch, size, 4), np.float32)
    out_scores, out_classes = np.zeros((batch, size), np.float32), np.zeros((batch, size), np.float32)
    counts = np.zeros(batch, np.int32)
    for image in range(batch):
        found_boxes, found_scores, found_classes = [], [], []
        for each in range(classes):
            own = np.ascontiguousarray(places[image, :, each if places.shape[2] > 1 else 0])
            overlaps = _Boxes(own)
            chosen = _hard(values[image, :, each], overlaps, per_class, threshold, least, _by_heap)
            found_boxes.append(own[chosen])
            found_scores.append(values[image, chosen, each])
            found_classes.append(np.full(len(chosen), each, np.float32))
        together = np.concatenate(found_scores) if classes else np.zeros(0, np.float32)
        best = np.argsort(-together, kind="stable")[:size]
        counts[image] = len(best)
        if len(best):
            taken = np.concatenate(found_boxes)[best]
            out_boxes[image, : len(best)] = taken.clip(0, 1) if clip_boxes else taken
            out_scores[image, : len(best)] = together[best]
            out_classes[image, : len(best)] = np.concatenate(found_classes)[best]
    return tuple(from_numpy(each).to(boxes.device) for each in (out_boxes, out_scores, out_classes)) + (
        from_numpy(counts),
    )


@COMBINED_NON_MAX_SUPPRESSION.shape(values=["max_output_size_per_class", "max_total_size"])
def combined_non_max_suppression_shape(
    boxes: Shape,
    scores: Shape,
    per_class: Any,
    total: Any,
    iou_threshold: Shape,
    score_threshold: Shape,
    *,
    pad_per_class: bool,
) -> tuple[Shape, Shape, Shape, Shape]:
    batch, count, groups, _ = boxes.of_rank(4).merge(Shape((None, None, None, 4)))
    batch = merge_dims(batch, scores.of_rank(3)[0])
    merge_dims(count, scores.of_rank(3)[1])
    classes = scores.of_rank(3)[2]
    if groups is not None and classes is not None and groups not in (1, classes):
        raise InvalidArgumentError(
            None, None, f"third dimension of boxes must be either 1 or equal to the third dimension of scores: {groups}, {classes}"
        )  # fmt: skip
    size = None if total is None or total.ndim else int(total)
    if size is not None and size <= 0:
        raise InvalidArgumentError(None, None, f"max_total_size should be > 0, got {size}")
    if pad_per_class and size is not None:
        each = None if per_class is None or per_class.ndim else int(per_class)
        if each is not None and each <= 0:
            raise InvalidArgumentError(None, None, f"max_output_size_per_class must be > 0, got {each}")
        size = None if each is None or classes is None else min(size, each * classes)
    return Shape((batch, size, 4)), Shape((batch, size)), Shape((batch, size)), Shape((batch,))
