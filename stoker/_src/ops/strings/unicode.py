"""Unicode: conversion to and from code points and between encodings, and n-grams of tokens."""

from __future__ import annotations

import codecs
import itertools
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import BOOL, INT32, INTS, STRING, define, one_of, unchanged
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.strings import string_ops, unicode_scripts
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.values import torch_dtype

_ERRORS = STRING("replace", allowed=("strict", "replace", "ignore"))
_OUTPUT = STRING(allowed=("UTF-8", "UTF-16-BE", "UTF-32-BE"))
_SPLITS = one_of(*INDEX, default=dtypes.int64)
_PYTHON_NAMES = {"UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}


def _codec(encoding: str) -> str:
    try:
        found = codecs.lookup(_PYTHON_NAMES.get(encoding.upper(), encoding))
    except LookupError:
        found = None
    if found is None or not found._is_text_encoding:
        raise InvalidArgumentError(None, None, f"Could not create converter for input encoding: {encoding}")
    return found.name


class _Reader:
    """Reads code points and their byte offsets, and handles invalid bytes as `errors` requires."""

    def __init__(self, encoding: str, errors: str, replacement_char: int, replace_control_characters: bool) -> None:
        self.codec, self.errors = _codec(encoding), errors
        if not 0 <= replacement_char <= 0x10FFFF:
            raise InvalidArgumentError(
                None, None, f"replacement_char out of unicode codepoint range: {replacement_char}"
            )
        self.replacement, self.controls = replacement_char, replace_control_characters

    def read(self, text: bytes) -> tuple[list[int], list[int]]:
        """The code points and the offset of each."""
        points: list[int] = []
        starts: list[int] = []
        position = 0
        while position < len(text):
            try:
                good, bad_end = text[position:].decode(self.codec), None
            except UnicodeDecodeError as error:
                good = text[position : position + error.start].decode(self.codec)
                bad_end = position + error.end
            for character in good:
                points.append(ord(character))
                starts.append(position)
                position += len(character.encode(self.codec))
            if bad_end is None:
                break
            if self.errors == "strict":
                raise InvalidArgumentError(
                    None, None, f"Invalid formatting on input string: byte {position} of {text!r:.80}"
                )
            if self.errors == "replace":
                points.append(self.replacement)
                starts.append(position)
            position = bad_end
        if self.controls:
            points = [self.replacement if point < 0x20 else point for point in points]
        return points, starts


def _encoded(points: Any, encoding: str, errors: str, replacement_char: int) -> bytes:
    characters = []
    for point in points:
        if not 0 <= point <= 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            if errors == "strict":
                raise InvalidArgumentError(
                    None, None, f"Code point {point} is out of range for Unicode, or is a surrogate."
                )
            if errors == "ignore":
                continue
            point = replacement_char
        characters.append(chr(point))
    return "".join(characters).encode(_codec(encoding))


# ---- UnicodeDecode, UnicodeEncode, UnicodeTranscode -------------------------------------------------------------

_DECODE = {
    "input_encoding": STRING,
    "errors": _ERRORS,
    "replacement_char": 65533,
    "replace_control_characters": False,
    "Tsplits": _SPLITS,
}
UNICODE_DECODE = define("UnicodeDecode(input: string) -> (row_splits: Tsplits, char_values: int32)", **_DECODE)
UNICODE_DECODE_WITH_OFFSETS = define(
    "UnicodeDecodeWithOffsets(input: string) -> (row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64)",
    **_DECODE,
)


def _decode(input: np.ndarray, reader: _Reader, kind: DType) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    points: list[int] = []
    starts: list[int] = []
    splits = [0]
    for text in input.reshape(-1).tolist():
        found, where = reader.read(text)
        points += found
        starts += where
        splits.append(len(points))
    return (
        torch.tensor(splits, dtype=torch_dtype(kind)),
        torch.tensor(points, dtype=torch.int32),
        torch.tensor(starts, dtype=torch.int64),
    )


@UNICODE_DECODE.kernel
def unicode_decode_kernel(
    input: np.ndarray,
    *,
    input_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
    Tsplits: DType,
) -> Any:
    return _decode(input, _Reader(input_encoding, errors, replacement_char, replace_control_characters), Tsplits)[:2]


@UNICODE_DECODE_WITH_OFFSETS.kernel
def unicode_decode_with_offsets_kernel(
    input: np.ndarray,
    *,
    input_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
    Tsplits: DType,
) -> Any:
    return _decode(input, _Reader(input_encoding, errors, replacement_char, replace_control_characters), Tsplits)


def _decoded_shapes(input: Shape) -> tuple[Shape, Shape]:
    return Shape((None if input.size is None else input.size + 1,)), Shape((None,))


UNICODE_DECODE.shape(_decoded_shapes)


@UNICODE_DECODE_WITH_OFFSETS.shape
def unicode_decode_with_offsets_shape(input: Shape) -> Any:
    return (*_decoded_shapes(input), Shape((None,)))


UNICODE_ENCODE = define(
    "UnicodeEncode(input_values: vector int32, input_splits: host Tsplits) -> (output: string)",
    errors=STRING("replace", allowed=("ignore", "replace", "strict")),
    output_encoding=_OUTPUT,
    replacement_char=65533,
    Tsplits=_SPLITS,
)


@UNICODE_ENCODE.kernel
def unicode_encode_kernel(
    input_values: torch.Tensor, input_splits: list[int], *, errors: str, output_encoding: str, replacement_char: int
) -> np.ndarray:
    points = input_values.tolist()
    if not 0 <= replacement_char <= 0x10FFFF:
        raise InvalidArgumentError(None, None, f"replacement_char {replacement_char} out of unicode codepoint range")
    if (
        not input_splits
        or input_splits[0] != 0
        or input_splits[-1] != len(points)
        or input_splits != sorted(input_splits)
    ):
        raise InvalidArgumentError(None, None, f"input_splits {input_splits} must rise from 0 to {len(points)}.")
    result = np.empty(len(input_splits) - 1, dtype=object)
    for i, (start, end) in enumerate(itertools.pairwise(input_splits)):
        result[i] = _encoded(points[start:end], output_encoding, errors, replacement_char)
    return result


@UNICODE_ENCODE.shape
def unicode_encode_shape(input_values: Shape, input_splits: Shape) -> Shape:
    size = input_splits.of_rank(1)[0]
    return Shape((None if size is None else size - 1,))


UNICODE_TRANSCODE = define(
    "UnicodeTranscode(input: string) -> (output: string)",
    input_encoding=STRING,
    output_encoding=_OUTPUT,
    errors=_ERRORS,
    replacement_char=65533,
    replace_control_characters=False,
)
UNICODE_TRANSCODE.shape(unchanged)


@UNICODE_TRANSCODE.kernel
def unicode_transcode_kernel(
    input: np.ndarray,
    *,
    input_encoding: str,
    output_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
) -> np.ndarray:
    reader = _Reader(input_encoding, errors, replacement_char, replace_control_characters)
    return string_ops.each(
        lambda text: _encoded(reader.read(text)[0], output_encoding, errors, replacement_char), input
    )


@export("strings.unicode_transcode")
@elementwise
def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Converts each string to another encoding. `errors` determines whether invalid bytes are replaced, dropped or rejected."""
    return UNICODE_TRANSCODE(
        input,
        input_encoding=input_encoding,
        output_encoding=output_encoding,
        errors=errors,
        replacement_char=replacement_char,
        replace_control_characters=replace_control_characters,
        name=name,
    )


# ---- StringNGrams -----------------------------------------------------------------------------------------------

STRING_NGRAMS = define(
    "StringNGrams(data: vector/flat string, data_splits: vector/flat host Tsplits) -> (ngrams: string, ngrams_splits: Tsplits)",
    separator=STRING,
    ngram_widths=INTS(minimum=0),
    left_pad=STRING,
    right_pad=STRING,
    pad_width=INT32,
    preserve_short_sequences=BOOL,
    Tsplits=_SPLITS,
)


@STRING_NGRAMS.kernel
def string_ngrams_kernel(
    data: np.ndarray,
    data_splits: list[int],
    *,
    separator: Any,
    ngram_widths: tuple[int, ...],
    left_pad: Any,
    right_pad: Any,
    pad_width: int,
    preserve_short_sequences: bool,
    Tsplits: DType,
) -> Any:
    if any(not 0 < width < 2**31 for width in ngram_widths):
        raise InvalidArgumentError(None, None, f"ngram_widths must contain positive int32 values, got {ngram_widths}")
    if data_splits and (data_splits[0] != 0 or data_splits != sorted(data_splits) or data_splits[-1] != len(data)):
        raise InvalidArgumentError(None, None, f"Invalid split values: {data_splits} must rise from 0 to {len(data)}.")
    glue, left, right = (string_ops.as_bytes(each) for each in (separator, left_pad, right_pad))
    tokens = data.tolist()
    result: list[bytes] = []
    splits = [0] if data_splits else []
    for start, end in itertools.pairwise(data_splits):
        row = tokens[start:end]
        before = len(result)
        for width in ngram_widths:
            pads = width - 1 if pad_width < 0 else min(pad_width, width - 1)
            padded = [left] * pads + row + [right] * pads
            result += [glue.join(padded[i : i + width]) for i in range(len(padded) - width + 1)]
        if preserve_short_sequences and len(result) == before and row:
            width = ngram_widths[0] if ngram_widths else 0
            pads = 0 if not width else (width - 1 if pad_width < 0 else min(pad_width, width - 1))
            result.append(glue.join([left] * pads + row + [right] * pads))
        splits.append(len(result))
    values = np.empty(len(result), dtype=object)
    values[:] = result
    return values, torch.tensor(splits, dtype=torch_dtype(Tsplits))


@STRING_NGRAMS.shape
def string_ngrams_shape(data: Shape, data_splits: Shape) -> Any:
    return Shape((None,)), data_splits


# ---- scripts ----------------------------------------------------------------------------------------------------

UNICODE_SCRIPT = define("UnicodeScript(input: int32) -> (output: int32)")
UNICODE_SCRIPT.shape(unchanged)


@UNICODE_SCRIPT.kernel
def unicode_script_kernel(input: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(unicode_scripts.scripts_of(input.numpy()).reshape(tuple(input.shape)))


@export("strings.unicode_script")
def unicode_script(input: Any, name: str | None = None) -> Tensor:
    """The script of each code point, as ICU's UScriptCode; -1 for invalid code points."""
    return UNICODE_SCRIPT(input, name=name)
