"""Training on TFRecord files: string_input_producer, TFRecordReader, parse_single_example, shuffle_batch."""

import os
import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf

EXAMPLES, EPOCHS, BATCH = 96, 2, 16


def write_records(folder):
    rng = np.random.RandomState(3)
    weights = rng.randn(6, 3)
    paths = []
    for part in range(2):
        path = os.path.join(folder, "train-%d.tfrecords" % part)
        with tf.python_io.TFRecordWriter(path) as writer:
            for _ in range(EXAMPLES // 2):
                x = rng.randn(6).astype(np.float32)
                label = int(np.argmax(x.dot(weights)))
                features = {
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
        paths.append(path)
    return paths


def read_and_decode(filename_queue):
    reader = tf.TFRecordReader()
    _, serialized = reader.read(filename_queue)
    features = tf.parse_single_example(
        serialized,
        features={"x": tf.FixedLenFeature([6], tf.float32), "label": tf.FixedLenFeature([], tf.int64)},
    )
    return features["x"], tf.cast(features["label"], tf.int32)


def main():
    folder = tempfile.mkdtemp()
    tf.set_random_seed(4)
    with tf.name_scope("input"):
        filename_queue = tf.train.string_input_producer(write_records(folder), num_epochs=EPOCHS, shuffle=False)
        x, label = read_and_decode(filename_queue)
        capacity = EPOCHS * EXAMPLES + 1
        xs, labels = tf.train.shuffle_batch(
            [x, label], batch_size=BATCH, num_threads=1, capacity=capacity, min_after_dequeue=BATCH, seed=5
        )
    logits = tf.layers.dense(
        xs, 3, kernel_initializer=tf.truncated_normal_initializer(stddev=0.1, seed=6), name="logits"
    )
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
    accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss)
    waiting = tf.get_default_graph().get_tensor_by_name("input/shuffle_batch/random_shuffle_queue_Size:0")

    with tf.Session() as sess:
        sess.run(tf.group(tf.global_variables_initializer(), tf.local_variables_initializer()))
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        while sess.run(waiting) < EPOCHS * EXAMPLES:  # fill the buffer, so that the order is the seed's alone
            time.sleep(0.01)
        step = 0
        try:
            while not coord.should_stop():
                _, loss_value, right = sess.run([train_op, loss, accuracy])
                if step % 3 == 0:
                    print("step %d: loss = %.4f, accuracy = %.4f" % (step, loss_value, right))
                step += 1
        except tf.errors.OutOfRangeError:
            print("Done training for %d epochs, %d steps." % (EPOCHS, step))
        finally:
            coord.request_stop()
        coord.join(threads)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
