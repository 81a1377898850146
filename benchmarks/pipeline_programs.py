"""A set of programs whose input comes from files, texts and generators, as public 1.x code reads it. Run with `run.py --module pipeline_programs`."""

import os
import tempfile

import numpy as np
from programs import R, _steps


def _cross_entropy(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _folder():
    made = tempfile.TemporaryDirectory()
    _FOLDERS.append(made)
    return made.name


_FOLDERS = []  # they are removed when the process ends


def _bytes(tf, value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _integers(tf, *values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _records(tf, count, features, files=1):
    """Writes Examples to TFRecord files and returns their names."""
    folder = _folder()
    names = [os.path.join(folder, "%d.tfrecord" % i) for i in range(files)]
    for k, name in enumerate(names):
        with tf.python_io.TFRecordWriter(name) as writer:
            for i in range(k, count, files):
                example = tf.train.Example(features=tf.train.Features(feature=features(i)))
                writer.write(example.SerializeToString())
    return names


def _lines(lines):
    name = os.path.join(_folder(), "lines.txt")
    with open(name, "w") as out:
        out.write("\n".join(lines) + "\n")
    return name


def _classifier(tf, x, y, classes=10):
    loss = _cross_entropy(tf, y, tf.layers.dense(tf.layers.flatten(x), classes))
    return loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def _encoded(tf, count, kind):
    pictures = R(0).randint(0, 255, [count, 8, 8, 3]).repeat(4, 1).repeat(4, 2).astype("u1")
    with tf.Graph().as_default(), tf.Session() as session:
        picture = tf.placeholder(tf.uint8, [32, 32, 3])
        encoded = (tf.image.encode_jpeg if kind == "jpeg" else tf.image.encode_png)(picture)
        return [session.run(encoded, {picture: each}) for each in pictures]


def cifar_records(tf):
    """TFRecords with raw pixels, as the CIFAR-10 tutorials have them: decode_raw, crop, flip, contrast, standardize."""

    def build():
        pixels = R(0).randint(0, 255, [500, 3072]).astype("u1")
        names = _records(tf, 500, lambda i: {"image": _bytes(tf, pixels[i].tobytes()), "label": _integers(tf, i % 10)})

        def parsed(record):
            features = {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
            found = tf.parse_single_example(record, features)
            image = tf.reshape(tf.decode_raw(found["image"], tf.uint8), [3, 32, 32])
            return tf.cast(tf.transpose(image, [1, 2, 0]), tf.float32), tf.cast(found["label"], tf.int32)

        def distorted(image, label):
            image = tf.image.random_flip_left_right(tf.random_crop(image, [24, 24, 3]))
            image = tf.image.random_contrast(tf.image.random_brightness(image, 63), 0.2, 1.8)
            return tf.image.per_image_standardization(image), label

        data = tf.data.TFRecordDataset(names).map(parsed, num_parallel_calls=4).map(distorted, num_parallel_calls=4)
        data = data.shuffle(200).repeat().batch(32).prefetch(1)
        x, y = tf.data.make_one_shot_iterator(data).get_next()
        loss, train = _classifier(tf, x, y)
        return lambda s: s.run([loss, train])

    return _steps(tf, build)


def jpeg_records(tf):
    """TFRecords with JPEG files: decode, resize, flip, scale, as slim's and the object detection API's input does."""

    def build():
        files = _encoded(tf, 60, "jpeg")
        names = _records(
            tf, 60, lambda i: {"image/encoded": _bytes(tf, files[i]), "image/class/label": _integers(tf, i % 10)}
        )

        def parsed(record):
            keys = {
                "image/encoded": tf.FixedLenFeature((), tf.string, default_value=""),
                "image/class/label": tf.FixedLenFeature([], tf.int64, default_value=tf.zeros([], tf.int64)),
            }
            found = tf.parse_single_example(record, keys)
            image = tf.image.decode_jpeg(found["image/encoded"], channels=3)
            image = tf.image.convert_image_dtype(image, tf.float32)
            image = tf.image.resize_images(image, [24, 24])
            image = tf.image.random_flip_left_right(image)
            return (image - 0.5) * 2.0, found["image/class/label"]

        data = tf.data.TFRecordDataset(names).repeat().shuffle(40).map(parsed, num_parallel_calls=2)
        x, y = tf.data.make_one_shot_iterator(data.batch(16).prefetch(2)).get_next()
        loss, train = _classifier(tf, x, y)
        return lambda s: s.run([loss, train])

    return _steps(tf, build)


def png_files(tf):
    """Lists of PNG files and labels: read_file, decode_png, map and batch, an initializable iterator."""

    def build():
        folder = _folder()
        names = [os.path.join(folder, "%d.png" % i) for i in range(40)]
        for name, content in zip(names, _encoded(tf, 40, "png")):
            with open(name, "wb") as out:
                out.write(content)

        def parsed(name, label):
            image = tf.image.decode_png(tf.read_file(name), channels=3)
            image.set_shape([32, 32, 3])
            return tf.to_float(image) / 255.0, label

        files = tf.placeholder(tf.string, [None])
        labels = tf.placeholder(tf.int32, [None])
        data = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(40).repeat().map(parsed).batch(16)
        iterator = tf.data.make_initializable_iterator(data.prefetch(1))
        x, y = iterator.get_next()
        loss, train = _classifier(tf, x, y)
        started = []

        def work(s):
            if not started:
                started.append(s.run(iterator.initializer, {files: names, labels: np.arange(40) % 10}))
            s.run([loss, train])

        return work

    return _steps(tf, build)


def csv_columns(tf):
    """Lines of a CSV file: decode_csv, a dict of features, feature columns, as the census tutorials read them."""

    def build():
        jobs = ["tech", "craft", "sales", "farm", "other"]
        random = R(0)
        rows = [
            "%d,%s,%d,%.2f,%s"
            % (random.randint(17, 80), jobs[i % 5], random.randint(1, 60), random.rand(), ("<=50K", ">50K")[i % 3 > 1])
            for i in range(600)
        ]

        def parsed(line):
            columns = tf.decode_csv(line, [[0], [""], [0], [0.0], [""]])
            features = dict(zip(("age", "job", "hours", "gain", "income"), columns))
            label = tf.to_float(tf.equal(features.pop("income"), ">50K"))
            return features, label

        data = tf.data.TextLineDataset(_lines(["age,job,hours,gain,income", *rows])).skip(1)
        data = data.shuffle(300).map(parsed, num_parallel_calls=5).repeat().batch(40)
        features, label = tf.data.make_one_shot_iterator(data).get_next()
        column = tf.feature_column
        age = column.numeric_column("age")
        job = column.categorical_column_with_vocabulary_list("job", jobs)
        deep = [
            age,
            column.numeric_column("gain"),
            column.bucketized_column(column.numeric_column("hours"), [10.0, 30.0, 45.0]),
            column.indicator_column(job),
            column.embedding_column(column.categorical_column_with_hash_bucket("job", 100), 8),
        ]
        h = tf.layers.dense(column.input_layer(features, deep), 32, tf.nn.relu)
        logits = tf.squeeze(tf.layers.dense(h, 1), 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
        train = tf.train.AdagradOptimizer(0.05).minimize(loss)
        filled = [tf.tables_initializer()]

        def work(s):
            while filled:
                s.run(filled.pop())
            s.run([loss, train])

        return work

    return _steps(tf, build)


def translation_pairs(tf):
    """Two files of sentences as the NMT tutorial reads them: zip, split, filter, lookup, markers, buckets of similar lengths, padding."""

    def build():
        words = ["w%d" % i for i in range(300)]
        source, target = (
            _lines([" ".join(R(k + i).choice(words, 3 + i * 7 % 15)) for i in range(400)]) for k in (0, 1000)
        )
        vocabulary = _lines(["<unk>", "<s>", "</s>", *words[:250]])
        table = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(
                vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
            ),
            1,
        )
        data = tf.data.Dataset.zip((tf.data.TextLineDataset(source), tf.data.TextLineDataset(target)))
        data = data.shuffle(200, seed=1).repeat()
        data = data.map(lambda a, b: (tf.string_split([a]).values, tf.string_split([b]).values), num_parallel_calls=2)
        data = data.prefetch(64).filter(lambda a, b: tf.logical_and(tf.size(a) > 0, tf.size(b) > 0))
        data = data.map(lambda a, b: (a[:12], b[:12]))
        data = data.map(lambda a, b: (tf.cast(table.lookup(a), tf.int32), tf.cast(table.lookup(b), tf.int32)))
        data = data.map(lambda a, b: (a, tf.concat([[1], b], 0), tf.concat([b, [2]], 0)))
        data = data.map(lambda a, b, c: (a, b, c, tf.size(a), tf.size(b)))

        def batches(part):
            return part.padded_batch(16, ([None], [None], [None], [], []), (2, 2, 2, 0, 0))

        def key(a, b, c, a_length, b_length):
            return tf.cast(tf.minimum(5, tf.maximum(a_length // 4, b_length // 4)), tf.int64)

        data = data.apply(tf.data.experimental.group_by_window(key, lambda k, part: batches(part), 16)).prefetch(2)
        iterator = tf.data.make_initializable_iterator(data)
        a, b, c, a_length, b_length = iterator.get_next()
        table_of_words = tf.get_variable("words", [260, 24])

        def mean(ids, length):
            mask = tf.sequence_mask(length, tf.shape(ids)[1], tf.float32)
            return tf.reduce_sum(tf.nn.embedding_lookup(table_of_words, ids) * mask[:, :, None], 1)

        h = tf.concat([mean(a, a_length), mean(b, b_length)], 1)
        loss = _cross_entropy(tf, c[:, 0], tf.layers.dense(h, 260))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        starts = [tf.tables_initializer(), iterator.initializer]

        def work(s):
            while starts:
                s.run(starts.pop(0))
            s.run([loss, train])

        return work

    return _steps(tf, build)


def bucketed_sequences(tf):
    """SequenceExamples of different lengths, bucketed by length, into a bag of embeddings with a mask."""

    def build():
        def record(i):
            steps = [
                tf.train.Feature(int64_list=tf.train.Int64List(value=[k])) for k in R(i).randint(0, 100, 3 + i % 20)
            ]
            lists = tf.train.FeatureLists(feature_list={"tokens": tf.train.FeatureList(feature=steps)})
            context = tf.train.Features(feature={"label": _integers(tf, i % 4)})
            return tf.train.SequenceExample(context=context, feature_lists=lists).SerializeToString()

        def parsed(text):
            context, sequence = tf.parse_single_sequence_example(
                text, {"label": tf.FixedLenFeature([], tf.int64)}, {"tokens": tf.FixedLenSequenceFeature([], tf.int64)}
            )
            return sequence["tokens"], context["label"]

        data = tf.data.Dataset.from_tensor_slices([record(i) for i in range(300)]).map(parsed).shuffle(100).repeat()
        data = data.apply(
            tf.data.experimental.bucket_by_sequence_length(lambda t, y: tf.size(t), [8, 14], [32, 24, 16])
        ).prefetch(2)
        tokens, label = tf.data.make_one_shot_iterator(data).get_next()
        embedded = tf.nn.embedding_lookup(tf.get_variable("words", [100, 16]), tokens)
        loss = _cross_entropy(tf, label, tf.layers.dense(tf.reduce_max(embedded, 1), 4))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        return lambda s: s.run([loss, train])

    return _steps(tf, build)


def growing_generator(tf):
    """A generator of sequences of changing lengths and of labels, padded in batches."""

    def build():
        sequences = [R(i).randn(3 + i % 17, 8).astype("f") for i in range(200)]

        def generator():
            for i, sequence in enumerate(sequences):
                yield sequence, len(sequence), i % 3

        data = tf.data.Dataset.from_generator(generator, (tf.float32, tf.int32, tf.int32), ([None, 8], [], []))
        data = data.repeat().shuffle(64).padded_batch(32, ([None, 8], [], [])).prefetch(1)
        x, length, y = tf.data.make_one_shot_iterator(data).get_next()
        mask = tf.sequence_mask(length, tf.shape(x)[1], tf.float32)[:, :, None]
        h = tf.reduce_sum(tf.layers.dense(x, 16, tf.nn.relu) * mask, 1) / tf.reduce_sum(mask, 1)
        loss = _cross_entropy(tf, y, tf.layers.dense(h, 3))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        return lambda s: s.run([loss, train])

    return _steps(tf, build)


def interleaved_files(tf):
    """Several TFRecord files interleaved, a feedable iterator that alternates between training and validation."""

    def build():
        values = R(0).randn(800, 16).astype("f")

        def features(i):
            return {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=values[i])),
                "y": _integers(tf, i % 5),
                "ids": _integers(tf, *range(i % 4 + 1)),
            }

        names = _records(tf, 800, features, files=4)

        def parsed(record):
            found = tf.parse_single_example(
                record,
                {
                    "x": tf.FixedLenFeature([16], tf.float32),
                    "y": tf.FixedLenFeature([], tf.int64),
                    "ids": tf.VarLenFeature(tf.int64),
                },
            )
            return found["x"], found["y"], tf.sparse_tensor_to_dense(found["ids"])

        def dataset(files):
            data = tf.data.Dataset.from_tensor_slices(files)
            data = data.interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=4)
            return data.map(parsed).repeat().padded_batch(32, ([16], [], [None])).prefetch(1)

        training, validation = dataset(names[:3]), dataset(names[3:])
        handle = tf.placeholder(tf.string, [])
        iterator = tf.data.Iterator.from_string_handle(
            handle, tf.data.get_output_types(training), tf.data.get_output_shapes(training)
        )
        x, y, ids = iterator.get_next()
        x = tf.reshape(x, [-1, 16])
        h = tf.concat([x, tf.reduce_sum(tf.nn.embedding_lookup(tf.get_variable("ids", [8, 4]), ids), 1)], 1)
        loss = _cross_entropy(tf, y, tf.layers.dense(tf.layers.dense(h, 32, tf.nn.relu), 5))
        train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
        made = [tf.data.make_one_shot_iterator(each) for each in (training, validation)]
        wanted, handles = [each.string_handle() for each in made], []

        def work(s):
            if not handles:
                handles.extend(s.run(wanted))
            for _ in range(3):
                s.run([loss, train], {handle: handles[0]})
            s.run(loss, {handle: handles[1]})

        return work

    return _steps(tf, build)


def skip_grams(tf):
    """Pairs of words that a py_func makes of each sentence, flattened, shuffled and batched; negative sampling."""

    def build():
        sentences = [R(i).randint(1, 200, 12).astype(np.int64) for i in range(200)]

        def pairs(sentence):
            found = [
                (sentence[i], sentence[j]) for i in range(12) for j in range(max(0, i - 2), min(12, i + 3)) if i != j
            ]
            return np.array(found, np.int64)

        data = tf.data.Dataset.from_tensor_slices(np.array(sentences)).repeat()
        data = data.map(lambda sentence: tf.py_func(pairs, [sentence], tf.int64))
        data = data.flat_map(tf.data.Dataset.from_tensor_slices).map(lambda pair: tf.reshape(pair, [2]))
        data = data.shuffle(1000).batch(64).prefetch(1)
        batch = tf.data.make_one_shot_iterator(data).get_next()
        table = tf.get_variable("table", [200, 32])
        weights, biases = tf.get_variable("weights", [200, 32]), tf.get_variable("biases", [200])
        loss = tf.reduce_mean(
            tf.nn.nce_loss(weights, biases, batch[:, 1:], tf.nn.embedding_lookup(table, batch[:, 0]), 8, 200)
        )
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return lambda s: s.run([loss, train])

    return _steps(tf, build)


def queue_of_examples(tf):
    """A queue of file names, a reader, parse_single_example and shuffle_batch, as programs before tf.data read files."""

    def build():
        pixels = R(0).randint(0, 255, [300, 784]).astype("u1")
        names = _records(
            tf, 300, lambda i: {"image": _bytes(tf, pixels[i].tobytes()), "label": _integers(tf, i % 10)}, 2
        )
        _, record = tf.TFRecordReader().read(tf.train.string_input_producer(names))
        keys = {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
        found = tf.parse_single_example(record, keys)
        image = tf.decode_raw(found["image"], tf.uint8)
        image.set_shape([784])
        image = tf.cast(image, tf.float32) * (1.0 / 255) - 0.5
        x, y = tf.train.shuffle_batch([image, found["label"]], 32, 400, 100, num_threads=2)
        loss, train = _classifier(tf, x, y)
        started = []

        def work(s):
            if not started:
                started.append(tf.train.start_queue_runners(s))
            s.run([loss, train])

        return work

    return _steps(tf, build)


def padded_queue(tf):
    """Lines from a queue of files, split and looked up one by one, in batches that are padded dynamically."""

    def build():
        name = _lines([" ".join("w%d" % k for k in R(i).randint(0, 150, 3 + i % 10)) for i in range(300)])
        _, line = tf.TextLineReader().read(tf.train.string_input_producer([name], shuffle=False))
        words = tf.constant(["w%d" % i for i in range(120)])
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(words, tf.constant(np.arange(120), tf.int64)), 120
        )
        ids = table.lookup(tf.string_split([line]).values)
        batch, lengths = tf.train.batch([ids, tf.size(ids)], 16, dynamic_pad=True, capacity=200)
        embedded = tf.nn.embedding_lookup(tf.get_variable("emb", [121, 16]), batch)
        mask = tf.sequence_mask(lengths, tf.shape(batch)[1], tf.float32)[:, :, None]
        loss = tf.reduce_mean(tf.square(tf.layers.dense(tf.reduce_sum(embedded * mask, 1), 1)))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        started = []

        def work(s):
            if not started:
                s.run(tf.tables_initializer())
                started.append(tf.train.start_queue_runners(s))
            s.run([loss, train])

        return work

    return _steps(tf, build)


def sparse_lines(tf):
    """Lines of libsvm's format, parsed with string ops in a map, batched as sparse tensors into a linear model."""

    def build():
        lines = [
            "%d %s"
            % (i % 2, " ".join("%d:%.3f" % (k, R(i).rand()) for k in sorted(R(i).choice(500, 5 + i % 6, False))))
            for i in range(300)
        ]

        def parsed(line):
            columns = tf.string_split([line], " ").values
            label = tf.string_to_number(columns[0], tf.float32)
            parts = tf.reshape(tf.string_split(columns[1:], ":").values, [-1, 2])
            ids, values = tf.string_to_number(parts[:, 0], tf.int64), tf.string_to_number(parts[:, 1], tf.float32)
            return ids, values, label

        data = tf.data.TextLineDataset(_lines(lines)).map(parsed, num_parallel_calls=2).cache().shuffle(100).repeat()
        data = data.padded_batch(32, ([None], [None], [])).prefetch(1)
        ids, values, label = tf.data.make_one_shot_iterator(data).get_next()
        weights = tf.get_variable("weights", [500, 1], initializer=tf.zeros_initializer())
        logits = tf.reduce_sum(tf.nn.embedding_lookup(weights, ids)[:, :, 0] * values, 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
        train = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001).minimize(loss)
        return lambda s: s.run([loss, train])

    return _steps(tf, build)


ALL = {
    program.__name__: program
    for program in (
        cifar_records,
        jpeg_records,
        png_files,
        csv_columns,
        translation_pairs,
        bucketed_sequences,
        growing_generator,
        interleaved_files,
        skip_grams,
        queue_of_examples,
        padded_queue,
        sparse_lines,
    )
}
