"""Parsing of Examples and SequenceExamples: TensorFlow's outcomes, twins, odd input."""

import json
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base.dtypes import float32, float64, int64, string
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.formats import example, example_python, protos
from stoker._src.formats.example import FixedLength, Padded, Ragged, Sparse

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "golden"))
import example_parsing  # noqa: E402

CASES = example_parsing.load(str(TESTS / "golden" / "example_parsing.json.gz"))
CORPUS = sorted((TESTS / "fuzz" / "corpus" / "example_twins").iterdir())
PARSERS = sorted({example.native, example_python}, key=lambda module: module.__name__)


@pytest.fixture(params=PARSERS, ids=lambda module: module.__name__.rpartition(".")[2])
def parser(request, monkeypatch):
    """Runs a test with the extension and with its twin."""
    monkeypatch.setattr(example, "native", request.param)


def serialized(**features):
    message = protos.Example()
    for key, values in features.items():
        feature = message.features.feature[key]
        if values and all(isinstance(value, bytes) for value in values):
            feature.bytes_list.value[:] = values
        elif values and all(isinstance(value, float) for value in values):
            feature.float_list.value[:] = values
        else:
            feature.int64_list.value[:] = values
    return message.SerializeToString()


@pytest.mark.usefixtures("parser")
def test_outcomes_equal_tensorflows():
    """Random, odd and damaged rows give the columns that TensorFlow gave, or are refused as it refused them."""
    for number, case in enumerate(CASES):
        assert example_parsing.same(case["outcome"], example_parsing.ours(case)), f"case {number}: {json.dumps(case)}"


@pytest.mark.usefixtures("parser")
def test_dense_columns():
    """FixedLength gives [batch, *shape] and uses its default where the feature is missing or empty."""
    rows = [serialized(x=[1.0, 2.0, 3.0, 4.0], n=[7], s=[b"a"]), serialized(x=[5.0, 6.0, 7.0, 8.0])]
    features = [
        FixedLength("x", float32, (2, 2)),
        FixedLength("n", int64, (), -1),
        FixedLength("s", string, (1,), [b"none"]),
    ]
    x, n, s = example.parse_examples(rows, features)
    np.testing.assert_array_equal(x, np.arange(1, 9, dtype=np.float32).reshape(2, 2, 2))
    np.testing.assert_array_equal(n, np.array([7, -1]))
    assert s.tolist() == [[b"a"], [b"none"]]
    assert (x.dtype, n.dtype, s.dtype) == (np.float32, np.int64, object)
    assert x.flags.writeable and n.flags.writeable


@pytest.mark.usefixtures("parser")
def test_variable_columns():
    """Sparse gives coordinates, Ragged splits, Padded a filled array; all from the same rows."""
    rows = np.array([serialized(v=[1, 2]), serialized(), serialized(v=[3, 4, 5, 6])], object)
    sparse, ragged, padded, pairs = (
        example.parse_examples(rows, [feature])[0]
        for feature in (Sparse("v", int64), Ragged("v", int64), Padded("v", int64, (), -9), Padded("v", int64, (2,)))
    )
    assert sparse.indices.tolist() == [[0, 0], [0, 1], [2, 0], [2, 1], [2, 2], [2, 3]]
    assert sparse.values.tolist() == ragged.values.tolist() == [1, 2, 3, 4, 5, 6]
    assert sparse.dense_shape.tolist() == [3, 4]
    assert [splits.tolist() for splits in ragged.splits] == [[0, 2, 2, 6]]
    assert padded.tolist() == [[1, 2, -9, -9], [-9, -9, -9, -9], [3, 4, 5, 6]]
    assert pairs.tolist() == [[[1, 2], [0, 0]], [[0, 0], [0, 0]], [[3, 4], [5, 6]]]


