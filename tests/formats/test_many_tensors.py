"""Checkpoints of many tensors and of large ones: the extension against its twin in Python, and what is read together."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.base import dtypes
from stoker._src.formats import atomic, bundle_entries, protos, sstable, tensor_bundle
from stoker._src.formats.tensor_bundle import BundleReader, BundleWriter

needs_extension = pytest.mark.skipif(bundle_entries._native is None, reason="the extension is not built")


@needs_extension
@given(st.lists(st.binary(max_size=40), unique=True), st.data())
def test_tables_are_those_of_the_twin(keys, data):
    """The extension writes the same bytes for a table as Python does, whatever the sizes of blocks."""
    keys = sorted(keys)
    values = [data.draw(st.binary(max_size=60)) for _ in keys]
    assert sstable.write_table(keys, values) == sstable.write_table_python(keys, values)
    small = sstable._native.write_table(keys, values, 64, 3, sstable.MAGIC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sstable, "_BLOCK_SIZE", 64)
        patch.setattr(sstable, "_RESTART_INTERVAL", 3)
        assert small == sstable.write_table_python(keys, values)


@needs_extension
@given(st.binary(max_size=80))
def test_blocks_are_read_as_by_the_twin(block):
    """The extension reads a block as Python does, or leaves it to Python."""
    found = sstable._native.block_entries(block)
    if found is not None:
        assert found == list(sstable._entries_python(block))


@needs_extension
@given(st.lists(st.sampled_from([(), (3,), (0,), (2, 300), (1, 0, 2), (70000,)]), max_size=6), st.integers(0, 2**40))
def test_entries_are_those_of_the_twin(shapes, offset):
    """The extension writes and reads the same entries as Python."""
    arrays = [np.full(shape, 7, np.float32) for shape in shapes]
    kinds = bytes([1] * len(arrays))
    entries = bundle_entries._native.encode_entries(arrays, kinds, offset)
    assert entries == bundle_entries.encode_entries_python(arrays, kinds, offset)
    for entry in entries:
        assert bundle_entries._native.decode_entry(entry) == bundle_entries.decode_entry_python(entry)


@needs_extension
@given(st.binary(max_size=40))
def test_any_bytes_are_an_entry_or_none(data):
    """Bytes that the extension takes for an entry, Python takes for the same one."""
    found = bundle_entries._native.decode_entry(data)
    if found is not None:
        twin = bundle_entries.decode_entry_python(data)
        assert twin is None or found == (*twin[:2], *twin[2:])


def test_entries_with_slices_are_left_to_the_message():
    """An entry that lists slices is not a plain one."""
    entry = protos.BundleEntryProto(dtype=1)
    entry.slices.add()
    assert bundle_entries.decode_entry(entry.SerializeToString()) is None


def test_tensors_of_all_kinds_are_read_together(tmp_path):
    """Whatever lies side by side in a file, and whichever is asked for, each value is right."""
    random = np.random.default_rng(0)
    values = {
        "bool": random.integers(0, 2, 5).astype(bool),
        "half": random.normal(size=(3, 3)).astype(np.float16),
        "brain": random.normal(size=7).astype(ml_dtypes.bfloat16),
        "byte": np.arange(3, dtype=np.uint8),
        "double": random.normal(size=(2, 2)),
        "complex": random.normal(size=3) + 1j,
        "scalar": np.array(5, np.int64),
        "empty": np.zeros((0, 4), np.float32),
        "strided": np.arange(12.0, dtype=np.float32).reshape(3, 4).T,
        "large": random.normal(size=300_000).astype(np.float32),
        "text": np.array([b"a", b"bc"], object),
    }
    kinds = {
        name: dtypes.as_dtype(value.dtype) if value.dtype != object else dtypes.string for name, value in values.items()
    }
    prefix = str(tmp_path / "model")
    with BundleWriter(prefix) as writer:
        plain = [name for name in values if name != "text"]
        writer.add_all(
            [name.encode() for name in plain], [values[name] for name in plain], [kinds[name] for name in plain]
        )
        writer.add("text", values["text"])
    with BundleReader(prefix) as reader:
        names = list(values)
        random.shuffle(names)
        names.append(names[0])
        found = reader.read_all([name.encode() for name in names], [kinds[name] for name in names])
        for name, value in zip(names, found):
            np.testing.assert_array_equal(value, values[name])
            assert value.dtype == values[name].dtype
            assert value.flags.aligned
            np.testing.assert_array_equal(reader.read(name), values[name])
        with pytest.raises(tf.errors.NotFoundError, match="Key nothing not found in checkpoint"):
            reader.read_all([b"nothing"], [dtypes.float32])
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="expected dtype int32 does not equal original dtype float"
        ):
            reader.read_all([b"large"], [dtypes.int32])


def test_a_damaged_tensor_among_many_is_told(tmp_path):
    """The checksum of each tensor is checked, and the message names the one that is damaged."""
    prefix = str(tmp_path / "model")
    keys = [f"v{number}".encode() for number in range(50)]
    with BundleWriter(prefix) as writer:
        writer.add_all(keys, [np.full(8, 1.0, np.float32)] * 50, [dtypes.float32] * 50)
    path = Path(tensor_bundle.data_filename(prefix, 0, 1))
    data = bytearray(path.read_bytes())
    data[17 * 32 + 3] ^= 1
    path.write_bytes(data)
    with (
        BundleReader(prefix) as reader,
        pytest.raises(tf.errors.DataLossError, match="Checksum does not match for tensor v17"),
    ):
        reader.read_all(keys, [dtypes.float32] * 50)


def test_names_are_given_once(tmp_path):
    """Two tensors of one name, or one without a name, are refused, and leave no files."""
    for keys in ([b"a", b"b", b"a"], [b"a", b""]):
        with (
            pytest.raises(tf.errors.InvalidArgumentError, match="duplicate key"),
            BundleWriter(str(tmp_path / "m")) as writer,
        ):
            writer.add_all(keys, [np.zeros(1, np.float32)] * len(keys), [dtypes.float32] * len(keys))
    assert os.listdir(tmp_path) == []


def test_large_tensors_may_be_pages_of_the_file(tmp_path, monkeypatch):
    """A large tensor that is to be copied is mapped; what is copied can be let go of, and is read again where it is needed."""
    monkeypatch.setattr(tensor_bundle, "_MAPPED", 1 << 16)
    monkeypatch.setattr(tensor_bundle, "_RUN", 1 << 12)
    value = np.arange(100_000, dtype=np.float32)
    prefix = str(tmp_path / "model")
    with BundleWriter(prefix) as writer:
        writer.add_all([b"small", b"large"], [np.ones(3, np.float32), value], [dtypes.float32] * 2)
    with BundleReader(prefix) as reader:
        (found,) = reader.read_all([b"large"], [dtypes.float32], mappable=True)
        assert isinstance(found, np.memmap)
        tensor_bundle.let_go(found, 0, found.nbytes)
        np.testing.assert_array_equal(found, value)
        (copied,) = reader.read_all([b"large"], [dtypes.float32])
        assert not isinstance(copied, np.memmap)
    path = Path(tensor_bundle.data_filename(prefix, 0, 1))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.unlink()
    path.write_bytes(data)
    with BundleReader(prefix) as reader, pytest.raises(tf.errors.DataLossError, match="Checksum does not match"):
        reader.read_all([b"large"], [dtypes.float32], mappable=True)


def test_variables_take_mapped_values(tmp_path, monkeypatch):
    """Restoring a large variable gives it a copy of its own, whether it was initialized before or not."""
    monkeypatch.setattr(tensor_bundle, "_MAPPED", 1 << 20)
    monkeypatch.setattr(tensor_bundle, "_RUN", 1 << 16)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=np.arange(9_000_000, dtype=np.float32))
        session.run(variable.initializer)
        saver = tf.train.Saver()
        path = saver.save(session, str(tmp_path / "model"))
        session.run(variable.assign_add(np.ones(9_000_000, np.float32)))
        saver.restore(session, path)
        assert session.run([variable[0], variable[-1]]) == [0.0, 8_999_999.0]
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", [9_000_000])
        saver = tf.train.Saver()
        saver.restore(session, path)
        session.run(variable.assign_add(np.ones(9_000_000, np.float32)))
        assert session.run([variable[0], variable[-1]]) == [1.0, 9_000_000.0]
        saver.restore(session, path)  # the file was not written to
        assert session.run(variable[0]) == 0.0


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    """A save that cannot be finished takes away what it wrote: data, index, meta graph; older checkpoints stay."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=1.0)
        session.run(variable.initializer)
        saver = tf.train.Saver()
        saver.save(session, str(tmp_path / "model"), global_step=1)
        before = sorted(os.listdir(tmp_path))
        real, calls = os.fsync, []

        for failing in range(1, 5):  # data, index, meta graph, state file
            calls.clear()

            def fsync(descriptor, failing=failing):
                calls.append(descriptor)
                if len(calls) >= failing:
                    raise OSError(errno.ENOSPC, "No space left on device")
                real(descriptor)

            monkeypatch.setattr(os, "fsync", fsync)
            with pytest.raises((OSError, tf.errors.OpError)):
                saver.save(session, str(tmp_path / "model"), global_step=2)
            monkeypatch.setattr(os, "fsync", real)
            assert sorted(os.listdir(tmp_path)) == before
        assert [os.path.basename(path) for path in saver.last_checkpoints] == ["model-1"]
        saver.save(session, str(tmp_path / "model"), global_step=2)
        saver.restore(session, str(tmp_path / "model-2"))


