"""What a fuzz target is: a function of bytes that returns, whatever the bytes, unless it has found something.

A target calls a parser or decoder as a program would. A value is fine, and so is one of the errors that bad data may
give; any other exception, too much time or too much memory is a finding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from unittest import mock

import stoker.compat.v1  # noqa: F401  (loads every op)
from stoker._src.base.errors import DataLossError, InvalidArgumentError, OutOfRangeError
from stoker._src.formats import tensor_proto, tfrecord
from stoker._src.formats.images import limits
from stoker._src.graph import context
from stoker._src.ops.io import decoding

REFUSED = (InvalidArgumentError, DataLossError, OutOfRangeError)
MEMORY_BOUND = 256 << 20
"""Bytes by which one input may raise the process's memory, under `small_limits`."""
TIME_BOUND = 5.0
"""Seconds of processor time that one input of at most 64 KiB may take, under `small_limits`."""

Target = Callable[[bytes], None]
TARGETS: dict[str, Target] = {}
SEEDS: dict[str, list[bytes]] = {}


def target(*seeds: bytes, refused: tuple[type[Exception], ...] = REFUSED) -> Callable[[Target], Target]:
    """Registers a target, with inputs to start from. It runs in eager mode, and may end in one of `refused`."""

    def register(function: Target) -> Target:
        @functools.wraps(function)
        def run(data: bytes) -> None:
            with context.enter_eager(), suppress(refused):
                function(data)

        TARGETS[function.__name__] = run
        SEEDS[function.__name__] = [b"", *seeds]
        return run

    return register


@contextmanager
def small_limits() -> Iterator[None]:
    """Lowers what the decoders may unpack, so that an input past a limit is found without filling the memory."""
    with ExitStack() as stack:
        for module, name, value in (
            (limits, "MAX_DECODED_BYTES", 1 << 24),
            (decoding, "INFLATED_LIMIT", 1 << 24),
            (tfrecord, "INFLATED_RECORD_LIMIT", 1 << 24),
            (tensor_proto, "MAX_BYTES", 1 << 24),
        ):
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def either(data: bytes) -> tuple[int, bytes]:
    """The first byte, with which a target picks options, and the rest."""
    return (data[0], data[1:]) if data else (0, b"")
