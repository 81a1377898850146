"""String functions with ragged results: splitting into words, bytes and characters, code points, n-grams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, ranges, shaping
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.strings import string_ops, unicode

_RESULTS = ("SparseTensor", "RaggedTensor")


def _each(input: Any, of_vector: Callable[[Tensor], RaggedTensor], name: str = "input") -> Any:
    """Applies `of_vector` to strings of any shape, which adds a dimension for the parts. One string gives a plain vector."""
    if isinstance(input, RaggedTensor):
        return input.with_flat_values(_each(input.flat_values, of_vector))
    text = input if isinstance(input, Tensor) else convert_to_tensor(input, dtypes.string, name=name)
    rank = text.static_shape.rank
    if rank is None:
        raise ValueError("input must have a known rank.")
    if rank == 0:
        return of_vector(shaping.expand_dims(text, 0)).values
    if rank == 1:
        return of_vector(text)
    outer = RaggedTensor.from_tensor(text, ragged_rank=rank - 1)
    return outer.with_flat_values(of_vector(outer.flat_values))


def _each_pair(input: Any, of_vector: Callable[[Tensor], tuple[Any, Any]]) -> tuple[Any, Any]:
    """As `_each`, for a function that returns two results with the same rows."""
    second: list[Any] = []

    def first(text: Tensor) -> RaggedTensor:
        parts, offsets = of_vector(text)
        second.append(offsets.values)
        return parts

    result = _each(input, first)
    if isinstance(result, RaggedTensor):
        return result, result.with_flat_values(second[0])
    return result, second[0]


def _rows(parts: Any) -> RaggedTensor:
    """Converts the sparse result of a split, whose rows have no gaps, to a RaggedTensor."""
    return RaggedTensor.from_value_rowids(parts.values, parts.indices[:, 0], parts.shape[0], validate=False)


# ---- splitting --------------------------------------------------------------------------------------------------


def _check_result(result_type: str) -> None:
    if result_type not in _RESULTS:
        raise ValueError(f"result_type must be 'SparseTensor' or 'RaggedTensor', got {result_type!r}.")


@export(v1="string_split")
def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> Any:
    """Splits each string into words at any character of `delimiter` (white space by default).

    Returns:
        A sparse matrix, or with result_type "RaggedTensor" a ragged one.

    Raises:
        ValueError: both `sep` and `delimiter` are given, or the result type is unknown.
    """
    if sep is not None and delimiter is not None:
        raise ValueError("Cannot specify both 'sep' and 'delimiter'.")
    mark = delimiter if sep is None else sep
    _check_result(result_type)
    with name_scope(name, "StringSplit", [source]):
        parts = string_ops.STRING_SPLIT(source, " " if mark is None else mark, skip_empty=skip_empty)
        if result_type == "RaggedTensor":
            return _rows(parts)
        sparse = SparseTensor(*parts)
        sparse.set_shape([convert_to_tensor(source, dtypes.string).static_shape.of_rank(1)[0], None])
        return sparse


@export(v1="strings.split")
def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """Splits each string at occurrences of `sep` (runs of white space by default).

    Returns:
        A sparse matrix, or with result_type "RaggedTensor" a ragged tensor with one more dimension.
    """
    if input is None:
        input = source
    _check_result(result_type)
    with name_scope(name, "StringSplit", [input]):
        if not isinstance(input, RaggedTensor):
            input = convert_to_tensor(input, dtypes.string, name="input")
            if input.static_shape.rank == 0:
                input = shaping.expand_dims(input, 0)
        if result_type == "RaggedTensor":
            return _split_each(input, sep, maxsplit)
        if isinstance(input, RaggedTensor) or (input.static_shape.rank or 1) > 1:
            return _split_each(input, sep, maxsplit).to_sparse()
        return SparseTensor(*string_ops.STRING_SPLIT_V2(input, "" if sep is None else sep, maxsplit=maxsplit))


def _split_each(input: Any, sep: Any, maxsplit: int) -> Any:
    mark = "" if sep is None else sep

    def parts(text: Tensor) -> RaggedTensor:
        return _rows(string_ops.STRING_SPLIT_V2(text, mark, maxsplit=maxsplit))

    if not isinstance(input, RaggedTensor):
        input = convert_to_tensor(input, dtypes.string, name="input")
        if input.static_shape.rank is None:  # treated as a vector, as in TensorFlow
            return parts(input)
    return _each(input, parts)


@export(v2="strings.split")
def split_v2(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Splits each string at occurrences of `sep` (runs of white space by default) into a ragged tensor.

    One string gives a vector, a vector of strings a ragged matrix, and so on.
    """
    with name_scope(name, "StringSplit", [input]):
        return _split_each(input, sep, maxsplit)


