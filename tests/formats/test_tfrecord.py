"""TFRecord files: framing, compression, damage."""

import contextlib
import io
import json
import struct
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from stoker._src.formats import framing, tfrecord

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))
from tfrecords import records as golden_records  # noqa: E402

CASES = json.loads((GOLDEN / "tfrecords.json").read_text())
DATA = golden_records()
RECORDS = [b"abc", b"", b"x" * 50]
GOOD = b"".join(map(framing.frame, RECORDS))
TWINS = [(framing.frame, framing.split), (framing.frame_python, framing.split_python)]


def written(path, steps, options):
    with tfrecord.TFRecordWriter(path, options) as writer:
        for step in steps:
            if step == "flush":
                writer.flush()
            else:
                writer.write(DATA[step])
    return path.read_bytes()


@pytest.mark.parametrize("case", CASES, ids=lambda case: json.dumps([case["options"], len(case["steps"])]))
def test_files_equal_tensorflows(tmp_path, case):
    """Every option and flush gives the file that TensorFlow wrote, and that file is read back."""
    want = bytes.fromhex(case["file"])
    options = tfrecord.TFRecordOptions(**case["options"])
    got = written(tmp_path / "f", case["steps"], options)
    kind = case["options"]["compression_type"]
    if not kind or zlib.ZLIB_RUNTIME_VERSION.startswith(("1.2.", "1.3")):  # zlib-ng compresses to other bytes
        assert got == want
    (tmp_path / "theirs").write_bytes(want)
    if "window_bits" in case["options"]:
        kind = "ZLIB"  # what those bits ask for
    records = [DATA[step] for step in case["steps"] if step != "flush"]
    assert list(tfrecord.tf_record_iterator(tmp_path / "theirs", kind)) == records
    assert list(tfrecord.tf_record_iterator(tmp_path / "f", kind)) == records


@pytest.mark.parametrize(("frame", "split"), TWINS)
def test_framing_is_the_documented_one(frame, split):
    """A record is its length, the masked CRC of that, the data, the masked CRC of that."""
    assert frame(b"abc").hex() == "0300000000000000b099490e6162636e57f121"
    assert split(frame(b"abc") + frame(b""), 0) == ([b"abc", b""], 35, framing.NEED_MORE)


def test_crc32c_known_answers():
    """The check values of RFC 3720, appendix B.4, by instruction and by table."""
    answers = {bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43, bytes(range(32)): 0x46DD794E, b"123456789": 0xE3069283}
    for data, crc in answers.items():
        assert framing.crc32c(data) == crc
        assert framing.crc32c(data[5:], framing.crc32c(data[:5])) == crc


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 2**32 - 1))
def test_crc32c_by_table_equals_the_instruction(data, crc):
    """The three ways to compute a CRC agree."""
    native = pytest.importorskip("stoker._src.formats._native")
    assert native.crc32c(data, crc) == native.crc32c(data, crc, True) == framing._crc32c_python(data, crc)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5), st.binary(max_size=30), st.integers(0, 200), st.integers(0, 255))
def test_twins_split_alike(records, tail, position, byte):
    """The extension and its twin take the same records from good and damaged buffers."""
    data = bytearray(b"".join(map(framing.frame, records)) + tail)
    if position < len(data):
        data[position] ^= byte
    for start in (0, min(len(data), 16)):
        assert framing.split(data, start) == framing.split_python(data, start)
        assert framing.split(bytes(data), start) == framing.split_python(bytes(data), start)
    assert [framing.frame(r) for r in records] == [framing.frame_python(r) for r in records]


@pytest.mark.parametrize("start", [-1, 5])
@pytest.mark.parametrize(("frame", "split"), TWINS)
def test_split_refuses_a_start_outside(frame, split, start):
    """A start that is not in the buffer is an error."""
    with pytest.raises(ValueError, match="outside"):
        split(b"abcd", start)


@pytest.mark.parametrize("position", range(len(GOOD)))
def test_every_flipped_byte_is_reported(position):
    """No single damaged byte of a TFRecord file is read as data."""
    bad = bytearray(GOOD)
    bad[position] ^= 0xFF
    got = []
    with pytest.raises(DataLossError, match="record at"):
        got.extend(tfrecord.read_records(io.BytesIO(bytes(bad))))
    assert got == [record for record, end in tfrecord.records_with_offsets(io.BytesIO(GOOD)) if end <= position]


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (0, r"corrupted record at 0 \(Is this even a TFRecord file\?\)"),
        (12, "corrupted record at 12$"),
        (19, "corrupted record at 19$"),
        (40, "corrupted record at 35$"),
    ],
)
def test_messages_name_tensorflows_offsets(position, message):
    """A bad length is told by its record's offset, bad data by the data's."""
    bad = bytearray(GOOD)
    bad[position] ^= 0xFF
    with pytest.raises(DataLossError, match=message):
        list(tfrecord.read_records(io.BytesIO(bytes(bad))))


