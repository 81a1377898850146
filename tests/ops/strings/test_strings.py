"""Strings: values that real TensorFlow gives, through the sample runner and the public API."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError, OutOfRangeError
from tests.ops.samples import WHEN_BUILT, Sample, check_sample, samples


def s(*items, shape=None):
    result = np.empty(len(items), dtype=object)
    result[:] = [item.encode() if isinstance(item, str) else item for item in items]
    return result.reshape(shape) if shape is not None else result


def one(op, inputs, expected, static=True, **attrs):
    return Sample(op, inputs, attrs, reference=lambda *_: expected, gradient=False, static=static)


def bad(op, inputs, message, kinds=InvalidArgumentError, **attrs):
    return Sample(op, inputs, attrs, raises=(kinds, message))


WORDS = s("a b", "c  d", "abc")
SCALAR = s("x").reshape(())
I, F = np.int32, np.float32
NGRAM = {"separator": "|", "left_pad": "LP", "right_pad": "RP", "pad_width": -1, "preserve_short_sequences": False}
SPLITS = np.array([0, 3, 4])
PAIR = s("a", "b", "c", "d", shape=(2, 2))
NUMBERS = np.array([1.5, 1e10, 1 / 3, 1e-5], F)

FAST = [939, 296, 263, 948]
FIRST = [868, 938, 899, 988]
STRONG = [646, 622, 435, 518]
SAMPLES = [
    one("StringJoin", [[SCALAR, s("p", "q")]], s("x/p", "x/q"), separator="/"),
    bad("StringJoin", [[s("a", "b", "c"), s("p", "q")]], "Input shapes do not match|3 and 2"),
    one("ReduceJoin", [PAIR, [0, 1]], s("a-c-b-d").reshape(()), separator="-"),
    one("ReduceJoin", [PAIR, [1, 0]], s("a-b-c-d").reshape(()), separator="-"),
    one("ReduceJoin", [PAIR, 1], s("ab", "cd", shape=(2, 1)), keep_dims=True),
    one("ReduceJoin", [PAIR, np.zeros(0, I)], PAIR),
    Sample("ReduceJoin", [PAIR, [2]], raises=((ValueError, OutOfRangeError), "2")),
    one("UnsortedSegmentJoin", [s("a", "b", "c"), np.array([1, 0, 1]), 3], s("b", "a:c", ""), separator=":"),
    bad("UnsortedSegmentJoin", [s("a"), np.array([-1]), 3], "negative"),
    one("StringSplit", [WORDS, s(" ").reshape(())],
        (np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]]), s("a", "b", "c", "d", "abc"), np.array([3, 2])), static=False),
    one("StringSplit", [s("c  d", ""), s(" ").reshape(())],
        (np.array([[0, 0], [0, 1], [0, 2]]), s("c", "", "d"), np.array([2, 3])), static=False, skip_empty=False),
    one("StringSplit", [s("a,b;c"), s(",;").reshape(())],
        (np.array([[0, 0], [0, 1], [0, 2]]), s("a", "b", "c"), np.array([1, 3])), static=False),
    one("StringSplit", [s("abc", ""), s("").reshape(())],
        (np.array([[0, 0], [0, 1], [0, 2]]), s("a", "b", "c"), np.array([2, 3])), static=False),
    one("StringSplitV2", [s("  a b  c ", "", "d"), s("").reshape(())],
        (np.array([[0, 0], [0, 1], [0, 2], [2, 0]]), s("a", "b", "c", "d"), np.array([3, 3])), static=False),
    one("StringSplitV2", [s("a,,b,", "", ",x"), s(",").reshape(())],
        (np.array([[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [2, 0], [2, 1]]), s("a", "", "b", "", "", "", "x"), np.array([3, 4])),
        static=False),
    one("StringSplitV2", [s("a<>b<>c"), s("<>").reshape(())], (np.array([[0, 0], [0, 1]]), s("a", "b<>c"), np.array([1, 2])), static=False, maxsplit=1),
    one("StringSplitV2", [s("  a b  c "), s("").reshape(())], (np.array([[0, 0], [0, 1]]), s("a", "b  c "), np.array([1, 2])), static=False, maxsplit=1),
    bad("StringSplitV2", [PAIR, SCALAR], "rank 1 but is rank 2", WHEN_BUILT),
    one("StaticRegexReplace", [s("abcabc")], s("a<cbbc>a<cbbc>"), pattern="(b)(c)", rewrite=r"<\2\1\0>"),
    one("StaticRegexReplace", [s("abcabc")], s("aXcabc"), pattern="b", rewrite="X", replace_global=False),
    one("StaticRegexReplace", [s("abc")], s("-a-b-c-"), pattern="", rewrite="-"),
    one("StaticRegexReplace", [s("abxd")], s("-a-b-d-"), pattern="x*", rewrite="-"),
    one("StaticRegexReplace", [s("abc")], s("abc"), pattern="b", rewrite=r"\1"),
    one("StaticRegexReplace", [s("a1 b_")], s("!1 !_"), pattern=r"[[:alpha:]]|\pL", rewrite="!"),
    one("StaticRegexReplace", [s("é1")], s("_1"), pattern="é", rewrite="_"),
    one("RegexReplace", [s("abab"), s("b").reshape(()), s("c").reshape(())], s("acac")),
    bad("StaticRegexReplace", [s("a")], r"Invalid pattern: \(", pattern="(", rewrite=""),
    bad("StaticRegexReplace", [s("a")], "Invalid pattern", pattern="a(?=b)", rewrite=""),
    one("StaticRegexFullMatch", [s("ab", "abc")], np.array([True, False]), pattern="a."),
    one("RegexFullMatch", [s("ab", "abc"), s("a.").reshape(())], np.array([True, False])),
    one("Substr", [s("hello", "world"), np.array([1, -3], I), np.array([2, 2], I)], s("el", "rl")),
    one("Substr", [s("hello"), np.array(5, I), np.array(2, I)], s("")),
    one("Substr", [s("hello"), np.array([0], I), np.array([-2], I)], s("hello")),
    one("Substr", [s("héllo"), np.array(1, I), np.array(2, I)], s("él"), unit="UTF8_CHAR"),
    bad("Substr", [s("hello"), np.array([6], I), np.array([2], I)], "pos 6 out of range for string b'hello' at index 0"),
    bad("Substr", [s("héllo"), np.array(9, I), np.array(2, I)], "pos 9 out of range for string at index 0", unit="UTF8_CHAR"),
    one("StringLength", [s("héllo", b"\xff\xfea")], np.array([6, 3], I)),
    one("StringLength", [s("héllo", b"\xff\xfea")], np.array([5, 3], I), unit="UTF8_CHAR"),
    one("StringLower", [s("HÉllo")], s("hÉllo")),
    one("StringLower", [s("HÉllo")], s("héllo"), encoding="utf-8"),
    one("StringUpper", [s("hé")], s("HÉ"), encoding="utf-8"),
    one("StringStrip", [s("  a b\t\n\v\x00 ")], s("a b\t\n\v\x00")),
    one("StringToNumber", [s("1.5", " 1.5 ", "1e3", "nan", "inf", "-Infinity", "0x10", "+3")],
        np.array([1.5, 1.5, 1000, np.nan, np.inf, -np.inf, 16, 3], F)),
    one("StringToNumber", [s("12", " 12 ", "-5", "+5")], np.array([12, 12, -5, 5], I), out_type="int32"),
    one("StringToNumber", [s("18446744073709551615")], np.array([2**64 - 1], "uint64"), out_type="uint64"),
    *(bad("StringToNumber", [s(text)], "could not correctly convert string") for text in ("", "1_0", "abc", "1.5f")),
    *(bad("StringToNumber", [s(text)], "could not correctly convert", out_type="int32") for text in ("1.5", "99999999999", "0x10")),
    one("AsString", [np.array([1.5, -0.0, 1e10, np.nan, np.inf, 1 / 3], F)],
        s("1.500000", "-0.000000", "10000000000.000000", "nan", "inf", "0.333333")),
    one("AsString", [NUMBERS], s("1.50", "10000000000.00", "0.33", "0.00"), precision=2),
    one("AsString", [NUMBERS[:3]], s("1.500000e+00", "1.000000e+10", "3.333333e-01"), scientific=True),
    one("AsString", [NUMBERS], s("1.5", "1e+10", "0.333333", "1e-05"), shortest=True),
    one("AsString", [np.array([1.5, -2], F)], s("01.500000", "-2.000000"), width=9, fill="0"),
    one("AsString", [np.array([15, -2])], s("00015", "-0002"), width=5, fill="0"),
    one("AsString", [np.array([15, -2])], s("15   ", "-2   "), width=5, fill="-"),
    one("AsString", [np.array([15, -2])], s("   15", "   -2"), width=5),
    one("AsString", [np.array([True, False])], s("true", "false")),
    one("AsString", [np.array([1 + 2j])], s("(1.000000,2.000000)")),
    one("AsString", [s("ab")], s("  ab"), width=4),
    bad("AsString", [np.array([1], I)], "precision not supported for datatype int32", precision=2),
    bad("AsString", [np.array([1], I)], "Fill string must be one or fewer", fill="xx"),
    one("StringFormat", [[np.arange(10), np.array([[1.5, 2], [3, 4]], F)]], s("a [0 1 2 ... 7 8 9] b [[1.5 2]\n [3 4]]").reshape(()),
        template="a % b %", placeholder="%"),
    one("StringFormat", [[s("x", "y")]], s('["x" "y"]').reshape(())),
    one("StringFormat", [[np.array(3.14159265, F)]], s("3.14159274").reshape(())),
    one("StringFormat", [[np.zeros((8, 8), F)]], s(
        "[[0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n ...\n [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]]"
    ).reshape(())),
    one("StringFormat", [[SCALAR, np.array(True)]], s('"x" 1').reshape(()), template="%s %s"),
    bad("StringFormat", [[SCALAR]], "placeholders", WHEN_BUILT, template="%s %s"),
    one("StringToHashBucketFast", [s()], np.zeros(0, "i8"), num_buckets=7),
    one("StringNGrams", [s("a", "b", "c", "d"), SPLITS],
        (s("LP|a", "a|b", "b|c", "c|RP", "LP|LP|a", "LP|a|b", "a|b|c", "b|c|RP", "c|RP|RP", "LP|d", "d|RP", "LP|LP|d", "LP|d|RP", "d|RP|RP"),
         np.array([0, 9, 14])), static=False, ngram_widths=[2, 3], **NGRAM),
    one("StringNGrams", [s("a", "b", "c", "d"), SPLITS], (s("a|b|c", "d"), np.array([0, 1, 2])), static=False,
        **{**NGRAM, "ngram_widths": [3], "pad_width": 0, "preserve_short_sequences": True}),
    one("StringNGrams", [s("a", "b", "c", "d"), SPLITS], (s("L|a|b", "a|b|c", "b|c|R", "L|d|R"), np.array([0, 3, 4])), static=False,
        **{**NGRAM, "ngram_widths": [3], "pad_width": 1, "left_pad": "L", "right_pad": "R"}),
    one("UnicodeDecodeWithOffsets", [s("hé", b"\xffa", "")],
        (np.array([0, 2, 4, 4]), np.array([104, 233, 65533, 97]), np.array([0, 1, 0, 1])), static=False, input_encoding="UTF-8"),
    one("UnicodeDecode", [s(b"\xe3\x81a\xf0\x9f")], (np.array([0, 1]), np.array([97])), static=False, input_encoding="UTF-8", errors="ignore"),
    one("UnicodeDecodeWithOffsets", [s(b"\xe3\x81a\xf0\x9f\x98b")],
        (np.array([0, 4]), np.array([65533, 97, 65533, 98]), np.array([0, 2, 3, 6])), static=False, input_encoding="UTF-8"),
    one("UnicodeDecode", [s(b"a\x00\tb")], (np.array([0, 4]), np.array([97, 65533, 65533, 98])), static=False, input_encoding="UTF-8",
        replace_control_characters=True),
    bad("UnicodeDecode", [s(b"\xff")], "Invalid formatting", input_encoding="UTF-8", errors="strict"),
    bad("UnicodeDecode", [s("a")], "Could not create converter for input encoding: foo", input_encoding="foo"),
    one("UnicodeEncode", [np.array([104, 233, 0x1F600, 0xD800], I), np.array([0, 2, 4])], s("hé", "😀\ufffd"), output_encoding="UTF-8"),
    one("UnicodeEncode", [np.array([104, 0x1F600], I), np.array([0, 2])], s(b"\x00h\xd8=\xde\x00"), output_encoding="UTF-16-BE"),
    bad("UnicodeEncode", [np.array([0xD800], I), np.array([0, 1])], "surrogate", output_encoding="UTF-8", errors="strict"),
    one("UnicodeTranscode", [s("hé")], s(b"\x00h\x00\xe9"), input_encoding="UTF-8", output_encoding="UTF-16-BE"),
    one("UnicodeTranscode", [s(b"a\xffb")], s("a\ufffdb"), input_encoding="UTF-8", output_encoding="UTF-8"),
    one("UnicodeTranscode", [s(b"\xe9")], s("é"), input_encoding="ISO-8859-1", output_encoding="UTF-8"),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what TensorFlow does, in every mode."""
    check_sample(sample)


