"""The maybe_ forms of batching, dictionaries, padding of joined inputs, queues shared by name, and what they add to a graph."""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


def collect(title, build, limit=30):
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as sess:
        tf.set_random_seed(3)
        out = build()
        queues = [
            op.name
            for op in graph.get_operations()
            if "Queue" in op.type and "V2" in op.type and op.outputs and not op.inputs
        ]
        print(title, "queues", sorted(queues), "runners", len(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)))
        print(
            "  summaries",
            [s.op.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES)],
            [v.op.name for v in tf.local_variables()],
        )
        for tensor in out.values() if isinstance(out, dict) else out if isinstance(out, (list, tuple)) else [out]:
            print(
                "  static",
                tensor.dtype.name,
                tensor.dense_shape.shape if isinstance(tensor, tf.SparseTensor) else tensor.shape,
            )
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        results = []
        try:
            while len(results) < limit and not coord.should_stop():
                results.append(sess.run(out))
        except tf.errors.OutOfRangeError:
            print("  ended after", len(results))
        finally:
            coord.request_stop()
        coord.join(threads)
        return results


def numbers(epochs=1, limit=11):
    return tf.train.range_input_producer(limit, num_epochs=epochs, shuffle=False).dequeue()


def ragged_text(n):
    return tf.string_split(
        [tf.reduce_join(tf.tile(tf.expand_dims(tf.as_string(n), 0), [n % 3 + 1]), separator=" ")]
    ).values


def main():
    def kept():
        n = numbers(2)
        return tf.train.maybe_batch(
            [n, n * n], keep_input=n % 3 > 0, batch_size=4, allow_smaller_final_batch=True, name="odd"
        )

    for batch in collect("maybe_batch", kept):
        print("  ", [part.tolist() for part in batch])

    def vector():
        n = numbers()
        rows = tf.stack([n, n + 100, n + 200])
        return tf.train.maybe_batch(
            {"n": rows, "s": tf.as_string(rows)}, tf.equal(rows % 2, 0), 5, enqueue_many=True, capacity=10
        )

    for batch in collect("vector", vector):
        print("  ", batch["n"].tolist(), batch["s"].tolist())

    def shuffled():
        n = numbers(3)
        return tf.train.maybe_shuffle_batch([n], 6, 20, 8, keep_input=n < 8, seed=5)

    print("   multiset", sorted(np.concatenate(collect("maybe_shuffle_batch", shuffled)).tolist()))

    def joined():
        parts = []
        for offset in (0, 50):
            n = numbers(1, 6) + offset
            parts.append([n, ragged_text(n)])
        return tf.train.maybe_batch_join(
            parts, keep_input=tf.constant(True), batch_size=3, dynamic_pad=True, shapes=[[], [None]]
        )

    rows = []
    for keys, words in collect("maybe_batch_join", joined):
        rows += [(int(key), [word for word in row.tolist() if word]) for key, row in zip(keys, words)]
    print("  ", sorted(rows))

    def sparse():
        n = numbers()
        wide = tf.SparseTensor(
            tf.cast(tf.expand_dims(tf.expand_dims(n % 4, 0), 0), tf.int64), tf.expand_dims(n, 0), [4]
        )
        return tf.train.maybe_batch([wide, n], n < 7, 3)

    for wide, n in collect("sparse", sparse):
        print("  ", wide.indices.tolist(), wide.values.tolist(), wide.dense_shape.tolist(), n.tolist())

    def many():
        a, b = tf.train.slice_input_producer(
            [np.arange(6), np.eye(6, dtype=np.float32)], num_epochs=2, shuffle=True, seed=1, capacity=3, name="rows"
        )
        return tf.train.shuffle_batch(
            [a, b], 4, capacity=12, min_after_dequeue=4, seed=2, num_threads=1, allow_smaller_final_batch=True
        )

    found = collect("shuffle_batch", many)
    print(
        "  ",
        sorted(np.concatenate([a for a, _ in found]).tolist()),
        all((b.argmax(1) == a).all() for a, b in found),
        [len(a) for a, _ in found],
    )

    for title, build in {
        "no tensors": lambda: tf.train.batch([], 2),
        "unknown shape": lambda: tf.train.batch([tf.placeholder(tf.float32)], 2),
        "vector without many": lambda: tf.train.maybe_batch([numbers()], tf.constant([True, False]), 2),
        "lists differ": lambda: tf.train.batch_join([[numbers()], [tf.constant("a")]], 2),
        "empty list": lambda: tf.train.string_input_producer([]),
        "no slices": lambda: tf.train.slice_input_producer([]),
        "zero epochs": lambda: tf.train.limit_epochs(tf.constant(1), 0),
        "scalar": lambda: tf.train.input_producer(tf.constant(1)),
    }.items():
        with tf.Graph().as_default():
            try:
                build()
                print(title, "no error")
            except Exception as error:
                print(title, type(error).__name__, str(error)[:70])


if __name__ == "__main__":
    main()
