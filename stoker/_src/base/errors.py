"""The exceptions of TensorFlow.

    Exception
    └── OpError                      node_def, op, message, error_code
        ├── CancelledError            1   the operation was cancelled (a queue was closed, a session ended)
        ├── UnknownError              2   no more specific class applies
        ├── InvalidArgumentError      3   a value, shape or dtype is invalid for the op
        ├── DeadlineExceededError     4   RunOptions.timeout_in_ms has expired
        ├── NotFoundError             5   a file, key, device or resource does not exist
        ├── AlreadyExistsError        6   an object to be created exists already
        ├── PermissionDeniedError     7   the caller has no permission
        ├── ResourceExhaustedError    8   memory, disk or a stated limit is exhausted
        ├── FailedPreconditionError   9   an uninitialized variable or table was read
        ├── AbortedError             10   a concurrent operation took precedence
        ├── OutOfRangeError          11   the input has ended
        ├── UnimplementedError       12   this combination is not supported
        ├── InternalError            13   a defect of stoker
        ├── UnavailableError         14   a server does not respond
        ├── DataLossError            15   a file is damaged
        └── UnauthenticatedError     16   the caller could not be identified

Class names, codes and attributes are TensorFlow's. `OpError.__str__` adds the node and the user's line that created it.
"""

from __future__ import annotations

from typing import Any

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OperatorNotAllowedInGraphError(TypeError):
    """A symbolic tensor was used as a Python value, such as in a condition or a loop."""


class InaccessibleTensorError(ValueError):
    """A tensor was used outside of its graph or function."""


class OpError(Exception):
    """A failure of one operation, or of a service call made on its behalf.

    Attributes:
        node_def: the NodeDef of the op that failed, or None.
        op: the Operation that failed, or None if it is unknown or not in the graph.
        message: what went wrong, without the location.
        error_code: one of the integer codes of this module.
    """

    error_code: int = UNKNOWN

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int | None = None) -> None:
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        if error_code is not None:
            self.error_code = error_code

    @property
    def message(self) -> str:
        return self._message

    @property
    def op(self) -> Any:
        return self._op

    @property
    def node_def(self) -> Any:
        if self._node_def is None and self._op is not None:
            return self._op.node_def
        return self._node_def

    @property
    def experimental_payloads(self) -> dict[str, bytes]:
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.node_def, self._message, self.error_code)

    def __str__(self) -> str:
        if self._op is None:
            return self._message
        lines = [self._message, f'  node "{self._op.name}", made at {self._op.user_line}']
        inputs = [
            f'"{t.name}"' for t in self._op.inputs if not getattr(t, "is_eager", False)
        ]  # eager tensors have no names
        if inputs:
            lines.append("  inputs: " + ", ".join(inputs))
        return "\n".join(lines)


def _rebuild(cls: type[OpError], node_def: Any, message: str, code: int) -> OpError:
    """For unpickling: an error is sent between processes without its graph."""
    if cls is OpError:
        return OpError(node_def, None, message, code)
    return cls(node_def, None, message)


_CLASSES: dict[int, type[OpError]] = {}


def _coded(code: int):
    def attach(cls: type[OpError]) -> type[OpError]:
        cls.error_code = code
        _CLASSES[code] = cls
        return cls

    return attach


class _CodedError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str, *args: Any) -> None:
        # A trailing positional argument (TensorFlow's status payloads) is accepted and ignored.
        super().__init__(node_def, op, message)


@_coded(CANCELLED)
class CancelledError(_CodedError):
    """The operation or step was cancelled."""


@_coded(UNKNOWN)
class UnknownError(OpError):
    """An error of unknown kind. `error_code` may be more specific."""


@_coded(INVALID_ARGUMENT)
class InvalidArgumentError(_CodedError):
    """An operation received an invalid value, shape or dtype."""


@_coded(DEADLINE_EXCEEDED)
class DeadlineExceededError(_CodedError):
    """A time limit expired before the operation finished."""


@_coded(NOT_FOUND)
class NotFoundError(_CodedError):
    """A requested file, key, device or resource does not exist."""


@_coded(ALREADY_EXISTS)
class AlreadyExistsError(_CodedError):
    """An object to be created exists already."""


@_coded(PERMISSION_DENIED)
class PermissionDeniedError(_CodedError):
    """The caller has no permission for the operation."""


@_coded(RESOURCE_EXHAUSTED)
class ResourceExhaustedError(_CodedError):
    """Memory, disk space or a stated limit is exhausted."""


@_coded(FAILED_PRECONDITION)
class FailedPreconditionError(_CodedError):
    """The system is not in the required state, such as when a variable is read before it is initialized."""


@_coded(ABORTED)
class AbortedError(_CodedError):
    """The operation was aborted, usually by a concurrent one."""


@_coded(OUT_OF_RANGE)
class OutOfRangeError(_CodedError):
    """The operation went past the end of its input."""


@_coded(UNIMPLEMENTED)
class UnimplementedError(_CodedError):
    """The operation is not supported for these arguments."""


@_coded(INTERNAL)
class InternalError(_CodedError):
    """An internal invariant does not hold. This is a defect."""


@_coded(UNAVAILABLE)
class UnavailableError(_CodedError):
    """A service does not respond. Retrying may help."""


@_coded(DATA_LOSS)
class DataLossError(_CodedError):
    """Data is damaged or lost beyond recovery."""


@_coded(UNAUTHENTICATED)
class UnauthenticatedError(_CodedError):
    """The request carries no valid credentials."""


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The exception class of an integer code."""
    return _CLASSES[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The integer code of an exception class."""
    return next(code for code, known in _CLASSES.items() if known is cls)


class raise_exception_on_not_ok_status:
    """A context that raises the error of its status at the end, if the block sets a code other than OK."""

    def __init__(self) -> None:
        self.code, self.message = OK, ""

    def __enter__(self) -> raise_exception_on_not_ok_status:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> bool:
        if kind is None and self.code != OK:
            raise _CLASSES[self.code](None, None, self.message)
        return False
