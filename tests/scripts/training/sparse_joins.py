"""Sparse features through shuffle_batch_join, batch_join and their maybe_ forms: a linear model over bags of words from several files."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()
WORDS = 12


def write_shards(folder):
    rng = np.random.RandomState(7)
    weights = np.linspace(-1, 1, WORDS)
    for shard in range(3):
        with tf.python_io.TFRecordWriter(os.path.join(folder, "part-%d-of-3" % shard)) as writer:
            for number in range(20):
                ids = rng.choice(WORDS, rng.randint(0, 5), replace=False)
                feature = {
                    "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[100 * shard + number])),
                    "words": tf.train.Feature(int64_list=tf.train.Int64List(value=ids)),
                    "terms": tf.train.Feature(int64_list=tf.train.Int64List(value=ids)),
                    "counts": tf.train.Feature(float_list=tf.train.FloatList(value=np.ones(len(ids)))),
                    "label": tf.train.Feature(float_list=tf.train.FloatList(value=[weights[ids].sum()])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return os.path.join(folder, "part-*")


def read(files):
    _, serialized = tf.TFRecordReader().read(files)
    return tf.parse_single_example(
        serialized,
        {
            "id": tf.FixedLenFeature([], tf.int64),
            "bag": tf.SparseFeature("words", "counts", tf.float32, WORDS),
            "terms": tf.VarLenFeature(tf.int64),
            "label": tf.FixedLenFeature([1], tf.float32),
        },
    )


def started(session):
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    return coord, tf.train.start_queue_runners(session, coord)


def everything(pattern):
    """Each example comes once from each function, whatever the order."""
    for name in (
        "shuffle_batch_join",
        "batch_join",
        "maybe_shuffle_batch_join",
        "maybe_batch_join",
        "shuffle_batch",
        "batch",
    ):
        with tf.Graph().as_default():
            files = tf.train.string_input_producer(tf.train.match_filenames_once(pattern), num_epochs=1)
            examples = [read(files) for _ in range(3)]
            joined = examples if "join" in name else examples[0]
            keywords = {"allow_smaller_final_batch": True, "capacity": 40}
            if "shuffle" in name:
                keywords.update(min_after_dequeue=10, seed=1)
            if "maybe" in name:
                for example in examples:
                    example["keep"] = tf.equal(example["id"] % 2, 0)
                # The joined forms take one decision for all: that of the example itself is not known to them.
                keywords["keep_input"] = tf.constant(True)
            arguments = {"tensors_list" if "join" in name else "tensors": joined, "batch_size": 7}
            batch = getattr(tf.train, name)(**arguments, **keywords)
            print(name, sorted(batch), batch["id"].shape.as_list(), batch["bag"].dense_shape.shape.as_list())
            with tf.Session() as session:
                coord, threads = started(session)
                ids, total, words, sizes = [], 0.0, 0, []
                try:
                    while True:
                        value = session.run(batch)
                        ids.extend(value["id"].tolist())
                        total += value["bag"].values.sum()
                        words += value["terms"].values.sum()
                        sizes.append(len(value["id"]))
                        assert value["bag"].dense_shape.tolist() == [len(value["id"]), WORDS]
                        assert value["terms"].indices.shape == (len(value["terms"].values), 2)
                except tf.errors.OutOfRangeError:
                    print(len(set(ids)), len(ids), "%.1f" % total, words, sizes)
                coord.request_stop()
                coord.join(threads)


def filtered(pattern):
    """A vector of decisions keeps examples one by one."""
    with tf.Graph().as_default():
        files = tf.train.string_input_producer(tf.train.match_filenames_once(pattern), num_epochs=1, shuffle=False)
        _, serialized = tf.TFRecordReader().read_up_to(files, 6)
        parsed = tf.parse_example(
            serialized, {"id": tf.FixedLenFeature([], tf.int64), "label": tf.FixedLenFeature([1], tf.float32)}
        )
        keep = tf.greater(parsed["label"][:, 0], 0.5)
        batch = tf.train.maybe_shuffle_batch(
            [parsed["id"], parsed["label"]], 4, 30, 5, keep, enqueue_many=True, allow_smaller_final_batch=True, seed=2
        )
        with tf.Session() as session:
            coord, threads = started(session)
            found = []
            try:
                while not coord.should_stop():
                    ids, labels = session.run(batch)
                    assert (labels > 0.5).all()
                    found.extend(ids.tolist())
            except tf.errors.OutOfRangeError:
                print("kept", sorted(found))
            finally:
                coord.request_stop()
            coord.join(threads)


def train(pattern, logdir):
    """Losses in the order of the files: one reader, one thread."""
    with tf.Graph().as_default():
        files = tf.train.string_input_producer(tf.train.match_filenames_once(pattern), shuffle=False)
        batch = tf.train.batch(read(files), 10, capacity=50)
        w = tf.get_variable("w", [WORDS, 1], initializer=tf.zeros_initializer())
        linear = tf.sparse_tensor_dense_matmul(batch["bag"], w)
        looked_up = tf.nn.embedding_lookup_sparse(w, batch["terms"], None, combiner="sum")
        loss = tf.reduce_mean(tf.square(linear - batch["label"]))
        grads = tf.gradients(loss, w)[0]
        tf.summary.histogram("gradient", grads)
        tf.summary.scalar("loss", loss)
        merged = tf.summary.merge(
            [tensor for tensor in tf.get_collection("summaries") if "fraction" not in tensor.name]
        )
        names = sorted(tensor.op.name for tensor in tf.get_collection("summaries"))
        print(names)
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies([merged, looked_up]):
            train_op = tf.train.FtrlOptimizer(0.5, l1_regularization_strength=0.001).minimize(loss, step)
        with tf.Session() as session, tf.summary.FileWriter(logdir) as writer:
            coord, threads = started(session)
            for number in range(12):
                summary, value, _ = session.run([merged, loss, train_op])
                print("%.5f" % value)
                if number % 3 == 0:
                    writer.add_summary(summary, number)
            coord.request_stop()
            coord.join(threads)
            print(np.round(session.run(w)[:, 0], 3).tolist())


if __name__ == "__main__":
    directory = FLAGS.logdir or tempfile.mkdtemp()
    shards = write_shards(directory)
    everything(shards)
    filtered(shards)
    train(shards, directory)