@pytest.mark.usefixtures("parser")
def test_sequence_columns():
    """Feature lists give padded steps with lengths, three-dimensional coordinates, or nested splits."""
    messages = [protos.SequenceExample(), protos.SequenceExample()]
    messages[0].context.feature["c"].int64_list.value[:] = [4]
    for values in ([1.0, 2.0], [3.0, 4.0]):
        messages[0].feature_lists.feature_list["d"].feature.add().float_list.value[:] = values
    for values in ([b"a"], [], [b"b", b"c"]):
        messages[1].feature_lists.feature_list["v"].feature.add().bytes_list.value[:] = values
    rows = [message.SerializeToString() for message in messages]
    (c,), (d, v) = example.parse_sequence_examples(
        rows, [FixedLength("c", int64, (), 0)], [Padded("d", float32, (2,)), Sparse("v", string)]
    )
    assert c.tolist() == [4, 0]
    assert d.values.tolist() == [[[1, 2], [3, 4]], [[0, 0], [0, 0]]]
    assert d.lengths.tolist() == [2, 0]
    assert v.indices.tolist() == [[1, 0, 0], [1, 2, 0], [1, 2, 1]]
    assert v.values.tolist() == [b"a", b"b", b"c"]
    assert v.dense_shape.tolist() == [2, 3, 2]
    _, (r,) = example.parse_sequence_examples(rows, [], [Ragged("v", string)])
    assert [splits.tolist() for splits in r.splits] == [[0, 0, 3], [0, 1, 1, 3]]
    _, (one, many) = example.parse_single_sequence_example(
        rows[0], [], [Padded("d", float32, (2,)), Sparse("v", string)]
    )
    assert one.tolist() == [[1, 2], [3, 4]]
    assert many.dense_shape.tolist() == [0, 0]


@pytest.mark.usefixtures("parser")
def test_empty_batch():
    """No rows give columns of no rows; a required context feature refuses them, as in TensorFlow."""
    features = [FixedLength("x", float32, (2,)), Padded("p", string, (2,)), Sparse("v", int64), Ragged("r", int64)]
    x, p, v, r = example.parse_examples([], features)
    assert (x.shape, p.shape, v.indices.shape, v.dense_shape.tolist()) == ((0, 2), (0, 0, 2), (0, 2), [0, 0])
    assert r.splits[0].tolist() == [0]
    with pytest.raises(InvalidArgumentError, match="Inconsistent max number of elements for feature c"):
        example.parse_sequence_examples([], [FixedLength("c", int64)], [])


X = FixedLength("x", float32, (2,))


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("row", "feature", "batch", "single"),
    [
        (
            serialized(),
            X,
            "Name: n, Feature: x (data type: float) is required but could not be found.",
            "Feature: x (data type: float) is required but could not be found.",
        ),
        (
            serialized(x=[1]),
            X,
            "Name: n, Key: x, Index: 0.  Data types don't match. Data type: int64 but expected type: float",
            "Key: x.  Data types don't match. Data type: int64 but expected type: float",
        ),
        (
            serialized(x=[b"a"]),
            Sparse("x", int64),
            "Name: n, Key: x, Index: 0.  Data types don't match. Expected type: int64, Actual type: string",
            "Key: x.  Data types don't match. Expected type: int64, Actual type: string",
        ),
        (
            serialized(x=[1.0]),
            X,
            "Name: n, Key: x, Index: 0.  Number of float values != expected.  Values size: 1 but output shape: [2]",
            "Key: x.  Can't parse serialized Example: Some float_list slice was not parsed.",
        ),
        (
            serialized(x=[1.0, 2.0, 3.0]),
            Padded("x", float32, (2,)),
            "Name: n, Key: x, Index: 0.  Number of float values is not a multiple of stride length. "
            "Saw 3 values but output shape is: [?,2]",
            "Error while parsing feature with key x: number of elements should be divisible by 2, found 3 instead",
        ),
        (
            bytes.fromhex("0a0b0a090a017812041202ffff"),
            X,
            "Name: n, Key: x, Index: 0.  Can't parse serialized Example.",
            "Key: x.  Can't parse serialized Example: Parsing float_list failed.",
        ),
        (bytes.fromhex("0a080a060a01781201ff"), X, "Unsupported datatype.", "Unsupported datatype."),
        (b"abc", X, "Could not parse example input, value: 'abc'", "Could not parse example input, value: 'abc'"),
    ],
)
def test_wording_of_refusals(row, feature, batch, single):
    """Refusals are worded as TensorFlow words them, for a batch and for one row."""
    with pytest.raises(InvalidArgumentError) as caught:
        example.parse_examples([row], [feature], names=[b"n"])
    assert caught.value.message == batch
    with pytest.raises(InvalidArgumentError) as caught:
        example.parse_single_example(row, [feature])
    assert caught.value.message == single


