"""Map functions that draw random numbers, look words up, branch, decode and parse give in a batch what they give element by element."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.functions.bodies import BoundFunction

IMAGES = np.random.RandomState(0).randint(0, 255, [23, 12, 10, 3]).astype(np.uint8)
LINES = [b" ".join(b"w%d" % (i * k % 13) for k in range(i % 6)) for i in range(1, 24)]


def _drawn(make):
    """All batches of the dataset that `make()` returns."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(5)
        iterator = tf.data.make_initializable_iterator(make())
        following = iterator.get_next()
        session.run([tf.tables_initializer(), iterator.initializer])
        found = []
        while True:
            try:
                found.append(tf.nest.flatten(session.run(following)))
            except tf.errors.OutOfRangeError:
                return found
            except tf.errors.InvalidArgumentError:
                found.append(["failed"])


def _counted(monkeypatch, calls):
    call = BoundFunction._call

    def counted(self, state, values):
        calls.append(self.name)
        return call(self, state, values)

    monkeypatch.setattr(BoundFunction, "_call", counted)


def _assert_same(make, *, calls_of_elements=None):
    """The batches equal those that single calls make. Returns them."""
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        _counted(patch, calls)
        found = _drawn(make)
    together = len(calls)
    with pytest.MonkeyPatch.context() as patch:
        _counted(patch, calls)
        patch.setattr(BoundFunction, "for_stacks", lambda self: None)
        expected = _drawn(make)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            if np.asarray(a).dtype == np.float32:
                np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)
            else:
                np.testing.assert_array_equal(a, b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
    if calls_of_elements is not None:
        assert together <= calls_of_elements < len(calls) - together
    return found


def _cropped(x):
    return tf.random_crop(x, [7, 8, 3], seed=3)


def _asserted(x):
    with tf.control_dependencies([tf.Assert(tf.reduce_sum(tf.cast(x, tf.int32)) >= 0, [x])]):
        return tf.identity(x)


AUGMENTED = {
    "crop": _cropped,
    "flips": lambda x: tf.image.random_flip_up_down(tf.image.random_flip_left_right(x, seed=1), seed=2),
    "brightness": lambda x: tf.image.random_brightness(tf.cast(x, tf.float32), 0.3),
    "contrast": lambda x: tf.image.random_contrast(tf.cast(x, tf.float32), 0.2, 1.8),
    "hue and saturation": lambda x: tf.image.random_hue(tf.image.random_saturation(x, 0.5, 1.5), 0.1),
    "standardized crop": lambda x: tf.image.per_image_standardization(_cropped(x)),
    "many numbers": lambda x: tf.cast(x, tf.float32) + tf.random_normal([12, 10, 3], seed=4),
    "truncated": lambda x: tf.truncated_normal([3], seed=4) + tf.cast(x[0, 0], tf.float32),
    "integers": lambda x: tf.random_uniform([2], 0, 100, tf.int64) + tf.cast(x[0, 0, :2], tf.int64),
    "checked": _asserted,
    "branches": lambda x: tf.cond(x[0, 0, 0] > 100, lambda: x[:5] + 1, lambda: x[2:7]),
    "resized": lambda x: tf.image.resize_images(x, [5, 6]),
    "no form for stacks": lambda x: tf.linalg.diag_part(tf.cast(x[:3, :3, 0], tf.float32)) + tf.random_uniform([]),
}


@pytest.mark.parametrize("name", AUGMENTED)
def test_augmented_images(name):
    """Random ops draw for each element what they draw in a call for it alone, also over several passes."""

    def make():
        return tf.data.Dataset.from_tensor_slices(IMAGES).repeat(2).map(AUGMENTED[name]).batch(8)

    _assert_same(make, calls_of_elements=12)


@pytest.mark.parametrize("name", ["checked", "branches", "resized"])
def test_parallel_maps(name):
    """Whether threads or stacks compute the results, they come in order."""

    def make():
        return tf.data.Dataset.from_tensor_slices(IMAGES).repeat(2).map(AUGMENTED[name], num_parallel_calls=2).batch(8)

    _assert_same(make)


def test_numbers_of_a_stack_that_fails_are_drawn_again():
    """After a failing element, the numbers of the others are those of single calls."""

    def augmented(i):
        with tf.control_dependencies([tf.Assert(tf.not_equal(i, 13), [i])]):
            return tf.cast(i, tf.float32) + tf.random_uniform([], seed=1)

    found = _assert_same(lambda: tf.data.Dataset.range(20).map(augmented).batch(5))
    assert sum(isinstance(each[0], str) for each in found) == 1


def _table():
    words = tf.constant([b"w%d" % i for i in range(9)])
    numbers = tf.constant(np.arange(9) * 10, tf.int64)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, numbers), -1)


