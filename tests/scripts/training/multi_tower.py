"""Training on two towers that share variables, in the manner of the CIFAR-10 tutorial for several GPUs: queues, averaged gradients, a saver."""

import argparse
import os
import re
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
parser.add_argument("--num_towers", type=int, default=2)
parser.add_argument("--max_steps", type=int, default=11)
FLAGS = parser.parse_args()
BATCH, SIZE, CLASSES, TOWER_NAME = 6, 8, 4, "tower"


def write_records(folder):
    rng = np.random.RandomState(5)
    path = os.path.join(folder, "train.tfrecords")
    with tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(60):
            label = rng.randint(CLASSES)
            image = rng.randint(0, 100, [SIZE, SIZE, 1]).astype(np.uint8)
            image[2 * label : 2 * label + 2] += 120
            features = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    return path


def inputs(path):
    files = tf.train.string_input_producer([path], name="files")
    _, serialized = tf.TFRecordReader().read(files)
    parsed = tf.parse_single_example(
        serialized, {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
    )
    image = tf.reshape(tf.decode_raw(parsed["image"], tf.uint8), [SIZE, SIZE, 1])
    image = tf.image.convert_image_dtype(image, tf.float32) - 0.5
    return tf.train.batch([image, tf.cast(parsed["label"], tf.int32)], BATCH, capacity=4 * BATCH)


def _variable_on_cpu(name, shape, initializer):
    with tf.device("/cpu:0"):
        return tf.get_variable(name, shape, initializer=initializer, dtype=tf.float32)


def _variable_with_weight_decay(name, shape, stddev, wd):
    var = _variable_on_cpu(name, shape, tf.truncated_normal_initializer(stddev=stddev, seed=11))
    if wd is not None:
        tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(var), wd, name="weight_loss"))
    return var


def _activation_summary(x):
    # Summaries of all towers have one name: that of the tower is removed.
    tensor_name = re.sub("%s_[0-9]*/" % TOWER_NAME, "", x.op.name)
    tf.summary.histogram(tensor_name + "/activations", x)
    tf.summary.scalar(tensor_name + "/sparsity", tf.nn.zero_fraction(x))


def inference(images):
    with tf.variable_scope("conv1") as scope:
        kernel = _variable_with_weight_decay("weights", [3, 3, 1, 4], 0.2, None)
        conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding="SAME")
        biases = _variable_on_cpu("biases", [4], tf.constant_initializer(0.0))
        conv1 = tf.nn.relu(tf.nn.bias_add(conv, biases), name=scope.name)
        _activation_summary(conv1)
    norm1 = tf.nn.lrn(conv1, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name="norm1")
    pool1 = tf.nn.max_pool(norm1, [1, 2, 2, 1], [1, 2, 2, 1], padding="SAME", name="pool1")
    with tf.variable_scope("local3") as scope:
        reshape = tf.reshape(pool1, [images.get_shape().as_list()[0], -1])
        weights = _variable_with_weight_decay("weights", [reshape.get_shape()[1].value, 12], 0.04, 0.004)
        biases = _variable_on_cpu("biases", [12], tf.constant_initializer(0.1))
        local3 = tf.nn.relu(tf.matmul(reshape, weights) + biases, name=scope.name)
        _activation_summary(local3)
    with tf.variable_scope("softmax_linear") as scope:
        weights = _variable_with_weight_decay("weights", [12, CLASSES], 1 / 12.0, None)
        biases = _variable_on_cpu("biases", [CLASSES], tf.constant_initializer(0.0))
        return tf.add(tf.matmul(local3, weights), biases, name=scope.name)


def tower_loss(scope, images, labels):
    logits = inference(images)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="per_example")
    tf.add_to_collection("losses", tf.reduce_mean(cross_entropy, name="cross_entropy"))
    losses = tf.get_collection("losses", scope)
    total_loss = tf.add_n(losses, name="total_loss")
    for part in losses + [total_loss]:
        tf.summary.scalar(re.sub("%s_[0-9]*/" % TOWER_NAME, "", part.op.name), part)
    return total_loss


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        grad = tf.reduce_mean(tf.concat(axis=0, values=grads), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads


def train(logdir):
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        tf.set_random_seed(1)
        global_step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False)
        lr = tf.train.exponential_decay(0.1, global_step, 5, 0.5, staircase=True)
        opt = tf.train.GradientDescentOptimizer(lr)
        images, labels = inputs(write_records(logdir))
        tower_grads = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(FLAGS.num_towers):
                with tf.device("/cpu:%d" % 0), tf.name_scope("%s_%d" % (TOWER_NAME, i)) as scope:
                    part = slice(i * BATCH // FLAGS.num_towers, (i + 1) * BATCH // FLAGS.num_towers)
                    loss = tower_loss(scope, images[part], labels[part])
                    tf.get_variable_scope().reuse_variables()
                    summaries = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)
                    tower_grads.append(opt.compute_gradients(loss))
        grads = average_gradients(tower_grads)
        summaries.append(tf.summary.scalar("learning_rate", lr))
        for grad, var in grads:
            if grad is not None:
                summaries.append(tf.summary.histogram(var.op.name + "/gradients", grad))
        summary_op = tf.summary.merge(summaries)
        with tf.control_dependencies([summary_op]):  # the same values whatever runs first
            apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
        variable_averages = tf.train.ExponentialMovingAverage(0.99, global_step)
        with tf.control_dependencies([apply_gradient_op]):
            train_op = variable_averages.apply(tf.trainable_variables())
        saver = tf.train.Saver(tf.global_variables())
        init = tf.global_variables_initializer()
        sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=False))
        sess.run(init)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        summary_writer = tf.summary.FileWriter(logdir, sess.graph)
        print("losses", [op.name for op in tf.get_collection("losses")])
        print("queues", [runner.name for runner in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)], len(threads))
        for step in range(FLAGS.max_steps):
            _, loss_value = sess.run([train_op, loss])
            assert not np.isnan(loss_value), "Model diverged with loss = NaN"
            print("step %d, loss = %.4f" % (step, loss_value))
            if step % 5 == 0:
                summary_str = sess.run(summary_op)
                for value in tf.Summary.FromString(summary_str).value:
                    if not value.tag.startswith("input") and "fraction" not in value.tag:
                        print(" ", value.tag)
                summary_writer.add_summary(summary_str, step)
            if step % 5 == 0 or (step + 1) == FLAGS.max_steps:
                saver.save(sess, os.path.join(logdir, "model.ckpt"), global_step=step)
        coord.request_stop()
        coord.join(threads)
        summary_writer.close()
        sess.close()


def evaluate(logdir):
    with tf.Graph().as_default():
        images = tf.constant(np.linspace(-0.5, 0.5, 2 * SIZE * SIZE).reshape([2, SIZE, SIZE, 1]).astype(np.float32))
        logits = inference(images)
        variables_to_restore = tf.train.ExponentialMovingAverage(0.99).variables_to_restore()
        print(sorted(variables_to_restore))
        saver = tf.train.Saver(variables_to_restore)
        ckpt = tf.train.get_checkpoint_state(logdir)
        with tf.Session() as sess:
            saver.restore(sess, ckpt.model_checkpoint_path)
            print(ckpt.model_checkpoint_path.split("/")[-1].split("-")[-1])
            print(np.array2string(sess.run(logits), precision=3, suppress_small=True))
            print(sess.run(tf.nn.in_top_k(logits, [0, 1], 1)).tolist())


def main(_):
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    train(logdir)
    evaluate(logdir)


if __name__ == "__main__":
    tf.app.run(main=main, argv=[__file__])
