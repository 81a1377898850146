"""Fuzz targets for files of records: TFRecord, events, checkpoints, what `inspect` prints, and readers' states."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tempfile
import zlib

import numpy as np

from stoker._src.base.errors import FailedPreconditionError, NotFoundError, UnimplementedError
from stoker._src.cli.record_report import record_lines
from stoker._src.formats import framing, protos, sstable, tensor_bundle, tfrecord
from stoker._src.formats.checkpoint_v1 import SliceReader
from stoker._src.ops.resources import readers
from tests.fuzz.registry import REFUSED, target

_RECORDS = framing.frame(b"") + framing.frame(b"a record") + framing.frame(b"x" * 300)
_EXAMPLE = bytes.fromhex("0a0b0a090a016112041a020801")
_EVENTS = b"".join(
    framing.frame(event.SerializeToString())
    for event in (
        protos.Event(wall_time=1.5, file_version="brain.Event:2"),
        protos.Event(
            wall_time=2.5, step=3, summary=protos.Summary(value=[protos.Summary.Value(tag="loss", simple_value=0.5)])
        ),
    )
)


def _read(data: bytes, compression: str) -> list[bytes]:
    return list(tfrecord.read_records(io.BytesIO(data), compression))


@target(_RECORDS, _RECORDS[:-3], b"\x04\0\0\0\0\0\0\0")
def records(data: bytes) -> None:
    assert framing.split(data, 0) == framing.split_python(data, 0)
    assert sum(16 + len(record) for record in _read(data, "")) <= len(data)


@target(gzip.compress(_RECORDS, mtime=0), gzip.compress(_RECORDS, mtime=0)[:-9])
def records_gzip(data: bytes) -> None:
    _read(data, "GZIP")


@target(zlib.compress(_RECORDS), zlib.compress(_RECORDS) * 2)
def records_zlib(data: bytes) -> None:
    _read(data, "ZLIB")


@target(_RECORDS)
def records_deflated(data: bytes) -> None:
    """The bytes are what a compressed file holds, so that the fuzzer need not learn to compress."""
    plain = _read_or_refuse(data, "")
    assert _read_or_refuse(zlib.compress(data), "ZLIB") == plain
    assert _read_or_refuse(gzip.compress(data, mtime=0), "GZIP") == plain


def _read_or_refuse(data: bytes, compression: str) -> list[bytes] | str:
    try:
        return _read(data, compression)
    except REFUSED as error:
        return error.message


@target(_RECORDS, _EVENTS, framing.frame(_EXAMPLE), gzip.compress(_EVENTS, mtime=0))
def inspect_file(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        list(record_lines(file.name, 3, 1000))


@target(_EXAMPLE, protos.Event(step=1, file_version="brain.Event:2").SerializeToString())
def inspect_record(data: bytes) -> None:
    """The bytes are a record: after the version of an event file, and alone."""
    for before in (b"", _EVENTS):
        inspect_file(before + framing.frame(data))


# A checkpoint that was made for a newer reader, of a dtype that is not kept, or with parts that are elsewhere.
_UNREADABLE = (*REFUSED, FailedPreconditionError, NotFoundError, UnimplementedError)


def _read_checkpoint(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        prefix = os.path.join(directory, "model")
        for name in (tensor_bundle.index_filename(prefix), prefix):
            with open(name, "wb") as file:
                file.write(data)
        with open(tensor_bundle.data_filename(prefix, 0, 1), "wb") as file:
            file.write(bytes(64))
        for opened in (tensor_bundle.BundleReader, SliceReader):
            with contextlib.suppress(*_UNREADABLE), opened(prefix) as reader:
                for name in reader.keys()[:20]:
                    with contextlib.suppress(*_UNREADABLE):
                        reader.read(name)


def _index() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        prefix = os.path.join(directory, "model")
        with tensor_bundle.BundleWriter(prefix) as writer:
            writer.add("a", np.zeros(3, np.float32))
            writer.add("b", np.array([b"x", b"yy"], dtype=object))
        with open(tensor_bundle.index_filename(prefix), "rb") as file:
            return file.read()


@target(_index())
def checkpoint_index(data: bytes) -> None:
    _read_checkpoint(data)


@target(*(value for _, value in sstable.Table(io.BytesIO(_index()), "seed").items()))
def checkpoint_entry(data: bytes) -> None:
    """The bytes are an entry of a table whose checksums are right."""
    header = protos.BundleHeaderProto(num_shards=1).SerializeToString()
    for entries in ({b"": data}, {b"": header, b"a": data}):
        table = io.BytesIO()
        writer = sstable.TableWriter(table)
        for key, value in entries.items():
            writer.add(key, value)
        writer.finish()
        _read_checkpoint(table.getvalue())


@target(b"\x05\x10hello", b"\x0a\x01ab\x05\x02")
def snappy(data: bytes) -> None:
    assert len(sstable.unsnappy(data)) <= 64 * len(data) + 64


@target(b"\x08\x01\x10\x01\x18\x01")
def reader_state(data: bytes) -> None:
    reader = readers.Same("fuzzed")
    reader.restore(data)
    assert reader.records_produced() >= 0
