"""Summaries of all kinds, merged, written and read back record by record."""

import glob
import hashlib
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf


def main():
    directory = tempfile.mkdtemp()
    rng = np.random.RandomState(0)
    images = tf.constant(rng.rand(2, 6, 5, 3).astype(np.float32))
    noise = tf.placeholder(tf.float32, [None], name="noise")
    with tf.name_scope("summaries"):
        tf.summary.scalar("first", noise[0])
        tf.summary.scalar("largest", tf.reduce_max(noise), family="other")
        tf.summary.histogram("noise", noise)
    tf.summary.image("pictures", images, max_outputs=2)
    tf.summary.audio("sound", tf.constant(rng.uniform(-1, 1, [1, 100]).astype(np.float32)), 8000, max_outputs=1)
    tf.summary.text("words", tf.constant([["a", "b"], ["c", "d"]]))
    tf.summary.tensor_summary("whole", tf.constant([1.0, 2.0]))
    merged = tf.summary.merge_all()
    scoped = tf.summary.merge_all(scope="summaries")
    print(merged.name, scoped.name)
    writer = tf.summary.FileWriter(directory, tf.get_default_graph(), filename_suffix=".test")
    with tf.Session() as sess:
        for step in range(3):
            feed = {noise: rng.randn(50).astype(np.float32)}
            writer.add_summary(sess.run(merged if step % 2 == 0 else scoped, feed), step)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.STOP), 3)
    writer.close()
    for path in glob.glob(os.path.join(directory, "*.test")):
        for event in tf.train.summary_iterator(path):
            event.wall_time = 0
            kind = event.WhichOneof("what")
            if kind == "summary":
                for value in event.summary.value:
                    digest = hashlib.md5(value.SerializeToString()).hexdigest()
                    print(event.step, value.tag, value.WhichOneof("value"), digest)
            elif kind == "graph_def":
                nodes = tf.GraphDef.FromString(event.graph_def).node
                print(kind, hashlib.md5(" ".join(node.name + node.op for node in nodes).encode()).hexdigest())
            else:
                print(event.step, kind)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
