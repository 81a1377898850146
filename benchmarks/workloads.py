"""Speed workloads: one source, run under any implementation of the API.

Each workload takes the v1 module `tf` and returns (value, unit): a rate (per second, more is
better). A workload builds its inputs once and times only the work it is named after.
"""

import os
import shutil
import tempfile
import time

import numpy as np


def _rate(work, items, seconds=2.0, warm=3):
    """Items per second of work(): the best of several slices of about `seconds` in all."""
    for _ in range(warm):
        work()
    start = time.perf_counter()
    work()
    once = max(time.perf_counter() - start, 1e-7)
    reps = max(1, int(seconds / 5 / once))
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(reps):
            work()
        best = max(best, reps * items / (time.perf_counter() - start))
    return best


def _train(tf, build, feed, items, seconds=2.0):
    with tf.Graph().as_default():
        op, loss, placeholders = build()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            values = dict(zip(placeholders, feed))
            return _rate(lambda: sess.run([op, loss], values), items, seconds), "items/s"


def _weights(tf, name, shape, scale=0.05):
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(stddev=scale, seed=1))


def _xent(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


# ---- session overhead -------------------------------------------------------------------------


def session_tiny(tf):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [])
        y = x * 2.0 + 1.0
        return _rate(lambda: sess.run(y, {x: 1.0}), 1), "runs/s"


def session_chain_200(tf):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [8])
        y = x
        for _ in range(100):
            y = tf.tanh(y) + x
        feed = {x: np.ones(8, "f")}
        return _rate(lambda: sess.run(y, feed), 1), "runs/s"


def graph_build(tf):
    def work():
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, 64])
            h = x
            for i in range(40):
                h = tf.nn.relu(tf.matmul(h, _weights(tf, "w%d" % i, [64, 64])) + 0.1)
            tf.train.AdamOptimizer().minimize(tf.reduce_mean(h))

    return _rate(work, 1, warm=1), "graphs/s"


def first_step(tf):
    """From an empty graph to the first finished training step (build, initialize, one run)."""

    def work():
        with tf.Graph().as_default(), tf.Session() as sess:
            x = tf.placeholder(tf.float32, [None, 64])
            h = x
            for i in range(10):
                h = tf.nn.relu(tf.matmul(h, _weights(tf, "w%d" % i, [64, 64])))
            op = tf.train.AdamOptimizer().minimize(tf.reduce_mean(h))
            sess.run(tf.global_variables_initializer())
            sess.run(op, {x: np.ones((32, 64), "f")})

    return _rate(work, 1, warm=1), "programs/s"


# ---- training steps ---------------------------------------------------------------------------


def _mlp(tf, make_optimizer):
    def build():
        x = tf.placeholder(tf.float32, [None, 784])
        labels = tf.placeholder(tf.int64, [None])
        h = x
        for i, (a, b) in enumerate([(784, 512), (512, 512), (512, 10)]):
            h = tf.matmul(h, _weights(tf, "w%d" % i, [a, b])) + tf.get_variable(
                "b%d" % i, [b], initializer=tf.zeros_initializer()
            )
            if i < 2:
                h = tf.nn.relu(h)
        loss = _xent(tf, labels, h)
        step = tf.train.get_or_create_global_step()
        return make_optimizer().minimize(loss, global_step=step), loss, [x, labels]

    rng = np.random.RandomState(0)
    return _train(tf, build, [rng.rand(128, 784).astype("f"), rng.randint(0, 10, 128)], 128)


def mlp_sgd(tf):
    return _mlp(tf, lambda: tf.train.GradientDescentOptimizer(1e-3))


def mlp_adam(tf):
    return _mlp(tf, lambda: tf.train.AdamOptimizer(1e-3))


def mlp_rmsprop_momentum(tf):
    return _mlp(tf, lambda: tf.train.RMSPropOptimizer(1e-3, momentum=0.9))


def many_small_variables_adam(tf):
    def build():
        x = tf.placeholder(tf.float32, [16, 16])
        h = x
        for i in range(150):
            h = tf.tanh(tf.matmul(h, _weights(tf, "w%d" % i, [16, 16], 0.3)))
        loss = tf.reduce_mean(h)
        return tf.train.AdamOptimizer().minimize(loss), loss, [x]

    return _train(tf, build, [np.ones((16, 16), "f")], 1)


