"""Rotated, translated, transformed and warped images of tf.contrib."""

import numpy as np
import tensorflow as tf

ci = tf.contrib.image
r = np.random.RandomState(0)
x = r.rand(2, 5, 6, 3).astype("f")
outs = {
    "rot": ci.rotate(x, [0.3, -1.2]),
    "rotb": ci.rotate(x, 0.7, interpolation="BILINEAR"),
    "rot3": ci.rotate(x[0], 0.5),
    "rot2": ci.rotate(x[0, :, :, 0], 0.5, "BILINEAR"),
    "tr": ci.translate(x, [1.5, -2.0]),
    "trb": ci.translate(x, [[1.5, -2.0], [0.3, 0.6]], interpolation="BILINEAR"),
    "tf": ci.transform(x, [1.1, 0.2, -0.5, 0.1, 0.9, 0.3, 0.01, 0.02], "BILINEAR"),
    "tfo": ci.transform((x * 255).astype(np.uint8), [1.1, 0.2, -0.5, 0.1, 0.9, 0.3, 0.0, 0.0], output_shape=[4, 9]),
    "ang": ci.angles_to_projective_transforms([0.1, 0.2], 5.0, 6.0),
    "comp": ci.compose_transforms(
        ci.angles_to_projective_transforms(0.1, 5.0, 6.0), ci.translations_to_projective_transforms([1.0, 2.0])
    ),
    "mat": ci.flat_transforms_to_matrices([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]]),
    "flat": ci.matrices_to_flat_transforms([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 2.0]]]),
    "warp": ci.dense_image_warp(x, r.randn(2, 5, 6, 2).astype("f") * 2),
}
xv = tf.constant(x)
outs["grad"] = tf.gradients(tf.reduce_sum(tf.square(ci.rotate(xv, 0.4, "BILINEAR"))), xv)[0]
outs["gradn"] = tf.gradients(tf.reduce_sum(tf.square(ci.rotate(xv, 0.4))), xv)[0]
with tf.Session() as s:
    for k in sorted(outs):
        v = s.run(outs[k])
        print(
            k,
            outs[k].shape,
            v.dtype,
            v.shape,
            "%.4f" % v.astype("d").sum(),
            "%.4f" % (v.astype("d") * np.arange(v.size).reshape(v.shape)).sum(),
        )