def test_an_old_checkpoint_makes_room_for_a_whole_one(tmp_path, monkeypatch):
    """With room for the values only, the checkpoint that the new one replaces goes before the meta graph is written, and every save succeeds."""
    real, block = os.fsync, 4096

    def used():
        return sum(-(-path.stat().st_size // block) * block for path in tmp_path.iterdir())

    def fsync(descriptor):
        if used() > limit:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=np.arange(20_000, dtype=np.float32))
        session.run(variable.initializer)
        for kept in (1, 2):
            saver = tf.train.Saver(max_to_keep=kept)
            for step in range(kept):
                saver.save(session, str(tmp_path / f"model{kept}"), global_step=step)
            values = 80_000 // block * block + 2 * block
            monkeypatch.setattr(os, "fsync", fsync)
            limit = used() + values - 2 * block
            before = sorted(os.listdir(tmp_path))
            for step in range(kept, kept + 3):
                with pytest.raises((OSError, tf.errors.OpError)):
                    saver.save(session, str(tmp_path / f"model{kept}"), global_step=step)
                assert sorted(os.listdir(tmp_path)) == before
            limit = used() + values
            for step in range(kept, kept + 5):
                saver.save(session, str(tmp_path / f"model{kept}"), global_step=step)
                names = [f"model{kept}-{each}" for each in range(step - kept + 1, step + 1)]
                assert [os.path.basename(path) for path in saver.last_checkpoints] == names
                assert all((tmp_path / f"{name}.meta").exists() for name in names)
                assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / names[-1])
                saver.restore(session, str(tmp_path / names[-1]))
            monkeypatch.setattr(os, "fsync", real)


def test_files_of_killed_savers_are_swept(tmp_path):
    """What a killed writer left goes with the next save; what somebody is writing, and other files, stay."""
    program = textwrap.dedent(
        """
        import os, sys
        from stoker._src.formats import atomic
        files = atomic.Together()
        files.open(sys.argv[1]).write(b"half")
        os.kill(os.getpid(), 9)
        """
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "model.data-00000-of-00001")], check=False)
    left = os.listdir(tmp_path)
    assert len(left) == 1
    assert left[0].endswith(".tmp")
    (tmp_path / ".mine.tmp").write_bytes(b"")
    with atomic.Together() as files:
        files.open(tmp_path / "other").write(b"x")
        with BundleWriter(str(tmp_path / "model")) as writer:
            writer.add("v", np.zeros(3))
    assert sorted(os.listdir(tmp_path)) == [".mine.tmp", "model.data-00000-of-00001", "model.index", "other"]
