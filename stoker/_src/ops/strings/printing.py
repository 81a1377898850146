"""Printing during a run: `tf.print`, the 1.x `tf.Print`, and timestamps."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, INT32, STATEFUL, STRING, TYPES, VIEW, define, scalar
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.control_flow import assertions
from stoker._src.ops.strings import numbers
from stoker._src.ops.support.values import to_numpy

_log = logging.getLogger("stoker")

# ---- Print ------------------------------------------------------------------------------------------------------

PRINT = define(
    "Print(input: T, data: [U]) -> (output: T)", VIEW | STATEFUL,
    T=ANY, U=TYPES(minimum=0), message="", first_n=-1, summarize=INT32(3),
)  # fmt: skip


@PRINT.kernel
def print_kernel(input: Any, data: list[Any], *, message: str, first_n: int, summarize: int, ctx: Any) -> Any:
    if first_n >= 0:
        ctx.state = (ctx.state or 0) + 1
        if ctx.state > first_n:
            return input
    shown = "".join(f"[{assertions.summary(to_numpy(value), summarize)}]" for value in data)
    _write(sys.stderr, f"{message}{shown}\n".encode(errors="surrogateescape"))
    return input


def _write(stream: Any, text: bytes) -> None:
    """Writes to standard output or error. Invalid UTF-8 is written as raw bytes if the stream has a buffer, else escaped."""
    try:
        stream.write(text.decode())
    except UnicodeDecodeError:
        if not hasattr(stream, "buffer"):
            stream.write(text.decode(errors="backslashreplace"))
        else:
            stream.flush()
            stream.buffer.write(text)
    stream.flush()


PRINT.shape(lambda input, data: input)
# What takes the output need not wait for the text.
PRINT.equals(lambda op, plan: [op.inputs[0]])


@PRINT.grad
def print_grad(op: Operation, g: Tensor) -> list[Any]:
    return [g, *([None] * (len(op.inputs) - 1))]


@export(v1="Print")
def print_v1(
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns `input_`, and prints `data` to standard error when it is evaluated.

    Args:
        input_: the tensor to return.
        data: tensors to print.
        message: a prefix for the text.
        first_n: print only the first `first_n` times.
        summarize: the number of elements of each tensor to print: 3 by default, -1 for all.
        name: the op's name.
    """
    return PRINT(input_, [convert_to_tensor(item) for item in data], message=message, first_n=first_n, summarize=summarize, name=name)  # fmt: skip


# ---- PrintV2 ----------------------------------------------------------------------------------------------------

PRINT_V2 = define("PrintV2(input: string) -> ()", STATEFUL, output_stream=STRING("stderr"), end=STRING("\n"))

_LEVELS = {"log(info)": logging.INFO, "log(warning)": logging.WARNING, "log(error)": logging.ERROR}


@PRINT_V2.kernel
def print_v2_kernel(input: np.ndarray, *, output_stream: str, end: str) -> None:
    if input.ndim:
        raise InvalidArgumentError(None, None, f"Input is expected to be scalar, but got {list(input.shape)}")
    text = input.item()
    if output_stream in ("stdout", "stderr"):
        _write(sys.stdout if output_stream == "stdout" else sys.stderr, text + end.encode())
    elif output_stream in _LEVELS:
        _log.log(_LEVELS[output_stream], "%s", text.decode(errors="backslashreplace"))
    elif output_stream.startswith("file://"):
        with gfile.GFile(output_stream.removeprefix("file://"), "ab") as file:
            file.write(text + end.encode())
    else:
        raise InvalidArgumentError(None, None, f"Unknown output stream {output_stream!r}")


@PRINT_V2.shape
def print_v2_shape(input: Any) -> tuple[()]:
    input.of_rank(0)
    return ()


