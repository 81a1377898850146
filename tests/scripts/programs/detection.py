"""Helpers of object detection: anchors, overlaps, suppression, crops."""

import numpy as np
import tensorflow as tf


def area(boxlist):
    y_min, x_min, y_max, x_max = tf.split(value=boxlist, num_or_size_splits=4, axis=1)
    return tf.squeeze((y_max - y_min) * (x_max - x_min), [1])


def intersection(a, b):
    y1, x1, y2, x2 = tf.split(a, 4, axis=1)
    yy1, xx1, yy2, xx2 = tf.split(b, 4, axis=1)
    h = tf.maximum(0.0, tf.minimum(y2, tf.transpose(yy2)) - tf.maximum(y1, tf.transpose(yy1)))
    w = tf.maximum(0.0, tf.minimum(x2, tf.transpose(xx2)) - tf.maximum(x1, tf.transpose(xx1)))
    return h * w


def iou(a, b, scope=None):
    with tf.name_scope(scope, "IOU"):
        i = intersection(a, b)
        u = tf.expand_dims(area(a), 1) + tf.expand_dims(area(b), 0) - i
        return tf.where(tf.equal(i, 0.0), tf.zeros_like(i), tf.truediv(i, u))


def anchors(h, w, scales, ratios, stride):
    sy = tf.to_float(tf.range(h)) * stride
    sx = tf.to_float(tf.range(w)) * stride
    s, r = tf.meshgrid(scales, ratios)
    s, r = tf.reshape(s, [-1]), tf.reshape(r, [-1])
    hh, ww = s / tf.sqrt(r), s * tf.sqrt(r)
    sx, sy = tf.meshgrid(sx, sy)
    cw, cx = tf.meshgrid(ww, tf.reshape(sx, [-1]))
    ch, cy = tf.meshgrid(hh, tf.reshape(sy, [-1]))
    c = tf.reshape(tf.stack([cy, cx], axis=2), [-1, 2])
    sz = tf.reshape(tf.stack([ch, cw], axis=2), [-1, 2])
    return tf.concat([c - 0.5 * sz, c + 0.5 * sz], 1)


rng = np.random.RandomState(0)
image = tf.placeholder(tf.uint8, [None, None, 3], "image")
gt = tf.placeholder(tf.float32, [None, 4])
A = anchors(4, 4, [8.0, 16.0], [0.5, 1.0, 2.0], 8)
overlaps = iou(A, gt)
best = tf.argmax(overlaps, 1)
positive = tf.greater(tf.reduce_max(overlaps, 1), 0.3)
pos_idx = tf.reshape(tf.where(positive), [-1])
pos_gt = tf.gather(gt, tf.boolean_mask(best, positive))
scores = tf.reduce_max(overlaps, 1) + tf.to_float(tf.range(tf.shape(A)[0])) * 1e-4
keep = tf.image.non_max_suppression(A, scores, max_output_size=6, iou_threshold=0.4)
keep2, valid = tf.image.non_max_suppression_padded(A, scores, 8, 0.5, pad_to_max_output_size=True)
padded = tf.pad(tf.gather(A, keep), [[0, 8 - tf.shape(keep)[0]], [0, 0]])
norm = A / 32.0
img = tf.image.convert_image_dtype(image, tf.float32)
crops = tf.image.crop_and_resize(
    tf.expand_dims(img, 0), tf.gather(norm, keep), tf.zeros([tf.shape(keep)[0]], tf.int32), [7, 7]
)
pooled = tf.nn.max_pool(crops, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
drawn = tf.image.draw_bounding_boxes(tf.expand_dims(img, 0), tf.expand_dims(gt / 32.0, 0))
per = tf.map_fn(
    lambda x: tf.image.non_max_suppression(x[0], x[1], 3),
    (tf.stack([A, A[::-1]]), tf.stack([scores, scores[::-1]])),
    dtype=tf.int32,
)
flip = tf.cond(tf.reduce_mean(img) > 0.1, lambda: tf.image.flip_left_right(img), lambda: img)
resized = tf.image.resize_images(img, tf.stack([20, 24]), method=tf.image.ResizeMethod.BILINEAR, align_corners=True)
std = tf.image.per_image_standardization(resized)
bbox_begin, bbox_size, box = (
    tf.image.sample_distorted_bounding_box(
        tf.shape(image), tf.expand_dims(gt / 32.0, 0), min_object_covered=0.1, seed=3, seed2=4
    )
    if False
    else (None,) * 3
)
match, match_score = tf.py_func(
    lambda o: (o.argmax(0).astype(np.int64), o.max(0).astype(np.float32)), [overlaps], [tf.int64, tf.float32]
)
match.set_shape([None])
lab = tf.scatter_nd(tf.expand_dims(pos_idx, 1), tf.ones_like(pos_idx), tf.cast(tf.shape(A)[:1], tf.int64))
topv, topi = tf.nn.top_k(scores, k=tf.minimum(5, tf.shape(scores)[0]))
smooth = tf.losses.huber_loss(pos_gt, tf.gather(A, pos_idx), reduction=tf.losses.Reduction.SUM)
with tf.Session() as sess:
    feed = {image: rng.randint(0, 256, (32, 32, 3)), gt: [[2.0, 2.0, 20.0, 20.0], [10.0, 12.0, 30.0, 30.0]]}
    for name, t in [
        ("A", A),
        ("pos", pos_idx),
        ("pos_gt", pos_gt),
        ("keep", keep),
        ("keep2", keep2),
        ("valid", valid),
        ("padded", padded),
        ("crops", crops),
        ("pooled", pooled),
        ("drawn", drawn),
        ("per", per),
        ("flip", flip),
        ("match", match),
        ("ms", match_score),
        ("lab", lab),
        ("topi", topi),
        ("topv", topv),
        ("smooth", smooth),
    ]:
        v = sess.run(t, feed)
        print(
            name,
            t.shape,
            v.shape,
            "%.4f" % v.astype(np.float64).sum(),
            v.ravel()[:5].tolist() if v.dtype.kind == "i" else "",
        )