def test_splits_are_sparse_tensors():
    """string_split and strings.split give a SparseTensor that a run can fetch."""
    with tf.Graph().as_default(), tf.Session() as session:
        words = tf.string_split(["a b", "c"])
        assert words.shape.as_list() == [2, None] or words.shape.as_list() == [2, 2]
        value = session.run(words)
        assert isinstance(value, tf.SparseTensorValue)
        assert value.values.tolist() == [b"a", b"b", b"c"] and value.dense_shape.tolist() == [2, 2]
        assert session.run(tf.strings.split(["a-b"], "-")).values.tolist() == [b"a", b"b"]


def test_single_strings_in_eager_mode(eager):
    """The 2.x functions on one string give plain tensors."""
    assert tf2.strings.split("a b c").numpy().tolist() == [b"a", b"b", b"c"]
    assert tf2.strings.unicode_decode("hé", "UTF-8").numpy().tolist() == [104, 233]
    assert tf2.strings.unicode_encode([104, 233], "UTF-8").numpy() == "hé".encode()
    assert tf2.strings.unicode_encode([[104], [233]], "UTF-8").numpy().tolist() == [b"h", "é".encode()]
    assert tf2.strings.format("{}!", tf2.constant([1, 2])).numpy() == b"[1 2]!"
    with pytest.raises(ValueError, match="placeholders"):
        tf2.strings.format("{} {}", tf2.constant(1))


