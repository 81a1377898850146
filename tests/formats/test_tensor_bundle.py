"""Checkpoint files of both formats against those TensorFlow wrote (tests/golden/checkpoints)."""

import functools
import json
import os
import pathlib
import shutil
import uuid
import zlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base import dtypes, errors
from stoker._src.formats import gfile, protos, sstable
from stoker._src.formats.checkpoint_v1 import SliceReader
from stoker._src.formats.framing import crc32c, mask
from stoker._src.formats.tensor_bundle import BundleReader, BundleWriter, merge_bundles

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "checkpoints" / "written"
VALUES = {name.replace("|", "/"): value for name, value in np.load(GOLDEN / "values.npz").items()}
PART = VALUES.pop("part")
STRINGS = np.array([[b"a", b"bb"], [b"", b"x" * 300]], object)
# In the order of make.py, which is that of the data file.
ORDER = (
    "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 bool complex64 complex128 a_bfloat16 a_qint8 z_string"
)
NAMES = [*ORDER.split(), "scalar", "empty", *sorted(name for name in VALUES if "/" in name)]


def expected(name):
    if name == "z_string":
        return STRINGS
    if name == "a_bfloat16":
        return VALUES[name].view(ml_dtypes.bfloat16)
    return VALUES[name]


def same_bytes(prefix, golden_name):
    for path in GOLDEN.glob(golden_name + ".*"):
        ours = prefix + path.name[len(golden_name) :]
        assert pathlib.Path(ours).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_is_read(name):
    """Each tensor of TensorFlow's file has its dtype, shape and value."""
    with BundleReader(str(GOLDEN / "all")) as reader:
        value = reader.read(name)
        assert value.dtype == expected(name).dtype
        np.testing.assert_array_equal(value, expected(name))
        assert reader.info(name).shape == value.shape
        wanted = {"a_qint8": "qint8", "a_bfloat16": "bfloat16", "z_string": "string"}.get(name, str(value.dtype))
        assert reader.info(name).dtype.name == wanted


def test_names_are_listed():
    """keys gives every tensor and no slice or header."""
    with BundleReader(str(GOLDEN / "all")) as reader:
        assert reader.keys() == sorted(NAMES)
        assert "scalar" in reader and "nothing" not in reader
    with BundleReader(str(GOLDEN / "sliced")) as reader:
        assert reader.keys() == ["p", "z"]


def test_files_are_tensorflows_byte_for_byte(tmp_path):
    """Writing the same tensors in the same order gives the same two files."""
    prefix = str(tmp_path / "all")
    with BundleWriter(prefix) as writer:
        for name in NAMES:
            writer.add(name, expected(name), dtypes.qint8 if name == "a_qint8" else None)
    same_bytes(prefix, "all")


def test_large_index_is_tensorflows_byte_for_byte(tmp_path):
    """An index of several blocks is cut into them where TensorFlow cuts it."""
    prefix = str(tmp_path / "many")
    with BundleWriter(prefix) as writer:
        for i in range(15000):
            writer.add(f"some/scope/of/a/variable/number_{i:05d}", np.uint8(i % 256))
    for name, digest in json.loads((GOLDEN / "digests.json").read_text()).items():
        assert zlib.crc32((tmp_path / name).read_bytes()) == digest
    assert (tmp_path / "many.index").stat().st_size > 1 << 18
    with BundleReader(prefix) as reader:
        assert reader.read("some/scope/of/a/variable/number_14999") == 14999 % 256


def test_partitioned_tensors(tmp_path):
    """Slices are put together, cut anew, and written as TensorFlow writes them."""
    with BundleReader(str(GOLDEN / "sliced")) as reader:
        np.testing.assert_array_equal(reader.read("p"), PART)
        np.testing.assert_array_equal(reader.read_slice("p", [(2, 2), (1, 2)]), PART[2:4, 1:3])
        np.testing.assert_array_equal(reader.read_slice("z", [(2, 2), (0, -1)]), PART[2:4])
        assert reader.read_slice("p", [(2, 0), (0, -1)]).shape == (0, 4)
        assert reader.info("p").slices == (((0, 3), (0, -1)), ((3, 2), (0, -1)))
        with pytest.raises(errors.InvalidArgumentError, match="passes its shape"):
            reader.read_slice("p", [(4, 2), (0, -1)])
    prefix = str(tmp_path / "sliced")
    with BundleWriter(prefix) as writer:
        writer.add_slice("p", (5, 4), [(0, 3), (0, -1)], PART[:3])
        writer.add_slice("p", (5, 4), [(3, 2), (0, -1)], PART[3:])
        writer.add("z", PART)
    same_bytes(prefix, "sliced")


