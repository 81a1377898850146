"""Sorted string tables and ordered-code keys."""

import io
import pathlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base.errors import DataLossError, InvalidArgumentError
from stoker._src.formats import ordered_code, sstable
from stoker._src.formats.framing import crc32c, mask

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "checkpoints" / "written"


def written(pairs):
    sink = io.BytesIO()
    table = sstable.TableWriter(sink)
    for key, value in pairs:
        table.add(key, value)
    table.finish()
    return sink.getvalue()


def opened(data):
    return sstable.Table(io.BytesIO(data), "table")


@given(st.dictionaries(st.binary(max_size=12), st.binary(max_size=40), max_size=60))
def test_round_trip(entries):
    """What is written in order is read back in order, and found by key."""
    pairs = sorted(entries.items())
    table = opened(written(pairs))
    assert list(table.items()) == pairs
    for key, value in pairs:
        assert table.get(key) == value
    assert table.get(b"\xff" * 13) is None


def test_many_blocks():
    """Tables past one block find keys in every block, and miss those between."""
    pairs = [(b"key%06d" % (2 * i), bytes(100)) for i in range(9000)]
    data = written(pairs)
    assert len(data) > 3 << 18
    table = opened(data)
    assert list(table.items()) == pairs
    assert table.get(b"key%06d" % 9000) == bytes(100)
    assert table.get(b"key%06d" % 9001) is None


@pytest.mark.parametrize("name", ["all.index", "sliced.index", "merged.index"])
def test_tables_are_tensorflows_byte_for_byte(name):
    """Reading a table TensorFlow wrote and writing its entries gives the same bytes."""
    data = (GOLDEN / name).read_bytes()
    assert written(opened(data).items()) == data


def test_keys_must_rise():
    """A key that does not come after the one before is refused."""
    with pytest.raises(InvalidArgumentError, match="does not come after"):
        written([(b"b", b""), (b"a", b"")])
    with pytest.raises(InvalidArgumentError, match="does not come after"):
        written([(b"a", b""), (b"a", b"")])


def test_every_flipped_byte_of_a_block_is_reported():
    """No damaged byte of the data or index block is read as data, nor of the footer's magic."""
    good = (GOLDEN / "sliced.index").read_bytes()
    entries = list(opened(good).items())
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 0xFF
        try:
            # Padding in the footer and the unused metaindex block may change without harm.
            assert list(opened(bytes(bad)).items()) == entries
        except DataLossError:
            continue
        assert position > good.index(b"\0\0\0\0\1\0\0\0\0", 20), position


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_an_error(data):
    """Arbitrary bytes, with the right ending or not, give DataLossError and nothing else."""
    for candidate in (data, data + bytes(40) + sstable.MAGIC, data.ljust(40, b"\0") + sstable.MAGIC):
        with pytest.raises(DataLossError):
            list(opened(candidate).items())


@given(st.binary(max_size=80))
@settings(max_examples=200)
def test_any_bytes_as_snappy(data):
    """Arbitrary bytes are a snappy block or an error, in bounded memory."""
    try:
        assert len(sstable.unsnappy(data)) < 1 << 20
    except DataLossError:
        return


def test_snappy_blocks():
    """Literals, copies of all widths and copies that overlap themselves."""
    assert sstable.unsnappy(b"\x05\x10hello") == b"hello"
    assert sstable.unsnappy(b"\x0c\x04ab\x11\x02\x04xx") == b"ab" * 5 + b"xx"  # copy 8 from 2 back
    assert sstable.unsnappy(b"\x09\x00a\x1e\x01\x00") == b"a" * 9  # literal a, then copy 8 from 1 back
    with pytest.raises(DataLossError):
        sstable.unsnappy(b"\x05\x10hell")
    with pytest.raises(DataLossError):
        sstable.unsnappy(b"\x05\x01\x05")


def test_snappy_table():
    """A block that is marked as compressed is unpacked."""
    entry = b"\0\1\1kv" + struct.pack("<II", 0, 1)

    def block(data, kind):
        body = data + bytes([kind])
        return body + struct.pack("<I", mask(crc32c(body)))

    packed = bytes([len(entry), (len(entry) - 1) << 2]) + entry
    first = block(packed, 1)
    index = block(b"\0\1\2k" + bytes([0, len(packed)]) + struct.pack("<II", 0, 1), 0)
    footer = bytes([0, 0, len(first), len(index) - 5]).ljust(40, b"\0") + sstable.MAGIC
    assert list(opened(first + index + footer).items()) == [(b"k", b"v")]


numbers = st.integers(-(2**62), 2**62)


@given(numbers, numbers)
def test_signed_numbers_sort_as_their_bytes(first, second):
    """The order of encodings is the order of numbers."""
    assert (ordered_code.encode_signed(first) < ordered_code.encode_signed(second)) == (first < second)


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_strings_sort_as_their_bytes(first, second):
    """The order of encodings is the order of strings, with escapes in them."""
    assert (ordered_code.encode_string(first) < ordered_code.encode_string(second)) == (first < second)


@pytest.mark.parametrize(
    "start, encoded",
    [
        (0, b"\x80"), (1, b"\x81"), (63, b"\xbf"), (64, b"\xc0\x40"), (128, b"\xc0\x80"), (8191, b"\xdf\xff"),
        (8192, b"\xe0\x20\x00"), (1048575, b"\xef\xff\xff"), (1048576, b"\xf0\x10\x00\x00"),
        (2**27, b"\xf8\x08\x00\x00\x00"), (2**34, b"\xfc\x04\x00\x00\x00\x00"), (-1, b"\x7f"),
    ],
)  # fmt: skip
def test_signed_numbers_are_tensorflows(start, encoded):
    """Encodings seen in keys that TensorFlow wrote."""
    assert ordered_code.encode_signed(start) == encoded


def test_slice_key():
    """The key of a slice, as TensorFlow wrote it."""
    key = ordered_code.encode_slice_key("p", [(0, 3), (0, -1)])
    assert key == b"\x00p\x00\x01\x01\x02\x80\x83\x80\x7f"
    assert opened((GOLDEN / "sliced.index").read_bytes()).get(key) is not None
