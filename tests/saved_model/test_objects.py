"""`tf.saved_model.save` and `load`: objects, their variables, tables, assets and functions, here and as TensorFlow writes them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.formats.protos import SavedModel
from stoker._src.graph import context
from tests.golden.saved_model import journey

GOLDEN = Path(__file__).parent.parent / "golden" / "saved_model" / "objects_tf2"
VECTOR = tf.TensorSpec([None], tf.float32)


@pytest.fixture(autouse=True)
def eager():
    with context.enter_eager():
        yield


def module(**attributes):
    made = tf.Module()
    made.v = tf.Variable(2.0)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def typed(python_function, *specs):
    return tf.function(python_function, input_signature=specs or [VECTOR])


@pytest.mark.parametrize("name", journey.MODELS)
def test_models_come_back(name, tmp_path):
    """A model that is saved and loaded computes what it did, also if that is saved and loaded again."""
    model, signatures, observe = journey.MODELS[name](tf, str(tmp_path))
    tf.saved_model.save(model, tmp_path / "first", signatures=signatures)
    expected = tmp_path / "expected.npz"
    journey.save_arrays(expected, journey.arrays(tf, observe(model)))
    once = tf.saved_model.load(tmp_path / "first")
    tf.saved_model.save(once, tmp_path / "second")
    for loaded in (once, tf.saved_model.load(tmp_path / "second")):
        assert journey.difference(expected, journey.arrays(tf, observe(loaded))) == ""


@pytest.mark.parametrize("name", sorted(os.listdir(GOLDEN)))
def test_models_of_tensorflow_run(name, tmp_path):
    """Models that TensorFlow 2.21 wrote compute here what they compute there: values, gradients, updates of variables."""
    loaded = tf.saved_model.load(GOLDEN / name)
    if name.startswith("keras"):
        x = np.load(GOLDEN / name / "given.npy")
        observed = [loaded(x, training=False), *loaded.variables]
    else:
        observed = journey.MODELS[name](tf, str(tmp_path))[2](loaded)
    assert journey.difference(GOLDEN / name / "expected.npz", journey.arrays(tf, observed)) == ""


def test_signatures_run_in_sessions(tmp_path):
    """A model of objects has a graph with a saver and an initializer, which a 1.x session runs."""
    model, signatures, _ = journey.tables(tf, str(tmp_path))
    tf.saved_model.save(model, tmp_path / "model", signatures=signatures)
    with tf1.Graph().as_default(), tf1.Session() as session:
        meta = tf1.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        signature = meta.signature_def["find"]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        found = session.run(outputs, {signature.inputs["keys"].name: ["three", "y", "p"]})
        assert found["words"].tolist() == [2, -1, -1]
        assert found["pairs"].tolist() == [0.0, 2.5, 0.0]
        assert found["mutable"].tolist() == [-1, -1, 5]
        path = str(tmp_path / "copy")
        saved = session.run(meta.saver_def.save_tensor_name, {meta.saver_def.filename_tensor_name: path})
        assert saved.decode() == path
        assert "mutable/.ATTRIBUTES/table-keys" in dict(tf.train.list_variables(path))


def test_the_default_signature(tmp_path):
    """The only function of the root with an input signature is the default signature. Of several, none is."""
    cases = {
        "one": (module(f=typed(lambda x: x + 1)), ["serving_default"]),
        "two": (module(f=typed(lambda x: x + 1), g=typed(lambda x: x)), []),
        "untyped": (module(f=tf.function(lambda x: x)), []),
        "inner": (module(inner=module(f=typed(lambda x: x))), []),
    }
    for name, (root, expected) in cases.items():
        tf.saved_model.save(root, tmp_path / name)
        assert list(tf.saved_model.load(tmp_path / name).signatures) == expected


def test_signatures_take_and_return_tensors_by_name(tmp_path):
    """Results are numbered or named; one argument may be passed by position, several only by name."""
    signatures = {
        "numbers": typed(lambda a, b: [a + b, a - b], VECTOR, VECTOR),
        "names": typed(lambda x: {"p": x, "q": x * 2}),
    }
    tf.saved_model.save(module(), tmp_path / "m", signatures=signatures)
    loaded = tf.saved_model.load(tmp_path / "m").signatures
    numbers = loaded["numbers"]
    assert numbers.structured_input_signature == (
        (),
        {name: tf.TensorSpec([None], tf.float32, name) for name in ("a", "b")},
    )
    found = numbers(b=tf.constant([1.0]), a=tf.constant([3.0]))
    assert [found[f"output_{i}"].numpy().tolist() for i in range(2)] == [[4.0], [2.0]]
    with pytest.raises(TypeError, match="positional"):
        numbers(tf.constant([1.0]), tf.constant([3.0]))
    with pytest.raises(TypeError, match="missing"):
        numbers(a=tf.constant([1.0]))
    assert loaded["names"](tf.constant([3.0]))["q"].numpy().tolist() == [6.0]


@pytest.mark.parametrize(
    ("signature", "error", "match"),
    [
        (tf.function(lambda x: x), ValueError, "Expected a TensorFlow function"),
        (5, ValueError, "Expected a TensorFlow function"),
        (typed(lambda x: {"p": [x, x]}), ValueError, "Got a non-Tensor value .* for key 'p'"),
        (typed(lambda x: [x, (x, x)]), ValueError, "for key 'output_1'"),
    ],
)
def test_what_is_no_signature_is_refused(tmp_path, signature, error, match):
    """A signature has known arguments, and returns tensors by name or in a list. Nothing is written otherwise."""
    with pytest.raises(error, match=match):
        tf.saved_model.save(module(), tmp_path / "m", signatures=signature)
    assert os.listdir(tmp_path) == []


def test_variables_must_be_tracked(tmp_path):
    """A function that uses a variable which the object does not hold cannot be saved."""
    hidden = tf.Variable(1.0)
    with pytest.raises(AssertionError, match="'untracked' resource"):
        tf.saved_model.save(module(f=typed(lambda x: x + hidden)), tmp_path / "m")
    with pytest.raises(ValueError, match="Expected an object of type `Trackable`"):
        tf.saved_model.save(5, tmp_path / "m")

    @tf.function
    def inside():
        tf.saved_model.save(module(), tmp_path / "m")

    with pytest.raises(AssertionError, match=r"inside a traced @tf\.function"):
        inside()


def test_calls_must_match_a_trace(tmp_path):
    """A loaded function has the traces that were saved. Other arguments are refused with the options there are."""
    model = module(f=tf.function(lambda x, flag=False: -x if flag else x))
    model.f(tf.constant([1.0, 2.0]))
    model.f(tf.constant([1.0, 2.0]), flag=True)
    model.f(tf.constant([1.0, 2.0]), flag=object())  # no SavedModel can describe this trace
    model.g = tf.function(lambda x: x)
    tf.saved_model.save(model, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    assert loaded.f([1.0, 2.0], True).numpy().tolist() == [-1.0, -2.0]
    for args in ((tf.constant([1.0]),), (tf.constant([1, 2]),), (tf.constant([1.0, 2.0]), 3)):
        with pytest.raises(ValueError, match=r"Could not find matching concrete function.*\n(.*\n)*Option 2"):
            loaded.f(*args)
    with pytest.raises(ValueError, match="zero restored functions"):
        loaded.g(1.0)
    with pytest.raises(TypeError, match="not callable"):
        loaded(1.0)
    trace = loaded.f.get_concrete_function(tf.TensorSpec([2], tf.float32), True)
    assert trace(tf.constant([3.0, 4.0]), True).numpy().tolist() == [-3.0, -4.0]


def test_models_are_replaced_as_a_whole(tmp_path):
    """Saving over a model leaves nothing of it, keeps files that are not its own, and leaves no temporary directory."""
    path = tmp_path / "model"
    first = module(w=tf.Variable([1.0] * 1000), file=tf.saved_model.Asset(_file(tmp_path / "a.txt", "a")))
    tf.saved_model.save(first, path)
    (path / "notes.txt").write_text("mine")
    (path / "assets.extra").mkdir()
    (path / "assets.extra" / "more").write_text("mine too")
    tf.saved_model.save(module(file=tf.saved_model.Asset(_file(tmp_path / "b.txt", "b"))), path)
    assert sorted(os.listdir(path)) == [
        "assets",
        "assets.extra",
        "fingerprint.pb",
        "notes.txt",
        "saved_model.pb",
        "variables",
    ]
    assert os.listdir(path / "assets") == ["b.txt"]
    assert (path / "assets.extra" / "more").read_text() == "mine too"
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt", "model"]
    loaded = tf.saved_model.load(path)
    assert tf.io.read_file(loaded.file.asset_path).numpy() == b"b"
    tf.saved_model.save(loaded, path)  # the asset lies in the directory that is replaced
    assert tf.io.read_file(tf.saved_model.load(path).file.asset_path).numpy() == b"b"


def _file(path, text):
    path.write_text(text)
    return str(path)


def test_assets_of_one_name(tmp_path):
    """Two files of the same name are two assets."""
    paths = []
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        paths.append(_file(tmp_path / name / "words.txt", name))
    tf.saved_model.save(module(files=[tf.saved_model.Asset(path) for path in paths]), tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    assert [tf.io.read_file(each.asset_path).numpy() for each in loaded.files] == [b"x", b"y"]


def test_options(tmp_path):
    """Options add tags and aliases, leave out the saver, and load without a checkpoint or with a partial one."""
    model = module(f=typed(lambda x: x * 3.0))
    options = tf.saved_model.SaveOptions(
        function_aliases={"triple": model.f}, extra_tags=["mine"], experimental_skip_saver=True
    )
    tf.saved_model.save(model, tmp_path / "m", options=options)
    meta = SavedModel.FromString((tmp_path / "m" / "saved_model.pb").read_bytes()).meta_graphs[0]
    assert list(meta.meta_info_def.tags) == ["serve", "mine"]
    assert not meta.HasField("saver_def")
    load = tf.saved_model.LoadOptions
    loaded = tf.saved_model.load(tmp_path / "m", options=load(experimental_load_function_aliases=True))
    assert loaded.function_aliases["triple"][0](tf.constant([1.0])).numpy().tolist() == [3.0]
    bare = tf.saved_model.load(tmp_path / "m", options=load(experimental_skip_checkpoint=True))
    assert not bare.v.is_initialized()
    for file in (tmp_path / "m" / "variables").iterdir():
        file.unlink()
    with pytest.raises(tf.errors.DataLossError, match="no checkpoint"):
        tf.saved_model.load(tmp_path / "m")
    assert not tf.saved_model.load(tmp_path / "m", options=load(allow_partial_checkpoint=True)).v.is_initialized()
    with pytest.raises(NotImplementedError, match="experimental_image_format"):
        tf.saved_model.SaveOptions(experimental_image_format=True)
    with pytest.raises(ValueError, match="invalid VariablePolicy"):
        tf.saved_model.SaveOptions(experimental_variable_policy="nonsense")


def test_resources_of_a_users_own(tmp_path):
    """A TrackableResource is created and filled by its functions when the model is loaded."""

    class Counter(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.raw_ops.MutableHashTableV2(
                key_dtype=tf.string, value_dtype=tf.int64, shared_name="counter_of_test"
            )

        def _initialize(self):
            return tf.raw_ops.LookupTableInsertV2(
                table_handle=self.resource_handle, keys=["a"], values=tf.constant([7], tf.int64)
            )

    model = module(counter=Counter())
    model.f = typed(
        lambda keys: tf.raw_ops.LookupTableFindV2(
            table_handle=model.counter.resource_handle, keys=keys, default_value=tf.constant(0, tf.int64)
        ),
        tf.TensorSpec([None], tf.string),
    )
    tf.saved_model.save(model, tmp_path / "m")
    assert tf.saved_model.load(tmp_path / "m").f(tf.constant(["a", "b"])).numpy().tolist() == [7, 0]


def test_loaded_parts_are_trackable(tmp_path):
    """What was loaded can be saved in checkpoints, tables included, and restored."""
    model, _, _ = journey.tables(tf, str(tmp_path))
    tf.saved_model.save(model, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    path = tf.train.Checkpoint(loaded).save(tmp_path / "ckpt")
    loaded.insert(tf.constant(["p", "new"]), tf.constant([100, 1], tf.int64))
    tf.train.Checkpoint(loaded).restore(path).assert_existing_objects_matched()
    assert loaded.find(tf.constant(["p", "new"]))["mutable"].numpy().tolist() == [5, -1]


def test_models_do_not_share_resources(tmp_path):
    """Two loads of one model have tables and functions of their own."""
    model, _, _ = journey.tables(tf, str(tmp_path))
    tf.saved_model.save(model, tmp_path / "m")
    first, second = (tf.saved_model.load(tmp_path / "m") for _ in range(2))
    first.insert(tf.constant(["p"]), tf.constant([100], tf.int64))
    assert second.find(tf.constant(["p"]))["mutable"].numpy().tolist() == [5]
    assert model.find(tf.constant(["p"]))["mutable"].numpy().tolist() == [5]


def test_remote_paths():
    """A model may lie on any file system that fsspec knows."""
    tf.saved_model.save(module(f=typed(lambda x: x + 1)), "memory://models/one")
    assert tf.saved_model.load("memory://models/one").f(tf.constant([1.0])).numpy().tolist() == [2.0]


@pytest.mark.parametrize("name", ["../../secret", "/etc/hostname", "a/../../b", "..\\x", "", "a\0b"])
def test_assets_stay_inside_of_the_model(name, tmp_path):
    """The name of an asset comes from the file, and may not lead out of the model's directory."""
    tf.saved_model.save(module(file=tf.saved_model.Asset(_file(tmp_path / "a.txt", "a"))), tmp_path / "m")
    path = tmp_path / "m" / "saved_model.pb"
    model = SavedModel.FromString(path.read_bytes())
    model.meta_graphs[0].asset_file_def[0].filename = name
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match="outside of the model's directory"):
        tf.saved_model.load(tmp_path / "m")


