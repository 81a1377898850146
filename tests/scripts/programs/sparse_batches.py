"""Examples with features of any length: sparse tensors through batch, and padding by dynamic_pad."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf


def write(path):
    rng = np.random.RandomState(9)
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(12):
            words = rng.randint(0, 10, size=[rng.randint(0, 5)])
            feature = {
                "words": tf.train.Feature(int64_list=tf.train.Int64List(value=words)),
                "label": tf.train.Feature(float_list=tf.train.FloatList(value=[float(len(words) > 2)])),
                "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"example %d" % i])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


folder = tempfile.mkdtemp()
path = os.path.join(folder, "examples")
write(path)
_, serialized = tf.TFRecordReader().read(tf.train.string_input_producer([path], shuffle=False, num_epochs=3))
example = tf.parse_single_example(
    serialized,
    {
        "words": tf.VarLenFeature(tf.int64),
        "label": tf.FixedLenFeature([], tf.float32),
        "name": tf.FixedLenFeature([], tf.string),
    },
)
batch = tf.train.batch(example, batch_size=4, name="examples")
(padded,) = [tf.train.batch([tf.sparse_tensor_to_dense(example["words"], default_value=-1)], 4, dynamic_pad=True)]
embeddings = tf.get_variable("embeddings", [10, 2], initializer=tf.truncated_normal_initializer(stddev=0.5, seed=1))
summed = tf.nn.embedding_lookup_sparse(embeddings, batch["words"], None, combiner="sum")
logits = tf.reduce_sum(summed, 1)
loss = tf.reduce_mean(
    tf.nn.sigmoid_cross_entropy_with_logits(labels=batch["label"][: tf.shape(logits)[0]], logits=logits)
)
train = tf.train.AdagradOptimizer(0.5).minimize(loss)
print("ranks: words %s, label %s" % (batch["words"].indices.get_shape(), batch["label"].get_shape()))

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    runners = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    threads = []
    for runner in runners[:2]:  # the third reads the same records
        threads.extend(runner.create_threads(sess, coord=coord, daemon=True, start=True))
    try:
        step = 0
        while not coord.should_stop():
            values, words, names, _ = sess.run([loss, batch["words"], batch["name"], train])
            print(
                "step %d: %s.. %d words in %s, loss %.4f"
                % (step, names[0].decode(), len(words.values), words.dense_shape.tolist(), values)
            )
            step += 1
    except tf.errors.OutOfRangeError:
        print("end")
    finally:
        coord.request_stop()
    coord.join(threads)

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = []
    for runner in (runners[0], runners[2]):
        threads.extend(runner.create_threads(sess, coord=coord, daemon=True, start=True))
    print(sess.run(padded).tolist())
    coord.request_stop()
    coord.join(threads)
shutil.rmtree(folder)