def test_merged_bundles(tmp_path):
    """Several bundles become the shards of one, as MergeV2Checkpoints does."""
    prefixes = [str(tmp_path / f"part{i}") for i in range(2)]
    for i, prefix in enumerate(prefixes):
        with BundleWriter(prefix) as writer:
            writer.add(f"a{i}", np.float32(i))
            writer.add_slice("p", (4, 4), [(2 * i, 2), (0, -1)], PART[:2] + np.float32(i))
    merged = str(tmp_path / "merged")
    merge_bundles(prefixes, merged)
    same_bytes(merged, "merged")
    assert sorted(os.listdir(tmp_path)) == [
        "merged.data-00000-of-00002", "merged.data-00001-of-00002", "merged.index",
    ]  # fmt: skip
    with BundleReader(merged) as reader:
        np.testing.assert_array_equal(reader.read("p"), np.concatenate([PART[:2], PART[:2] + np.float32(1)]))


def test_merging_refuses_a_tensor_that_comes_twice(tmp_path):
    """A whole tensor in two bundles is an error, and no file is renamed."""
    prefixes = [str(tmp_path / f"part{i}") for i in range(2)]
    for prefix in prefixes:
        with BundleWriter(prefix) as writer:
            writer.add("a", np.float32(1))
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(errors.InvalidArgumentError, match="more than one"):
        merge_bundles(prefixes, str(tmp_path / "merged"))
    assert sorted(os.listdir(tmp_path)) == before


def test_old_format():
    """Checkpoints of the V1 format are read, whole and sliced."""
    with SliceReader(str(GOLDEN / "v1")) as reader:
        for name in sorted(reader.keys()):
            value = reader.read(name)
            assert value.dtype == expected(name).dtype
            np.testing.assert_array_equal(value, expected(name))
            assert reader.info(name).slices == ()
        assert len(reader.keys()) == len(NAMES) - 4
        with pytest.raises(errors.NotFoundError, match=r"nothing.* not found in checkpoint files"):
            reader.read("nothing")
    with SliceReader(str(GOLDEN / "v1_sliced")) as reader:
        np.testing.assert_array_equal(reader.read("p"), PART)
        np.testing.assert_array_equal(reader.read_slice("p", [(2, 2), (0, 1)]), PART[2:4, :1])
    with pytest.raises(errors.NotFoundError, match=r"^Unsuccessful TensorSliceReader constructor: Failed to find any"):
        SliceReader(str(GOLDEN / "no_such_file"))
    with pytest.raises(errors.DataLossError, match="not an sstable"):
        SliceReader(str(GOLDEN / "values.npz"))