@pytest.mark.parametrize("cut", range(len(GOOD)))
def test_cut_files(cut):
    """A file that ends in a header is taken to end before it; one that ends in a record is reported."""
    starts = [0, 19, 35, 101]
    whole = max(n for n, start in enumerate(starts) if start <= cut)
    got = []
    read = tfrecord.read_records(io.BytesIO(GOOD[:cut]))
    if cut - starts[whole] < 12:
        assert list(read) == RECORDS[:whole]
    else:
        with pytest.raises(DataLossError, match=f"truncated record at {starts[whole]}'"):
            for record in read:
                got.append(record)
        assert got == RECORDS[:whole]


@pytest.mark.parametrize("length", [4, 2**31, 2**40, 2**63, 2**64 - 16, 2**64 - 1])
def test_absurd_lengths_allocate_nothing(length):
    """A length larger than the file is reported without trying to hold it."""
    header = struct.pack("<Q", length)
    header += struct.pack("<I", framing.mask(framing.crc32c(header)))
    tracemalloc.start()
    try:
        with pytest.raises(DataLossError, match="truncated record at 0"):
            list(tfrecord.read_records(io.BytesIO(header + b"zzz")))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_records_larger_than_the_read_size(tmp_path):
    """Records of any size come back, between small ones, plain and compressed."""
    records = [b"a", bytes(3_000_000), b"b" * 300_000, b"c"]
    for kind in ("", "GZIP", "ZLIB"):
        with tfrecord.TFRecordWriter(tmp_path / "f", kind) as writer:
            for record in records:
                writer.write(record)
        assert list(tfrecord.tf_record_iterator(tmp_path / "f", kind)) == records


def test_concatenated_compressed_files_are_read_on(tmp_path):
    """Two GZIP files after one another are one file; garbage after one is reported."""
    data = written(tmp_path / "f", [2, 3], "GZIP")
    assert list(tfrecord.read_records(io.BytesIO(data + data), "GZIP")) == [DATA[2], DATA[3]] * 2
    with pytest.raises(DataLossError, match=r"inflate\(\) failed with error -3: incorrect header check"):
        list(tfrecord.read_records(io.BytesIO(data + b"garbage"), "GZIP"))
    found = tfrecord.read_records(io.BytesIO(data + b"garbage"), "GZIP")
    assert [next(found), next(found)] == [DATA[2], DATA[3]]  # in front of the garbage
    data = written(tmp_path / "f", [2, 3], "ZLIB")
    for rest in (data, b"garbage"):  # ZLIB is one stream
        assert list(tfrecord.read_records(io.BytesIO(data + rest), "ZLIB")) == [DATA[2], DATA[3]]
    with pytest.raises(DataLossError, match="incorrect header check"):
        list(tfrecord.read_records(io.BytesIO(GOOD), "ZLIB"))


def test_writer_after_close(tmp_path):
    """Closing twice is fine; writing or flushing a closed writer is not."""
    writer = tfrecord.TFRecordWriter(tmp_path / "f")
    writer.write(b"a")
    writer.flush()
    assert (tmp_path / "f").stat().st_size == 17
    writer.close()
    writer.close()
    for call in (lambda: writer.write(b"b"), writer.flush):
        with pytest.raises(FailedPreconditionError, match=r"Writer is closed\."):
            call()


def test_what_a_record_may_be(tmp_path):
    """Text is encoded, bytearrays are taken, anything else is a TypeError."""
    with tfrecord.TFRecordWriter(str(tmp_path / "f")) as writer:
        writer.write("é")
        writer.write(bytearray(b"ab"))
        for bad in (5, None, memoryview(b"a")):
            with pytest.raises(TypeError):
                writer.write(bad)
    assert list(tfrecord.tf_record_iterator(str(tmp_path / "f"))) == ["é".encode(), b"ab"]


