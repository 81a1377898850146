"""String ops: joining, splitting, searching, substrings, case and hashing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType
from stoker._src.base.errors import InvalidArgumentError, OutOfRangeError
from stoker._src.base.export import export
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, broadcast
from stoker._src.formats import hashing
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import INT, INT32, INTS, STRING, OpDefinition, all_merged, define, one_of, unchanged
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import ranges
from stoker._src.ops.array.uneven_rows import sparse_rows
from stoker._src.ops.math import reductions, segment_reductions
from stoker._src.ops.strings import regex
from stoker._src.ops.support.dispatching import dispatched, elementwise
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.rows import Input

compiled = extension("stoker._src.ops.native.strings")

_UNIT = STRING("BYTE", allowed=("BYTE", "UTF8_CHAR"))


def as_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value


def each(function: Callable[[bytes], Any], strings: np.ndarray) -> np.ndarray:
    """Applies `function` to every string and keeps the shape."""
    result = np.empty(strings.size, dtype=object)
    result[:] = [function(item) for item in strings.reshape(-1).tolist()] if strings.size else []
    return result.reshape(strings.shape)


def _numbers(values: Any, shape: Any, kind: DType) -> torch.Tensor:
    return torch.from_numpy(np.array(values, dtype=kind.as_numpy_dtype).reshape(shape))


def _elementwise(signature: str, function: Callable[[bytes], Any], **attrs: Any) -> OpDefinition:
    definition = define(signature, **attrs)
    definition.kernel(lambda input: each(function, input))
    definition.shape(unchanged)
    return definition


def utf8_starts(text: bytes) -> list[int]:
    """The offsets at which the characters of UTF-8 text start: all bytes except continuation bytes."""
    return [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80]


# ---- StringJoin, ReduceJoin, UnsortedSegmentJoin ----------------------------------------------------------------

STRING_JOIN = define(
    "StringJoin(inputs: N * string) -> (output: string)", N=INT(minimum=0), separator=""
).not_differentiable()


@STRING_JOIN.kernel
def string_join_kernel(inputs: list[np.ndarray], *, separator: str) -> np.ndarray:
    glue, shape = as_bytes(separator), _joined_shape(inputs)
    count = int(np.prod(shape))
    result = np.empty(count, dtype=object)
    if compiled is not None and inputs:
        compiled.join(list(map(np.ascontiguousarray, inputs)), glue, result)
        return result.reshape(shape)
    columns = [item.reshape(-1).tolist() if item.ndim else [item[()]] * count for item in inputs]
    result[:] = [glue.join(parts) for parts in zip(*columns)] if columns else [b""] * count
    return result.reshape(shape)


def _joined_shape(inputs: list[np.ndarray]) -> tuple[int, ...]:
    shape: tuple[int, ...] = ()
    for item in inputs:
        if item.ndim:
            if shape not in ((), item.shape):
                raise InvalidArgumentError(
                    None, None, f"Input shapes do not match: {Shape(shape)} vs. {Shape(item.shape)}"
                )
            shape = item.shape
    return shape


@STRING_JOIN.shape
def string_join_shape(inputs: list[Shape]) -> Shape:
    if any(each_.rank is None for each_ in inputs):
        return UNKNOWN_SHAPE
    return all_merged([each_ for each_ in inputs if each_.dims]) if any(each_.dims for each_ in inputs) else Shape(())


@export("strings.join", v1="string_join")
@dispatched
def string_join(inputs: Any, separator: str = "", name: str | None = None) -> Tensor:
    """Joins strings element by element with `separator`. Scalars are broadcast."""
    return STRING_JOIN(inputs, separator=separator, name=name)


REDUCE_JOIN = define(
    "ReduceJoin(inputs: string, reduction_indices: rank<2/flat host int32) -> (output: string)",
    keep_dims=False,
    separator="",
).not_differentiable()


@REDUCE_JOIN.kernel
def reduce_join_kernel(inputs: np.ndarray, reduction_indices: Any, *, keep_dims: bool, separator: str) -> np.ndarray:
    axes = reduction_indices if type(reduction_indices) is list else [reduction_indices]
    rank = inputs.ndim
    for axis in axes:
        if not -rank <= axis < rank:
            raise OutOfRangeError(None, None, f"Invalid reduction dimension {axis} for input with {rank} dimension(s)")
    chosen = [axis % rank for axis in axes]
    if len(set(chosen)) != len(chosen):
        raise InvalidArgumentError(None, None, f"Duplicate reduction dimension in {axes}.")
    if not chosen:
        return inputs.copy()
    kept = [axis for axis in range(rank) if axis not in chosen]
    # The axes are joined in the given order: the first one varies fastest.
    sizes = [int(np.prod([inputs.shape[i] for i in part])) for part in (kept, chosen)]
    rows = inputs.transpose(*kept, *reversed(chosen)).reshape(sizes)
    glue = as_bytes(separator)
    result = np.empty(len(rows), dtype=object)
    result[:] = [glue.join(row) for row in rows.tolist()]
    shape = (
        [1 if i in chosen else inputs.shape[i] for i in range(rank)] if keep_dims else [inputs.shape[i] for i in kept]
    )
    return result.reshape(shape)


REDUCE_JOIN.shape(reductions.reduced_shape, values=["reduction_indices"])


def _join_axes(inputs: Tensor, axis: Any) -> Any:
    """The axes to join; by default all of them, in the order of the elements."""
    if axis is not None:
        return axis
    rank = inputs.static_shape.rank
    if rank is not None:
        return np.arange(rank - 1, -1, -1, dtype=np.int32)
    return ranges.range(ranges.rank(inputs) - 1, -1, -1)


@export(v1=("reduce_join", "strings.reduce_join"))
@dispatched
def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: Any = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: Any = None,
) -> Tensor:
    """Joins strings along dimensions, in the order given by `axis`."""
    axis, keep = reductions.older_arguments(axis, keepdims, reduction_indices, keep_dims)
    return reduce_join_v2(inputs, axis, keep, separator, name)


@export(v2="strings.reduce_join")
@dispatched
def reduce_join_v2(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Tensor:
    """Joins strings along dimensions, in the order given by `axis`."""
    with name_scope(None, "ReduceJoin", [inputs, axis]):
        inputs = inputs if isinstance(inputs, Tensor) else convert_to_tensor(inputs, dtypes.string)
        return REDUCE_JOIN(inputs, _join_axes(inputs, axis), keep_dims=keepdims, separator=separator, name=name)


UNSORTED_SEGMENT_JOIN = define(
    "UnsortedSegmentJoin(inputs: string, segment_ids: Tindices, num_segments: scalar host Tnumsegments) -> (output: string)",
    separator="",
    Tindices=INDEX,
    Tnumsegments=one_of(*INDEX, default=dtypes.int32),
)


@UNSORTED_SEGMENT_JOIN.kernel
def unsorted_segment_join_kernel(
    inputs: np.ndarray, segment_ids: torch.Tensor, num_segments: int, *, separator: str
) -> np.ndarray:
    if not segment_ids.ndim:
        raise InvalidArgumentError(None, None, "Segment_id cannot have rank 0")
    if segment_ids.ndim > inputs.ndim:
        raise OutOfRangeError(
            None, None, f"Invalid segment_id rank {segment_ids.ndim} for input with {inputs.ndim} dimension(s)"
        )
    if tuple(inputs.shape[: segment_ids.ndim]) != tuple(segment_ids.shape):
        raise InvalidArgumentError(
            None,
            None,
            f"inputs {Shape(inputs.shape)} must start with the shape of segment_ids {Shape(segment_ids.shape)}",
        )
    inner = inputs.shape[segment_ids.ndim :]
    rows = inputs.reshape(segment_ids.numel(), -1) if inputs.size else inputs.reshape(segment_ids.numel(), 0)
    allocatable([num_segments, *inner], 8)
    groups: dict[int, list[list[bytes]]] = {}
    for at, row in zip(segment_ids.reshape(-1).tolist(), rows.tolist()):
        if not 0 <= at < num_segments:
            raise InvalidArgumentError(
                None,
                None,
                f"segment_ids are not allowed to exceed num_segments or to have negative values: {at} is not in [0, {num_segments}).",
            )
        for group, item in zip(groups.setdefault(at, [[] for _ in row]), row):
            group.append(item)
    glue = as_bytes(separator)
    result = np.full((num_segments, int(np.prod(inner))), b"", dtype=object)
    for i, segment_groups in groups.items():
        result[i] = [glue.join(group) for group in segment_groups]
    return result.reshape(num_segments, *inner)


@UNSORTED_SEGMENT_JOIN.shape(values=["num_segments"])
def unsorted_segment_join_shape(inputs: Shape, segment_ids: Shape, num_segments: np.ndarray | None) -> Shape:
    return segment_reductions.unsorted_segment_shape(inputs, segment_ids, num_segments)


@export("strings.unsorted_segment_join")
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """Joins the strings of each segment, in order."""
    return UNSORTED_SEGMENT_JOIN(inputs, segment_ids, num_segments, separator=separator, name=name)


# ---- StringSplit ------------------------------------------------------------------------------------------------

STRING_SPLIT = define(
    "StringSplit(input: vector string, delimiter: scalar string) -> (indices: int64, values: string, shape: int64)",
    skip_empty=True,
).not_differentiable()
STRING_SPLIT_V2 = define(
    "StringSplitV2(input: vector string, sep: scalar string) -> (indices: int64, values: string, shape: int64)",
    maxsplit=INT32(-1),
)


_FIRST_ROW = np.stack([np.zeros(256, np.int64), np.arange(256)], axis=1)  # the positions of a row's strings


def _sparse_rows(rows: list[list[bytes]]) -> tuple[torch.Tensor, np.ndarray, torch.Tensor]:
    """Converts rows of strings to the three components of a sparse matrix."""
    flat = list(itertools.chain.from_iterable(rows)) if len(rows) != 1 else rows[0]
    values = np.empty(len(flat), dtype=object)
    values[:] = flat
    if len(rows) == 1 and len(flat) <= len(_FIRST_ROW):
        return torch.from_numpy(_FIRST_ROW[: len(flat)].copy()), values, torch.from_numpy(np.array([1, len(flat)]))
    indices = np.empty((len(flat), 2), dtype=np.int64)
    indices[:, 1] = np.arange(len(flat))
    lengths = np.array(list(map(len, rows)), dtype=np.int64)
    indices[:, 0] = np.repeat(np.arange(len(rows)), lengths)
    indices[:, 1] -= np.repeat(np.cumsum(lengths) - lengths, lengths)
    return torch.from_numpy(indices), values, torch.tensor([len(rows), max(lengths.tolist(), default=0)])


_SPACE = b" \t\n\r\v\f"


def _split_at(texts: np.ndarray, marks: bytes, *, skip_empty: bool, keep_nothing: bool) -> Any:
    """The parts of texts between any of the bytes in `marks`, as a sparse matrix. An empty text has no parts, or (without `keep_nothing`) one."""
    assert compiled is not None
    texts = np.ascontiguousarray(texts)
    lengths = np.empty(len(texts), np.int64)
    count = compiled.split_lengths(texts, marks, skip_empty, keep_nothing, lengths)
    values, indices = np.empty(count, dtype=object), np.empty((count, 2), np.int64)
    compiled.split_into(texts, marks, skip_empty, keep_nothing, values, indices)
    longest = int(lengths.max()) if len(lengths) else 0
    return torch.from_numpy(indices), values, torch.from_numpy(np.array([len(texts), longest]))


@STRING_SPLIT.kernel
def string_split_kernel(input: np.ndarray, delimiter: np.ndarray, *, skip_empty: bool) -> Any:
    if input.ndim != 1:
        raise InvalidArgumentError(None, None, f"input must be a vector, got shape: {Shape(input.shape)}")
    if delimiter.ndim:
        raise InvalidArgumentError(None, None, f"delimiter must be a scalar, got shape: {Shape(delimiter.shape)}")
    marks: bytes = delimiter.item()
    if not marks:  # without delimiters, split into single bytes
        return _sparse_rows([[bytes([byte]) for byte in item] for item in input.tolist()])
    if compiled is not None:
        return _split_at(input, marks, skip_empty=skip_empty, keep_nothing=True)
    if len(marks) == 1:
        rows = [item.split(marks) if item else [] for item in input.tolist()]
    else:
        pattern = re.compile(b"[" + re.escape(marks) + b"]")
        rows = [pattern.split(item) if item else [] for item in input.tolist()]
    if skip_empty:
        rows = [[part for part in row if part] if b"" in row else row for row in rows]
    return _sparse_rows(rows)


@STRING_SPLIT_V2.kernel
def string_split_v2_kernel(input: np.ndarray, sep: np.ndarray, *, maxsplit: int) -> Any:
    if input.ndim != 1:
        raise InvalidArgumentError(None, None, f"input must be a vector, got shape: {Shape(input.shape)}")
    if sep.ndim:
        raise InvalidArgumentError(None, None, f"sep must be a scalar, got shape: {Shape(sep.shape)}")
    mark: bytes | None = sep.item() or None
    if compiled is not None and maxsplit < 0 and (mark is None or len(mark) == 1):
        return _split_at(input, mark or _SPACE, skip_empty=mark is None, keep_nothing=False)
    if mark is None and maxsplit >= 0:
        return _sparse_rows([_first_words(item, maxsplit) for item in input.tolist()])
    # Python's split gives TensorFlow's results for runs of white space and for every occurrence of a separator.
    return _sparse_rows([item.split(mark, maxsplit) for item in input.tolist()])


def _first_words(text: bytes, count: int) -> list[bytes]:
    """Splits off up to `count` words, followed by the rest even if it is empty. Returns the text unchanged if `count` is 0."""
    if not count:
        return [text]
    words = text.split(None, count)
    return [*words, b""] if len(words) == count else words


for _definition in (STRING_SPLIT, STRING_SPLIT_V2):
    _definition.shape(lambda input, sep: (Shape((None, 2)), Shape((None,)), Shape((2,))))
    _definition.spelled_shape(lambda op, index, sight: Shape((sight.shape_of(op._inputs[0]).of_rank(1)[0], None)))


@STRING_SPLIT.rows
def string_split_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    skip_empty = op.attrs["skip_empty"]
    return sparse_rows(op, inputs, lambda strings: STRING_SPLIT(strings, inputs[1].tensor, skip_empty=skip_empty))


@STRING_SPLIT_V2.rows
def string_split_v2_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    maxsplit = op.attrs["maxsplit"]
    return sparse_rows(op, inputs, lambda strings: STRING_SPLIT_V2(strings, inputs[1].tensor, maxsplit=maxsplit))


# ---- regular expressions ----------------------------------------------------------------------------------------

REGEX_REPLACE = define(
    "RegexReplace(input: string, pattern: scalar string, rewrite: scalar string) -> (output: string)",
    replace_global=True,
).not_differentiable()
STATIC_REGEX_REPLACE = define(
    "StaticRegexReplace(input: string) -> (output: string)", pattern=STRING, rewrite=STRING, replace_global=True
)
REGEX_FULL_MATCH = define("RegexFullMatch(input: string, pattern: scalar string) -> (output: bool)")
STATIC_REGEX_FULL_MATCH = define("StaticRegexFullMatch(input: string) -> (output: bool)", pattern=STRING)
for _definition in (REGEX_REPLACE, STATIC_REGEX_REPLACE, REGEX_FULL_MATCH, STATIC_REGEX_FULL_MATCH):
    _definition.shape(unchanged)


@STATIC_REGEX_REPLACE.kernel
def static_regex_replace_kernel(input: np.ndarray, *, pattern: Any, rewrite: Any, replace_global: bool) -> np.ndarray:
    replace = regex.rewritten(as_bytes(pattern), as_bytes(rewrite), replace_global)
    return each(replace, input)


@REGEX_REPLACE.kernel
def regex_replace_kernel(
    input: np.ndarray, pattern: np.ndarray, rewrite: np.ndarray, *, replace_global: bool
) -> np.ndarray:
    for label, given in (("Pattern", pattern), ("Rewrite", rewrite)):
        if given.ndim:
            raise InvalidArgumentError(None, None, f"{label} must be scalar, but received {Shape(given.shape)}")
    return static_regex_replace_kernel(input, pattern=pattern[()], rewrite=rewrite[()], replace_global=replace_global)


@STATIC_REGEX_FULL_MATCH.kernel
def static_regex_full_match_kernel(input: np.ndarray, *, pattern: Any) -> torch.Tensor:
    match = regex.compiled(as_bytes(pattern)).fullmatch
    return _numbers([match(item) is not None for item in input.reshape(-1).tolist()], input.shape, dtypes.bool_)


@REGEX_FULL_MATCH.kernel
def regex_full_match_kernel(input: np.ndarray, pattern: np.ndarray) -> torch.Tensor:
    if pattern.ndim:
        raise InvalidArgumentError(None, None, f"Pattern must be scalar, but received {Shape(pattern.shape)}")
    return static_regex_full_match_kernel(input, pattern=pattern[()])


@export("strings.regex_replace", v1="regex_replace")
@elementwise
def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Replaces matches of `pattern` (RE2 syntax) by `rewrite`, in which `\1` stands for group 1 and `\0` for the match."""
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return STATIC_REGEX_REPLACE(input, pattern=pattern, rewrite=rewrite, replace_global=replace_global, name=name)
    return REGEX_REPLACE(input, pattern, rewrite, replace_global=replace_global, name=name)