def _words(line):
    return tf.string_split([line]).values


SPLIT = {
    "words": _words,
    "words of version 2": lambda line: tf.strings.split([line], b" ").values,
    "white space": lambda line: tf.strings.split([line]).values,
    "parts of an index": lambda line: tf.string_split([line]).indices[:, 1],
    "numbers of words": lambda line: tf.size(_words(line)),
    "shape": lambda line: tf.shape(_words(line)),
    "matrix shape": lambda line: tf.string_split([line]).dense_shape,
    "hashes": lambda line: tf.strings.to_hash_bucket_fast(_words(line), 50),
    "lower case": lambda line: tf.strings.lower(_words(line)),
    "compared": lambda line: tf.not_equal(_words(line), b"w3"),
    "a part": lambda line: _words(line)[1:3],
    "from the end": lambda line: _words(line)[-2:],
    "with ends": lambda line: tf.concat([[b"<s>"], _words(line), [b"</s>"]], 0),
    "twice": lambda line: tf.concat([_words(line), _words(line)], 0),
    "first word": lambda line: tf.concat([_words(line), [b"none"]], 0)[0],
    "reversed": lambda line: tf.reverse(_words(line), [0]),
    "masked": lambda line: tf.boolean_mask(_words(line), tf.not_equal(_words(line), b"w0")),
    "joined": lambda line: tf.reduce_join(_words(line), 0, separator="-"),
    "of fixed length": lambda line: tf.reshape(tf.concat([_words(line), [b""] * 9], 0)[:4], [2, 2]),
}


@pytest.mark.parametrize("name", SPLIT)
def test_split_lines(name):
    """Lines have different numbers of words, also none. A dense batch pads them."""

    def make():
        data = tf.data.Dataset.from_tensor_slices(LINES).map(SPLIT[name])
        return data.padded_batch(7, tf.data.get_output_shapes(data))

    _assert_same(make)


def test_words_in_a_table():
    """Splitting, looking up, cutting, adding marks, measuring, filtering, and buckets of similar lengths, one map after the other."""

    def make():
        table = _table()
        data = tf.data.Dataset.from_tensor_slices(LINES).map(_words).filter(lambda words: tf.size(words) > 1)
        data = data.map(lambda words: table.lookup(words[:4]))
        data = data.map(lambda ids: (ids, tf.concat([[1], ids], 0), tf.size(ids)))
        return data.apply(
            tf.data.experimental.bucket_by_sequence_length(
                lambda ids, marked, size: size,
                [3],
                [3, 4],
                padded_shapes=([None], [6], []),
                padding_values=(np.int64(-7), np.int64(-8), 0),
            )
        )

    found = _assert_same(make, calls_of_elements=40)
    assert sum(len(size) for _, _, size in found) == sum(len(line.split()) > 1 for line in LINES)
    for ids, marked, size in found:
        np.testing.assert_array_equal(np.sum(ids != -7, 1), size)
        np.testing.assert_array_equal(marked[:, 1:5][:, : ids.shape[1]] == -8, ids == -7)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.binary(max_size=12), min_size=2, max_size=9), st.integers(2, 4))
def test_any_lines(lines, size):
    """Any bytes are split in a batch as they are split alone."""

    def make():
        data = tf.data.Dataset.from_tensor_slices(np.array([b" " + line for line in lines], object))
        data = data.map(lambda line: (_words(line), tf.strings.split([line]).values))
        return data.padded_batch(size, ([None], [None]))

    _assert_same(make)


def _example(i):
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "a": tf.train.Feature(float_list=tf.train.FloatList(value=np.arange(i % 3 * 2) / 4)),
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i / 2])),
                "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=range(i % 4))),
                "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % i])),
            }
        )
    ).SerializeToString()


