"""Models of feature columns, for any implementation of the 1.x API: wide, deep, crossed, weighted, shared, sequences."""

import numpy as np

ROWS, STEPS = 32, 50
WORDS = ["w%d" % i for i in range(40)] + ["Zürich", "x" * 70]


def examples(tf):
    """Serialized Examples, the same each time."""
    rng = np.random.RandomState(7)

    def feature(values):
        if isinstance(values[0] if len(values) else 0.0, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0] if len(values) else 0.0, int):
            return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    rows = []
    for _ in range(ROWS):
        count = rng.randint(0, 5)
        words = [WORDS[i].encode() for i in rng.randint(0, len(WORDS), count)]
        found = {
            "age": feature([float(rng.rand() * 80)]),
            "pair": feature([float(x) for x in rng.randn(2)]),
            "label": feature([float(rng.randint(0, 2))]),
            "country": feature([[b"de", b"fr", b"it", b"xx"][rng.randint(4)]]),
        }
        if count:
            found["words"] = feature(words)
            found["weights"] = feature([float(x) for x in rng.rand(count) + 0.1])
            found["numbers"] = feature([int(x) for x in rng.randint(0, 12, count)])
            found["walk"] = feature([float(x) for x in rng.randn(count)])
        rows.append(tf.train.Example(features=tf.train.Features(feature=found)).SerializeToString())
    return rows


def _matrix(tf, name, shape):
    size = int(np.prod(shape))
    values = np.sin(np.arange(size) * 0.7 + len(name)).reshape(shape) * 0.3
    return tf.get_variable(name, shape, initializer=tf.constant_initializer(values.astype(np.float32)))


def _waves(tf, scale=0.4):
    """An initializer whose numbers need no random generator."""

    def initialize(shape, dtype=None, partition_info=None):
        size = int(np.prod([int(n) for n in shape]))
        start = 0 if partition_info is None else int(partition_info.var_offset[0]) * int(shape[1])
        values = np.sin((np.arange(size) + start) * 1.3).reshape([int(n) for n in shape]) * scale
        return tf.constant(values.astype(np.float32))

    return initialize


def _age_buckets(fc):
    return fc.bucketized_column(fc.numeric_column("age"), [18, 25, 30, 40, 50, 65])


def wide(tf, fc):
    columns = [
        fc.categorical_column_with_hash_bucket("words", 50),
        _age_buckets(fc),
        fc.categorical_column_with_identity("numbers", 12),
        fc.categorical_column_with_vocabulary_list("country", ["de", "fr"], num_oov_buckets=2),
        fc.numeric_column("pair", shape=2),
    ]
    return columns, lambda parsed: fc.linear_model(parsed, columns, sparse_combiner="mean")


def crossed(tf, fc):
    columns = [
        fc.crossed_column([_age_buckets(fc), "words"], 97),
        fc.crossed_column(["words", "country"], 31, hash_key=5),
        fc.crossed_column(
            [
                fc.categorical_column_with_vocabulary_list("country", ["de", "fr"]),
                fc.categorical_column_with_identity("numbers", 12),
            ],
            17,
        ),
        fc.weighted_categorical_column(fc.categorical_column_with_hash_bucket("words", 20), "weights"),
    ]
    return columns, lambda parsed: fc.linear_model(parsed, columns)


def _dense(tf, hidden):
    hidden = tf.nn.relu(tf.matmul(hidden, _matrix(tf, "w0", [int(hidden.shape[1]), 8])))
    return tf.matmul(hidden, _matrix(tf, "w1", [8, 1]))


def deep(tf, fc):
    words = fc.categorical_column_with_hash_bucket("words", 50)
    numbers = fc.categorical_column_with_identity("numbers", 12)
    columns = [
        fc.numeric_column("age", normalizer_fn=lambda x: x / 80.0),
        fc.embedding_column(words, 4, initializer=_waves(tf)),
        fc.embedding_column(numbers, 3, combiner="sqrtn", initializer=_waves(tf), max_norm=0.5),
        fc.embedding_column(
            fc.weighted_categorical_column(words, "weights"), 2, combiner="sum", initializer=_waves(tf)
        ),
        fc.indicator_column(fc.categorical_column_with_vocabulary_list("country", ["de", "fr"], default_value=1)),
        fc.indicator_column(_age_buckets(fc)),
    ]
    return columns, lambda parsed: _dense(tf, fc.input_layer(parsed, columns))


def wide_and_deep(tf, fc):
    wide_columns, wide_model = wide(tf, fc)
    deep_columns, _ = deep(tf, fc)

    def model(parsed):
        with tf.variable_scope("wide"):
            logits = wide_model(parsed)
        with tf.variable_scope("deep", partitioner=tf.fixed_size_partitioner(2)):
            hidden = fc.input_layer(parsed, deep_columns)
        with tf.variable_scope("top"):
            return logits + _dense(tf, hidden)

    return wide_columns + deep_columns, model


def shared(tf, fc):
    columns = fc.shared_embedding_columns(
        [fc.categorical_column_with_hash_bucket("words", 30), fc.categorical_column_with_hash_bucket("country", 30)],
        3,
        initializer=_waves(tf),
    )
    return columns, lambda parsed: _dense(tf, fc.input_layer(parsed, columns))


def dense_features(tf, fc):
    columns, _ = deep(tf, fc)
    return columns, lambda parsed: _dense(tf, tf.keras.layers.DenseFeatures(columns)(parsed))


def sequence(tf, fc):
    columns = [
        fc.embedding_column(fc.sequence_categorical_column_with_hash_bucket("words", 30), 3, initializer=_waves(tf)),
        fc.indicator_column(fc.sequence_categorical_column_with_identity("numbers", 12)),
        fc.sequence_numeric_column("walk"),
    ]

    def model(parsed):
        steps, lengths = tf.keras.experimental.SequenceFeatures(columns)(parsed)
        mask = tf.cast(tf.sequence_mask(lengths, tf.shape(steps)[1]), tf.float32)
        return _dense(tf, tf.reduce_sum(steps * mask[:, :, None], axis=1))

    return columns, model


MODELS = {
    "wide": wide, "crossed": crossed, "deep": deep, "wide_and_deep": wide_and_deep, "shared": shared,
    "dense_features": dense_features, "sequence": sequence,
}  # fmt: skip


def train(tf, build, save_to=None, restore_from=None, steps=STEPS):
    """The losses of some steps."""
    with tf.Graph().as_default(), tf.Session() as session:
        fc = tf.feature_column
        columns, model = build(tf, fc)
        spec = {}
        for column in columns:  # make_parse_example_spec of 1.x refuses sequences of numbers
            spec.update(fc.make_parse_example_spec([column]) if build is not sequence else column.parse_example_spec)
        spec["label"] = tf.io.FixedLenFeature([1], tf.float32)
        batch = tf.placeholder(tf.string, [None])
        parsed = tf.io.parse_example(batch, spec)
        label = parsed.pop("label")
        logits = model(parsed)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
        step = tf.train.AdagradOptimizer(0.1).minimize(loss)
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        saver = tf.train.Saver()
        if restore_from is not None:
            saver.restore(session, restore_from)
        feed = {batch: np.array(examples(tf), dtype=object)}
        losses = [float(session.run([loss, step], feed)[0]) for _ in range(steps)]
        if save_to is not None:
            saver.save(session, save_to, write_meta_graph=False)
        return losses
