"""Python functions as ops: `py_func` and `numpy_function` (arrays), `py_function` (eager tensors, with gradients).

A node stores a token. The function lives as long as the graph. A graph that was loaded from a file finds only functions
that this process registered under the same tokens.
"""

from __future__ import annotations

import functools
import itertools
import secrets
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stoker._src.base import dtypes, forking, nest
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import (
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import BLOCKING, STATEFUL, STRING, TYPES, OpDefinition, define
from stoker._src.graph.runtime_hooks import hooks
from stoker._src.graph.tapes import no_tapes
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support.values import from_numpy, to_numpy
from stoker._src.ops.support.waiting import current_run

_SECRET = secrets.token_hex(8)


class _Function:
    """A registered function. Its users keep this object alive; the registry does not."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        # A node from a file names a function of this process only if this process wrote it: nobody else knows the secret.
        self.token = f"pyfunc_{next(_numbers)}_{_SECRET}"


_numbers = itertools.count()
_registered: weakref.WeakValueDictionary[str, _Function] = weakref.WeakValueDictionary()
_kept_by_graph: weakref.WeakKeyDictionary[Any, list[_Function]] = weakref.WeakKeyDictionary()
_lock = forking.lock()


def _register(function: Callable[..., Any]) -> _Function:
    """Assigns a token to a function. The graph under construction keeps it alive."""
    if not callable(function):
        raise ValueError(f"Expected func to be callable. Received func={function} of type {type(function)}.")
    made = _Function(function)
    with _lock:
        _registered[made.token] = made
        if not context.executing_eagerly():
            _kept_by_graph.setdefault(context.target(), []).append(made)
    return made


def _find(token: str) -> _Function:
    found = _registered.get(token)
    if found is None:
        raise InvalidArgumentError(None, None, f"ValueError: callback {token} is not found")
    return found


_ERRORS: tuple[tuple[Any, type[OpError]], ...] = (
    ((ValueError, TypeError), InvalidArgumentError),
    (StopIteration, OutOfRangeError),
    (MemoryError, ResourceExhaustedError),
    (NotImplementedError, UnimplementedError),
)


def _stop_if_cancelled() -> None:
    """Ends the run if it was cancelled, or its time ran out, while its Python code ran."""
    state = current_run()
    if state is not None:
        state.check("A Python function")


def _raised(error: Exception) -> OpError:
    """Converts an exception of a function to the error of a run."""
    _stop_if_cancelled()
    kind = next((kind for python, kind in _ERRORS if isinstance(error, python)), UnknownError)
    return kind(None, None, f"{type(error).__name__}: {error}")


def _results(returned: Any, token: str, wanted: Sequence[DType]) -> list[Any]:
    values = [] if returned is None else list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if not wanted and returned is not None:
        values = []
    if len(values) != len(wanted):
        raise InvalidArgumentError(
            None, None, f"{token} returns {len(values)} values, but expects to see {len(wanted)} values."
        )
    return values


# ---- PyFunc -----------------------------------------------------------------------------------------------------

_TYPES = {"token": STRING, "Tin": TYPES(minimum=0), "Tout": TYPES(minimum=0)}
PY_FUNC = define("PyFunc(input: [Tin]) -> (output: [Tout])", STATEFUL | BLOCKING, **_TYPES).not_differentiable()
PY_FUNC_STATELESS = define("PyFuncStateless(input: [Tin]) -> (output: [Tout])", BLOCKING, **_TYPES).not_differentiable()
PY_FUNC.planning.on_host = PY_FUNC_STATELESS.planning.on_host = True


def _as_array(value: Any, position: int, token: str, dtype: DType) -> Any:
    """Converts a returned value to a kernel value. Only text is converted, to bytes."""
    plain = dtype is dtypes.string and not isinstance(value, np.ndarray)  # NumPy's bytes type would drop trailing zeros
    array = np.asarray(value, dtype=object) if plain else np.asarray(value)
    if array.dtype.kind in "US" or (array.dtype.kind == "O" and dtype is dtypes.string):
        items = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
        if not all(isinstance(item, bytes) for item in items):
            raise InvalidArgumentError(None, None, f"{position}-th value returned by {token} is not all text or bytes")
        array, shape = np.empty(len(items), dtype=object), array.shape
        array[:] = items
        array = array.reshape(shape)
    try:
        found = as_dtype(array.dtype)
    except TypeError:
        raise InvalidArgumentError(
            None,
            None,
            f"{position}-th value returned by {token} has the dtype {array.dtype}, which tensors do not have",
        ) from None
    if found is not dtype:
        raise InvalidArgumentError(
            None, None, f"{position}-th value returned by {token} is {_c_name(found)}, but expects {_c_name(dtype)}"
        )
    return from_numpy(array if array.dtype == np.object_ else np.array(array))


def _c_name(dtype: DType) -> str:
    return {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)


def _argument(value: Any) -> Any:
    """A private copy of the array, so that the function may write to it; bytes for a single string."""
    array = to_numpy(value)
    if array.dtype == np.object_ and array.ndim == 0:
        return array[()]
    return np.array(array)


def py_func_kernel(input: list[Any], *, token: str, Tout: Sequence[DType]) -> list[Any]:
    function = _find(token).function
    arguments = [_argument(value) for value in input]
    try:
        returned = function(*arguments)
    except Exception as error:
        raise _raised(error) from error
    _stop_if_cancelled()
    return [
        _as_array(value, i, token, dtype) for i, (value, dtype) in enumerate(zip(_results(returned, token, Tout), Tout))
    ]


for _definition in (PY_FUNC, PY_FUNC_STATELESS):
    _definition.kernel(py_func_kernel)
    _definition.shape(lambda input, *, Tout: [UNKNOWN_SHAPE] * len(Tout))


def _keep(function: _Function, outputs: Any) -> None:
    """In eager mode the results keep the function alive, because a tape that recorded them may call it again."""
    if context.executing_eagerly():
        for tensor in outputs:
            tensor._python_function = function


def _called(definition: OpDefinition, function: _Function, inp: Any, Tout: Any, name: str | None) -> Any:
    """The op's outputs in the structure of `Tout`; without outputs, the op itself (None in eager mode)."""
    wanted = [as_dtype(dtype) for dtype in nest.flatten(Tout)]
    outputs = definition(list(inp), token=function.token, Tout=wanted, name=name)
    if not wanted:
        if context.executing_eagerly():
            return None
        return context.target().get_operations()[-1]
    _keep(function, outputs)
    if nest.is_nested(Tout):
        return nest.pack_sequence_as(Tout, list(outputs))
    return outputs[0]


def _array_function(func: Any, inp: Any, Tout: Any, stateful: bool, name: str | None) -> Any:
    if context.executing_eagerly():
        returned = func(*[_argument(convert_to_tensor(item)._value) for item in inp])  # type: ignore[attr-defined]
        if not isinstance(returned, (list, tuple)):
            return None if returned is None else convert_to_tensor(returned)
        results = [convert_to_tensor(value) for value in returned]  # in eager mode the results keep their own dtypes
        return results[0] if len(results) == 1 else results
    return _called(PY_FUNC if stateful else PY_FUNC_STATELESS, _register(func), inp, Tout, name)


@export(v1="py_func")
def py_func(func: Any, inp: Any, Tout: Any, stateful: bool = True, name: str | None = None) -> Any:
    """Calls a Python function with NumPy arrays when the op runs.

    Args:
        func: a function that takes NumPy arrays (bytes for a single string) and returns arrays or values of the dtypes `Tout`.
        inp: tensors.
        Tout: the dtype of the result, or a list of them.
        stateful: False allows equal calls to be merged.
        name: the op's name.

    Raises:
        ValueError: `func` is not callable.
    """
    return _array_function(func, inp, Tout, stateful, name)


@export("numpy_function")
def numpy_function(
    func: Any = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: str | None = None
) -> Any:
    """Calls a Python function with NumPy arrays when the op runs. It has no gradient. See `py_func`.

    Without `func`, returns a decorator, which requires `Tout`.
    """
    if Tout is None:
        raise TypeError("Missing required argument: 'Tout'.")
    if func is None:
        if inp is not None:
            raise TypeError("Don't set the `inp` argument when using tf.numpy_function as a decorator (`func=None`).")
        return lambda function: functools.wraps(function)(
            lambda *args: numpy_function(function, args, Tout, stateful, name)
        )
    return _array_function(func, inp, Tout, stateful, name)


# ---- EagerPyFunc ------------------------------------------------------------------------------------------------

EAGER_PY_FUNC = define(
    "EagerPyFunc(input: [Tin]) -> (output: [Tout])", STATEFUL | BLOCKING,
    token=STRING, is_async=False, Tin=TYPES(minimum=0), Tout=TYPES(minimum=0),
)  # fmt: skip


@EAGER_PY_FUNC.kernel
def eager_py_func_kernel(input: list[Any], *, token: str, Tin: Sequence[DType], Tout: Sequence[DType]) -> list[Any]:
    function = _find(token).function
    with context.enter_eager(), no_tapes():
        eager = context.target().tensor_type
        try:
            returned = function(*[eager(value, dtype) for value, dtype in zip(input, Tin)])
            _stop_if_cancelled()
            results = _results(returned, token, Tout)
            return [_own(convert_to_tensor(value, dtype)) for value, dtype in zip(results, Tout)]
        except OpError as error:
            if error.node_def is None and isinstance(error, InvalidArgumentError) and error.message.startswith(token):
                raise
            raise _raised(error) from error
        except Exception as error:
            raise _raised(error) from error


def _own(tensor: Any) -> Any:
    """The value of an eager tensor in its own memory, because the function may have returned its argument."""
    value = tensor._value
    return value.copy() if isinstance(value, np.ndarray) else value.clone()


EAGER_PY_FUNC.shape(lambda input, *, Tout: [UNKNOWN_SHAPE] * len(Tout))


@EAGER_PY_FUNC.grad
def eager_py_func_grad(op: Operation, *gradients: Any) -> list[Any]:
    """Calls the function again under a tape. Side effects happen a second time."""
    function = _find(op.attr("token")).function
    count = len(op.inputs)
    inputs = list(op.inputs)
    wanted = [i for i, tensor in enumerate(inputs) if tensor.dtype.is_floating or tensor.dtype.is_complex]

    def backward(*values: Any) -> list[Any]:
        arguments, flowing = values[:count], values[count:]
        tape = hooks.new_tape()
        with tape:
            for i in wanted:
                tape.watch(arguments[i])
            returned = function(*arguments)
        results = returned if isinstance(returned, (list, tuple)) else [returned]
        found = tape.gradient(list(results), [arguments[i] for i in wanted], output_gradients=list(flowing))
        return [_zeros(arguments[i]) if each is None else convert_to_tensor(each) for i, each in zip(wanted, found)]

    made = _register(backward)
    outputs = EAGER_PY_FUNC([*inputs, *gradients], token=made.token, Tout=[inputs[i].dtype.base_dtype for i in wanted])
    _keep(made, outputs)
    results: list[Any] = [None] * count
    for i, tensor in zip(wanted, outputs):
        tensor.set_shape(inputs[i].shape)
        results[i] = tensor
    return results


def _zeros(tensor: Any) -> Any:
    return context.target().tensor_type(tensor._value.new_zeros(tensor._value.shape), tensor.dtype)


@export("py_function")
def py_function(func: Any = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> Any:
    """Calls a Python function with eager tensors when the op runs. It is differentiable.

    The gradient calls `func` a second time.

    Args:
        func: a function that takes eager tensors and returns values of the dtypes `Tout`.
        inp: tensors.
        Tout: the dtype of the result, or a structure of them.
        name: the op's name.
    """
    return _called(EAGER_PY_FUNC, _register(func), inp, Tout, name)