def cnn_momentum(tf):
    def conv(name, i, o, x):
        y = tf.nn.relu(tf.nn.conv2d(x, _weights(tf, name, [5, 5, i, o]), [1, 1, 1, 1], "SAME"))
        return tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")

    def build():
        x = tf.placeholder(tf.float32, [None, 28, 28, 1])
        labels = tf.placeholder(tf.int64, [None])
        h = tf.reshape(conv("c2", 32, 64, conv("c1", 1, 32, x)), [-1, 7 * 7 * 64])
        h = tf.matmul(tf.nn.relu(tf.matmul(h, _weights(tf, "w1", [3136, 512]))), _weights(tf, "w2", [512, 10]))
        loss = _xent(tf, labels, h)
        return tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss), loss, [x, labels]

    rng = np.random.RandomState(0)
    return _train(tf, build, [rng.rand(64, 28, 28, 1).astype("f"), rng.randint(0, 10, 64)], 64, 4.0)


def lstm_while_loop(tf):
    def build():
        x = tf.placeholder(tf.float32, [32, 50, 128])
        w = _weights(tf, "w", [256, 512])

        def step(t, h, c):
            i, j, f, o = tf.split(tf.matmul(tf.concat([x[:, t], h], 1), w), 4, 1)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            return t + 1, tf.tanh(c) * tf.sigmoid(o), c

        zero = tf.zeros([32, 128])
        _, h, _ = tf.while_loop(lambda t, h, c: t < 50, step, [0, zero, zero])
        loss = tf.reduce_sum(h**2)
        return tf.train.GradientDescentOptimizer(0.01).minimize(loss), loss, [x]

    return _train(tf, build, [np.random.RandomState(0).rand(32, 50, 128).astype("f")], 32, 4.0)


def embedding_adagrad(tf):
    def build():
        ids = tf.placeholder(tf.int64, [None])
        table = _weights(tf, "table", [200000, 64])
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 2)
        return tf.train.AdagradOptimizer(0.1).minimize(loss), loss, [ids]

    return _train(tf, build, [np.random.RandomState(0).randint(0, 200000, 1024)], 1024)


def attention_adam(tf):
    def build():
        x = tf.placeholder(tf.float32, [8, 64, 256])
        h = x
        for n in range(2):
            q, k, v = (
                tf.reshape(
                    tf.matmul(tf.reshape(h, [-1, 256]), _weights(tf, "%s%d" % (c, n), [256, 256])), [8, 64, 4, 64]
                )
                for c in "qkv"
            )
            q, k, v = (tf.transpose(t, [0, 2, 1, 3]) for t in (q, k, v))
            a = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 8.0)
            o = tf.reshape(tf.transpose(tf.matmul(a, v), [0, 2, 1, 3]), [-1, 256])
            h = h + tf.reshape(tf.matmul(o, _weights(tf, "o%d" % n, [256, 256])), [8, 64, 256])
            mean, var = tf.nn.moments(h, [2], keep_dims=True)
            h = (h - mean) * tf.rsqrt(var + 1e-5)
            f = tf.nn.relu(tf.matmul(tf.reshape(h, [-1, 256]), _weights(tf, "f%d" % n, [256, 1024])))
            h = h + tf.reshape(tf.matmul(f, _weights(tf, "g%d" % n, [1024, 256])), [8, 64, 256])
        loss = tf.reduce_mean(h**2)
        return tf.train.AdamOptimizer().minimize(loss), loss, [x]

    return _train(tf, build, [np.random.RandomState(0).randn(8, 64, 256).astype("f")], 8, 4.0)


# ---- records and parsing ----------------------------------------------------------------------


def _examples(tf, n):
    rng = np.random.RandomState(0)
    feature, floats, ints, strings = tf.train.Feature, tf.train.FloatList, tf.train.Int64List, tf.train.BytesList
    return [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "x": feature(float_list=floats(value=rng.rand(64))),
                    "y": feature(int64_list=ints(value=[i])),
                    "s": feature(bytes_list=strings(value=[b"hello%d" % i])),
                    "v": feature(int64_list=ints(value=list(range(i % 7)))),
                }
            )
        ).SerializeToString()
        for i in range(n)
    ]


def tfrecord_write(tf):
    records = _examples(tf, 5000)
    folder = tempfile.mkdtemp()

    def work():
        with tf.io.TFRecordWriter(os.path.join(folder, "r")) as writer:
            for record in records:
                writer.write(record)

    try:
        return _rate(work, len(records)), "records/s"
    finally:
        shutil.rmtree(folder)


def _written(tf, records, options=None):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "r")
    with tf.io.TFRecordWriter(path, options) as writer:
        for record in records:
            writer.write(record)
    return folder, path