def test_the_row_at_fault_is_named():
    """The message tells which row of the batch was refused."""
    with pytest.raises(InvalidArgumentError, match="Name: second, Key: x, Index: 1"):
        example.parse_examples([serialized(x=[1.0, 2.0]), serialized(x=[1.0])], [X], names=[b"first", b"second"])


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([X, X], "asked for twice"),
        ([FixedLength("x", float64)], "lists hold float32, int64 or string"),
        ([FixedLength("x", float32, (2,), [1.0])], "not \\(2,\\)"),
        ([FixedLength("x", float32, (-1,))], "negative"),
    ],
)
def test_impossible_requests(features, message):
    """What cannot be asked for is a ValueError that says why."""
    with pytest.raises(ValueError, match=message):
        example.parse_examples([b""], features)


def test_other_bad_arguments():
    """Names of another number, a matrix of rows, steps without values and rows that are not bytes are refused."""
    with pytest.raises(InvalidArgumentError, match="same shape as serialized"):
        example.parse_examples([b"", b""], [Sparse("v", int64)], names=[b"n"])
    with pytest.raises(InvalidArgumentError, match="vector"):
        example.parse_examples(np.full((1, 1), b"", object), [])
    with pytest.raises(InvalidArgumentError, match="holds no values"):
        example.parse_examples([b""], [Padded("x", float32, (0,))])
    with pytest.raises(ValueError, match="cannot be asked for here"):
        example.parse_sequence_examples([b""], [], [X])
    if example.native is not example_python:
        with pytest.raises(TypeError, match="row 1 is str"):
            example.parse_examples([b"", "text"], [Sparse("v", int64)])


WANTED = (
    (b"a", 1, -1, None, True),
    (b"b", 2, -1, None, False),
    (b"c", 3, -1, None, True),
    (b"d", 1, 2, (b"x", b"y"), False),
    (b"e", 2, 1, b"\0\0\0\0", False),
    (b"f", 3, 2, bytes(16), False),
)
FORMS = ((7, (3, 1000)), (6, ()), (5, ()), None, None, None)
LISTS = ((b"a", 1), (b"b", 2), (b"c", 3))