def _stream(output_stream: Any) -> str:
    if output_stream is sys.stdout or output_stream is sys.__stdout__:
        return "stdout"
    if output_stream is None or output_stream is sys.stderr or output_stream is sys.__stderr__:
        return "stderr"
    name = getattr(output_stream, "__name__", "")
    if callable(output_stream) and name in ("info", "warning", "warn", "error"):  # a tf.logging function
        return f"log({'warning' if name == 'warn' else name})"
    if isinstance(output_stream, str) and (
        output_stream in ("stdout", "stderr", *_LEVELS) or output_stream.startswith("file://")
    ):
        return output_stream
    raise ValueError(
        f"Unsupported output stream, logging level, or file.{output_stream}. Supported streams are sys.stdout, "
        "sys.stderr, tf.logging.info, tf.logging.warning, tf.logging.error. File needs to be in the form of 'file://<filepath>'."
    )


class _Template:
    """Formats nested values as text, with `mark` in place of each tensor's value."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.tensors: list[Tensor] = []

    def outer(self, value: Any) -> str:
        return value if isinstance(value, str) else self.inner(value)

    def inner(self, value: Any) -> str:
        if isinstance(value, SparseTensor):
            parts = [self.inner(part) for part in (value.indices, value.values, value.dense_shape)]
            return f"'SparseTensor(indices={parts[0]}, values={parts[1]}, shape={parts[2]})'"
        if isinstance(value, Tensor) or (getattr(value, "is_tensor_like", False) and hasattr(value, "dtype")):
            self.tensors.append(convert_to_tensor(value))
            return self.mark
        if isinstance(value, dict):
            try:
                keys = sorted(value)
            except TypeError:
                keys = list(value)
            return "{" + ", ".join(f"{key!r}: {self.inner(value[key])}" for key in keys) + "}"
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = ", ".join(f"{name}={self.inner(item)}" for name, item in zip(value._fields, value))  # type: ignore[attr-defined]
            return f"{type(value).__name__}({fields})"
        if isinstance(value, tuple):
            return "(" + ", ".join(map(self.inner, value)) + ("," if len(value) == 1 else "") + ")"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.inner, value)) + "]"
        return repr(value)


def _mark(inputs: Any, sep: str) -> str:
    """A placeholder that does not occur in the text."""
    text, mark = repr(inputs) + sep, "{}"
    while mark in text:
        mark = f"<{mark}>"
    return mark


@export("print")
def print_v2(*inputs: Any, **kwargs: Any) -> Any:
    """Prints values, tensors and nested structures, like Python's `print`.

    In graph mode, returns an op that prints when it runs; use it as a control dependency. In eager mode, prints at once.

    Args:
        *inputs: the values to print.
        **kwargs: `output_stream` (sys.stderr by default; sys.stdout, a logging function of tf.logging, or
            "file://path" to append to a file), `summarize` (how many elements to show at each end of each dimension: 3 by default,
            -1 for all), `sep` (" "), `end` (a line end) and `name`.

    Raises:
        ValueError: an unknown keyword, or an unsupported stream.
    """
    output_stream = kwargs.pop("output_stream", None)
    name, summarize = kwargs.pop("name", None), kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    options = {"output_stream": _stream(output_stream), "end": "\n" if end is None else end, "name": name}
    if (
        len(inputs) == 1
        and isinstance(inputs[0], Tensor)
        and inputs[0].dtype is dtypes.string
        and inputs[0].static_shape.rank == 0
    ):
        return _printed(PRINT_V2(inputs[0], **options))
    template = _Template(_mark(inputs, sep))
    text = sep.join([template.outer(item) for item in inputs])
    formatted = numbers.string_format(
        text, template.tensors, placeholder=template.mark, summarize=3 if summarize is None else summarize
    )
    return _printed(PRINT_V2(formatted, **options))


def _printed(op: Any) -> Any:
    return op if isinstance(op, Operation) else None


# ---- Timestamp --------------------------------------------------------------------------------------------------

TIMESTAMP = define("Timestamp() -> (ts: float64)", STATEFUL).not_differentiable()
TIMESTAMP.kernel(lambda: torch.tensor(time.time(), dtype=torch.float64))
TIMESTAMP.shape(scalar)


@export("timestamp")
def timestamp(name: str | None = None) -> Tensor:
    """The time when the op runs, in seconds since the epoch."""
    return TIMESTAMP(name=name)
