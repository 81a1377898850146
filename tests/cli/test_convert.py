"""`python -m stoker convert`: checkpoints to safetensors and back, bit for bit."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest
import safetensors.torch
import torch

import stoker.compat.v1 as tf
from stoker._src.base.dtypes import as_dtype
from stoker._src.cli.main import main
from stoker._src.formats.checkpoint_v1 import SliceWriter
from stoker._src.formats.tensor_bundle import BundleReader, BundleWriter


def _tensors() -> dict[str, np.ndarray]:
    random = np.random.RandomState(0)
    bits = random.randint(0, 2**32, 40, dtype=np.uint64).astype(np.uint32)
    return {
        "dense/kernel": bits.view(np.float32).reshape(5, 8),  # among them NaNs with payloads
        "dense/kernel/Adam": random.rand(5, 8).astype(np.float32),
        "half": random.rand(3).astype(np.float16),
        "brain": random.rand(2, 2).astype(ml_dtypes.bfloat16),
        "wide": random.rand(2).astype(np.float64),
        "step": np.asarray(7, np.int64),
        "empty": np.zeros([0, 3], np.int32),
        "flags": np.array([True, False]),
        "small": np.arange(4, dtype=np.uint8),
        "complex": np.array([1 + 2j], np.complex64),
    }


def _write(prefix: str, tensors: dict) -> None:
    with BundleWriter(prefix) as writer:
        for name, array in tensors.items():
            writer.add(name, array)


def _read(prefix: str) -> dict[str, np.ndarray]:
    with BundleReader(prefix) as reader:
        return {name: reader.read(name) for name in reader.keys()}  # noqa: SIM118


def _same(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert (
            found[name].tolist() == array.tolist()
            if array.dtype == object
            else found[name].tobytes() == array.tobytes()
        ), name


@pytest.mark.parametrize("options", [[], ["--max-shard-size", "100B"]], ids=["one file", "several files"])
def test_there_and_back(options, tmp_path, capsys):
    """Every dtype and every bit survives, also over several files with an index as Hugging Face writes it."""
    tensors = _tensors()
    prefix, target, back = (str(tmp_path / name) for name in ("model", "out.safetensors", "back"))
    _write(prefix, tensors)
    assert main(["convert", prefix, target, *options]) == 0
    assert "10 tensors, 372 bytes" in capsys.readouterr().out
    source = target
    if options:
        source = target + ".index.json"
        index = json.loads((tmp_path / "out.safetensors.index.json").read_text())
        files = sorted(path.name for path in tmp_path.glob("out-*.safetensors"))
        assert files[0] == f"out-00001-of-0000{len(files)}.safetensors"
        assert index["metadata"] == {"total_size": 372}
        assert set(index["weight_map"].values()) == set(files)
        assert index["weight_map"].keys() == tensors.keys()
    else:
        loaded = safetensors.torch.load_file(target)
        assert loaded["brain"].dtype is torch.bfloat16
        assert loaded["step"].item() == 7
    assert main(["convert", source, back]) == 0
    _same(_read(back), tensors)


def test_names_change_and_some_stay_behind(tmp_path, capsys):
    """A map, rules and --skip apply in this order; the way back takes the inverse; two tensors never get one name."""
    tensors = {"a/kernel": np.ones(2, np.float32), "a/kernel/Adam": np.zeros(2, np.float32), "b": np.ones(1, np.int32)}
    prefix, target = str(tmp_path / "model"), str(tmp_path / "out.safetensors")
    _write(prefix, tensors)
    (tmp_path / "map.json").write_text('{"b": "bias/of/b"}')
    arguments = ["--map", str(tmp_path / "map.json"), "--rename", "/=.", "--rename", "kernel$=weight", "--skip", "Adam"]
    assert main(["convert", prefix, target, *arguments]) == 0
    assert "1 left out: a/kernel/Adam" in capsys.readouterr().out
    assert sorted(safetensors.torch.load_file(target)) == ["a.weight", "bias/of/b"]
    assert main(["convert", target, str(tmp_path / "back"), "--rename", r"^(\w)\.weight=\1/kernel"]) == 0
    assert sorted(_read(str(tmp_path / "back"))) == ["a/kernel", "bias/of/b"]
    assert main(["convert", prefix, target, "--rename", ".*=x"]) == 1
    assert "a/kernel and a/kernel/Adam would both be named x" in capsys.readouterr().err.replace("xx", "x")


def test_what_cannot_be_converted_is_named(tmp_path, capsys):
    """Strings and unknown dtypes are refused by name with what to do; damaged files and paths out of a directory are refused."""
    prefix, target = str(tmp_path / "model"), str(tmp_path / "out.safetensors")
    names = np.empty(1, object)
    names[0] = b"x"
    _write(prefix, {"words": names, "deep": np.zeros(1, np.complex128), "w": np.zeros(1, np.float32)})
    assert main(["convert", prefix, target, "--skip", "deep"]) == 1
    assert (
        "words holds strings, and safetensors holds numbers only. Leave it out with --skip 'words'"
        in capsys.readouterr().err
    )
    assert main(["convert", prefix, target, "--skip", "words"]) == 1
    assert "deep is complex128" in capsys.readouterr().err
    assert main(["convert", prefix, target, "--skip", "words|deep"]) == 0
    good = (tmp_path / "out.safetensors").read_bytes()
    for bad in (b"", good[:20], good[:-1], b"\xff" * 8 + good[8:]):
        (tmp_path / "bad.safetensors").write_bytes(bad)
        assert main(["convert", str(tmp_path / "bad.safetensors"), str(tmp_path / "never")]) == 1
    (tmp_path / "bad.safetensors.index.json").write_text('{"weight_map": {"w": "../out.safetensors"}}')
    assert main(["convert", str(tmp_path / "bad.safetensors.index.json"), str(tmp_path / "never")]) == 1
    assert "not beside it" in capsys.readouterr().err
    assert not list(tmp_path.glob("never*"))
    for arguments in (
        ["--rename", "x"],
        ["--rename", "(=x"],
        ["--skip", "("],
        ["--max-shard-size", "many"],
        ["--map", prefix + ".index"],
    ):
        assert main(["convert", prefix, target, *arguments]) == 1
    assert main(["convert", str(tmp_path / "nothing"), target]) == 1
    with pytest.raises(SystemExit):
        main(["convert", "a", "b"])


def test_object_based_and_older_checkpoints(tmp_path):
    """The description of objects travels along, so that objects restore from what comes back; the older format is read, too."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [2], initializer=tf.constant_initializer(3.0))
        session.run(v.initializer)
        saved = tf.train.Checkpoint(v=v).save(str(tmp_path / "objects"), session=session)
        target = str(tmp_path / "objects.safetensors")
        assert main(["convert", str(tmp_path), target, "--max-shard-size", "4"]) == 0
        assert main(["convert", target + ".index.json", str(tmp_path / "again")]) == 0
        _same(_read(str(tmp_path / "again")), _read(saved))
        session.run(v.assign([0.0, 0.0]))
        tf.train.Checkpoint(v=v).restore(str(tmp_path / "again")).assert_consumed().run_restore_ops(session)
        assert session.run(v).tolist() == [3.0, 3.0]
    older = str(tmp_path / "older")
    writer = SliceWriter(older)
    writer.add("w", np.arange(3, dtype=np.float32), as_dtype("float32"))
    writer.finish()
    assert main(["convert", older, str(tmp_path / "older.safetensors")]) == 0
    assert safetensors.torch.load_file(str(tmp_path / "older.safetensors"))["w"].tolist() == [0.0, 1.0, 2.0]