def assert_twins_agree(rows):
    """The extension and its twin give equal columns or equal failures."""
    rows = tuple(rows)
    for k in range(len(WANTED)):
        assert example.native.parse_examples(rows, WANTED[k : k + 1]) == example_python.parse_examples(
            rows, WANTED[k : k + 1]
        )
    for forms in (FORMS, ((2, (10,)), *[(0, ())] * 2, *[None] * 3)):
        assert example.native.parse_examples(rows, WANTED, 2, forms) == example_python.parse_examples(
            rows, WANTED, 2, forms
        )
    for wanted in (WANTED, ()):
        assert example.native.parse_examples(rows, wanted) == example_python.parse_examples(rows, wanted)
    for context, lists in ((LISTS, LISTS), (LISTS, ()), ((), LISTS[:1]), ((), LISTS[1:2]), ((), LISTS[2:])):
        assert example.native.parse_sequence_examples(rows, context, lists) == example_python.parse_sequence_examples(
            rows, context, lists
        )


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=3))
def test_twins_agree_on_any_bytes(rows):
    """Hostile bytes are read or refused alike by both parsers."""
    assert_twins_agree(rows)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_twins_agree_on_damaged_messages(seed, data):
    """Messages that are nearly right are read or refused alike by both parsers."""
    maker = example_parsing.Maker(seed)
    maker.odd = data.draw(st.sampled_from([0.3, 1.0, 3.0]))
    kinds = data.draw(st.permutations(["string", "float32", "int64"]))
    specs = [{"key": key, "layout": "sparse", "dtype": kind} for key, kind in zip("abcdef", [*kinds, *kinds])]
    assert_twins_agree([maker.example(specs), maker.sequence(specs[:3], specs[:3])])


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("claimed", [2, 3, 100, 1 << 31, (1 << 32) - 1])
def test_packed_numbers_end_with_their_list(claimed):
    """A packed chunk that claims more bytes than its list holds ends with the list, as in TensorFlow."""
    chunk, packed = example_parsing.chunk, b"\x0a" + example_parsing.varint(claimed)
    entry = chunk(1, chunk(1, b"a") + chunk(2, chunk(3, packed + b"\x01\x02")))
    (column,) = example.parse_examples([chunk(1, entry)], [Sparse("a", int64)])
    assert column.values.tolist() == [1, 2]
    floats = chunk(1, chunk(1, b"f") + chunk(2, chunk(2, packed + np.float32(1.5).tobytes())))
    steps = chunk(1, chunk(1, b"s") + chunk(2, chunk(1, chunk(3, packed + b"\x03\x04"))))
    row = chunk(1, entry + (floats if claimed > 3 else b"")) + chunk(2, steps)
    context, lists = example.parse_sequence_examples(
        [row], [Sparse("a", int64), Sparse("f", float32)], [Sparse("s", int64)]
    )
    assert [c.values.tolist() for c in (*context, *lists)] == [[1, 2], [1.5] if claimed > 3 else [], [3, 4]]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_corpus(path):
    """Inputs that fuzzing kept are read or refused alike by both parsers."""
    assert_twins_agree([path.read_bytes()])


def test_many_threads_parse_at_once():
    """The extension works without the interpreter's lock, on rows that several threads share."""
    rows = [serialized(x=[float(i), 1.0], v=list(range(i % 5)), s=[b"%d" % i]) for i in range(300)]
    features = [X, Sparse("v", int64), Ragged("s", string)]
    expected = example.parse_examples(rows, features)
    results = []

    def work():
        for _ in range(20):
            results.append(example.parse_examples(rows, features))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    for x, v, s in results:
        np.testing.assert_array_equal(x, expected[0])
        np.testing.assert_array_equal(v.indices, expected[1].indices)
        np.testing.assert_array_equal(s.values, expected[2].values)


@pytest.mark.skipif(example.native is example_python, reason="the extension is not built")
@pytest.mark.parametrize(
    "features",
    [
        ((b"x", 0, -1, None, False),),
        ((b"x", 4, -1, None, False),),
        ((b"x", 1, -2, None, False),),
        ((b"x", 1, 1, None, True),),
        ((b"x", 2, 2, b"1234", False),),
        ((b"x", 1, 1, (), False),),
        ((b"x", 1, 1, b"a", False),),
    ],
)
def test_extension_checks_its_caller(features):
    """A description that does not hold together never reaches the parser."""
    with pytest.raises(ValueError, match="must"):
        example.native.parse_examples((b"",), features)


@pytest.mark.skipif(example.native is example_python, reason="the extension is not built")
def test_extension_refuses_sizes_that_overflow():
    """A row size whose batch cannot be counted is a MemoryError, not a small allocation."""
    with pytest.raises(MemoryError):
        example.native.parse_examples((b"", b""), ((b"x", 3, 2**61, None, False),))


