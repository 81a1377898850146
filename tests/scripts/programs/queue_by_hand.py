"""A queue, its runner and a coordinator, each made by hand."""

import threading

import tensorflow as tf


def squares():
    queue = tf.FIFOQueue(capacity=8, dtypes=[tf.int32, tf.int32], shapes=[[], []], name="squares")
    counter = tf.Variable(0, trainable=False, name="counter")
    number = tf.assign_add(counter, 1) + 0  # a value of its own: the variable goes on changing
    enqueue = queue.enqueue([number, number * number])
    runner = tf.train.QueueRunner(queue, [enqueue])
    numbers, values = queue.dequeue_many(4, name="batch")

    coord = tf.train.Coordinator()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        threads = runner.create_threads(sess, coord=coord, daemon=True, start=True)
        for step in range(3):
            if coord.should_stop():
                break
            a, b = sess.run([numbers, values])
            print("step %d: %s -> %s" % (step, a.tolist(), b.tolist()))
        coord.request_stop()
        coord.join(threads)
        print("closed: %s" % sess.run(queue.is_closed()))
    print("runner of %s, close op %s, cancel op %s" % (runner.name, runner.close_op.name, runner.cancel_op.name))


def workers():
    """Threads of the program's own under the same coordinator."""
    coord = tf.train.Coordinator()
    lock = threading.Lock()
    done = []

    def work(name):
        while not coord.should_stop():
            with lock:
                if len(done) >= 10:
                    coord.request_stop()
                else:
                    done.append(name)

    threads = [threading.Thread(target=work, args=("worker-%d" % i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    coord.join(threads)
    print("%d pieces of work, stopped: %s" % (len(done), coord.should_stop()))

    coord = tf.train.Coordinator()

    def fails():
        with coord.stop_on_exception():
            raise ValueError("worker gives up")

    thread = threading.Thread(target=fails)
    thread.start()
    try:
        coord.join([thread])
    except ValueError as error:
        print("joined: %s" % error)


def closing():
    """What is in a closed queue can still be taken."""
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.RandomShuffleQueue(20, 2, [tf.int32], [[]], seed=7)
        sess.run(queue.enqueue_many([list(range(10))]))
        order = [int(sess.run(queue.dequeue())) for _ in range(4)]
        sess.run(queue.close())
        order += sess.run(queue.dequeue_many(5)).tolist()
        print("taken: %s" % order)
        try:
            sess.run(queue.dequeue_many(2))
        except tf.errors.OutOfRangeError as error:
            print("%s: %s" % (type(error).__name__, "is closed and has insufficient elements" in error.message))
        try:
            sess.run(queue.enqueue(1))
        except tf.errors.CancelledError as error:
            print("%s: %s" % (type(error).__name__, "is closed" in error.message))


squares()
workers()
closing()
