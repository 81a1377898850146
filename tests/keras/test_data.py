"""Files of data sets, the cache, and models as SavedModel folders."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import tarfile

import numpy as np
import pytest

import stoker.compat.v1 as tf

keras = tf.keras


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache of its own, and no session of an earlier test."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "datasets").mkdir()
    keras.backend.clear_session()
    yield tmp_path / "datasets"
    keras.backend.clear_session()


def test_a_missing_file_is_named():
    """The error says which file to place where, and where it comes from."""
    with pytest.raises(
        OSError, match=r"datasets/mnist\.npz does not exist.*get https://.*mnist\.npz and place it there"
    ):
        keras.datasets.mnist.load_data()


def test_mnist(cache):
    """The four arrays of the file, as two pairs."""
    images, labels = np.arange(2 * 784, dtype=np.uint8).reshape(2, 28, 28), np.array([3, 4], np.uint8)
    np.savez(cache / "mnist.npz", x_train=images, y_train=labels, x_test=images[:1], y_test=labels[:1])
    (x, y), (tx, ty) = keras.datasets.mnist.load_data()
    assert x.shape == (2, 28, 28) and y.tolist() == [3, 4] and tx.shape == (1, 28, 28) and ty.tolist() == [3]


def test_fashion_mnist(cache):
    """Images and labels behind the headers of MNIST's format."""
    (cache / "fashion-mnist").mkdir()
    for part, count in (("train", 3), ("t10k", 2)):
        for kind, header, size in (("labels-idx1", 8, 1), ("images-idx3", 16, 784)):
            content = gzip.compress(bytes(header) + bytes(i % 251 for i in range(count * size)))
            (cache / "fashion-mnist" / f"{part}-{kind}-ubyte.gz").write_bytes(content)
    (x, y), (tx, ty) = keras.datasets.fashion_mnist.load_data()
    assert x.shape == (3, 28, 28) and y.tolist() == [0, 1, 2] and tx.shape == (2, 28, 28) and ty.tolist() == [0, 1]
    assert x[0, 0, :3].tolist() == [0, 1, 2]


def _objects(rows):
    found = np.empty(len(rows), object)
    found[:] = rows
    return found


def test_words_of_reviews(cache):
    """Words are renumbered, rare ones replaced and long reviews left out."""
    rows = _objects([[1, 2, 30], [4, 5, 6, 7], [8]])
    np.savez(cache / "imdb.npz", x_train=rows, y_train=np.array([0, 1, 1]), x_test=rows[:2], y_test=np.array([1, 0]))
    (x, y), (tx, _) = keras.datasets.imdb.load_data(num_words=10, maxlen=5)
    found = sorted(zip(map(list, x), y))
    assert found == [([1, 2], 1), ([1, 4, 5, 2], 0)]
    assert [list(each) for each in tx] == [[1, 4, 5, 2]]


def test_files_that_name_functions_are_refused(cache):
    """A pickle that would call something else than arrays need is not read."""

    class Harmful:
        def __reduce__(self):
            return os.getcwd, ()

    np.savez(cache / "reuters.npz", x=_objects([Harmful()]), y=np.array([1]))
    with pytest.raises(pickle.UnpicklingError, match="getcwd"):
        keras.datasets.reuters.load_data()


def test_small_pictures(cache):
    """The archive is unpacked, and batches of bytes become images with the channels last."""
    with tarfile.open(cache / "cifar-10-batches-py.tar.gz", "w:gz") as archive:
        for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
            content = {
                b"data": np.arange(2 * 3072, dtype=np.int64).astype(np.uint8).reshape(2, 3072),
                b"labels": [1, 2],
            }
            data = pickle.dumps(content, protocol=3)
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    (x, y), (tx, ty) = keras.datasets.cifar10.load_data()
    assert x.shape == (10, 32, 32, 3) and y.shape == (10, 1) and tx.shape == (2, 32, 32, 3) and ty.shape == (2, 1)
    assert x[0, 0, :2, 0].tolist() == [0, 1]


