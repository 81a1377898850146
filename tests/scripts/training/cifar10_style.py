"""A convolutional network in the manner of the CIFAR-10 tutorial: binary records, distortions, losses in collections, averages, a logging hook."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--max_steps", type=int, default=12)
FLAGS = parser.parse_args()
SIZE, CLASSES = 12, 3


def write_batches(folder):
    rng = np.random.RandomState(0)
    for number in range(2):
        rows = []
        for _ in range(24):
            label = rng.randint(CLASSES)
            image = rng.randint(0, 80, [3, SIZE, SIZE])
            image[label] += 100
            rows.append(np.concatenate([[label], image.ravel()]).astype(np.uint8))
        np.stack(rows).tofile(os.path.join(folder, "data_batch_%d.bin" % number))
    return [os.path.join(folder, "data_batch_%d.bin" % number) for number in range(2)]


def inputs(paths):
    with tf.name_scope("input"):
        filename_queue = tf.train.string_input_producer(paths, shuffle=False)
        reader = tf.FixedLengthRecordReader(record_bytes=1 + 3 * SIZE * SIZE)
        _, value = reader.read(filename_queue)
        record = tf.decode_raw(value, tf.uint8)
        label = tf.cast(tf.strided_slice(record, [0], [1]), tf.int32)
        depth_major = tf.reshape(tf.strided_slice(record, [1], [1 + 3 * SIZE * SIZE]), [3, SIZE, SIZE])
        image = tf.cast(tf.transpose(depth_major, [1, 2, 0]), tf.float32)
        image = tf.image.resize_image_with_crop_or_pad(image, 8, 8)
        image = tf.image.per_image_standardization(image)
        image.set_shape([8, 8, 3])
        label.set_shape([1])
        images, labels = tf.train.batch([image, label], FLAGS.batch_size, num_threads=1, capacity=20)
        tf.summary.image("images", images, max_outputs=2)
        return images, tf.reshape(labels, [FLAGS.batch_size])


def variable_with_weight_decay(name, shape, stddev, wd):
    var = tf.get_variable(name, shape, initializer=tf.truncated_normal_initializer(stddev=stddev, seed=len(shape)))
    if wd is not None:
        tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(var), wd, name="weight_loss"))
    return var


def activation_summary(x):
    tf.summary.histogram(x.op.name + "/activations", x)
    tf.summary.scalar(x.op.name + "/sparsity", tf.nn.zero_fraction(x))


def inference(images):
    with tf.variable_scope("conv1") as scope:
        kernel = variable_with_weight_decay("weights", [3, 3, 3, 6], 0.1, None)
        conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding="SAME")
        biases = tf.get_variable("biases", [6], initializer=tf.constant_initializer(0.0))
        conv1 = tf.nn.relu(tf.nn.bias_add(conv, biases), name=scope.name)
        activation_summary(conv1)
    pool1 = tf.nn.max_pool(conv1, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME", name="pool1")
    norm1 = tf.nn.lrn(pool1, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name="norm1")
    with tf.variable_scope("local2") as scope:
        reshaped = tf.reshape(norm1, [FLAGS.batch_size, -1])
        weights = variable_with_weight_decay("weights", [int(reshaped.shape[1]), 10], 0.05, 0.004)
        biases = tf.get_variable("biases", [10], initializer=tf.constant_initializer(0.1))
        local2 = tf.nn.relu(tf.matmul(reshaped, weights) + biases, name=scope.name)
        activation_summary(local2)
    with tf.variable_scope("softmax_linear") as scope:
        weights = variable_with_weight_decay("weights", [10, CLASSES], 0.1, 0.0)
        biases = tf.get_variable("biases", [CLASSES], initializer=tf.constant_initializer(0.0))
        return tf.add(tf.matmul(local2, weights), biases, name=scope.name)


def total_loss(logits, labels):
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits, name="cross_entropy_per_example"
    )
    tf.add_to_collection("losses", tf.reduce_mean(entropy, name="cross_entropy"))
    return tf.add_n(tf.get_collection("losses"), name="total_loss")


def train_op_of(loss, global_step):
    rate = tf.train.exponential_decay(0.1, global_step, 6, 0.1, staircase=True)
    tf.summary.scalar("learning_rate", rate)
    averages = tf.train.ExponentialMovingAverage(0.9, name="avg")
    losses = tf.get_collection("losses")
    averages_op = averages.apply(losses + [loss])
    for part in losses + [loss]:
        tf.summary.scalar(part.op.name + " (raw)", part)
        tf.summary.scalar(part.op.name, averages.average(part))
    with tf.control_dependencies([averages_op]):
        optimizer = tf.train.GradientDescentOptimizer(rate)
        grads = optimizer.compute_gradients(loss)
    apply_op = optimizer.apply_gradients(grads, global_step=global_step)
    for var in tf.trainable_variables():
        tf.summary.histogram(var.op.name, var)
    for grad, var in grads:
        if grad is not None:
            tf.summary.histogram(var.op.name + "/gradients", grad)
    variable_averages = tf.train.ExponentialMovingAverage(0.9999, global_step)
    with tf.control_dependencies([apply_op]):
        return variable_averages.apply(tf.trainable_variables())


class LoggerHook(tf.train.SessionRunHook):
    def __init__(self, loss):
        self._loss = loss

    def begin(self):
        self._step = -1

    def before_run(self, run_context):
        self._step += 1
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        if self._step % 3 == 0:
            print("step %d, loss = %.4f" % (self._step, run_values.results))


def main():
    folder = tempfile.mkdtemp()
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    with tf.Graph().as_default():
        global_step = tf.train.get_or_create_global_step()
        with tf.device("/cpu:0"):
            images, labels = inputs(write_batches(folder))
        loss = total_loss(inference(images), labels)
        train_op = train_op_of(loss, global_step)
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=logdir,
            hooks=[tf.train.StopAtStepHook(last_step=FLAGS.max_steps), tf.train.NanTensorHook(loss), LoggerHook(loss)],
            config=tf.ConfigProto(log_device_placement=False),
            save_summaries_steps=100,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                session.run(train_op)
    reader = tf.train.load_checkpoint(logdir)
    for name in sorted(reader.get_variable_to_shape_map()):
        print(name, "%.4f" % np.abs(reader.get_tensor(name)).sum())


if __name__ == "__main__":
    main()
