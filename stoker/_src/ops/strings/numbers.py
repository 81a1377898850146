"""Conversion between numbers and text, and formatting of tensors."""

from __future__ import annotations

import math as numbers
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import NUMERIC, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.formats import hashing
from stoker._src.graph.conversion import convert_to_tensor, is_tensor
from stoker._src.graph.definition import ANY, INT32, TYPES, define, one_of, unchanged
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.strings.string_ops import each
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.number_text import float_text, question_marks, string_text
from stoker._src.ops.support.values import to_numpy

# ---- numbers ----------------------------------------------------------------------------------------------------

_PARSED = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)
STRING_TO_NUMBER = define(
    "StringToNumber(string_tensor: string) -> (output: out_type)", out_type=one_of(*_PARSED, default=dtypes.float32)
).not_differentiable()
STRING_TO_NUMBER.shape(unchanged)
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_UNSIGNED = re.compile(rb"\+?[0-9]+")
_FLOAT = re.compile(
    rb"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_HEXADECIMAL = re.compile(rb"[+-]?0x[0-9a-f]*\.?[0-9a-f]*(?:p[+-]?[0-9]+)?", re.IGNORECASE)


def _parser(kind: DType) -> Callable[[bytes], Any]:
    """The function that converts text to a number of a dtype. It raises ValueError for invalid text."""
    if kind.is_integer:
        form = _UNSIGNED if kind.is_unsigned else _INTEGER
        low, high = kind.limits

        def integer(text: bytes) -> int:
            text = text.strip()
            number = int(text) if form.fullmatch(text) else None
            if number is None or not low <= number <= high:
                raise ValueError(text)
            return number

        return integer

    def floating(text: bytes) -> float:
        text = text.strip()
        if _FLOAT.fullmatch(text):
            return float(text)
        if _HEXADECIMAL.fullmatch(text):
            return float.fromhex(text.decode())
        raise ValueError(text)

    return floating


@STRING_TO_NUMBER.kernel
def string_to_number_kernel(string_tensor: np.ndarray, *, out_type: DType) -> torch.Tensor:
    parse = _parser(out_type)
    found = []
    for item in string_tensor.reshape(-1).tolist():
        try:
            found.append(parse(item))
        except ValueError:
            shown = item.decode(errors="backslashreplace")
            raise InvalidArgumentError(
                None, None, f"StringToNumberOp could not correctly convert string: {shown}"
            ) from None
    return torch.from_numpy(np.array(found, dtype=out_type.as_numpy_dtype).reshape(string_tensor.shape))


@export(v1=("string_to_number", "strings.to_number"))
@elementwise
def string_to_number(
    string_tensor: Any = None, out_type: Any = dtypes.float32, name: str | None = None, input: Any = None
) -> Tensor:
    """Parses each string as a number."""
    return STRING_TO_NUMBER(input if string_tensor is None else string_tensor, out_type=out_type, name=name)


@export(v2="strings.to_number")
@elementwise
def string_to_number_v2(input: Any, out_type: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Parses each string as a number."""
    return string_to_number(input, out_type, name)


AS_STRING = define(
    "AsString(input: T) -> (output: string)",
    T=(*NUMERIC, dtypes.bool_, dtypes.variant, dtypes.string),
    precision=INT32(-1),
    scientific=False,
    shortest=False,
    width=INT32(-1),
    fill="",
).not_differentiable()
AS_STRING.shape(unchanged)


@AS_STRING.kernel
def as_string_kernel(
    input: Any, *, T: DType, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> np.ndarray:
    return _formatted(input, T, precision, scientific, shortest, width, fill)


def _formatted(
    input: Any, kind: DType, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> np.ndarray:
    inexact = kind.is_floating or kind.is_complex
    is_text = kind is dtypes.string
    if len(fill) > 1:
        raise InvalidArgumentError(None, None, f"Fill string must be one or fewer characters, got {fill!r}")
    if scientific and shortest:
        raise InvalidArgumentError(None, None, "Cannot select both scientific and shortest notation")
    if not (inexact or is_text) and precision > -1:
        raise InvalidArgumentError(None, None, f"precision not supported for datatype {kind.name}")
    if not (inexact or is_text) and (scientific or shortest):
        raise InvalidArgumentError(None, None, f"scientific and shortest format not supported for datatype {kind.name}")
    if kind is dtypes.bool_:
        return each(lambda text: text, _texts(input, lambda value: b"true" if value else b"false"))
    flags = fill if fill in ("0", "-", "+", " ") else ""
    if fill and not flags:
        raise InvalidArgumentError(None, None, f"Fill argument not supported: {fill!r}")
    for number in (width, precision):
        allocatable([numbers.prod(input.shape), max(number, 0)], 2)
    size = "" if width < 0 else str(width)
    digits = "" if precision < 0 else f".{precision}"
    if is_text:
        if width < 0:  # a precision is then ignored too
            return each(lambda text: text, input)
        form = f"%{'-' if flags == '-' else ''}{size}{digits}s"
        return each(lambda text: (form % text.decode("latin-1")).encode("latin-1"), input)
    letter = ("e" if scientific else "g" if shortest else "f") if inexact else "d"
    form = f"%{flags}{size}{digits}{letter}"
    if kind.is_complex:
        return _texts(input, lambda value: f"({_c_text(form, value.real)},{_c_text(form, value.imag)})".encode())
    return _texts(input, lambda value: _c_text(form, value).encode())


def _c_text(form: str, value: Any) -> str:
    """Formats `value` as C does: with the sign of a NaN, and without zero padding of NaN and infinity."""
    if numbers.isfinite(value):
        return form % value
    form = form.replace("%0", "%")
    if value == value or numbers.copysign(1.0, value) > 0:
        return form % value
    return (form % -numbers.inf).replace("inf", "nan")


def _texts(values: torch.Tensor, function: Callable[[Any], bytes]) -> np.ndarray:
    result = np.empty(values.numel(), dtype=object)
    result[:] = [function(value) for value in values.reshape(-1).tolist()] if values.numel() else []
    return result.reshape(tuple(values.shape))


@export("as_string", "strings.as_string", v1="dtypes.as_string")
@elementwise
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Formats numbers as text in C's formats: %f by default, %e if `scientific`, %g if `shortest`."""
    return AS_STRING(
        input, precision=precision, scientific=scientific, shortest=shortest, width=width, fill=fill, name=name
    )


# ---- StringFormat -----------------------------------------------------------------------------------------------

STRING_FORMAT = define(
    "StringFormat(inputs: [T]) -> (output: string)",
    T=TYPES(minimum=0),
    template="%s",
    placeholder="%s",
    summarize=INT32(3),
)


def _shown(value: Any, kind: DType) -> str:
    """Formats one element as TensorFlow prints it: floats with the fewest digits that identify them, strings with C escapes."""
    if isinstance(value, bytes):
        return f'"{string_text(value)}"'
    if kind.is_floating:
        return float_text(value, double=kind is dtypes.float64)
    if kind is dtypes.bool_:
        return "1" if value else "0"
    return str(value)


def summarized(array_: np.ndarray, kind: DType, summarize: int, indent: int = 0) -> str:
    """Formats an array as TensorFlow prints it: the first and last `summarize` elements of every dimension (all for -1)."""
    if kind.is_complex:  # TensorFlow prints question marks for these
        text = question_marks(array_.size, summarize)
        return f"[{text}]" if array_.ndim else text
    if kind is dtypes.bool_ and summarize == 0:
        return ""
    if array_.ndim and len(array_) and (summarize == 0 or not array_.size):
        return "[" + "\n" * (array_.ndim - 1) + " ...]"
    if array_.ndim == 0 and summarize == 0:
        return "..."
    if array_.ndim == 0:
        return _shown(array_.tolist() if array_.dtype != object else array_[()], kind)
    size = len(array_)
    whole = summarize < 0 or size <= 2 * summarize
    picks = list(range(size)) if whole else [*range(summarize), -1, *range(size - summarize, size)]
    parts = [
        "..." if i == -1 else summarized(np.asarray(array_[i], dtype=array_.dtype), kind, summarize, indent + 1)
        for i in picks
    ]
    glue = " " if array_.ndim == 1 else "\n" * (array_.ndim - 1) + " " * (indent + 1)
    return "[" + glue.join(parts) + "]"


def _pieces(template: str, placeholder: str, count: int) -> list[str]:
    """Splits the template at its placeholders."""
    pieces = template.split(placeholder) if placeholder else [""] * (len(template) + 2)
    if len(pieces) - 1 != count:
        raise InvalidArgumentError(
            None, None, f"num placeholders in template and num inputs must match: {len(pieces) - 1} vs. {count}"
        )
    return pieces


@STRING_FORMAT.shape
def string_format_shape(inputs: list[Shape], *, template: str, placeholder: str) -> Shape:
    _pieces(template, placeholder, len(inputs))
    return SCALAR


@STRING_FORMAT.kernel
def string_format_kernel(inputs: list[Any], *, T: Any, template: str, placeholder: str, summarize: int) -> np.ndarray:
    pieces = _pieces(template, placeholder, len(inputs))
    text = pieces[0]
    for value, kind, piece in zip(inputs, T, pieces[1:]):
        array_ = value if isinstance(value, np.ndarray) else np.asarray(to_numpy(value))
        text += summarized(array_, kind, summarize) + piece
    result = np.empty((), dtype=object)
    result[()] = text.encode(errors="surrogateescape")
    return result


@export("strings.format")
def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """Replaces each placeholder in `template` by the formatted value of an input.

    Raises:
        ValueError: the number of placeholders differs from the number of inputs.
    """
    values = [inputs] if is_tensor(inputs) else inputs
    if template.count(placeholder) != len(values):
        raise ValueError(
            f"The template expects {template.count(placeholder)} tensors, but the inputs only has {len(values)}. Please ensure the number of placeholders in the template matches inputs length."
        )
    return STRING_FORMAT(
        [convert_to_tensor(v) for v in values],
        template=template,
        placeholder=placeholder,
        summarize=summarize,
        name=name,
    )


# ---- Fingerprint ------------------------------------------------------------------------------------------------

FINGERPRINT = define("Fingerprint(data: T, method: scalar string) -> (fingerprint: uint8)", T=ANY)


def _check_method(method: np.ndarray) -> None:
    if method.item() != b"farmhash64":
        raise InvalidArgumentError(
            None, None, f"Unsupported fingerprint method: {method.item().decode(errors='replace')}"
        )


@FINGERPRINT.kernel
def fingerprint_kernel(data: Any, method: np.ndarray) -> torch.Tensor:
    _check_method(method)
    if data.ndim == 0:
        raise InvalidArgumentError(None, None, "`data` should have at least one dimension: []")
    values = data if isinstance(data, np.ndarray) else to_numpy(data)
    return torch.from_numpy(np.ascontiguousarray(hashing.fingerprint_rows(values)))


@FINGERPRINT.shape(values=["method"])
def fingerprint_shape(data: Shape, method: np.ndarray | None) -> Shape:
    if method is not None:
        _check_method(method)
    return Shape((data.at_least(1)[0] if data.dims is not None else None, 8))


@export("fingerprint")
def fingerprint(data: Any, method: Any = "farmhash64", name: str | None = None) -> Tensor:
    """A fingerprint of each row of `data`: 8 bytes, low byte first. It is stable across versions."""
    return FINGERPRINT(data, method, name=name)
