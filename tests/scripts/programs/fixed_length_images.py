"""Images in fixed-length binary records (a label byte, then depth-major pixels), as the CIFAR-10 files have them."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

HEIGHT, WIDTH, DEPTH, CLASSES, BATCH = 8, 8, 3, 4, 8


def write_images(folder, count=40):
    rng = np.random.RandomState(1)
    paths = []
    for part in range(2):
        rows = []
        for _ in range(count // 2):
            label = rng.randint(CLASSES)
            pixels = rng.randint(0, 60, size=[DEPTH, HEIGHT, WIDTH])
            half_y, half_x = divmod(label, 2)
            pixels[:, 4 * half_y : 4 * half_y + 4, 4 * half_x : 4 * half_x + 4] += 150
            rows.append(np.concatenate([[label], pixels.reshape(-1)]).astype(np.uint8))
        path = os.path.join(folder, "data_batch_%d.bin" % part)
        np.stack(rows).tofile(path)
        paths.append(path)
    return paths


def read_image(filename_queue):
    class Record:
        pass

    result = Record()
    label_bytes, image_bytes = 1, HEIGHT * WIDTH * DEPTH
    reader = tf.FixedLengthRecordReader(record_bytes=label_bytes + image_bytes)
    result.key, value = reader.read(filename_queue)
    record = tf.decode_raw(value, tf.uint8)
    result.label = tf.cast(tf.strided_slice(record, [0], [label_bytes]), tf.int32)
    depth_major = tf.reshape(
        tf.strided_slice(record, [label_bytes], [label_bytes + image_bytes]), [DEPTH, HEIGHT, WIDTH]
    )
    result.image = tf.transpose(depth_major, [1, 2, 0])
    return result


def inputs(paths):
    record = read_image(tf.train.string_input_producer(paths, shuffle=False))
    image = tf.cast(record.image, tf.float32) / 255.0
    image -= tf.reduce_mean(image)
    image.set_shape([HEIGHT, WIDTH, DEPTH])
    record.label.set_shape([1])
    images, labels, keys = tf.train.batch(
        [image, record.label, record.key], batch_size=BATCH, num_threads=1, capacity=3 * BATCH
    )
    return images, tf.reshape(labels, [BATCH]), keys


def main():
    folder = tempfile.mkdtemp()
    tf.set_random_seed(2)
    images, labels, keys = inputs(write_images(folder))
    print("images %s, labels %s" % (images.get_shape(), labels.get_shape()))
    net = tf.layers.conv2d(
        images,
        4,
        3,
        padding="same",
        activation=tf.nn.relu,
        name="conv1",
        kernel_initializer=tf.truncated_normal_initializer(stddev=0.2, seed=1),
    )
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.reshape(net, [BATCH, -1])
    logits = tf.layers.dense(net, CLASSES, kernel_initializer=tf.truncated_normal_initializer(stddev=0.1, seed=2))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    train_op = tf.train.MomentumOptimizer(0.02, 0.5).minimize(loss)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        for step in range(15):
            _, value, names = sess.run([train_op, loss, keys])
            if step % 5 == 0:
                first = os.path.basename(names[0].decode())
                print("step %d: loss %.4f, batch starts with %s" % (step, value, first))
        coord.request_stop()
        coord.join(threads)
    shutil.rmtree(folder)


main()