def test_parsed_features_of_different_lengths():
    """Sparse features of single records become vectors of different lengths."""

    def parsed(text):
        keys = {
            "x": tf.FixedLenFeature([2], tf.float32),
            "ids": tf.VarLenFeature(tf.int64),
            "name": tf.VarLenFeature(tf.string),
        }
        found = tf.parse_single_example(text, keys)
        return found["x"], tf.sparse_tensor_to_dense(found["ids"]), found["name"].values, found["ids"].dense_shape

    def make():
        data = tf.data.Dataset.from_tensor_slices([_example(i) for i in range(20)]).map(parsed)
        return data.padded_batch(6, ([2], [None], [None], [1]))

    _assert_same(make, calls_of_elements=6)


def test_features_of_open_length_are_not_padded():
    """A variable-length dense feature is not padded to the longest record before the program asks for it."""

    def make():
        keys = {"ids": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
        data = tf.data.Dataset.from_tensor_slices([_example(i) for i in range(20)])
        return data.map(lambda text: tf.size(tf.parse_single_example(text, keys)["ids"])).batch(5)

    found = _assert_same(make, calls_of_elements=5)
    assert np.concatenate([each for (each,) in found]).tolist() == [i % 4 for i in range(20)]


def test_features_of_open_length():
    """They become rows of steps, beside sparse features and features of one size; one that is missing has no steps."""

    def parsed(text):
        keys = {
            "a": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=7.0),
            "ids": tf.VarLenFeature(tf.int64),
            "name": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
            "missing": tf.FixedLenSequenceFeature([3], tf.int64, allow_missing=True),
            "x": tf.FixedLenFeature([2], tf.float32),
        }
        found = tf.parse_single_example(text, keys)
        return found["a"], found["ids"].values, found["name"], found["missing"], found["x"]

    def make():
        data = tf.data.Dataset.from_tensor_slices([_example(i) for i in range(20)]).map(parsed)
        return data.padded_batch(6, ([None, 2], [None], [None], [None, 3], [2]))

    _assert_same(make, calls_of_elements=6)


def test_a_feature_that_is_no_number_of_steps():
    """The record is refused as by a single call, and the others come."""

    def make():
        keys = {"ids": tf.FixedLenSequenceFeature([3], tf.int64, allow_missing=True)}
        data = tf.data.Dataset.from_tensor_slices([_example(i) for i in (0, 3, 0, 2, 3, 3)])
        return data.map(lambda text: tf.parse_single_example(text, keys)["ids"]).padded_batch(2, [None, 3])

    assert any(isinstance(each[0], str) for each in _assert_same(make))