def test_hashes_of_files(cache, tmp_path):
    """A file with another hash is fetched again, and refused if its origin has another one, too."""
    source = tmp_path / "source"
    source.write_text("content")
    md5 = "9a0364b9e99bb480dd25e1f0284c8555"
    assert keras.utils.get_file("a", f"file://{source}", md5_hash=md5) == str(cache / "a")
    (cache / "a").write_text("other")
    keras.utils.get_file("a", f"file://{source}", file_hash=md5)
    assert (cache / "a").read_text() == "content"
    with pytest.raises(ValueError, match="does not have the hash"):
        keras.utils.get_file("b", f"file://{source}", md5_hash="0" * 32)


def test_tokenizers_as_json():
    """A tokenizer that was described as JSON numbers words as before."""
    tokenizer = keras.preprocessing.text.Tokenizer(oov_token="?")
    tokenizer.fit_on_texts(["a b b", "c b"])
    again = keras.preprocessing.text.tokenizer_from_json(tokenizer.to_json())
    assert again.texts_to_sequences(["b c d"]) == tokenizer.texts_to_sequences(["b c d"]) == [[2, 4, 1]]
    assert again.index_word == tokenizer.index_word


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_models_as_folders(mode, request, tmp_path):
    """A SavedModel folder gives the model back: predictions, and the optimizer where it stopped. It serves predictions in a session."""
    if mode == "eager":
        request.getfixturevalue("eager")
        keras.backend.clear_session()
    layers = keras.layers
    model = keras.Sequential([layers.Dense(3, input_shape=(2,)), layers.BatchNormalization(), layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.RandomState(0).rand(8, 2).astype("f")
    y = x.sum(1, keepdims=True)
    model.fit(x, y, verbose=0, shuffle=False)
    folder = str(tmp_path / "model")
    model.save(folder, save_format="tf")
    model.save(folder, save_format="tf")  # replaces the folder
    again = keras.models.load_model(folder)
    np.testing.assert_allclose(again.predict(x), model.predict(x), rtol=1e-6)
    for each in (model, again):
        each.fit(x, y, verbose=0, shuffle=False)
    np.testing.assert_allclose(again.predict(x), model.predict(x), rtol=1e-5)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        signature = tf.saved_model.loader.load(session, ["serve"], folder).signature_def["serving_default"]
        (fed,), (fetched,) = signature.inputs.values(), signature.outputs.values()
        assert session.run(fetched.name, {fed.name: x}).shape == (8, 1)


def test_folders_that_are_not_replaced(tmp_path):
    """A folder with other files stays as it is, and one without a Keras model is refused by name."""
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(OSError, match="other files"):
        model.save(str(tmp_path / "mine"), save_format="tf")
    keras.experimental.export_saved_model(model, str(tmp_path / "exported"))
    os.remove(tmp_path / "exported" / "assets" / "saved_model.json")
    with pytest.raises(ValueError, match="no configuration of a Keras network"):
        keras.experimental.load_from_saved_model(str(tmp_path / "exported"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3}),
        ("EinsumDense", {"equation": "abc,cd->abd", "output_shape": (None, 5), "bias_axes": "d"}),
        ("GroupNormalization", {"groups": 2}),
        ("UnitNormalization", {}),
        ("DepthwiseConv1D", {"kernel_size": 2, "padding": "causal"}),
        ("Conv1DTranspose", {"filters": 3, "kernel_size": 3, "strides": 2}),
        ("Rescaling", {"scale": 0.5, "offset": 1.0}),
        ("Normalization", {"mean": 1.0, "variance": 4.0}),
        ("Attention", {"score_mode": "concat", "use_scale": True}),
        ("AdditiveAttention", {"dropout": 0.1}),
    ],
)
def test_layers_of_later_versions_describe_themselves(name, arguments):
    """A layer that is made from another's configuration, with its weights, computes the same."""
    kind = getattr(keras.layers, name)
    layer, x = kind(**arguments), keras.Input((6, 4))
    given = {"MultiHeadAttention": (x, x), "Attention": ([x, x],), "AdditiveAttention": ([x, x],)}.get(name, (x,))
    model = keras.Model(x, layer(*given))
    other = kind.from_config(layer.get_config())
    again = keras.Model(x, other(*given))
    again.set_weights(model.get_weights())
    values = np.random.RandomState(0).rand(2, 6, 4).astype("f")
    np.testing.assert_allclose(again.predict(values), model.predict(values), rtol=1e-6)
