"""Residual and VGG networks of slim."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import slim
from tensorflow.contrib.slim.nets import resnet_v1, resnet_v2, vgg
from tensorflow.contrib.slim.python.slim.nets import resnet_utils

rng = np.random.RandomState(0)
imgs = rng.rand(1, 33, 33, 3).astype("f")
with tf.Graph().as_default():
    with slim.arg_scope(resnet_v1.resnet_arg_scope(weight_decay=0.0005)):
        net, ends = resnet_v1.resnet_v1_50(
            tf.constant(imgs), None, is_training=False, global_pool=False, output_stride=16
        )
    print(
        net.shape, len(tf.global_variables()), [v.name for v in tf.global_variables()][:12], sorted(ends)[:4], len(ends)
    )
with tf.Graph().as_default():
    with slim.arg_scope(resnet_utils.resnet_arg_scope()):
        net, ends = resnet_v2.resnet_v2_101(tf.constant(imgs), 7, is_training=True)
    print(
        net.shape,
        net.name,
        len(tf.global_variables()),
        [v.name for v in tf.global_variables()][-6:],
        len(ends),
        "predictions" in ends,
    )
with tf.Graph().as_default():
    with slim.arg_scope(vgg.vgg_arg_scope()):
        net, ends = vgg.vgg_16(
            tf.constant(rng.rand(1, 224, 224, 3).astype("f")), num_classes=5, is_training=False, spatial_squeeze=False
        )
    print(net.shape, [v.name for v in tf.global_variables()], sorted(ends))
