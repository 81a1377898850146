"""Public names of tf.errors."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.base.errors import ABORTED as ABORTED
from stoker._src.base.errors import AbortedError as AbortedError
from stoker._src.base.errors import ALREADY_EXISTS as ALREADY_EXISTS
from stoker._src.base.errors import AlreadyExistsError as AlreadyExistsError
from stoker._src.base.errors import CANCELLED as CANCELLED
from stoker._src.base.errors import CancelledError as CancelledError
from stoker._src.base.errors import DATA_LOSS as DATA_LOSS
from stoker._src.base.errors import DataLossError as DataLossError
from stoker._src.base.errors import DEADLINE_EXCEEDED as DEADLINE_EXCEEDED
from stoker._src.base.errors import DeadlineExceededError as DeadlineExceededError
from stoker._src.base.errors import error_code_from_exception_type as error_code_from_exception_type
from stoker._src.base.errors import exception_type_from_error_code as exception_type_from_error_code
from stoker._src.base.errors import FAILED_PRECONDITION as FAILED_PRECONDITION
from stoker._src.base.errors import FailedPreconditionError as FailedPreconditionError
from stoker._src.base.errors import INTERNAL as INTERNAL
from stoker._src.base.errors import InternalError as InternalError
from stoker._src.base.errors import INVALID_ARGUMENT as INVALID_ARGUMENT
from stoker._src.base.errors import InvalidArgumentError as InvalidArgumentError
from stoker._src.base.errors import NOT_FOUND as NOT_FOUND
from stoker._src.base.errors import NotFoundError as NotFoundError
from stoker._src.base.errors import OK as OK
from stoker._src.base.errors import OpError as OpError
from stoker._src.base.errors import OUT_OF_RANGE as OUT_OF_RANGE
from stoker._src.base.errors import OutOfRangeError as OutOfRangeError
from stoker._src.base.errors import PERMISSION_DENIED as PERMISSION_DENIED
from stoker._src.base.errors import PermissionDeniedError as PermissionDeniedError
from stoker._src.base.errors import raise_exception_on_not_ok_status as raise_exception_on_not_ok_status
from stoker._src.base.errors import RESOURCE_EXHAUSTED as RESOURCE_EXHAUSTED
from stoker._src.base.errors import ResourceExhaustedError as ResourceExhaustedError
from stoker._src.base.errors import UNAUTHENTICATED as UNAUTHENTICATED
from stoker._src.base.errors import UnauthenticatedError as UnauthenticatedError
from stoker._src.base.errors import UNAVAILABLE as UNAVAILABLE
from stoker._src.base.errors import UnavailableError as UnavailableError
from stoker._src.base.errors import UNIMPLEMENTED as UNIMPLEMENTED
from stoker._src.base.errors import UnimplementedError as UnimplementedError
from stoker._src.base.errors import UNKNOWN as UNKNOWN
from stoker._src.base.errors import UnknownError as UnknownError