@pytest.mark.usefixtures("parser")
def test_single_rows_are_arrays():
    """One row gives arrays of the feature's own shape, scalars included; Sparse and Ragged lose their row."""
    row = serialized(x=[1.0, 2.0], n=[7], s=[b"a"], v=[4, 5])
    features = [X, FixedLength("n", int64), FixedLength("s", string), Sparse("v", int64)]
    parser = example.ExampleParser(features)
    for _ in range(2):
        x, n, s, v = parser.parse_single(row)
        assert [(each.shape, each.tolist()) for each in (x, n, s)] == [((2,), [1, 2]), ((), 7), ((), b"a")]
        assert (v.indices.tolist(), v.values.tolist(), v.dense_shape.tolist()) == ([[0], [1]], [4, 5], [2])
    ragged, padded = (example.parse_single_example(row, [each])[0] for each in (Ragged("v", int64), Padded("v", int64)))
    assert (ragged.values.tolist(), ragged.splits, padded.tolist()) == ([4, 5], (), [4, 5])
    context = protos.SequenceExample()
    context.context.feature["n"].int64_list.value[:] = [7]
    (n,), _ = example.parse_single_sequence_example(context.SerializeToString(), [FixedLength("n", int64)], [])
    assert (n.shape, n.tolist()) == ((), 7)


@pytest.mark.parametrize("counts", [[], [0], [3], [1, 0, 2, 0], [0, 0, 5]])
def test_sparse_indices_of_the_extension_and_of_python_agree(counts):
    """Each value has the number of its row and its place there; the extension and its twin give the same bytes."""
    given = np.array(counts, np.int64)
    indices, longest = example_python.sparse_indices(given)
    expected = [[row, i] for row, count in enumerate(counts) for i in range(count)]
    assert np.frombuffer(indices, np.int64).reshape(-1, 2).tolist() == expected
    assert longest == max(counts, default=0)
    assert example.native.sparse_indices(given) == (indices, longest)


def test_features_may_come_in_any_order():
    """Every row is found whole, whether its features follow each other as in the row before, turned round, or with others between."""
    random = np.random.RandomState(0)
    features = [Sparse("f%d" % i, int64) for i in range(6)]
    rows, expected = [], []
    for _ in range(40):
        order = random.permutation(9)[: random.randint(0, 9)]
        entries = [(b"f%d" % i, int(random.randint(100))) for i in order]
        rows.append(
            b"".join(
                _chunk(1, _chunk(1, key) + _chunk(2, _chunk(3, _chunk(1, bytes([value]))))) for key, value in entries
            )
        )
        expected.append(dict(entries))
    columns = example.parse_examples([_chunk(1, row) for row in rows], features)
    for i, column in enumerate(columns):
        wanted = [[r, found[b"f%d" % i]] for r, found in enumerate(expected) if b"f%d" % i in found]
        assert [[int(r), int(v)] for (r, _), v in zip(column.indices, column.values)] == wanted


def _chunk(field: int, data: bytes) -> bytes:
    """A field of bytes, as protobuf writes it; for at most 127 bytes, or 16383 with a second byte of length."""
    size = len(data)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return bytes([field << 3 | 2]) + length + data


def test_threads_share_the_rows_of_a_large_batch():
    """Any number of threads gives the columns that one gives, and the first row that fails is reported."""
    features = [
        Sparse("i", int64),
        FixedLength("f", float32, (), 7.0),
        Sparse("s", string),
        FixedLength("t", string, ()),
    ]
    rows = [
        serialized(
            s=[b"x" * 2000, b"%d" % r], t=[b"t%d" % r], i=list(range(r % 4)), **({"f": [float(r)]} if r % 3 else {})
        )
        for r in range(300)
    ]
    parser = example.ExampleParser(features)

    def as_lists(columns):
        return [
            [part.tolist() for part in column] if isinstance(column, example.SparseColumn) else column.tolist()
            for column in columns
        ]

    expected = as_lists(parser.parse(rows))
    assert expected[1] == [float(r) if r % 3 else 7.0 for r in range(300)]
    for threads in (2, 3):
        assert as_lists(parser.parse(rows, threads=threads)) == expected
    for bad in ([7, 250], [250]):
        broken = [b"\xff" if r in bad else row for r, row in enumerate(rows)]
        messages = []
        for threads in (1, 2):
            with pytest.raises(InvalidArgumentError) as error:
                parser.parse(broken, threads=threads)
            messages.append(str(error.value))
        assert messages[0] == messages[1]
