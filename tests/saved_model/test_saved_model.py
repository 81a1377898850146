"""SavedModels of 1.x: what the builder writes, what the loader makes of it, signatures, assets, main ops."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.formats.protos import AssetFileDef, SavedModel

GOLDEN = Path(__file__).parent.parent / "golden" / "saved_model"


def _written(folder):
    """The golden script's model, written by stoker."""
    source = (GOLDEN / "one.py").read_text().replace("import tensorflow as tensorflow", "import stoker as tensorflow")
    scope = {"__name__": "golden"}
    exec(compile(source, "one.py", "exec"), scope)
    scope["write"](str(folder))
    return folder


def _message(folder):
    return SavedModel.FromString((Path(folder) / "saved_model.pb").read_bytes())


@pytest.fixture(params=["one_tf1", "one_tf2", "ours"])
def model(request, tmp_path):
    """The same model, written by TensorFlow 1.15, TensorFlow 2.21 and stoker."""
    if request.param == "ours":
        return _written(tmp_path / "model")
    return GOLDEN / request.param


def test_models_load_and_run(model):
    """Variables have their values, assets are found in the model, and the main op has run."""
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], str(model))
        signature = meta.signature_def["serving_default"]
        fed = {signature.inputs["x"].name: [[1.0, 1.0], [0.0, 3.0]]}
        assert session.run(signature.outputs["y"].name, fed).tolist() == [[3.0], [6.0]]
        assert session.run("ids:0", {"words:0": ["two", "one", "none"]}).tolist() == [1, 0, -1]
        assert session.run(tf.local_variables()) == [5]


def test_models_load_into_a_scope(model):
    """All names get the scope; the model can be loaded twice."""
    with tf.Graph().as_default(), tf.Session() as session:
        for scope in ("first", "second"):
            tf.saved_model.loader.load(session, {"serve"}, str(model), import_scope=scope)
            assert session.run(f"{scope}/y:0", {f"{scope}/x:0": [[1.0, 1.0]]}).tolist() == [[3.0]]
            assert session.run(f"{scope}/ids:0", {f"{scope}/words:0": ["two"]}).tolist() == [1]


def test_a_model_may_be_moved(tmp_path):
    """Assets and variables are found wherever the directory is."""
    _written(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], str(tmp_path / "there"))
        assert session.run("ids:0", {"words:0": ["two"]}).tolist() == [1]


def test_what_is_written(tmp_path):
    """Files, tags, collections, signatures and the saver are as TensorFlow writes them."""
    ours, theirs = _message(_written(tmp_path / "model")), _message(GOLDEN / "one_tf1")
    assert ours.saved_model_schema_version == theirs.saved_model_schema_version == 1
    (meta,), (expected,) = ours.meta_graphs, theirs.meta_graphs
    assert list(meta.meta_info_def.tags) == list(expected.meta_info_def.tags)
    for key, signature in expected.signature_def.items():
        assert meta.signature_def[key] == signature
    assert meta.saver_def == expected.saver_def
    assert set(meta.collection_def) == set(expected.collection_def)
    kinds = {key: each.WhichOneof("kind") for key, each in expected.collection_def.items()}
    assert {key: each.WhichOneof("kind") for key, each in meta.collection_def.items()} == kinds
    (packed,) = meta.collection_def["saved_model_assets"].any_list.value
    assert packed.type_url == "type.googleapis.com/tensorflow.AssetFileDef"
    assert AssetFileDef.FromString(packed.value).filename == "words.txt"
    assert list(meta.collection_def["saved_model_main_op"].node_list.value) == ["main"]
    found = sorted(
        str(path.relative_to(tmp_path / "model")) for path in (tmp_path / "model").rglob("*") if path.is_file()
    )
    assert found == [
        "assets/words.txt",
        "saved_model.pb",
        "variables/variables.data-00000-of-00001",
        "variables/variables.index",
    ]


def test_several_meta_graphs_share_variables(tmp_path):
    """The first meta graph writes the variables; others are found by their own tags, exactly."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=3.0)
        session.run(variable.initializer)
        builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "model"))
        with pytest.raises(AssertionError, match="has not been saved yet"):
            builder.add_meta_graph(["train"])
        builder.add_meta_graph_and_variables(session, ["serve", "gpu"])
        with pytest.raises(AssertionError, match="has already been saved"):
            builder.add_meta_graph_and_variables(session, ["serve"])
        with pytest.raises(AssertionError, match="already exists, and isn't empty"):
            tf.saved_model.Builder(str(tmp_path / "model"))
    with tf.Graph().as_default():
        tf.multiply(tf.get_variable("v", initializer=0.0), 2.0, name="twice")
        builder.add_meta_graph(["train"])
    assert builder.save() == os.fsencode(tmp_path / "model" / "saved_model.pb")
    builder.save(as_text=True)
    assert tf.saved_model.contains_saved_model(str(tmp_path / "model"))
    assert not tf.saved_model.loader.maybe_saved_model_directory(str(tmp_path))
    os.remove(tmp_path / "model" / "saved_model.pb")  # the text alone will do
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["train"], str(tmp_path / "model"))
        assert session.run("twice:0") == 6.0
        with pytest.raises(RuntimeError, match="MetaGraphDef associated with tags 'serve' could not be found"):
            tf.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        with pytest.raises(OSError, match="SavedModel file does not exist at"):
            tf.saved_model.load(session, ["serve"], str(tmp_path / "none"))


def test_models_without_variables(tmp_path):
    """A graph without variables is a model too."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [], name="x")
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": x * 2.0})
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        output = meta.signature_def["serving_default"].outputs["y"].name
        assert session.run(output, {"x:0": 4.0}) == 8.0


