"""Samples of ops on strings: joining, splitting, matching, converting, hashing, Unicode, records."""

import json
import re
import zlib

import numpy as np

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError, OutOfRangeError
from tests.ops.samples import Sample, check_sample, samples, texts


def each(function):
    """A reference that works on the strings of its input one by one."""
    return lambda x, *_: texts(*map(function, x))


def example(**features):
    """A serialized Example with lists of integers."""
    made = tf.train.Example()
    for key, numbers in features.items():
        made.features.feature[key].int64_list.value.extend(numbers)
    return made.SerializeToString(deterministic=True)


def sequence(context, steps):
    """A serialized SequenceExample: a number in the context, lists of numbers for its steps."""
    made = tf.train.SequenceExample()
    made.context.feature["c"].int64_list.value.append(context)
    for step in steps:
        made.feature_lists.feature_list["s"].feature.add().int64_list.value.extend(step)
    return made.SerializeToString(deterministic=True)


WORDS = texts(b" Ab c", b"", b"a,b,,c ", "\u00e4\u20ac".encode())
SCALAR = lambda value: np.array(value, object)  # noqa: E731
NONE = np.zeros(0, object)
ROWS = texts(b"1,2.5,x", b'-7,,"y,z"')
EXAMPLES = texts(example(d=[1, 2], v=[5]), example(d=[3, 4], v=[6, 7]))
STEPS = sequence(9, [[1, 2], [3, 4]])
PARSED = ([np.array([[0, 0], [1, 0], [1, 1]])], [np.array([5, 6, 7])], [np.array([2, 2])], [np.array([[1, 2], [3, 4]])])
EXAMPLE_ATTRS = {"sparse_types": ["int64"], "dense_shapes": [[2]]}
DENSE_DEFAULT = np.zeros(0, np.int64)
MATRIX = np.array([[b"a", b"b"], [b"c", b"d"]], object)

