"""Sequences of like lengths in a batch, through the queues of tf.contrib.training.bucket_by_sequence_length."""

import collections

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
LENGTHS = np.array([1, 7, 2, 3, 8, 2, 4, 1, 6, 3, 2, 9, 4, 1, 5, 3, 7], np.int32)


def batches(ops):
    """All that a session finds for `ops` until the input ends."""
    found = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while not coordinator.should_stop():
                found.append(session.run(ops))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return found


def sequences(batch_size, smaller, as_dictionary):
    """Words and their number, as a list with a sparse tensor or as a dictionary without the shortest ones."""
    length = tf.train.slice_input_producer([LENGTHS], num_epochs=1, shuffle=False)[0]
    numbers, words = tf.range(length) + 1, tf.fill([length], "w")
    sparse = tf.SparseTensor(tf.cast(tf.expand_dims(tf.range(length), 1), tf.int64), numbers, [10])
    return tf.contrib.training.bucket_by_sequence_length(
        length,
        {"numbers": numbers, "words": words} if as_dictionary else [numbers, words, sparse],
        batch_size,
        [3, 6],
        dynamic_pad=True,
        allow_smaller_final_batch=smaller,
        keep_input=length > 1 if as_dictionary else True,
        capacity=8,
    )


for arguments in ((2, False, False), (2, True, True), ([3, 2, 1], True, False)):
    tf.reset_default_graph()
    lengths, batch = sequences(*arguments)
    rows = []
    for first, others in batches([lengths, batch]):
        if arguments[-1]:
            rows.append((first.tolist(), others["numbers"].tolist(), others["words"].tolist()))
        else:
            rows.append((first.tolist(), others[0].tolist(), others[2].dense_shape.tolist(), others[2].values.tolist()))
    print(lengths.shape, [each.shape for each in (batch.values() if arguments[-1] else batch[:2])])
    print("\n".join(map(str, sorted(rows))))
    print(sorted(runner.name for runner in tf.get_collection("queue_runners")))
    print(sorted(summary.op.name for summary in tf.get_collection("summaries")))

tf.reset_default_graph()
number = tf.train.range_input_producer(9, num_epochs=1, shuffle=False).dequeue()
which, halves = tf.contrib.training.bucket([tf.to_float(number) / 2], number % 3, 2, 3, allow_smaller_final_batch=True)
print(which.shape, halves.shape)
by_bucket = collections.defaultdict(list)
for place, values in batches([which, halves]):
    by_bucket[int(place)].append(values.tolist())
print(sorted(by_bucket.items()))

length = tf.placeholder_with_default(3, [])
by_length = tf.contrib.training.bucket_by_sequence_length
for mistake in (
    lambda: tf.contrib.training.bucket([1.0], 0, [3], 2),
    lambda: tf.contrib.training.bucket([1.0], 0, 3, 2, bucket_capacities=[2]),
    lambda: tf.contrib.training.bucket([], 0, 3, 2),
    lambda: tf.contrib.training.bucket([tf.range(length)], 0, 3, 2),
    lambda: by_length(length, [length], 4, []),
    lambda: by_length(length, [length], 4, [3, 2]),
    lambda: by_length(length, [length], 4, [2.5]),
):
    try:
        mistake()
    except (TypeError, ValueError) as error:
        print(type(error).__name__)
