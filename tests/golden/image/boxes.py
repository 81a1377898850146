"""Cases of crops and boxes: crop_and_resize, suppression, drawing."""

import numpy as np

R = np.random.RandomState(11)
BOXES = np.float32([[0, 0, 1, 1], [.1, .2, .8, 1.3], [.9, .8, .1, .1], [-.5, -.2, .4, .5], [.3, .3, .3, .3], [1.1, 1.2, 1.5, 1.9]])  # fmt: skip
INDICES = np.int32([0, 1, 0, 1, 0, 1])
DRAWN = np.float32([BOXES[:5], BOXES[1:]])
IMAGE = R.randint(0, 200, (2, 5, 7, 3))


def detections(count, seed):
    r = np.random.RandomState(seed)
    corners = r.rand(count, 4).astype("float32") * 0.6
    boxes = np.concatenate([corners[:, :2], corners[:, :2] + corners[:, 2:]], 1)
    boxes[::3] = boxes[::3][:, [2, 1, 0, 3]]
    scores = r.rand(count).astype("float32")
    scores[1::4] = scores[0::4][: len(scores[1::4])]  # ties
    return boxes, scores


def cases(case):
    for size in ((1, 1), (3, 2), (8, 9)):
        for method in ("bilinear", "nearest"):
            for dtype in ("float32", "uint8", "int64", "float16", "float64", "uint16"):
                x = IMAGE.astype(dtype)
                attrs = {
                    "boxes": BOXES,
                    "box_ind": INDICES,
                    "crop_size": size,
                    "method": method,
                    "extrapolation_value": -3.5,
                }
                case(
                    f"CropAndResize {size} {method} {dtype}",
                    lambda tf, x=x, attrs=attrs: tf.raw_ops.CropAndResize(image=x, **attrs),
                )
            grads = np.random.RandomState(5).rand(6, *size, 3).astype("float32")
            case(
                f"CropAndResizeGradImage {size} {method}",
                lambda tf, grads=grads, method=method: tf.raw_ops.CropAndResizeGradImage(
                    grads=grads, boxes=BOXES, box_ind=INDICES, image_size=IMAGE.shape, T=tf.float32, method=method
                ),
            )
        case(
            f"CropAndResizeGradBoxes {size}",
            lambda tf, grads=grads: tf.raw_ops.CropAndResizeGradBoxes(
                grads=grads, image=IMAGE.astype("float32"), boxes=BOXES, box_ind=INDICES
            ),
        )
    case(
        "CropAndResize none",
        lambda tf: tf.raw_ops.CropAndResize(
            image=IMAGE.astype("float32"), boxes=BOXES[:0], box_ind=INDICES[:0], crop_size=(2, 2)
        ),
    )
    for count, seed in ((0, 1), (1, 2), (7, 3), (40, 4)):
        boxes, scores = detections(count, seed)
        for most, iou, least in (
            (3, 0.5, -np.inf),
            (100, 0.3, 0.2),
            (100, 0.0, 0.5),
            (20, 1.0, -np.inf),
            (0, 0.5, 0.0),
        ):
            label = f"{count} {most} {iou} {least}"
            attrs = {"boxes": boxes, "scores": scores, "max_output_size": most, "iou_threshold": iou}
            case(f"NonMaxSuppressionV2 {label}", lambda tf, attrs=attrs: tf.raw_ops.NonMaxSuppressionV2(**attrs))
            attrs = {**attrs, "score_threshold": least}
            case(f"NonMaxSuppressionV3 {label}", lambda tf, attrs=attrs: tf.raw_ops.NonMaxSuppressionV3(**attrs))
            for pad in (False, True):
                case(
                    f"NonMaxSuppressionV4 {label} {pad}",
                    lambda tf, attrs=attrs, pad=pad: tf.raw_ops.NonMaxSuppressionV4(
                        pad_to_max_output_size=pad, **attrs
                    ),
                )
                for sigma in (0.0, 0.1, 0.5):
                    case(
                        f"NonMaxSuppressionV5 {label} {pad} {sigma}",
                        lambda tf, attrs=attrs, pad=pad, sigma=sigma: tf.raw_ops.NonMaxSuppressionV5(
                            pad_to_max_output_size=pad, soft_nms_sigma=sigma, **attrs
                        ),
                    )
        table = np.random.RandomState(seed).rand(count, count).astype("float32")
        case(
            f"NonMaxSuppressionWithOverlaps {count}",
            lambda tf, table=table, scores=scores: tf.raw_ops.NonMaxSuppressionWithOverlaps(
                overlaps=table, scores=scores, max_output_size=9, overlap_threshold=0.7, score_threshold=0.1
            ),
        )
        for groups in (1, 3):
            many = (
                np.stack(
                    [np.stack([detections(count, seed + i + 7 * j)[0] for i in range(groups)], 1) for j in range(2)]
                )
                * 1.3
            )
            values = np.stack(
                [np.stack([detections(count, seed + i + 9 * j)[1] for i in range(3)], 1) for j in range(2)]
            )
            for pad, clip, total in ((False, True, 8), (True, False, 40), (True, True, 5), (False, False, 40)):
                attrs = {
                    "boxes": many,
                    "scores": values,
                    "max_output_size_per_class": 4,
                    "max_total_size": total,
                    "iou_threshold": 0.4,
                    "score_threshold": 0.3,
                    "pad_per_class": pad,
                    "clip_boxes": clip,
                }
                case(
                    f"CombinedNonMaxSuppression {count} {groups} {pad} {clip}",
                    lambda tf, attrs=attrs: tf.raw_ops.CombinedNonMaxSuppression(**attrs),
                )
    for channels in (1, 3, 4):
        x = (IMAGE[..., :1] / np.float32(300)).repeat(channels, -1).astype("float32")
        big = np.tile(x, (1, 4, 3, 1))
        for name, image in (("small", x), ("big", big)):
            for dtype in ("float32", "float16"):
                case(
                    f"DrawBoundingBoxes {channels} {name} {dtype}",
                    lambda tf, image=image, dtype=dtype: tf.raw_ops.DrawBoundingBoxes(
                        images=tf.constant(image.astype(dtype)), boxes=DRAWN
                    ),
                )
            for colours in (
                np.float32([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]]),
                np.float32([[0.1, 0.2, 0.3]]),
                np.zeros((0, 4), "float32"),
            ):
                case(
                    f"DrawBoundingBoxesV2 {channels} {name} {colours.shape}",
                    lambda tf, image=image, colours=colours: tf.raw_ops.DrawBoundingBoxesV2(
                        images=image, boxes=DRAWN, colors=colours
                    ),
                )
        case(
            f"DrawBoundingBoxes {channels} none",
            lambda tf, x=x: tf.raw_ops.DrawBoundingBoxes(images=x, boxes=DRAWN[:, :0]),
        )
    many = np.tile(np.float32([[[0, 0, 1, 1]]]), (1, 14, 1)) * np.linspace(0.1, 1, 14, dtype="float32")[None, :, None]
    case(
        "DrawBoundingBoxes many",
        lambda tf: tf.raw_ops.DrawBoundingBoxes(images=np.zeros((1, 30, 30, 4), "float32"), boxes=many),
    )