def tfrecord_read(tf):
    folder, path = _written(tf, _examples(tf, 5000))
    try:
        return _rate(lambda: sum(1 for _ in tf.io.tf_record_iterator(path)), 5000), "records/s"
    finally:
        shutil.rmtree(folder)


def _parse(tf, features):
    serialized = np.array(_examples(tf, 1024), dtype=object)
    with tf.Graph().as_default(), tf.Session() as sess:
        batch = tf.placeholder(tf.string, [None])
        parsed = tf.io.parse_example(batch, features)
        return _rate(lambda: sess.run(parsed, {batch: serialized}), 1024), "examples/s"


def parse_example_dense(tf):
    return _parse(tf, {"x": tf.io.FixedLenFeature([64], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)})


def parse_example_mixed(tf):
    return _parse(
        tf,
        {
            "x": tf.io.FixedLenFeature([64], tf.float32),
            "y": tf.io.FixedLenFeature([], tf.int64),
            "s": tf.io.FixedLenFeature([], tf.string),
            "v": tf.io.VarLenFeature(tf.int64),
        },
    )


def queue_pipeline(tf):
    """Files to shuffled batches: string_input_producer, TFRecordReader, parse, shuffle_batch."""
    folder, path = _written(tf, _examples(tf, 5000))
    try:
        with tf.Graph().as_default(), tf.Session() as sess:
            names = tf.train.string_input_producer([path])
            _, value = tf.TFRecordReader().read(names)
            example = tf.io.parse_single_example(
                value, {"x": tf.io.FixedLenFeature([64], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
            )
            batch = tf.train.shuffle_batch([example["x"], example["y"]], 128, 4000, 1000, num_threads=2)
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coord)
            rate = _rate(lambda: sess.run(batch), 128, 4.0, warm=20)
            coord.request_stop()
            coord.join(threads)
            return rate, "examples/s"
    finally:
        shutil.rmtree(folder)


# ---- checkpoints ------------------------------------------------------------------------------


def _checkpoint(tf, shapes, restore):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "model")
    try:
        with tf.Graph().as_default(), tf.Session() as sess:
            for i, shape in enumerate(shapes):
                _weights(tf, "v%d" % i, shape)
            sess.run(tf.global_variables_initializer())
            saver = tf.train.Saver()
            saver.save(sess, path)
            megabytes = sum(int(np.prod(s)) for s in shapes) * 4 / 1e6
            work = (
                (lambda: saver.restore(sess, path))
                if restore
                else (lambda: saver.save(sess, path, write_meta_graph=False))
            )
            return _rate(work, megabytes, 4.0, warm=1), "MB/s"
    finally:
        shutil.rmtree(folder)


def checkpoint_save_large(tf):
    return _checkpoint(tf, [[1024, 1024, 4]] * 16, False)


def checkpoint_restore_large(tf):
    return _checkpoint(tf, [[1024, 1024, 4]] * 16, True)


def checkpoint_save_many(tf):
    return _checkpoint(tf, [[32, 32]] * 1000, False)


def checkpoint_restore_many(tf):
    return _checkpoint(tf, [[32, 32]] * 1000, True)


# ---- images -----------------------------------------------------------------------------------


def _picture():
    rng = np.random.RandomState(0)
    field = np.cumsum(np.cumsum(rng.randn(480, 640, 3), 0), 1)
    return ((field - field.min()) / (field.max() - field.min()) * 255).astype("u1")


def _image_op(tf, encoded_by, decode):
    with tf.Graph().as_default(), tf.Session() as sess:
        data = sess.run(encoded_by(_picture()))
        contents = tf.placeholder(tf.string, [])
        image = decode(contents)
        return _rate(lambda: sess.run(image, {contents: data}), 1), "images/s"


def decode_jpeg(tf):
    return _image_op(tf, tf.io.encode_jpeg, tf.io.decode_jpeg)


def decode_png(tf):
    return _image_op(tf, tf.io.encode_png, tf.io.decode_png)


def _batch_op(tf, make):
    with tf.Graph().as_default(), tf.Session() as sess:
        images = tf.placeholder(tf.float32, [8, 480, 640, 3])
        out = make(images)
        feed = {images: np.random.RandomState(0).rand(8, 480, 640, 3).astype("f")}
        return _rate(lambda: sess.run(out, feed), 8), "images/s"


def resize_bilinear(tf):
    return _batch_op(tf, lambda images: tf.image.resize_bilinear(images, [224, 224]))


def resize_bicubic(tf):
    return _batch_op(tf, lambda images: tf.image.resize_bicubic(images, [224, 224]))


