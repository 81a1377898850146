"""Tensors in memory, dealt out by slice_input_producer for some epochs."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
points = rng.rand(12, 2).astype(np.float32)
labels = (points.sum(1) > 1.0).astype(np.float32)


def train(num_epochs, shuffle):
    with tf.Graph().as_default():
        tf.set_random_seed(11)
        x, y = tf.train.slice_input_producer([points, labels], num_epochs=num_epochs, shuffle=shuffle, seed=8)
        xs, ys = tf.train.batch([x, y], batch_size=4)
        w = tf.Variable(tf.zeros([2, 1]), name="w")
        b = tf.Variable(0.0, name="b")
        logits = tf.reshape(tf.matmul(xs, w), [-1]) + b
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=ys, logits=logits))
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(1.0).minimize(loss, global_step=step)
        print("local variables: %s" % [v.op.name for v in tf.local_variables()])
        with tf.Session() as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess=sess, coord=coord)
            losses = []
            try:
                while not coord.should_stop():
                    losses.append(sess.run([loss, train_op])[0])
            except tf.errors.OutOfRangeError as error:
                print("epochs are over: %s" % ("is closed and has insufficient elements" in error.message))
            finally:
                coord.request_stop()
            coord.join(threads)
            print("%d steps: %s" % (sess.run(step), " ".join("%.4f" % value for value in losses)))


train(2, shuffle=False)
train(3, shuffle=True)

with tf.Graph().as_default(), tf.Session() as sess:
    limited = tf.train.limit_epochs(tf.constant("again"), 2)
    try:
        sess.run(limited)
    except tf.errors.FailedPreconditionError:
        print("epochs must be initialized")
    sess.run(tf.local_variables_initializer())
    for _ in range(3):
        try:
            print(sess.run(limited).decode())
        except tf.errors.OutOfRangeError:
            print("over")

with tf.Graph().as_default(), tf.Session() as sess:
    queue = tf.train.range_input_producer(5, shuffle=True, seed=3)
    number = queue.dequeue()
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    print("shuffled: %s" % [int(sess.run(number)) for _ in range(15)])
    coord.request_stop()
    coord.join(threads)
