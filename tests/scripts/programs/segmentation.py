"""A network with skip connections that labels pixels."""

import numpy as np
import tensorflow as tf

slim = tf.contrib.slim


def unet(x, training):
    skips = []
    net = x
    for i, ch in enumerate((4, 8)):
        net = tf.layers.conv2d(
            net,
            ch,
            3,
            padding="same",
            activation=tf.nn.relu,
            name="down%d" % i,
            kernel_initializer=tf.variance_scaling_initializer(seed=i),
        )
        skips.append(net)
        net = tf.layers.max_pooling2d(net, 2, 2, padding="same")
    net = tf.layers.conv2d(
        net,
        8,
        3,
        dilation_rate=2,
        padding="same",
        name="dil",
        kernel_initializer=tf.variance_scaling_initializer(seed=7),
    )
    net = tf.nn.atrous_conv2d(
        net,
        tf.get_variable("atr", [3, 3, 8, 8], initializer=tf.glorot_normal_initializer(seed=3)),
        rate=2,
        padding="SAME",
    )
    for i, ch in enumerate((8, 4)):
        net = tf.layers.conv2d_transpose(
            net, ch, 2, strides=2, name="up%d" % i, kernel_initializer=tf.variance_scaling_initializer(seed=20 + i)
        )
        net = tf.concat([net, skips.pop()], axis=3)
        net = tf.layers.batch_normalization(net, training=training, name="bn%d" % i)
    return tf.layers.conv2d(net, 3, 1, name="logits", kernel_initializer=tf.variance_scaling_initializer(seed=9))


rng = np.random.RandomState(0)
x = tf.placeholder(tf.float32, [None, 16, 16, 3])
y = tf.placeholder(tf.int32, [None, 16, 16, 1])
logits = unet(x, True)
up = tf.image.resize_bilinear(logits, tf.shape(y)[1:3], align_corners=True)
labels = tf.squeeze(y, 3)
flat_l = tf.reshape(labels, [-1])
mask = tf.where(tf.not_equal(flat_l, 255))
pred = tf.gather_nd(tf.reshape(up, [-1, 3]), mask)
gt = tf.gather_nd(flat_l, mask)
ce = tf.losses.sparse_softmax_cross_entropy(gt, pred)
prob = tf.nn.softmax(up)
one = tf.one_hot(labels, 3)
dice = 1 - 2 * tf.reduce_sum(prob * one) / (tf.reduce_sum(prob) + tf.reduce_sum(one) + 1e-6)
loss = ce + dice
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True).minimize(loss)
miou, up_miou = tf.metrics.mean_iou(gt, tf.argmax(pred, 1), 3, name="miou")
acc, up_acc = tf.metrics.accuracy(gt, tf.argmax(pred, 1))
cm = tf.confusion_matrix(gt, tf.argmax(pred, 1), 3)
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for i in range(5):
        X = rng.rand(2, 16, 16, 3)
        Y = (X[..., :1] * 3).astype(int)
        Y[:, :2] = 255
        l, d, _, _, _ = sess.run([ce, dice, train, up_miou, up_acc], {x: X, y: Y})
        print("%.4f %.4f" % (l, d))
    print(
        "%.4f %.4f" % tuple(sess.run([miou, acc])),
        sess.run(cm, {x: X, y: Y}).sum(),
        sess.run(tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES)[0]).shape,
    )
    print([v.name for v in tf.trainable_variables()], [v.name for v in tf.local_variables()])