def test_parsed_sequences():
    """Lists of features of single records have different lengths."""

    def record(i):
        steps = [tf.train.Feature(float_list=tf.train.FloatList(value=[k, i])) for k in range(i % 5)]
        lists = tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=steps)})
        context = {"label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))}
        return tf.train.SequenceExample(
            context=tf.train.Features(feature=context), feature_lists=lists
        ).SerializeToString()

    def parsed(text):
        context, sequence = tf.parse_single_sequence_example(
            text, {"label": tf.FixedLenFeature([], tf.int64)}, {"steps": tf.FixedLenSequenceFeature([2], tf.float32)}
        )
        return context["label"], sequence["steps"] * 2.0

    def make():
        data = tf.data.Dataset.from_tensor_slices([record(i) for i in range(20)]).map(parsed)
        return data.padded_batch(6, ([], [None, 2]))

    _assert_same(make, calls_of_elements=6)


@pytest.mark.parametrize("sizes", [[(6, 5)], [(6, 5), (4, 7)]])
def test_decoded_images(sizes):
    """Images of one size are decoded in one call, images of several sizes one by one."""
    with tf.Graph().as_default(), tf.Session() as session:
        given = [IMAGES[i][: sizes[i % len(sizes)][0], : sizes[i % len(sizes)][1]] for i in range(12)]
        files = [session.run(tf.image.encode_png(each)) for each in given]

    def decoded(text):
        image = tf.image.decode_png(text, channels=3)
        return tf.image.resize_images(image, [4, 4]) if len(sizes) > 1 else tf.cast(image, tf.int32)

    _assert_same(lambda: tf.data.Dataset.from_tensor_slices(files).map(decoded).batch(4))


def _files(count, encode):
    with tf.Graph().as_default(), tf.Session() as session:
        return [session.run(encode(IMAGES[i][: 4 + i % 5, : 3 + i % 4])) for i in range(count)]


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_images_of_many_sizes_that_become_equal(kind):
    """What is done to images of different sizes is done to each, and what follows to all at once; random numbers are those of single calls."""
    files = _files(20, tf.image.encode_png if kind == "png" else tf.image.encode_jpeg)

    def changed(text, number):
        image = (tf.image.decode_png if kind == "png" else tf.image.decode_jpeg)(text, channels=3)
        image = tf.image.convert_image_dtype(image, tf.float32)
        image = tf.image.resize_images(tf.image.central_crop(image, 0.8), [5, 5])
        image = tf.random_crop(image, [4, 4, 3], seed=3)
        return tf.image.random_flip_left_right(image, seed=4) * tf.cast(number, tf.float32)

    def make():
        return tf.data.Dataset.from_tensor_slices((files, np.arange(20))).map(changed).repeat(2).batch(8)

    _assert_same(make)


def test_a_size_that_is_used_beside_its_image():
    """An image that is needed twice before it has a fixed size is not decoded twice: these elements are computed one by one."""
    files = _files(12, tf.image.encode_png)

    def changed(text):
        image = tf.image.decode_png(text, channels=3)
        return tf.shape(image), tf.image.resize_images(image, [4, 4])

    _assert_same(lambda: tf.data.Dataset.from_tensor_slices(files).map(changed).batch(4))


def test_results_that_differ_in_size():
    """They are elements, but no batch."""
    files = _files(6, tf.image.encode_png)

    def make():
        data = tf.data.Dataset.from_tensor_slices(files)
        return data.map(lambda text: tf.cast(tf.image.decode_png(text), tf.int32) + 1).shuffle(3, seed=1).batch(1)

    _assert_same(make)


def test_zipped_maps():
    """The maps of zipped datasets are computed for a batch at once, and the shorter one ends the pair."""

    def make():
        numbers = tf.data.Dataset.range(17).map(lambda i: i * i)
        lines = tf.data.Dataset.from_tensor_slices(LINES).map(_words)
        return tf.data.Dataset.zip((lines, numbers)).padded_batch(5, ([None], []))

    found = _assert_same(make, calls_of_elements=6)
    assert [i for _, squares in found for i in squares] == [i * i for i in range(17)]


def test_an_error_in_one_of_two_zipped_datasets():
    """An element that fails takes its partner with it, as in single calls."""

    def make():
        numbers = tf.data.Dataset.from_tensor_slices(["1", "2", "x", "4", "5", "6"]).map(tf.string_to_number)
        return tf.data.Dataset.zip((tf.data.Dataset.range(6), numbers)).batch(2)

    found = _assert_same(make)
    assert sum(isinstance(each[0], str) for each in found) == 1


@pytest.mark.parametrize("wanted", [2, 5, 40])
def test_shuffled_maps(wanted):
    """A shuffle takes the elements for a batch together and returns them in the order of single draws."""

    def make():
        return tf.data.Dataset.range(23).map(lambda i: i + 1).shuffle(7, seed=3).repeat(2).batch(wanted)

    found = [i for (batch,) in _assert_same(make) for i in batch]
    assert sorted(found) == sorted([*range(1, 24), *range(1, 24)])


def test_an_error_in_front_of_a_shuffle():
    """The elements before the error come first; the batch that meets it is lost, as in single calls."""

    def make():
        texts = ["%d" % i for i in range(20)]
        texts[11] = "x"
        return tf.data.Dataset.from_tensor_slices(texts).map(tf.string_to_number).shuffle(4, seed=1).batch(3)

    _assert_same(make)


def test_functions_with_effects_are_called_for_each_element():
    """Python functions and variables are asked for one element after the other."""
    seen = []

    def noted(i):
        seen.append(int(i))
        return np.int64(i * 2)

    def make():
        return tf.data.Dataset.range(7).map(lambda i: tf.py_func(noted, [i], tf.int64)).batch(3)

    _assert_same(make)
    assert seen == [*range(7), *range(7)]