def test_fingerprints(tmp_path):
    """Two models of one program differ in the checksum of their files and in their values; a model without a fingerprint, or with a damaged one, loads."""

    class Scaled(tf.Module):
        def __init__(self, value):
            self.value = tf.Variable(value)

        @tf.function(input_signature=[tf.TensorSpec([None])])
        def __call__(self, x):
            return x * self.value

    read = tf.saved_model.experimental.read_fingerprint
    for name, value in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        tf.saved_model.save(Scaled(value), tmp_path / name)
    a, b, c = (read(tmp_path / name) for name in "abc")
    assert a == b and a.singleprint() == b.singleprint() and a.saved_model_checksum != b.saved_model_checksum
    assert a != c and a.graph_def_program_hash == c.graph_def_program_hash and a.checkpoint_hash != c.checkpoint_hash
    assert str(a).startswith("SavedModel Fingerprint\n  saved_model_checksum: ")
    index = (tmp_path / "a" / "variables" / "variables.index").read_bytes()
    assert a.checkpoint_hash == int.from_bytes(tf.fingerprint([index]).numpy().tobytes(), "little")

    (tmp_path / "b" / "fingerprint.pb").write_bytes(b"\xff\xff")
    with pytest.raises(RuntimeError, match="Could not read fingerprint"):
        read(tmp_path / "b")
    (tmp_path / "c" / "fingerprint.pb").unlink()
    with pytest.raises(FileNotFoundError, match="Could not find fingerprint in directory"):
        read(tmp_path / "c")
    assert [tf.saved_model.load(tmp_path / name)(tf.constant([3.0])).numpy()[0] for name in "bc"] == [3.0, 6.0]
