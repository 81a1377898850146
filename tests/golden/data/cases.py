"""Pipelines of `tf.data` in graphs and in eager mode, written with a TensorFlow that the caller gives.

`graph_cases(tf)` and `eager_cases(tf, tf2, folder)` return functions by name. Each returns values, or raises the error that is
expected. `outcome` makes plain data of either.
"""

import os

import numpy as np


def plain(value):
    """Arrays, structures and strings as JSON can hold them."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "dense_shape"):
        return {"sparse": [plain(np.asarray(part)) for part in (value.indices, value.values, value.dense_shape)]}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in sorted(value.items())}
    if isinstance(value, (list, tuple)) and not isinstance(value, np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype == object:
            return [str(value.shape), *(plain(item) for item in value.reshape(-1).tolist())]
        return [
            str(value.dtype),
            str(value.shape),
            *(float(item) for item in np.round(value.astype(float), 6).reshape(-1)),
        ]
    return value


def outcome(function):
    try:
        return plain(function())
    except Exception as error:
        return {"error": type(error).__name__}


def graph_cases(tf):
    """Each case runs in a graph of its own, whose seed is 3."""
    D = tf.data.Dataset
    cases = {}

    def case(function):
        cases[function.__name__] = function
        return function

    def elements(dataset, feeds=None, most=50):
        iterator = dataset.make_initializable_iterator()
        following, found = iterator.get_next(), []
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            session.run(iterator.initializer, feeds or {})
            try:
                for _ in range(most):
                    found.append(session.run(following))
            except tf.errors.OutOfRangeError:
                found.append("end")
        return found

    @case
    def slices():
        return elements(D.from_tensor_slices([1, 2, 3]).map(lambda x: x * 2).batch(2))

    @case
    def tuples():
        rows = np.arange(6).reshape(3, 2), ["a", "b", "c"]
        return elements(D.from_tensor_slices(rows).repeat(2).batch(4))

    @case
    def dictionaries():
        rows = D.from_tensor_slices({"x": [1.0, 2.0], "y": [[1], [2]]})
        return elements(rows.map(lambda d: {"z": d["x"] + tf.cast(d["y"], tf.float32)}))

    @case
    def one_shot():
        following = D.range(5).shuffle(3, seed=1).batch(2, drop_remainder=True).make_one_shot_iterator().get_next()
        with tf.Session() as session:
            return [session.run(following) for _ in range(2)], following.shape.as_list()

    @case
    def flat_map():
        return elements(D.range(3).flat_map(lambda x: D.range(x + 1)))

    @case
    def interleave():
        return elements(D.range(1, 5).interleave(lambda x: D.from_tensors(x).repeat(5), cycle_length=2, block_length=3))

    @case
    def parallel_interleave():
        inner = lambda x: D.from_tensors(x).repeat(2)  # noqa: E731
        return elements(D.range(4).apply(tf.data.experimental.parallel_interleave(inner, cycle_length=2)))

    @case
    def filters():
        return elements(D.range(10).filter(lambda x: tf.equal(x % 3, 0)))

    @case
    def padded_batches():
        return elements(D.range(1, 6).map(lambda x: tf.fill([x], x)).padded_batch(2, padded_shapes=[None]))

    @case
    def padded_with_values():
        rows = D.range(1, 4).map(lambda x: (tf.fill([x], x), tf.as_string(x)))
        padding = tf.constant(-1, tf.int64), ""
        return elements(rows.padded_batch(3, padded_shapes=([4], []), padding_values=padding))

    @case
    def padded_too_small():
        return elements(D.range(1, 6).map(lambda x: tf.fill([x], x)).padded_batch(2, padded_shapes=[1]))

    @case
    def zips():
        return elements(D.zip((D.range(3), D.range(10, 20))).map(lambda a, b: a + b))

    @case
    def generators():
        def rows():
            for i in range(3):
                yield i, [i] * i

        return elements(D.from_generator(rows, (tf.int64, tf.int64), (tf.TensorShape([]), tf.TensorShape([None]))))

    @case
    def windows():
        return elements(D.range(7).window(3, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(3)))

    @case
    def windows_with_strides():
        return elements(D.range(9).window(2, shift=4, stride=2).flat_map(lambda w: w.batch(3)))

    @case
    def scans():
        return elements(D.range(5).apply(tf.data.experimental.scan(np.int64(0), lambda s, x: (s + x, s + x))))

    @case
    def reductions():
        with tf.Session() as session:
            return session.run(D.range(5).reduce(np.int64(0), lambda s, x: s + x))

    @case
    def placeholders():
        limit = tf.placeholder(tf.int64, [])
        return elements(D.range(limit), {limit: 3})

    @case
    def variables():
        variable = tf.Variable(np.int64(5), use_resource=True)
        return elements(D.range(3).map(lambda x: x + variable))

    @case
    def tables():
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -1
        )
        return elements(D.from_tensor_slices(["b", "c", "a"]).map(table.lookup))

    @case
    def sparse_batches():
        return elements(D.range(3).map(lambda x: tf.SparseTensor([[x]], [x * 10], [4])).batch(2))

    @case
    def groups():
        grouped = tf.data.experimental.group_by_window(lambda x: x % 2, lambda key, window: window.batch(4), 4)
        return elements(D.range(10).apply(grouped))

    @case
    def buckets():
        buckets = tf.data.experimental.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2])
        return elements(D.range(1, 9).map(lambda x: tf.fill([x], x)).apply(buckets))

    @case
    def buckets_to_their_boundary():
        buckets = tf.data.experimental.bucket_by_sequence_length(
            lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], pad_to_bucket_boundary=True
        )
        return elements(D.range(1, 6).map(lambda x: tf.fill([x], x)).apply(buckets))

    @case
    def parallel_map():
        return elements(D.range(20).map(lambda x: x * x, num_parallel_calls=4).batch(20).prefetch(2))

    @case
    def map_and_batch():
        return elements(D.range(5).apply(tf.data.experimental.map_and_batch(lambda x: x + 1, 2, drop_remainder=True)))

    @case
    def caches():
        return elements(D.range(3).cache().repeat(2))

    @case
    def parts():
        return elements(D.range(2).concatenate(D.range(5, 7)).skip(1).take(2)), elements(D.range(10).shard(3, 1))

    @case
    def handles():
        first, second = (D.range(10 * i, 10 * i + 3).make_one_shot_iterator() for i in range(2))
        handle = tf.placeholder(tf.string, [])
        following = tf.data.Iterator.from_string_handle(handle, first.output_types, first.output_shapes).get_next()
        with tf.Session() as session:
            names = session.run([first.string_handle(), second.string_handle()])
            return [session.run(following, {handle: names[i % 2]}) for i in range(4)]

    @case
    def reinitializable():
        iterator = tf.data.Iterator.from_structure(tf.int64, [])
        following = iterator.get_next()
        starts = iterator.make_initializer(D.range(2)), iterator.make_initializer(D.range(5, 6))
        found = []
        with tf.Session() as session:
            for start in starts:
                session.run(start)
                found.append(session.run(following))
        return found

    @case
    def ignored_errors():
        rows = D.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: tf.check_numerics(1.0 / x, "infinite"))
        return elements(rows.apply(tf.data.experimental.ignore_errors()))

    @case
    def an_error_does_not_end_the_pass():
        rows = D.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: tf.check_numerics(1.0 / x, "infinite"))
        following, found = rows.make_one_shot_iterator().get_next(), []
        with tf.Session() as session:
            for _ in range(3):
                try:
                    found.append(session.run(following))
                except tf.errors.InvalidArgumentError:
                    found.append("failed")
        return found

    @case
    def rows_of_elements():
        return elements(D.from_tensor_slices([[1, 2], [3, 4]]).apply(tf.data.experimental.unbatch()))

    @case
    def not_initialized():
        with tf.Session() as session:
            return session.run(D.range(2).make_initializable_iterator().get_next())

    @case
    def batches_of_different_shapes():
        return elements(D.range(1, 4).map(lambda x: tf.fill([x], x)).batch(3))

    @case
    def one_shot_with_a_placeholder():
        return D.from_tensors(tf.placeholder(tf.int64, [])).make_one_shot_iterator()

    @case
    def one_shot_with_a_variable():
        variable = tf.Variable(np.int64(5), use_resource=True)
        return D.range(3).map(lambda x: x + variable).make_one_shot_iterator()

    @case
    def random_numbers():
        return elements(D.range(3).map(lambda x: tf.random_uniform([], seed=5)))

    @case
    def types():
        dataset = D.from_tensor_slices({"x": [1.0, 2.0], "y": [[1], [2]]}).batch(2)
        shapes = {name: shape.as_list() for name, shape in dataset.output_shapes.items()}
        names = {name: dtype.name for name, dtype in dataset.output_types.items()}
        return names, shapes, dataset.output_classes["x"].__name__

    @case
    def samples():
        return elements(tf.data.experimental.sample_from_datasets([D.range(3), D.range(10, 13)], seed=4))

    @case
    def shuffle_and_repeat():
        return elements(D.range(5).apply(tf.data.experimental.shuffle_and_repeat(3, 2, seed=4)))

    @case
    def shuffled_in_several_places():
        def once():
            return D.range(5).shuffle(5, seed=3)

        pairs = (lambda d: D.zip((d.map(lambda i: i * 10), d)).repeat(2))(once())
        following = (lambda d: d.concatenate(d.take(3)))(once().repeat(2))
        kept = (lambda d: D.zip((d, d)).repeat(2))(once().cache())
        again = (lambda d: D.zip((d, d.shuffle(5, seed=4), d.concatenate(d))).repeat(2))(once())
        flat = (lambda d: D.range(3).flat_map(lambda i: d))(once())
        return [elements(each) for each in (pairs, following, kept, again, flat)]

    @case
    def errors_in_zipped_datasets():
        def without(*refused):
            wrong = np.array(refused, np.int64)
            return lambda i: tf.gather(
                [0, 1, 2, 3, 4, 5], tf.where_v2(tf.reduce_any(tf.equal(i, wrong)), tf.constant(9, tf.int64), i)
            )

        first, second = D.range(6).map(without(2)), D.range(6).map(without(3, 4))
        tolerant = tf.data.experimental.ignore_errors()
        made = [
            D.zip((first, D.range(6))),
            D.zip((D.range(6), second)),
            D.zip((first, second)),
            D.zip((first, D.range(3))),
        ]
        return [elements(each.apply(tolerant)) for each in made]

    @case
    def shuffled():
        return (
            elements(D.range(5).shuffle(5).repeat(2)),
            elements(D.range(10).shuffle(4, seed=7).repeat(2)),
            elements(D.range(6).shuffle(100, seed=7, reshuffle_each_iteration=False).repeat(2)),
        )

    @case
    def bad_arguments():
        found = []
        for build in (
            lambda: elements(D.range(3).batch(0)),
            lambda: elements(D.range(3).shuffle(0)),
            lambda: elements(D.range(3).window(0)),
            lambda: D.range(3).filter(lambda x: x),
            lambda: elements(D.range(3).shard(2, 2)),
            lambda: D.range(),
            lambda: D.from_tensor_slices(1),
            lambda: D.range(2).make_initializable_iterator().make_initializer(D.from_tensors("a")),
            lambda: tf.data.experimental.sample_from_datasets([D.range(1)], [0.5, 0.5]),
        ):
            try:
                build()
                found.append("accepted")
            except Exception as error:
                found.append(type(error).__name__)
        return found

    return cases


def eager_cases(tf, tf2, folder):
    """Cases for eager mode. `folder` is where files may be written."""
    D = tf2.data.Dataset
    cases = {}

    def case(function):
        cases[function.__name__] = function
        return function

    def elements(dataset, most=30):
        return [tf.nest.map_structure(lambda t: t.numpy(), element) for element in dataset.take(most)]

    names = []
    for k in range(2):
        names.append(os.path.join(folder, "records%d" % k))
        with tf.io.TFRecordWriter(names[k]) as writer:
            for i in range(3):
                lists = {"x": [k * 10 + i], "v": list(range(i))}
                features = {
                    key: tf.train.Feature(int64_list=tf.train.Int64List(value=value)) for key, value in lists.items()
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
        with open(os.path.join(folder, "lines%d" % k), "wb") as sink:
            sink.write(b"a%d\r\nb\n\nc" % k)
    with open(os.path.join(folder, "fixed"), "wb") as sink:
        sink.write(b"HH" + bytes(range(65, 74)) + b"F")
    spec = {"x": tf.io.FixedLenFeature([], tf.int64), "v": tf.io.VarLenFeature(tf.int64)}

    @case
    def passes_over_a_shuffled_dataset():
        again, fixed = D.range(6).shuffle(6, seed=1), D.range(6).shuffle(6, seed=1, reshuffle_each_iteration=False)
        return [elements(again) for _ in range(3)], [elements(fixed) for _ in range(2)]

    @case
    def numbers_of_elements():
        sizes = D.range(10).repeat().cardinality(), D.range(5).filter(lambda x: True).cardinality()
        return len(D.range(10).batch(3)), [int(size) for size in sizes]

    @case
    def arrays():
        return list(D.from_tensor_slices((["a", "b"], [1, 2])).as_numpy_iterator())

    @case
    def numbered():
        return elements(D.from_tensor_slices(["x", "y"]).enumerate(3))

    @case
    def ragged_rows():
        rows = tf.ragged.constant([[1, 2], [], [3]])
        return [batch.to_list() for batch in D.from_tensor_slices(rows).batch(2)]

    @case
    def sparse_rows():
        rows = tf.sparse.from_dense([[1, 0], [0, 2]])
        return [tf.sparse.to_dense(row).numpy() for row in D.from_tensor_slices(rows)]

    @case
    def windows_as_datasets():
        return [[int(number) for number in window] for window in D.range(5).window(2)]

    @case
    def a_single_element():
        return D.from_tensors((1, "a")).get_single_element()

    @case
    def reductions():
        start = np.int64(0), np.int64(0)
        return D.range(5).reduce(start, lambda state, x: (state[0] + x, state[1] + 1))

    @case
    def generators_with_arguments():
        def rows(count):
            for i in range(count):
                yield {"a": i, "b": "s%d" % i}

        return elements(D.from_generator(rows, {"a": tf.int32, "b": tf.string}, args=(3,)))

    @case
    def a_generator_of_the_wrong_type():
        return elements(D.from_generator(lambda: iter(["x"]), tf.int32))

    @case
    def a_generator_of_the_wrong_shape():
        return elements(D.from_generator(lambda: iter([[1, 2]]), tf.int32, [3]))

    @case
    def records():
        parsed = tf2.data.TFRecordDataset(names).map(lambda record: tf.io.parse_single_example(record, spec)).batch(4)
        return [(batch["x"], tf.sparse.to_dense(batch["v"])) for batch in parsed]

    @case
    def records_of_files_in_turn():
        rows = tf2.data.TFRecordDataset(names, num_parallel_reads=2)
        return [row["x"] for row in rows.map(lambda r: tf.io.parse_single_example(r, spec), num_parallel_calls=2)]

    @case
    def lines():
        return elements(tf2.data.TextLineDataset([os.path.join(folder, "lines%d" % k) for k in range(2)]))

    @case
    def fixed_length_records():
        return elements(tf2.data.FixedLengthRecordDataset([os.path.join(folder, "fixed")], 3, 2, 1))

    @case
    def listed_files():
        plain, mixed = D.list_files(folder + "/rec*", shuffle=False), D.list_files(folder + "/*", seed=3)
        return [[os.path.basename(name.numpy()) for name in found] for found in (plain, mixed)]

    @case
    def no_listed_files():
        return elements(D.list_files(folder + "/*.nothing"))

    @case
    def a_missing_file():
        return elements(tf2.data.TFRecordDataset(folder + "/missing"))

    @case
    def batched_features():
        batches = tf.data.experimental.make_batched_features_dataset(
            folder + "/rec*", 2, spec, num_epochs=1, shuffle=False
        )
        return [batch["x"] for batch in batches]

    @case
    def loops_in_functions():
        @tf2.function
        def total(dataset):
            found = tf.constant(0, tf.int64)
            for number in dataset:
                if tf.equal(number, 4):
                    break
                found += number
            return found

        return total(D.range(10))

    @case
    def images():
        pixels = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)

        def prepare(image, label):
            image = tf.image.resize_with_crop_or_pad(tf.cast(image, tf.float32), 2, 2) / 255.0
            return image, tf.one_hot(label, 2)

        return elements(D.from_tensor_slices((pixels, [0, 1])).map(prepare).batch(2).prefetch(1))

    @case
    def types_that_differ():
        return D.range(2).concatenate(D.from_tensors("a"))

    @case
    def rows_that_differ():
        return D.from_tensor_slices(([1, 2], [1, 2, 3]))

    @case
    def variables_as_they_are():
        variable = tf2.Variable(3.0)
        dataset = D.from_tensor_slices([1.0, 2.0]).map(lambda x: x * variable)
        before = elements(dataset)
        variable.assign(5.0)
        return before, elements(dataset)

    @case
    def choices():
        letters = [D.from_tensors(letter).repeat() for letter in "ab"]
        return elements(tf2.data.experimental.choose_from_datasets(letters, D.range(2).repeat(2)))

    @case
    def counted():
        return elements(tf2.data.experimental.Counter(3, 2), 3)

    @case
    def a_list_of_datasets():
        return D.zip([D.range(2)])

    @case
    def distinct():
        return elements(D.from_tensor_slices([1, 2, 1, 3]).apply(tf.data.experimental.unique()))

    @case
    def until():
        return elements(D.range(10).apply(tf.data.experimental.take_while(lambda x: x < 3)))

    @case
    def structures():
        nested = D.from_tensors({"a": (1, [2, 3])})
        return elements(nested.map(lambda d: {"q": d["a"][1], "r": (d["a"][0],)}))

    @case
    def python_conditions():
        def change(x):
            if x > 2:
                y = x * 10
            else:
                y = -x
            return y

        return elements(D.range(5).map(change))

    @case
    def python_functions():
        return elements(D.range(3).map(lambda x: tf.numpy_function(lambda a: a * 2, [x], tf.int64)))

    return cases
