"""One function per parser: any bytes give a value or the documented error, and nothing else.

Each takes bytes, as atheris (or any other fuzzer) hands them over:

    python -m tests.fuzz.targets csv        # with atheris installed

`test_targets.py` feeds them from hypothesis and from the seeds below in every run of the tests.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.errors import DataLossError, InternalError, InvalidArgumentError, UnimplementedError
from stoker._src.formats import csv, example, example_json, images, protos, tensor_proto, tfrecord
from stoker._src.ops import decoding, readers, sparse_messages, tensor_messages

TARGETS: dict[str, Callable[[bytes], None]] = {}
SEEDS: dict[str, list[bytes]] = {}
_REFUSED = (InvalidArgumentError, DataLossError)


def _target(*seeds: bytes) -> Callable[[Callable[[bytes], None]], Callable[[bytes], None]]:
    def register(function: Callable[[bytes], None]) -> Callable[[bytes], None]:
        TARGETS[function.__name__] = function
        SEEDS[function.__name__] = [b"", *seeds]
        return function

    return register


def _scalar(data: bytes) -> np.ndarray:
    return np.array(data, dtype=object)


@_target(b'1,"a ""b""",2.5', b"1,2\n", b",,")
def comma_separated(data: bytes) -> None:
    columns = [csv.CsvColumn(dtypes.int64, 0), csv.CsvColumn(dtypes.string, b""), csv.CsvColumn(dtypes.float32)]
    try:
        decoded = csv.decode_csv([data], columns)
    except InvalidArgumentError:
        return
    assert [len(column) for column in decoded] == [1, 1, 1]


@_target(b'{"features": {"feature": {"a": {"int64List": {"value": ["1"]}}}}}', b"[]", b'{"features": null}')
def json_example(data: bytes) -> None:
    try:
        message = example_json.decode_json_example(data)
    except InvalidArgumentError:
        return
    protos.Example.FromString(message)


_PICTURE = np.arange(27, dtype=np.uint8).reshape(3, 3, 3)


@_target(images.encode_png(_PICTURE), images.encode_jpeg(_PICTURE), b"GIF89a\1\0\1\0\0\0\0;", b"BM" + bytes(60))
def picture(data: bytes) -> None:
    try:
        pixels = images.decode_image(data)
    except (*_REFUSED, InternalError, UnimplementedError):
        return
    assert pixels.nbytes <= images.MAX_DECODED_BYTES


@_target(images.encode_jpeg(_PICTURE))
def jpeg_header(data: bytes) -> None:
    try:
        shape = images.extract_jpeg_shape(data)
    except InvalidArgumentError:
        return
    assert shape.shape == (3,)


@_target(b"YWJj", b"YQ==", b"_-8")
def base64_text(data: bytes) -> None:
    try:
        decoded = decoding.decode_base64_bytes(data)
    except InvalidArgumentError:
        return
    assert len(decoded) <= len(data)


@_target(b"\x78\x9cKLJ\x06\0\x02M\x01'", b"\x1f\x8b\x08")
def compressed(data: bytes) -> None:
    for window_bits in (15, 31):
        with contextlib.suppress(DataLossError):
            decoding.inflate(data, window_bits)


@_target(b'\x08\x03\x12\x00"\x04\x07\x00\x00\x00', b"\x08\x07\x12\x00B\x01a")
def tensor(data: bytes) -> None:
    for dtype in (dtypes.int32, dtypes.string):
        with contextlib.suppress(InvalidArgumentError):
            tensor_messages.parse_tensor_kernel(_scalar(data), out_type=dtype)


@_target(tensor_proto.to_tensor_proto(np.zeros((1, 2), np.int64), dtypes.int64).SerializeToString())
def sparse(data: bytes) -> None:
    one = np.empty(3, dtype=object)
    one[:] = [data, SEEDS["tensor"][1], data]
    with contextlib.suppress(InvalidArgumentError):
        sparse_messages.deserialize_sparse_kernel(one, dtype=dtypes.int32, Tserialized=dtypes.string)


@_target(b"\x04\0\0\0\0\0\0\0")
def records(data: bytes) -> None:
    for compression in ("", "ZLIB", "GZIP"):
        try:
            found = sum(1 for _ in tfrecord.read_records(io.BytesIO(data), compression))
        except DataLossError:
            continue
        assert found * 16 <= len(data) or compression


@_target(b"\n\x0b\n\t\n\x01a\x12\x04\x1a\x02\x08\x01")
def examples(data: bytes) -> None:
    features = [example.FixedLength("a", dtypes.int64, (1,)), example.Sparse("b", dtypes.string)]
    for parse in (
        lambda: example.parse_examples([data], features),
        lambda: example.parse_single_example(data, features),
        lambda: example.parse_sequence_examples([data], [features[1]], [example.Padded("c", dtypes.float32)]),
    ):
        with contextlib.suppress(InvalidArgumentError):
            parse()


@_target(b"\x08\x01\x10\x01\x18\x01")
def reader_state(data: bytes) -> None:
    reader = readers.Same("fuzzed")
    try:
        reader.restore(data)
    except InvalidArgumentError:
        return
    assert reader.records_produced() >= 0


if __name__ == "__main__":
    import atheris  # pyright: ignore[reportMissingImports]

    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[sys.argv[1]])
    atheris.Fuzz()