def adjust_hue_saturation(tf):
    return _batch_op(tf, lambda images: tf.image.adjust_saturation(tf.image.adjust_hue(images, 0.1), 1.5))


def ssim(tf):
    return _batch_op(tf, lambda images: tf.image.ssim(images, images * 0.9, 1.0))


# ---- sparse features --------------------------------------------------------------------------


def wide_and_deep(tf):
    """Parse 256 Examples, feed feature columns, one Ftrl step on the wide and Adagrad on the deep part."""
    rng = np.random.RandomState(0)
    words = [b"w%d" % i for i in range(1000)]
    feature = tf.train.Feature
    rows = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "age": feature(float_list=tf.train.FloatList(value=[rng.rand() * 80])),
                    "words": feature(
                        bytes_list=tf.train.BytesList(value=[words[k] for k in rng.randint(0, 1000, rng.randint(1, 8))])
                    ),
                    "label": feature(float_list=tf.train.FloatList(value=[float(rng.randint(0, 2))])),
                }
            )
        ).SerializeToString()
        for _ in range(256)
    ]
    with tf.Graph().as_default(), tf.Session() as sess:
        fc = tf.feature_column
        batch = tf.placeholder(tf.string, [None])
        age = fc.numeric_column("age")
        word = fc.categorical_column_with_hash_bucket("words", 5000)
        buckets = fc.bucketized_column(age, [18, 25, 30, 40, 50, 65])
        wide = [word, buckets]
        deep = [age, fc.embedding_column(word, 16), fc.indicator_column(buckets)]
        spec = fc.make_parse_example_spec(wide + deep)
        spec["label"] = tf.io.FixedLenFeature([1], tf.float32)
        parsed = tf.io.parse_example(batch, spec)
        label = parsed.pop("label")
        with tf.variable_scope("wide"):
            logits = fc.linear_model(parsed, wide)
        with tf.variable_scope("deep"):
            h = fc.input_layer(parsed, deep)
            h = tf.nn.relu(tf.matmul(h, _weights(tf, "w0", [int(h.shape[1]), 64])))
            logits = logits + tf.matmul(h, _weights(tf, "w1", [64, 1]))
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
        wide_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "wide")
        deep_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "deep")
        op = tf.group(
            tf.train.FtrlOptimizer(0.1).minimize(loss, var_list=wide_vars),
            tf.train.AdagradOptimizer(0.05).minimize(loss, var_list=deep_vars),
        )
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        feed = {batch: np.array(rows, dtype=object)}
        return _rate(lambda: sess.run([op, loss], feed), 256, 3.0), "examples/s"


def wide_300_columns(tf):
    """Parse 1,000 Examples of 300 features, feed 300 feature columns to a linear model, one Ftrl step."""
    rng = np.random.RandomState(0)
    feature = tf.train.Feature
    rows = []
    for _ in range(1000):
        found = {"label": feature(float_list=tf.train.FloatList(value=[float(rng.randint(0, 2))]))}
        for i in range(100):
            found["s%d" % i] = feature(bytes_list=tf.train.BytesList(value=[b"v%d" % rng.randint(0, 500)]))
            found["i%d" % i] = feature(int64_list=tf.train.Int64List(value=rng.randint(0, 50, 2)))
            found["n%d" % i] = feature(float_list=tf.train.FloatList(value=[rng.rand()]))
        rows.append(tf.train.Example(features=tf.train.Features(feature=found)).SerializeToString())
    with tf.Graph().as_default(), tf.Session() as sess:
        fc = tf.feature_column
        batch = tf.placeholder(tf.string, [None])
        columns = [fc.categorical_column_with_hash_bucket("s%d" % i, 1000) for i in range(100)]
        columns += [fc.categorical_column_with_identity("i%d" % i, 50) for i in range(100)]
        columns += [fc.bucketized_column(fc.numeric_column("n%d" % i), [0.2, 0.4, 0.6, 0.8]) for i in range(100)]
        spec = fc.make_parse_example_spec(columns)
        spec["label"] = tf.io.FixedLenFeature([1], tf.float32)
        parsed = tf.io.parse_example(batch, spec)
        label = parsed.pop("label")
        logits = fc.linear_model(parsed, columns)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
        op = tf.train.FtrlOptimizer(0.1).minimize(loss)
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        feed = {batch: np.array(rows, dtype=object)}
        return _rate(lambda: sess.run([op, loss], feed), 1000, 3.0), "examples/s"


ALL = {
    name: fn
    for name, fn in list(globals().items())
    if callable(fn) and not name.startswith("_") and getattr(fn, "__module__", None) == __name__
}