def test_assets_of_one_name(tmp_path):
    """Files of one name from two directories are kept apart; an asset must be a constant."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.txt").write_text(name)
    with tf.Graph().as_default(), tf.Session() as session:
        assets = [tf.constant(str(tmp_path / name / "words.txt")) for name in ("a", "b", "a")]
        builder = tf.saved_model.Builder(str(tmp_path / "model"))
        with pytest.raises(TypeError, match="must be of type constant"):
            builder.add_meta_graph_and_variables(session, ["serve"], assets_collection=[tf.identity(assets[0])])
        builder.add_meta_graph_and_variables(session, ["serve"], assets_collection=assets)
        builder.save()
    assert (tmp_path / "model" / "assets" / "words.txt").read_text() == "a"
    assert (tmp_path / "model" / "assets" / "words.txt_1").read_text() == "b"
    assert len(os.listdir(tmp_path / "model" / "assets")) == 2


def test_assets_may_not_lead_out_of_the_model(tmp_path):
    """A model that names a file outside of its directory is refused."""
    model = _message(_written(tmp_path / "model"))
    (packed,) = model.meta_graphs[0].collection_def["saved_model_assets"].any_list.value
    described = AssetFileDef.FromString(packed.value)
    described.filename = "../../secret"
    packed.value = described.SerializeToString()
    (tmp_path / "model" / "saved_model.pb").write_bytes(model.SerializeToString())
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(ValueError, match="outside of the model"):
        tf.saved_model.load(session, ["serve"], str(tmp_path / "model"))


def test_damaged_models(tmp_path):
    """A file that is not a model is an OSError."""
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(OSError, match="Cannot parse file"):
        tf.saved_model.load(session, ["serve"], str(tmp_path))


def test_main_ops(tmp_path):
    """A graph has one main op, which must be an operation; `legacy_init_op` is its older name."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=3.0)
        session.run(variable.initializer)
        builder = tf.saved_model.Builder(str(tmp_path / "model"))
        with pytest.raises(TypeError, match="to be an Operation"):
            builder.add_meta_graph_and_variables(session, ["serve"], main_op=variable.value())
        builder.add_meta_graph_and_variables(session, ["serve"], legacy_init_op=tf.assign_add(variable, 1.0).op)
        with pytest.raises(ValueError, match="already contains one or more main ops"):
            builder.add_meta_graph(["other"], main_op=tf.saved_model.main_op.main_op())
        builder.save()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        assert session.run(tf.global_variables()) == [4.0]


def test_signatures():
    """Signatures name tensors; those of classification and regression ask for dtypes."""
    sm = tf.saved_model
    with tf.Graph().as_default():
        texts, numbers = tf.placeholder(tf.string, [None]), tf.placeholder(tf.float32, [3])
        sparse = tf.sparse_placeholder(tf.float32, [2, 3])
        classified = sm.classification_signature_def(texts, texts, numbers)
        assert (set(classified.outputs), classified.method_name) == ({"classes", "scores"}, sm.CLASSIFY_METHOD_NAME)
        predicted = sm.signature_def_utils.predict_signature_def({"s": sparse, "t": texts}, {"n": numbers})
        assert predicted.inputs["t"].tensor_shape.dim[0].size == -1
        assert predicted.inputs["s"].coo_sparse.values_tensor_name == sparse.values.name
        found = sm.utils.get_tensor_from_tensor_info(predicted.inputs["s"])
        assert (found.values, found.indices) == (sparse.values, sparse.indices)
        assert sm.get_tensor_from_tensor_info(predicted.outputs["n"]) is numbers
        valid = [sm.regression_signature_def(texts, numbers), predicted, classified]
        assert all(map(sm.is_valid_signature, valid))
        assert not sm.is_valid_signature(None)
        assert not sm.is_valid_signature(sm.build_signature_def())
        for refused, text in (
            (lambda: sm.classification_signature_def(texts, None, None), "cannot both be None"),
            (lambda: sm.classification_signature_def(numbers, texts, numbers), "input tensors must be of type string"),
            (lambda: sm.regression_signature_def(texts, texts), "output tensors must be of type float"),
            (lambda: sm.regression_signature_def(None, numbers), "`examples` cannot be None"),
            (lambda: sm.predict_signature_def({}, {"a": numbers}), "`inputs` cannot be None or empty"),
        ):
            with pytest.raises(ValueError, match=text):
                refused()


def test_clearing_devices_and_defaults(tmp_path):
    """Devices and attributes with their defaults are left out where that is asked for."""
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("/cpu:0"):
            tf.constant(np.float32(1.0), name="placed")
        builder = tf.saved_model.Builder(str(tmp_path / "model"))
        builder.add_meta_graph_and_variables(session, ["serve"], clear_devices=True, strip_default_attrs=True)
        builder.save()
    (meta,) = _message(tmp_path / "model").meta_graphs
    assert meta.meta_info_def.stripped_default_attrs
    assert {node.device for node in meta.graph_def.node} == {""}