def test_files_that_cannot_be_opened(tmp_path):
    """A missing file or directory and a directory in place of a file have TensorFlow's errors, at the call."""
    with pytest.raises(NotFoundError, match="none; No such file or directory"):
        tfrecord.tf_record_iterator(tmp_path / "none")
    with pytest.raises(NotFoundError, match="No such file or directory"):
        tfrecord.TFRecordWriter(tmp_path / "no" / "f")
    with pytest.raises(FailedPreconditionError, match="Is a directory"):
        tfrecord.tf_record_iterator(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_a_full_disk_is_reported(kind):
    """Running out of space is a ResourceExhaustedError, wherever it is noticed."""
    writer = tfrecord.TFRecordWriter("/dev/full", kind)
    writer.write(b"x")
    with pytest.raises(ResourceExhaustedError, match="/dev/full; No space left on device"):
        writer.close()
    writer = tfrecord.TFRecordWriter("/dev/full", kind)
    writer.write(b"x")
    with pytest.raises(ResourceExhaustedError):
        writer.flush()
    with pytest.raises(ResourceExhaustedError):
        writer.close()


def test_compression_types():
    """Strings, numbers, options and None name a compression; anything else is a ValueError."""
    name = tfrecord.TFRecordOptions.get_compression_type_string
    kinds = tfrecord.TFRecordCompressionType
    assert [name(kind) for kind in (None, "", kinds.NONE)] == ["", "", ""]
    assert [name(kind) for kind in (kinds.ZLIB, kinds.GZIP, "GZIP")] == ["ZLIB", "GZIP", "GZIP"]
    assert name(tfrecord.TFRecordOptions("ZLIB")) == name(tfrecord.TFRecordOptions(1)) == "ZLIB"
    for bad in ("NONE", "gzip", 3, b"GZIP"):
        with pytest.raises(ValueError, match="Not a valid compression_type"):
            tfrecord.TFRecordOptions(bad)
        with pytest.raises(ValueError, match="Not a valid compression_type"):
            name(bad)


@pytest.mark.parametrize(
    "options",
    [
        {"compression_level": 99},
        {"window_bits": 3},
        {"mem_level": 99},
        {"compression_method": 3},
        {"compression_strategy": 99},
        {"flush_mode": 99},
        {"input_buffer_size": 0},
        {"output_buffer_size": 0},
    ],
)
def test_numbers_zlib_does_not_take(tmp_path, options):
    """Options out of zlib's range are refused when the file is opened."""
    with pytest.raises(InvalidArgumentError):
        tfrecord.TFRecordWriter(tmp_path / "f", tfrecord.TFRecordOptions("ZLIB", **options))


@pytest.mark.parametrize("mode", range(6))
@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_every_flush_mode_of_zlib(tmp_path, mode, kind):
    """Records come back whichever of zlib's flush modes is used each time that the input buffer is full."""
    records = [b"hello" * 5] * 6
    options = tfrecord.TFRecordOptions(kind, flush_mode=mode, input_buffer_size=20)
    with tfrecord.TFRecordWriter(tmp_path / "f", options) as writer:
        for record in records:
            writer.write(record)
    assert list(tfrecord.tf_record_iterator(str(tmp_path / "f"), options)) == records


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["", "GZIP", "ZLIB"]))
def test_any_bytes_give_records_or_data_loss(data, kind):
    """Hostile files give records or DataLossError, nothing else."""
    with contextlib.suppress(DataLossError):
        list(tfrecord.read_records(io.BytesIO(data), kind))


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_files_of_other_schemes(compression):
    """Records go to and come from any file system that gfile knows, and its errors are named alike."""
    path = f"memory://tfrecords/{compression or 'plain'}"
    options = tfrecord.TFRecordOptions(compression, output_buffer_size=7)
    with tfrecord.TFRecordWriter(path, options) as writer:
        for record in (b"one", b"", b"three" * 100):
            writer.write(record)
    assert list(tfrecord.tf_record_iterator(path, options)) == [b"one", b"", b"three" * 100]
    with pytest.raises(NotFoundError, match="No such file"):
        tfrecord.tf_record_iterator(path + "-none")
    with pytest.raises(FailedPreconditionError, match="Is a directory"):
        tfrecord.TFRecordWriter("memory://tfrecords")


def test_a_record_a_small_file_spells_is_bounded(monkeypatch):
    """A compressed file cannot make the reader hold a record of any length."""
    monkeypatch.setattr(tfrecord, "INFLATED_RECORD_LIMIT", 1 << 20)
    size = 3 << 20
    stream = zlib.compress(framing.frame(b"x") + framing.frame(bytes(size)))
    records = tfrecord.read_records(io.BytesIO(stream), "ZLIB")
    assert next(records) == b"x"
    with pytest.raises(DataLossError, match=f"record at 17 has {size} bytes"):
        next(records)
