"""Damaged and hostile checkpoints and SavedModels: an error, or the same values, without allocating what a file claims. `scripts/damage.py` tries all."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.formats import protos, tensor_bundle
from stoker._src.formats.ordered_code import encode_slice_key
from stoker._src.formats.tensor_bundle import BundleWriter

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))

from damage import CASES, run


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the memory of the process is limited by what /proc tells"
)
@pytest.mark.parametrize(
    ("kind", "stride"), [("bundle", 7), ("v1", 9), ("meta", 211), ("model", 307), ("objects", 701)]
)
def test_damaged_files_are_read_as_they_were_or_refused(kind, stride, tmp_path):
    """Every changed byte and every truncation gives an error of tf.errors, a documented exception, or the same values."""
    counts, wrong = run(CASES[kind], str(tmp_path), [255, 1], stride, checksummed=kind in ("bundle", "v1"))
    assert wrong == []
    assert sum(counts.values()) > counts["same values"] + counts["other values"]


def bundle(tmp_path, change, shards=1):
    """Writes a bundle with a tensor `x` of four numbers, whose entry `change` makes another."""
    prefix = str(tmp_path / "model")
    with BundleWriter(prefix) as writer:
        writer.add("x", np.arange(4, dtype=np.float32))
        (entry,) = [
            each if isinstance(each, protos.BundleEntryProto) else protos.BundleEntryProto.FromString(each)
            for each in writer._entries.values()
        ]
    entries = {b"x": entry}
    change(entry, entries)
    Path(tensor_bundle.index_filename(prefix)).write_bytes(tensor_bundle._index(shards, entries))
    return prefix


def _slices(*extents):
    """An entry whose tensor consists of slices, (start, length) each, that all lie in the data file."""

    def change(entry, entries):
        for start, length in extents:
            part = protos.BundleEntryProto.FromString(entry.SerializeToString())
            del part.slices[:]
            part.shape.dim[0].size, part.size = length, 4 * length
            part.crc32c = tensor_bundle.mask(
                tensor_bundle.crc32c(np.arange(4, dtype=np.float32).tobytes()[: 4 * length])
            )
            entries[encode_slice_key("x", ((start, length),))] = part
            piece = entry.slices.add().extent.add()
            piece.start, piece.length = start, length

    return change


def _sets(**fields):
    def change(entry, entries):
        for name, value in fields.items():
            setattr(entry, name, value)

    return change


def _dims(*sizes):
    def change(entry, entries):
        del entry.shape.dim[:]
        for size in sizes:
            entry.shape.dim.add(size=size)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _sets(dtype=99),
        _sets(dtype=0),
        _sets(dtype=20),  # a resource
        _sets(shard_id=7),
        _sets(shard_id=-1),
        _sets(offset=1 << 60),
        _sets(offset=-4),
        _sets(size=1 << 60),
        _sets(size=-16),
        _sets(dtype=7, size=1 << 40),
        _dims(1 << 40),
        _dims(1 << 40, 1 << 40),
        _dims(-1),
        _dims(1 << 62, 4),
        _dims(4, *[1] * 64),  # more dimensions than arrays can have
        _slices((0, 3), (2, 2)),  # overlapping
        _slices((0, 2)),  # not everything
        _slices((0, 2), (2, 9)),  # outside
        _slices((-1, 5)),
        _slices((0, 4), (1 << 60, 1)),
    ],
)
def test_hostile_entries_are_refused(change, tmp_path):
    """Entries with unknown dtypes, shards, places, shapes or slices raise an error of tf.errors, and allocate nothing of the claimed size."""
    prefix = bundle(tmp_path, change)
    tracemalloc.start()
    try:
        with pytest.raises(tf.errors.OpError):
            tf.train.load_checkpoint(prefix).get_tensor("x")
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shards", [0, -1, 1 << 30])
def test_numbers_of_shards_are_checked(shards, tmp_path):
    """A header with a number of shards that cannot be does not make the reader look for all of them."""
    prefix = bundle(tmp_path, lambda entry, entries: None, shards)
    with pytest.raises(tf.errors.OpError):
        tf.train.load_checkpoint(prefix).get_tensor("x")