@export("strings.regex_full_match")
@elementwise
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Whether `pattern` (RE2 syntax) matches the whole of each string."""
    if isinstance(pattern, (str, bytes)):
        return STATIC_REGEX_FULL_MATCH(input, pattern=pattern, name=name)
    return REGEX_FULL_MATCH(input, pattern, name=name)


# ---- Substr, StringLength, case, strip --------------------------------------------------------------------------

SUBSTR = define("Substr(input: string, pos: T, len: T) -> (output: string)", T=INDEX, unit=_UNIT)


@SUBSTR.kernel
def substr_kernel(input: np.ndarray, pos: torch.Tensor, len: torch.Tensor, *, unit: str) -> np.ndarray:
    if pos.shape != len.shape:
        raise InvalidArgumentError(
            None, None, f"pos and len should have the same shape, got: {Shape(pos.shape)} vs. {Shape(len.shape)}"
        )
    shape = np.broadcast_shapes(input.shape, tuple(pos.shape))
    texts = np.broadcast_to(input, shape).reshape(-1).tolist()
    starts = np.broadcast_to(pos.numpy(), shape).reshape(-1).tolist()
    counts = np.broadcast_to(len.numpy(), shape).reshape(-1).tolist()
    result = np.empty(int(np.prod(shape)), dtype=object)
    cut = _cut_bytes if unit == "BYTE" else _cut_characters
    result[:] = [cut(*item, at) for at, item in enumerate(zip(texts, starts, counts))]
    return result.reshape(shape)


builtin_len = len


def _cut_bytes(text: bytes, start: int, count: int, at: int) -> bytes:
    size = builtin_len(text)
    if not -size <= start <= size:
        raise InvalidArgumentError(
            None, None, f"pos {start} out of range for string b'{text.decode(errors='backslashreplace')}' at index {at}"
        )
    begin = start if start >= 0 else start + size
    return text[begin:] if count < 0 else text[begin : begin + count]


def _cut_characters(text: bytes, start: int, count: int, at: int) -> bytes:
    starts = [*utf8_starts(text), builtin_len(text)]
    size = builtin_len(starts) - 1
    if not -size <= start <= size:
        raise InvalidArgumentError(None, None, f"pos {start} out of range for string at index {at}")
    begin = start if start >= 0 else start + size
    end = size if count < 0 else min(size, begin + count)
    return text[starts[begin] : starts[end]]


@SUBSTR.shape
def substr_shape(input: Shape, pos: Shape, len: Shape) -> Shape:
    return broadcast(input, pos.merge(len))


@export(v1=("substr", "strings.substr"))
@elementwise
def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Substrings of `len` bytes (or UTF-8 characters) from `pos` on. A negative `pos` counts from the end."""
    return SUBSTR(input, pos, len, unit=unit, name=name)