SAMPLES = [
    Sample("StringJoin", [[texts(b"a", b"b"), texts(b"x", b"y")]], {"separator": "-"}, reference=lambda x: texts(b"a-x", b"b-y")),
    Sample("StringJoin", [[texts(b"a", b"b"), SCALAR(b"!")]], reference=lambda x: texts(b"a!", b"b!")),
    Sample("StringJoin", [[texts(b"a", b"b"), texts(b"x", b"y", b"z")]], raises=(InvalidArgumentError, "2")),
    Sample("ReduceJoin", [MATRIX, [0]], {"separator": "+"}, reference=lambda *_: texts(b"a+c", b"b+d")),
    Sample("ReduceJoin", [MATRIX, [1, 0]], reference=lambda *_: SCALAR(b"abcd")),
    Sample("ReduceJoin", [MATRIX, [0, 1]], reference=lambda *_: SCALAR(b"acbd")),
    Sample("ReduceJoin", [MATRIX, [-1]], {"keep_dims": True}, reference=lambda *_: np.array([[b"ab"], [b"cd"]], object)),
    Sample("ReduceJoin", [MATRIX, [2]], raises=((ValueError, OutOfRangeError), "2")),
    Sample("UnsortedSegmentJoin", [texts(b"a", b"b", b"c"), np.array([1, 0, 1]), 3], {"separator": ":"}, static=False,
           reference=lambda *_: texts(b"b", b"a:c", b"")),
    Sample("StringSplit", [texts(b"a b", b"", b" c "), SCALAR(b" ")], static=False,
           reference=lambda *_: (np.array([[0, 0], [0, 1], [2, 0]]), texts(b"a", b"b", b"c"), np.array([3, 2]))),
    Sample("StringSplit", [texts(b"a,,b"), SCALAR(b",")], {"skip_empty": False}, static=False,
           reference=lambda *_: (np.array([[0, 0], [0, 1], [0, 2]]), texts(b"a", b"", b"b"), np.array([1, 3]))),
    Sample("StringSplitV2", [texts(b" a  b ", b"c"), SCALAR(b"")], static=False,
           reference=lambda *_: (np.array([[0, 0], [0, 1], [1, 0]]), texts(b"a", b"b", b"c"), np.array([2, 2]))),
    Sample("StringSplitV2", [texts(b"1<>2<>3"), SCALAR(b"<>")], {"maxsplit": 1}, static=False,
           reference=lambda *_: (np.array([[0, 0], [0, 1]]), texts(b"1", b"2<>3"), np.array([1, 2]))),
    Sample("RegexReplace", [WORDS, SCALAR(b"[a-c]"), SCALAR(b"<\\0>")], reference=each(lambda s: re.sub(b"[a-c]", rb"<\g<0>>", s))),
    Sample("RegexReplace", [WORDS, SCALAR(b"[a-c]"), SCALAR(b"_")], {"replace_global": False}, reference=each(lambda s: re.sub(b"[a-c]", b"_", s, count=1))),
    Sample("RegexReplace", [WORDS, SCALAR(b"(a"), SCALAR(b"")], raises=(InvalidArgumentError, r"\(a")),
    Sample("StaticRegexReplace", [WORDS], {"pattern": "[A-Z]+", "rewrite": "u"}, reference=each(lambda s: re.sub(b"[A-Z]+", b"u", s))),
    Sample("RegexFullMatch", [WORDS, SCALAR(b"[a-c,]+ ?")], reference=lambda x, p: np.array([re.fullmatch(p.item(), s) is not None for s in x])),
    Sample("StaticRegexFullMatch", [WORDS], {"pattern": ".*"}, reference=lambda x: np.array([True, True, True, True])),
    Sample("Substr", [texts(b"hello", b"world"), np.int32(1), np.int32(3)], reference=lambda *_: texts(b"ell", b"orl")),
    Sample("Substr", [texts(b"hello", b"world"), np.array([-2, 4]), np.array([9, 1])], reference=lambda *_: texts(b"lo", b"d")),
    Sample("Substr", [texts("h\u00e4\u20acx".encode()), np.int32(1), np.int32(2)], {"unit": "UTF8_CHAR"}, reference=lambda *_: texts("\u00e4\u20ac".encode())),
    Sample("Substr", [texts(b"hello"), np.int32(6), np.int32(1)], raises=(InvalidArgumentError, "6")),
    Sample("StringLength", [WORDS], reference=lambda x: np.array([len(s) for s in x], np.int32)),
    Sample("StringLength", [WORDS], {"unit": "UTF8_CHAR"}, reference=lambda x: np.array([len(s.decode()) for s in x], np.int32)),
    Sample("StringLower", [texts(b"ABc", b"1")], reference=each(bytes.lower)),
    Sample("StringLower", [texts("\u00c4B".encode())], {"encoding": "utf-8"}, reference=each(lambda s: s.decode().lower().encode())),
    Sample("StringUpper", [texts(b"ABc", "\u00e4".encode())], reference=each(bytes.upper)),
    Sample("StringStrip", [WORDS], reference=each(bytes.strip)),
    Sample("StringToHashBucketFast", [texts(b"abc", b"")], {"num_buckets": 1}, reference=lambda x: np.zeros(2, np.int64)),
    Sample("StringToNumber", [texts(b"1.5", b" -2e3 ", b"inf")], reference=lambda x: np.array([1.5, -2000, np.inf], np.float32)),
    Sample("StringToNumber", [texts(b"17")], {"out_type": "int64"}, reference=lambda x: np.array([17])),
    Sample("StringToNumber", [texts(b"x1")], raises=(InvalidArgumentError, "x1")),
    Sample("AsString", [np.array([1, -20])], {"width": 4, "fill": "0"}, reference=lambda x: texts(b"0001", b"-020")),
    Sample("AsString", [np.array([1.5, -2.25])], {"precision": 1, "scientific": True}, gradient=False, reference=lambda x: texts(*(b"%.1e" % v for v in x))),
    Sample("AsString", [np.array([True, False])], reference=lambda x: texts(b"true", b"false")),
    Sample("StringFormat", [[np.array([1, 2, 3, 4]), np.int32(7)]], {"template": "%s of %s", "summarize": 1}, gradient=False,
           reference=lambda x: SCALAR(b"[1 ... 4] of 7")),
    Sample("UnicodeDecode", [texts("a\u20ac".encode(), b"", b"\xff")], {"input_encoding": "UTF-8"}, static=False,
           reference=lambda x: (np.array([0, 2, 2, 3]), np.array([97, 0x20AC, 65533], np.int32))),
    Sample("UnicodeDecodeWithOffsets", [texts("a\u20acb".encode())], {"input_encoding": "UTF-8"}, static=False,
           reference=lambda x: (np.array([0, 3]), np.array([97, 0x20AC, 98], np.int32), np.array([0, 1, 4]))),
    Sample("UnicodeDecode", [texts(b"\xff")], {"input_encoding": "UTF-8", "errors": "strict"}, raises=(InvalidArgumentError, "UTF-8|ormat")),
    Sample("UnicodeEncode", [np.array([97, 0x20AC, 98], np.int32), np.array([0, 2, 2, 3])], {"output_encoding": "UTF-16-BE"}, static=False,
           reference=lambda *_: texts("a\u20ac".encode("utf-16-be"), b"", b"\0b")),
    Sample("UnicodeTranscode", [texts("a\u20ac".encode(), b"x\xff")], {"input_encoding": "UTF-8", "output_encoding": "UTF-8", "errors": "ignore"},
           reference=lambda *_: texts("a\u20ac".encode(), b"x")),
    Sample("StringNGrams", [texts(b"a", b"b", b"c", b"d"), np.array([0, 3, 4])], {
               "separator": "|", "ngram_widths": [2], "left_pad": "<", "right_pad": ">", "pad_width": 0, "preserve_short_sequences": False},
           static=False, reference=lambda *_: (texts(b"a|b", b"b|c"), np.array([0, 2, 2]))),
    Sample("SdcaFprint", [texts(b"abc", b"")], static=False),
    Sample("DecodeCompressed", [texts(zlib.compress(b"hello"), zlib.compress(b""))], {"compression_type": "ZLIB"}, reference=lambda x: texts(b"hello", b"")),
    Sample("DecodeJSONExample", [texts(json.dumps({"features": {"feature": {"d": {"int64List": {"value": ["1"]}}}}}).encode())],
           reference=lambda x: texts(example(d=[1]))),
    Sample("DecodeCSV", [ROWS, [np.array([0], np.int32), np.array([9.0], np.float32), np.zeros(0, object)]],
           reference=lambda *_: [np.array([1, -7], np.int32), np.array([2.5, 9], np.float32), texts(b"x", b"y,z")]),
    Sample("DecodeCSV", [texts(b"1"), [np.array([0], np.int32), np.array([0], np.int32)]], raises=(InvalidArgumentError, "2")),
    Sample("ParseExample", [EXAMPLES, NONE, [SCALAR(b"v")], [SCALAR(b"d")], [DENSE_DEFAULT]], EXAMPLE_ATTRS, static=False, reference=lambda *_: PARSED),
    Sample("ParseExampleV2", [EXAMPLES, NONE, texts(b"v"), texts(b"d"), NONE, [DENSE_DEFAULT]],
           {"num_sparse": 1, "ragged_value_types": [], "ragged_split_types": [], **EXAMPLE_ATTRS}, static=False, reference=lambda *_: (*PARSED, [], [])),
    Sample("ParseSingleExample", [SCALAR(EXAMPLES[1]), [DENSE_DEFAULT]],
           {"num_sparse": 1, "sparse_keys": ["v"], "dense_keys": ["d"], **EXAMPLE_ATTRS}, static=False,
           reference=lambda *_: ([np.array([[0], [1]])], [np.array([6, 7])], [np.array([2])], [np.array([3, 4])])),
    Sample("ParseSequenceExample", [texts(STEPS), NONE, [DENSE_DEFAULT]], {
               "feature_list_dense_missing_assumed_empty": [], "context_sparse_keys": [], "context_dense_keys": ["c"], "feature_list_sparse_keys": [],
               "feature_list_dense_keys": ["s"], "Ncontext_dense": 1, "Nfeature_list_dense": 1, "feature_list_dense_types": ["int64"],
               "context_dense_shapes": [[]], "feature_list_dense_shapes": [[2]]}, static=False,
           reference=lambda *_: ([], [], [], [np.array([9])], [], [], [], [np.array([[[1, 2], [3, 4]]])], [np.array([2])])),
    Sample("ParseSequenceExampleV2", [texts(STEPS), NONE, NONE, texts(b"c"), NONE, NONE, texts(b"s"), NONE, np.array([False]), [DENSE_DEFAULT]], {
               "Nfeature_list_dense": 1, "feature_list_dense_types": ["int64"], "context_dense_shapes": [[]], "feature_list_dense_shapes": [[2]]}, static=False,
           reference=lambda *_: ([], [], [], [np.array([9])], [], [], [], [], [], [np.array([[[1, 2], [3, 4]]])], [np.array([2])], [], [], [])),
    Sample("ParseSingleSequenceExample", [SCALAR(STEPS), NONE, [], [SCALAR(b"c")], [], [SCALAR(b"s")], [DENSE_DEFAULT], SCALAR(b"")], {
               "feature_list_dense_types": ["int64"], "context_dense_shapes": [[]], "feature_list_dense_shapes": [[2]]}, static=False,
           reference=lambda *_: ([], [], [], [np.array(9)], [], [], [], [np.array([[1, 2], [3, 4]])])),
    Sample("ParseTensor", [SCALAR(tf.make_tensor_proto(np.array([1.5, 2])).SerializeToString())], {"out_type": "float64"}, static=False,
           reference=lambda x: np.array([1.5, 2])),
    Sample("ParseTensor", [SCALAR(b"\x01bad")], {"out_type": "float64"}, raises=(InvalidArgumentError, "parse")),
    Sample("DecodeProtoV2", [texts(example(d=[1]))], {"message_type": "tensorflow.Example", "field_names": ["features"], "output_types": ["string"]}, static=False,
           reference=lambda x: (np.array([[1]], np.int32), [np.array([[tf.train.Example.FromString(x[0]).features.SerializeToString(deterministic=True)]], object)])),
    Sample("EncodeProto", [np.array([[2]], np.int32), [np.array([[3, 4]])]], {"message_type": "tensorflow.Int64List", "field_names": ["value"]},
           reference=lambda *_: texts(tf.train.Int64List(value=[3, 4]).SerializeToString()), static=False),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample) -> None:
    """The op's value, shape, eager form and GraphDef agree with each other and with Python."""
    check_sample(sample)
