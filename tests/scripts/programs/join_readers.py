"""Several readers at once: batch_join and shuffle_batch_join, and examples that are dropped on the way."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf


def write_numbers(folder):
    names = []
    for part in range(4):
        name = os.path.join(folder, "part-%d.txt" % part)
        with open(name, "w") as out:
            out.writelines("%d\n" % (100 * part + i) for i in range(25))
        names.append(name)
    return names


def example(filename_queue):
    _, line = tf.TextLineReader().read(filename_queue)
    number = tf.string_to_number(line, tf.int32)
    return [number, tf.as_string(number)]


def collect(build):
    """All that a pipeline gives until its input ends."""
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as sess:
        filename_queue = tf.train.string_input_producer(write_numbers(folder), num_epochs=1, seed=1)
        numbers, texts = build(filename_queue)
        sess.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        found, sizes = [], []
        try:
            while True:
                n, t = sess.run([numbers, texts])
                assert [str(i).encode() for i in n] == t.tolist()
                found.extend(n.tolist())
                sizes.append(len(n))
        except tf.errors.OutOfRangeError:
            pass
        coord.request_stop()
        coord.join(threads)
    shutil.rmtree(folder)
    return found, sizes


found, sizes = collect(lambda q: tf.train.batch_join([example(q) for _ in range(2)], 10, capacity=40))
print("batch_join: %d numbers in %d batches, sum %d" % (len(found), len(sizes), sum(found)))

found, sizes = collect(
    lambda q: tf.train.batch_join([example(q) for _ in range(3)], 32, allow_smaller_final_batch=True)
)
print("batch_join with a smaller end: %d numbers, batches of %s" % (len(found), sizes))

found, sizes = collect(
    lambda q: tf.train.shuffle_batch_join([example(q) for _ in range(2)], 20, capacity=100, min_after_dequeue=40)
)
print("shuffle_batch_join: %d different numbers, in order: %s" % (len(set(found)), found == sorted(found)))


def even(q):
    number, text = example(q)
    return tf.train.maybe_batch([number, text], tf.equal(number % 2, 0), 13, allow_smaller_final_batch=True)


found, sizes = collect(even)
print("maybe_batch: %d numbers, all even: %s" % (len(found), bool(np.all(np.array(found) % 2 == 0))))


def many(q):
    _, lines = tf.TextLineReader().read_up_to(q, 10)
    numbers = tf.string_to_number(lines, tf.int32)
    return tf.train.maybe_shuffle_batch(
        [numbers, tf.as_string(numbers)], 8, 200, 10, numbers < 150, enqueue_many=True, shapes=[[], []],
        allow_smaller_final_batch=True,
    )  # fmt: skip


found, sizes = collect(many)
print("maybe_shuffle_batch: %d numbers, largest %d" % (len(found), max(found)))