@export("strings.bytes_split")
def bytes_split(input: Any, name: str | None = None) -> Any:
    """Splits each string into strings of one byte."""
    with name_scope(name, "StringsByteSplit", [input]):
        return _each(input, lambda text: _rows(string_ops.STRING_SPLIT(text, "", skip_empty=False)))


# ---- characters -------------------------------------------------------------------------------------------------


def _decoded(text: Tensor, options: dict[str, Any]) -> RaggedTensor:
    found = unicode.UNICODE_DECODE(text, **options)
    return RaggedTensor._make(found.char_values, found.row_splits)


def _decoded_at(text: Tensor, options: dict[str, Any]) -> tuple[RaggedTensor, RaggedTensor]:
    found = unicode.UNICODE_DECODE_WITH_OFFSETS(text, **options)
    points = RaggedTensor._make(found.char_values, found.row_splits)
    return points, points.with_values(found.char_to_byte_starts)


@export("strings.unicode_decode")
def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Decodes each string to code points. A scalar gives a vector."""
    options = {
        "input_encoding": input_encoding,
        "errors": errors,
        "replacement_char": replacement_char,
        "replace_control_characters": replace_control_characters,
    }
    with name_scope(name, "UnicodeDecode", [input]):
        return _each(input, lambda text: _decoded(text, options))


@export("strings.unicode_decode_with_offsets")
def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Decodes each string to code points, and also returns the byte offset of each."""
    options = {
        "input_encoding": input_encoding,
        "errors": errors,
        "replacement_char": replacement_char,
        "replace_control_characters": replace_control_characters,
    }
    with name_scope(name, "UnicodeDecodeWithOffsets", [input]):
        return _each_pair(input, lambda text: _decoded_at(text, options))


def _characters(points: RaggedTensor, encoding: str, errors: str, replacement_char: int) -> RaggedTensor:
    """Encodes each code point as a string."""
    every = ranges.range(shaping.shape(points.values, out_type=dtypes.int64)[0] + 1)
    return points.with_values(
        unicode.UNICODE_ENCODE(
            points.values, every, output_encoding=encoding, errors=errors, replacement_char=replacement_char
        )
    )


@export("strings.unicode_split")
def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """Splits each string into characters, as strings in the same encoding."""
    options = {"input_encoding": input_encoding, "errors": errors, "replacement_char": replacement_char}
    with name_scope(name, "UnicodeSplit", [input]):
        return _each(
            input,
            lambda text: _characters(_decoded(text, options), input_encoding, "ignore", replacement_char),
        )


@export("strings.unicode_split_with_offsets")
def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> tuple[Any, Any]:
    """Splits each string into characters, and also returns the byte offset of each."""
    options = {"input_encoding": input_encoding, "errors": errors, "replacement_char": replacement_char}

    def both(text: Tensor) -> tuple[RaggedTensor, RaggedTensor]:
        points, offsets = _decoded_at(text, options)
        return _characters(points, input_encoding, "ignore", replacement_char), offsets

    with name_scope(name, "UnicodeSplitWithOffsets", [input]):
        return _each_pair(input, both)


