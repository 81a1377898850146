"""Queues and their runners by hand: several readers of different kinds fill one queue, which a second stage pads, orders and batches."""

import argparse
import os
import re
import tempfile

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


def write_files(folder):
    lines = [os.path.join(folder, "lines_%d.txt" % i) for i in range(2)]
    for i, path in enumerate(lines):
        with open(path, "w") as file:
            file.write("header\n" + "".join("%d,%d\n" % (i, 10 * i + j) for j in range(5)))
    records = os.path.join(folder, "more.tfrecord")
    options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.ZLIB)
    with tf.python_io.TFRecordWriter(records, options=options) as writer:
        for j in range(5):
            writer.write(("2,%d" % (20 + j)).encode())
    wholes = []
    for j in range(3):
        wholes.append(os.path.join(folder, "whole_%d" % j))
        with open(wholes[-1], "w") as file:
            file.write("3,%d" % (30 + j))
    return lines, records, wholes


def stage_one(folder):
    """One queue of (key, kind, number) that four enqueue ops fill; each has a reader of its own."""
    lines, records, wholes = write_files(folder)
    queue = tf.FIFOQueue(50, [tf.string, tf.int32, tf.int32], shapes=[[], [], []], names=None, name="examples")
    options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.ZLIB)
    sources = [
        (tf.TextLineReader(skip_header_lines=1), [lines[0]]),
        (tf.TextLineReader(skip_header_lines=1), [lines[1]]),
        (tf.TFRecordReader(options=options), [records]),
        (tf.WholeFileReader(), wholes),
    ]
    enqueues, readers = [], []
    for reader, paths in sources:
        names = tf.train.string_input_producer(paths, num_epochs=1, shuffle=False)
        key, value = reader.read(names)
        kind, number = tf.decode_csv(value, [[0], [0]])
        enqueues.append(queue.enqueue([key, kind, number]))
        readers.append(reader)
    runner = tf.train.QueueRunner(queue, enqueues, queue_closed_exception_types=(tf.errors.OutOfRangeError,))
    tf.train.add_queue_runner(runner)
    return queue, readers


def drain(session, fetches):
    values = []
    try:
        while True:
            values.append(session.run(fetches))
    except tf.errors.OutOfRangeError as error:
        print("OutOfRangeError", "is closed and has insufficient elements" in str(error))
    return values


def several_kinds(folder):
    with tf.Graph().as_default():
        queue, readers = stage_one(folder)
        item, size = queue.dequeue(), queue.size()
        counts = [reader.num_records_produced() for reader in readers]
        units = [reader.num_work_units_completed() for reader in readers]
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coord)
            print("threads", len(threads), "runners", len(tf.get_collection("queue_runners")))
            found = sorted(
                (int(kind), int(number), os.path.basename(key.decode())) for key, kind, number in drain(session, item)
            )
            for kind, number, key in found:
                print(kind, number, key)
            print(
                "left", session.run(size), [int(n) for n in session.run(counts)], [int(n) for n in session.run(units)]
            )
            coord.request_stop()
            coord.join(threads)


def padded_and_ordered(logdir):
    with tf.Graph().as_default():
        lengths = tf.train.range_input_producer(7, num_epochs=2, shuffle=False, capacity=3).dequeue()
        sequence = tf.range(lengths)
        label = tf.string_join(["of ", tf.as_string(lengths)])
        queue = tf.PaddingFIFOQueue(20, [tf.int32, tf.string], shapes=[[None], []], name="padded")
        runner = tf.train.QueueRunner(queue, [queue.enqueue([sequence, label])])
        tf.train.add_queue_runner(runner)
        batch = queue.dequeue_many(4)
        rest = queue.dequeue_up_to(4)
        tf.summary.scalar("queued", queue.size())
        priority = tf.PriorityQueue(20, [tf.string], shapes=[[]], name="ordered")
        fill = priority.enqueue_many([[5, 1, 3, 1], ["five", "one", "three", "uno"]])
        order, close = priority.dequeue_many(3), priority.close()
        again = tf.train.QueueRunner.from_proto(runner.to_proto())
        print(
            "proto", again.name == runner.name, len(again.enqueue_ops), again.queue_closed_exception_types[0].__name__
        )
        merged = tf.summary.merge_all()
        with tf.Session() as session, tf.summary.FileWriter(logdir, session.graph) as writer:
            session.run(tf.local_variables_initializer())
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coord)
            for _ in range(3):
                values, labels = session.run(batch)
                print(values.tolist(), [text.decode() for text in labels])
            values, labels = session.run(rest)
            print(values.tolist(), [text.decode() for text in labels])
            writer.add_summary(session.run(merged), 1)
            session.run(fill)
            keys, texts = session.run(order)
            print(keys.tolist(), sorted(text.decode() for text in texts[:2]), texts[2].decode())
            session.run(close)
            try:
                session.run(order)
            except tf.errors.OutOfRangeError as error:
                print("OutOfRangeError", re.search("(PriorityQueue) '.*' (is closed.*) \\(", str(error)).groups())
            try:
                session.run(fill)
            except tf.errors.CancelledError as error:
                print("CancelledError", re.search("(PriorityQueue) '.*' (is closed)", str(error)).groups())
            coord.request_stop()
            coord.join(threads)


def failing_thread():
    """The error of an input thread ends the program's own loop, and join raises it."""
    with tf.Graph().as_default():
        number = tf.train.range_input_producer(10, shuffle=False).dequeue()
        checked = tf.Assert(number < 5, ["too large:", number])
        with tf.control_dependencies([checked]):
            number = tf.identity(number)
        queue = tf.RandomShuffleQueue(8, 2, [tf.int32], shapes=[[]], seed=1)
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(number)] * 2))
        total, item = 0, queue.dequeue()
        with tf.Session() as session:
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coord)
            try:
                while not coord.should_stop():
                    total += session.run(item)
            except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
                pass  # or the loop ends by itself
            coord.request_stop()
            try:
                coord.join(threads)
            except tf.errors.InvalidArgumentError as error:
                print("InvalidArgumentError", "too large:" in str(error), total <= 10)


if __name__ == "__main__":
    directory = FLAGS.logdir or tempfile.mkdtemp()
    several_kinds(directory)
    padded_and_ordered(directory)
    failing_thread()