arrays = st.sampled_from([np.float32, np.int64, np.bool_, np.complex64, ml_dtypes.bfloat16, np.uint16]).flatmap(
    lambda dtype: st.lists(st.integers(0, 3), max_size=3).map(lambda shape: np.ones(shape, dtype))
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8", min_codepoint=1), min_size=1, max_size=8), arrays))
@settings(max_examples=25, deadline=None)
def test_round_trip(tensors):
    """Any names, dtypes and shapes, empty and 0-d included, come back as they were."""
    prefix = f"memory://{uuid.uuid4().hex}/model"
    try:
        with BundleWriter(prefix) as writer:
            for name, value in tensors.items():
                writer.add(name, value)
        with BundleReader(prefix) as reader:
            assert set(reader.keys()) == set(tensors)
            for name, value in tensors.items():
                back = reader.read(name)
                assert (back.dtype, back.shape) == (value.dtype, value.shape)
                assert (back == value).all()
    finally:
        gfile.rmtree(os.path.dirname(prefix))


def test_values_may_be_written_to():
    """A tensor that was read is the caller's own, and aligned."""
    with BundleReader(str(GOLDEN / "all")) as reader:
        value = reader.read("float32")
        value[0, 0] = 1
        assert value.flags.aligned
        assert reader.read("float32")[0, 0] == VALUES["float32"][0, 0]


def copied(tmp_path, name="all"):
    for path in GOLDEN.glob(name + ".*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return str(tmp_path / name)


def test_damaged_data_is_reported(tmp_path):
    """Every byte of the data file is under a checksum; one that changed names its tensor."""
    prefix = copied(tmp_path)
    path = tmp_path / "all.data-00000-of-00001"
    good = path.read_bytes()
    for position in range(0, len(good), 7):
        bad = bytearray(good)
        bad[position] ^= 0x10
        path.write_bytes(bad)
        failures = []
        with BundleReader(prefix) as reader:
            for name in list(reader.keys()):
                try:
                    reader.read(name)
                except errors.DataLossError as error:
                    failures.append((name, error.message))
        assert (len(failures) == 1 and failures[0][0] in failures[0][1]) or failures[0][0] == "z_string", position


def test_missing_and_short_files(tmp_path):
    """No index, no data file, or too little data: each is told by its own error."""
    with pytest.raises(errors.NotFoundError, match=r"nothing\.index"):
        BundleReader(str(tmp_path / "nothing"))
    prefix = copied(tmp_path)
    path = tmp_path / "all.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:100])
    with BundleReader(prefix) as reader, pytest.raises(errors.DataLossError, match="which has 100"):
        reader.read("z_string")
    path.unlink()
    with BundleReader(prefix) as reader:
        with pytest.raises(errors.NotFoundError, match="data-00000-of-00001"):
            reader.read("scalar")
        with pytest.raises(errors.NotFoundError, match="Key nothing not found in checkpoint"):
            reader.read("nothing")


def test_promises_of_the_index_are_checked_before_allocating(tmp_path):
    """An index that names a tensor of exabytes is refused by its numbers."""
    prefix = str(tmp_path / "model")
    (tmp_path / "model.data-00000-of-00001").write_bytes(b"1234")
    header = protos.BundleHeaderProto(num_shards=1)
    liar = protos.BundleEntryProto(dtype=1, size=1 << 60)
    liar.shape.dim.add(size=1 << 58)
    sliced = protos.BundleEntryProto(dtype=1)
    sliced.shape.dim.add(size=1 << 58)
    sliced.slices.add().extent.add(start=0, length=1 << 58)
    negative = protos.BundleEntryProto(dtype=1)
    negative.shape.dim.add(size=-1)
    far = protos.BundleEntryProto(dtype=1, shard_id=3, size=4)
    entries = {b"": header, b"far": far, b"liar": liar, b"negative": negative, b"sliced": sliced}
    with open(prefix + ".index", "wb") as sink:
        table = sstable.TableWriter(sink)
        for key, proto in entries.items():
            table.add(key, proto.SerializeToString())
        table.finish()
    with BundleReader(prefix) as reader:
        for name in ("far", "liar", "negative"):
            with pytest.raises(errors.DataLossError, match=name):
                reader.read(name)
        with pytest.raises(errors.NotFoundError, match="sliced"):
            reader.read("sliced")


def test_big_endian_bundles(tmp_path):
    """A bundle written on a big-endian machine says so, and its numbers are turned around."""
    value = np.arange(6, dtype=">f4").reshape(2, 3)
    data = value.tobytes()
    (tmp_path / "model.data-00000-of-00001").write_bytes(data)
    header = protos.BundleHeaderProto(num_shards=1, endianness=protos.BundleHeaderProto.BIG)
    entry = protos.BundleEntryProto(dtype=1, size=len(data), crc32c=mask(crc32c(data)))
    for size in value.shape:
        entry.shape.dim.add(size=size)
    with open(tmp_path / "model.index", "wb") as sink:
        table = sstable.TableWriter(sink)
        table.add(b"", header.SerializeToString())
        table.add(b"a", entry.SerializeToString())
        table.finish()
    with BundleReader(str(tmp_path / "model")) as reader:
        np.testing.assert_array_equal(reader.read("a"), value)
        assert reader.read("a").dtype == np.float32


def test_an_exception_leaves_nothing_behind(tmp_path):
    """A writer that is left by an exception removes its temporary file; a bundle before it stays whole."""
    prefix = str(tmp_path / "model")
    with BundleWriter(prefix) as writer:
        writer.add("a", np.float32(1))
    with pytest.raises(KeyError), BundleWriter(prefix) as writer:
        writer.add("a", np.float32(2))
        raise KeyError
    assert sorted(os.listdir(tmp_path)) == ["model.data-00000-of-00001", "model.index"]
    with BundleReader(prefix) as reader:
        assert reader.read("a") == 1


def test_what_a_writer_refuses(tmp_path):
    """Duplicate names, dtypes that do not fit, slices that do not fit."""
    with BundleWriter(str(tmp_path / "model")) as writer:
        writer.add("a", np.float32(1))
        for name in ("a", ""):
            with pytest.raises(errors.InvalidArgumentError, match="Adding duplicate key"):
                writer.add(name, np.float32(1))
        with pytest.raises(errors.InvalidArgumentError, match="array has dtype"):
            writer.add("b", np.float32(1), dtypes.int32)
        with pytest.raises(errors.UnimplementedError, match="cannot be stored"):
            writer.add("b", np.array(None), dtypes.variant)
        writer.add_slice("p", (4,), [(0, 2)], np.zeros(2, np.float32))
        with pytest.raises(errors.InvalidArgumentError, match="its value"):
            writer.add_slice("p", (4,), [(2, 2)], np.zeros(3, np.float32))
        with pytest.raises(errors.InvalidArgumentError, match="disagrees"):
            writer.add_slice("p", (5,), [(2, 2)], np.zeros(2, np.float32))
        with pytest.raises(errors.InvalidArgumentError, match="disagrees"):
            writer.add_slice("a", (4,), [(2, 2)], np.zeros(2, np.float32))
    with pytest.raises(errors.FailedPreconditionError, match="finished"):
        writer.add("c", np.float32(1))
    with (
        BundleReader(str(tmp_path / "model")) as reader,
        pytest.raises(errors.InvalidArgumentError, match="sufficient slices"),
    ):
        reader.read("p")


@pytest.mark.parametrize("shards", [1, 2])
def test_a_bundle_is_replaced_in_one_step(tmp_path, monkeypatch, shards):
    """Whichever step fails while a bundle is written over another, the old or the new one is there, and the next leaves no other file."""
    prefix = str(tmp_path / "model")

    def write(value):
        for shard in range(shards):
            with BundleWriter(f"{tmp_path}/parts/{shard}" if shards > 1 else prefix) as writer:
                writer.add(f"v{shard}", np.full(9, value))
        if shards > 1:
            merge_bundles([f"{tmp_path}/parts/{shard}" for shard in range(shards)], prefix)

    def read():
        with BundleReader(prefix) as reader:
            values = {float(each) for shard in range(shards) for each in reader.read(f"v{shard}")}
        (value,) = values  # all of one bundle
        return value

    write(0.0)
    files = sorted(os.listdir(tmp_path))
    real = {name: getattr(os, name) for name in ("link", "replace")}
    seen = set()
    for failing in range(1, 7 + shards):
        calls = []

        def broken(name, source, target, failing=failing, calls=calls):
            if os.path.dirname(target) == str(tmp_path):
                calls.append(target)
                if len(calls) == failing:
                    raise OSError(5, "Input/output error")
            return real[name](source, target)

        for name in real:
            monkeypatch.setattr(os, name, functools.partial(broken, name))
        value = read() + 1
        try:
            write(value)
        except (OSError, errors.OpError):
            seen.add(read() - value)
        monkeypatch.undo()
        shutil.rmtree(tmp_path / "parts", ignore_errors=True)
        assert read() in (value - 1, value)
        write(value)
        assert read() == value
        assert sorted(os.listdir(tmp_path)) == files
    assert seen == {0.0, -1.0}