@export("strings.unicode_encode")
def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """Encodes each row of code points (the last dimension, ragged or not) as a string."""
    with name_scope(name, "UnicodeEncode", [input]):
        points = input if isinstance(input, RaggedTensor) else convert_to_tensor(input)
        rank = points.static_shape.rank
        if rank is None:
            raise ValueError("Rank of input_tensor must be statically known.")
        if rank == 0:
            raise ValueError("input_tensor's rank must be at least 1.")
        if not isinstance(points, RaggedTensor):
            if rank == 1:
                one = unicode_encode(shaping.expand_dims(points, 0), output_encoding, errors, replacement_char)
                return shaping.reshape(one, [])
            if rank == 2:
                points = RaggedTensor.from_tensor(points)
            else:
                sizes = shaping.shape(points)
                flat = shaping.reshape(points, joining.concat([[-1], sizes[-1:]], 0))
                return shaping.reshape(unicode_encode(flat, output_encoding, errors, replacement_char), sizes[:-1])
        if isinstance(points.values, RaggedTensor):
            return points.with_values(unicode_encode(points.values, output_encoding, errors, replacement_char))
        if rank > 2:  # the last dimension is not ragged
            return points.with_values(unicode_encode(points.values, output_encoding, errors, replacement_char))
        return unicode.UNICODE_ENCODE(
            points.values,
            points.row_splits,
            output_encoding=output_encoding,
            errors=errors,
            replacement_char=replacement_char,
        )


# ---- n-grams ----------------------------------------------------------------------------------------------------


@export("strings.ngrams")
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: Any = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """The n-grams of each row: `ngram_width` consecutive tokens, joined by `separator`.

    Args:
        data: strings whose last dimension is the tokens of a row. The result is ragged if `data` is.
        ngram_width: a width or several.
        separator: the string between tokens.
        pad_values: a token (or a pair for left and right) to pad each row with.
        padding_width: the number of padding tokens; by default and at most one less than the width.
        preserve_short_sequences: whether to keep a row that is too short for every width as one n-gram.
        name: a prefix for the names of the ops.

    Raises:
        ValueError: a width is below 1, or a padding width is given without pad values.
        TypeError: the widths or pad values have the wrong type.
    """
    if padding_width is not None and padding_width < 1:
        raise ValueError(f"padding_width must be greater than 0, got {padding_width}.")
    if padding_width is not None and pad_values is None:
        raise ValueError("`pad_values` must be provided if `padding_width` is set.")
    pads = (
        (pad_values, pad_values)
        if isinstance(pad_values, (str, bytes))
        else ("", "")
        if pad_values is None
        else pad_values
    )
    if not isinstance(pads, (list, tuple)) or len(pads) != 2 or not all(isinstance(pad, (str, bytes)) for pad in pads):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    width = 0 if pad_values is None else (-1 if padding_width is None else padding_width)
    with name_scope(name, "StringNGrams", [data]):
        rows = data if isinstance(data, RaggedTensor) else convert_to_tensor(data, dtypes.string, name="data")
        rank = rows.static_shape.rank
        if rank is None:
            raise ValueError("data must have a known rank.")
        widths = ngram_width if isinstance(ngram_width, (list, tuple)) else [ngram_width]
        if not widths:
            raise TypeError("`ngram_width` must not be empty.")
        for each in widths:
            if each < 1:
                raise ValueError(f"All ngram_widths must be greater than 0. Got {each}")
        if not isinstance(rows, RaggedTensor):
            if rank == 0:
                raise ValueError("Data must have rank>0")
            if rank == 1:
                wide = shaping.expand_dims(rows, 0)
                return ngrams(
                    RaggedTensor.from_tensor(wide),
                    widths,
                    separator,
                    pad_values,
                    padding_width,
                    preserve_short_sequences,
                ).flat_values
            ragged = RaggedTensor.from_tensor(rows, ragged_rank=rank - 1)
            found = ngrams(ragged, widths, separator, pad_values, padding_width, preserve_short_sequences)
            return found.to_tensor(default_value="")
        if isinstance(rows.values, RaggedTensor):
            return rows.with_values(
                ngrams(rows.values, widths, separator, pad_values, padding_width, preserve_short_sequences)
            )
        if rank > 2:
            raise ValueError("The innermost dimension of ragged data must be ragged.")
        made = unicode.STRING_NGRAMS(
            rows.values,
            rows.row_splits,
            separator=separator,
            ngram_widths=widths,
            left_pad=pads[0],
            right_pad=pads[1],
            pad_width=width,
            preserve_short_sequences=preserve_short_sequences,
        )
        return RaggedTensor._make(made.ngrams, made.ngrams_splits)