def test_hash_buckets_are_tensorflows(eager):
    """Buckets equal those of TensorFlow (values from it)."""
    words = ["a", "hello", "", "stoker"]
    assert tf2.strings.to_hash_bucket_fast(words, 1000).numpy().tolist() == FAST
    assert tf2.strings.to_hash_bucket(words, 1000).numpy().tolist() == FIRST
    assert tf2.strings.to_hash_bucket_strong(words, 1000, [1, 2]).numpy().tolist() == STRONG


def test_zeros_at_the_end_of_bytes_stay(eager):
    """Bytes are bytes: no zero is lost at their end, and none of them becomes NumPy's kind of bytes."""
    sparse = tf2.SparseTensor([[0, 0]], [b"a\0"], [2, 1])
    found = {
        "list": tf2.constant([b"a\0", b"b"]),
        "scalar": tf2.constant(b"a\0"),
        "text": tf2.constant([["a\0"]]),
        "array": tf2.constant(np.array([b"a", b"b"])),
        "variable": tf2.Variable([b"a\0"]).read_value(),
        "fill": tf2.fill([2], b"a\0"),
        "pad": tf2.pad([b"a"], [[1, 0]], constant_values=b"z\0"),
        "to_dense": tf2.sparse.to_dense(sparse, b"d\0"),
        "fill_empty_rows": tf2.sparse.fill_empty_rows(sparse, b"d\0")[0].values,
        "python": tf2.numpy_function(lambda: b"a\0", [], tf2.string),
    }
    values = {name: np.asarray(tensor.numpy(), dtype=object).tolist() for name, tensor in found.items()}
    assert values == {
        "list": [b"a\0", b"b"],
        "scalar": b"a\0",
        "text": [[b"a\0"]],
        "array": [b"a", b"b"],
        "variable": [b"a\0"],
        "fill": [b"a\0", b"a\0"],
        "pad": [b"z\0", b"a"],
        "to_dense": [[b"a\0"], [b"d\0"]],
        "fill_empty_rows": [b"a\0", b"d\0"],
        "python": b"a\0",
    }
    assert [type(item) for item in found["array"].numpy()] == [bytes, bytes]


def test_first_words_and_the_rest(eager):
    """Splits at white space stop after `maxsplit` words; what is left follows, also where it is empty."""
    split = tf2.strings.split
    assert split(" a b  c ", maxsplit=2).numpy().tolist() == [b"a", b"b", b"c "]
    assert split(" a b  c ", maxsplit=3).numpy().tolist() == [b"a", b"b", b"c", b""]
    assert split(" a b  c ", maxsplit=4).numpy().tolist() == [b"a", b"b", b"c"]
    assert split(" a ", maxsplit=0).numpy().tolist() == [b" a "]
    assert split("  ", maxsplit=1).numpy().tolist() == []