@export(v2="strings.substr")
@elementwise
def substr_v2(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """Substrings of `len` bytes (or UTF-8 characters) from `pos` on. A negative `pos` counts from the end."""
    return SUBSTR(input, pos, len, unit=unit, name=name)


STRING_LENGTH = define("StringLength(input: string) -> (output: int32)", unit=_UNIT)
STRING_LENGTH.shape(unchanged)


@STRING_LENGTH.kernel
def string_length_kernel(input: np.ndarray, *, unit: str) -> torch.Tensor:
    measure = builtin_len if unit == "BYTE" else lambda text: builtin_len(utf8_starts(text))
    return _numbers([measure(item) for item in input.reshape(-1).tolist()], input.shape, dtypes.int32)


@export(v1="strings.length")
@elementwise
def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The number of bytes (or UTF-8 characters) of each string."""
    return STRING_LENGTH(input, unit=unit, name=name)


@export(v2="strings.length")
@elementwise
def string_length_v2(input: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """The number of bytes (or UTF-8 characters) of each string."""
    return STRING_LENGTH(input, unit=unit, name=name)


_CASE_ENCODING = STRING("")
STRING_LOWER = define("StringLower(input: string) -> (output: string)", encoding=_CASE_ENCODING)
STRING_UPPER = define("StringUpper(input: string) -> (output: string)", encoding=_CASE_ENCODING)
STRING_LOWER.shape(unchanged)
STRING_UPPER.shape(unchanged)


def _cased(
    input: np.ndarray, encoding: str, plain: Callable[[bytes], bytes], unicode: Callable[[str], str]
) -> np.ndarray:
    if encoding == "":
        return each(plain, input)
    if encoding != "utf-8":
        raise InvalidArgumentError(None, None, f"encoding '{encoding}' is not supported: only '' and 'utf-8' are.")
    return each(lambda text: unicode(text.decode(errors="replace")).encode(), input)


@STRING_LOWER.kernel
def string_lower_kernel(input: np.ndarray, *, encoding: str) -> np.ndarray:
    return _cased(input, encoding, bytes.lower, str.lower)


@STRING_UPPER.kernel
def string_upper_kernel(input: np.ndarray, *, encoding: str) -> np.ndarray:
    return _cased(input, encoding, bytes.upper, str.upper)


@export("strings.lower")
@elementwise
def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Converts ASCII letters (with encoding "utf-8" all letters) to lower case."""
    return STRING_LOWER(input, encoding=encoding, name=name)


@export("strings.upper")
@elementwise
def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Converts ASCII letters (with encoding "utf-8" all letters) to upper case."""
    return STRING_UPPER(input, encoding=encoding, name=name)


STRING_STRIP = _elementwise("StringStrip(input: string) -> (output: string)", bytes.strip)


@export("strings.strip", v1="string_strip")
@elementwise
def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Strips white space from both ends of each string."""
    return STRING_STRIP(input, name=name)


# ---- hashes -----------------------------------------------------------------------------------------------------

STRING_TO_HASH_BUCKET = define(
    "StringToHashBucket(string_tensor: string) -> (output: int64)", num_buckets=INT(minimum=1)
).not_differentiable()
STRING_TO_HASH_BUCKET_FAST = define(
    "StringToHashBucketFast(input: string) -> (output: int64)", num_buckets=INT(minimum=1)
).not_differentiable()
STRING_TO_HASH_BUCKET_STRONG = define(
    "StringToHashBucketStrong(input: string) -> (output: int64)", num_buckets=INT(minimum=1), key=INTS
).not_differentiable()
for _definition in (STRING_TO_HASH_BUCKET, STRING_TO_HASH_BUCKET_FAST, STRING_TO_HASH_BUCKET_STRONG):
    _definition.shape(unchanged)


def _bucketed(hashes: np.ndarray, num_buckets: int, shape: Any) -> torch.Tensor:
    return torch.from_numpy(hashing.buckets(hashes, num_buckets).reshape(shape))


@STRING_TO_HASH_BUCKET.kernel
def string_to_hash_bucket_kernel(string_tensor: np.ndarray, *, num_buckets: int) -> torch.Tensor:
    return _bucketed(hashing.hash64_many(string_tensor.reshape(-1).tolist()), num_buckets, string_tensor.shape)


@STRING_TO_HASH_BUCKET_FAST.kernel
def string_to_hash_bucket_fast_kernel(input: np.ndarray, *, num_buckets: int) -> torch.Tensor:
    if compiled is not None:
        hashes = np.empty(input.size, np.uint64)
        compiled.fingerprints(np.ascontiguousarray(input), hashes)
        return _bucketed(hashes, num_buckets, input.shape)
    return _bucketed(hashing.fingerprint64_many(input.reshape(-1).tolist()), num_buckets, input.shape)


def _hashes_joined(op: Operation, output: int, consumer: Operation, others: list[Any]) -> int | None:
    """The number of buckets, if `consumer` only hashes the joined strings."""
    return consumer.attrs["num_buckets"] if consumer.definition is STRING_TO_HASH_BUCKET_FAST else None


def _joining_hasher(op: Operation, wanted: list[int]) -> Callable[..., tuple[Any, ...]]:
    """A kernel for StringJoin that returns the buckets of what it joins. `wanted`: 0 (the strings) if they are used, and numbers of buckets."""

    def kernel(inputs: list[np.ndarray], *, separator: Any) -> tuple[Any, ...]:
        if 0 in wanted or compiled is None or not inputs:
            joined = string_join_kernel(inputs, separator=separator)
            return tuple([string_to_hash_bucket_fast_kernel(joined, num_buckets=n) if n else joined for n in wanted])
        shape = _joined_shape(inputs)
        hashes = np.empty(int(np.prod(shape)), np.uint64)
        compiled.joined_fingerprints(list(map(np.ascontiguousarray, inputs)), as_bytes(separator), hashes)
        return tuple([_bucketed(hashes, number, shape) for number in wanted])

    return kernel


STRING_JOIN.absorbs(_hashes_joined, _joining_hasher)


@STRING_TO_HASH_BUCKET_STRONG.kernel
def string_to_hash_bucket_strong_kernel(input: np.ndarray, *, num_buckets: int, key: tuple[int, ...]) -> torch.Tensor:
    if builtin_len(key) != 2:
        raise InvalidArgumentError(None, None, f"Key must have 2 elements, got {list(key)}")
    return _bucketed(hashing.siphash64_many(input.reshape(-1).tolist(), key), num_buckets, input.shape)


@export(v1=("string_to_hash_bucket", "strings.to_hash_bucket"))
@elementwise
def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: Any = None, name: str | None = None, input: Any = None
) -> Tensor:
    """Hashes each string to a bucket in [0, num_buckets) by TensorFlow's original hash, which may change between versions."""
    return STRING_TO_HASH_BUCKET(input if string_tensor is None else string_tensor, num_buckets=num_buckets, name=name)


@export(v2="strings.to_hash_bucket")
@elementwise
def string_to_hash_bucket_v2(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """Hashes each string to a bucket in [0, num_buckets) by TensorFlow's original hash."""
    return STRING_TO_HASH_BUCKET(input, num_buckets=num_buckets, name=name)


@export("strings.to_hash_bucket_fast", v1="string_to_hash_bucket_fast")
@elementwise
def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """Hashes each string to a bucket in [0, num_buckets) by a fast hash that is stable across versions."""
    return STRING_TO_HASH_BUCKET_FAST(input, num_buckets=num_buckets, name=name)


@export("strings.to_hash_bucket_strong", v1="string_to_hash_bucket_strong")
@elementwise
def string_to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Tensor:
    """Hashes each string to a bucket in [0, num_buckets) by SipHash, keyed with two integers."""
    return STRING_TO_HASH_BUCKET_STRONG(input, num_buckets=num_buckets, key=key, name=name)
