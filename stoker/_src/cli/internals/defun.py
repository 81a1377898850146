"""`function.Defun`: functions of 1.x graphs, and the eager helpers of `backprop` and `context` that programs import."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from stoker._src.base import nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.shapes import UNKNOWN_SHAPE
from stoker._src.contrib import eager
from stoker._src.graph import context as contexts
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import FuncGraph, Function, unique_function_name
from stoker._src.graph.tensor import Operation
from stoker._src.ops.array import shaping
from stoker._src.ops.control_flow import branches_and_loops, custom_gradients, functional_gradients
from stoker._src.runtime import devices
from stoker._src.runtime.eager.tape import GradientTape

# ---- framework.function -------------------------------------------------------------------------------------------


class Defun:
    """Decorator that turns a Python function into a graph function, traced once for the given dtypes (or those of the first call).

    Args:
        *input_types: dtypes of the arguments.
        **kwargs: `func_name`; `grad_func`, a Defun of (inputs..., gradients of outputs...); `python_grad_func`, a Python
            function of (op, gradients of outputs...) as in RegisterGradient; `out_names`, `shape_func` and `noinline`
            do not change results.

    Raises:
        ValueError: both kinds of gradient function are given.
    """

    def __init__(self, *input_types: Any, **kwargs: Any) -> None:
        self._input_types = input_types
        self._func_name = kwargs.pop("func_name", None)
        self._grad_func = kwargs.pop("grad_func", None)
        self._python_grad_func = kwargs.pop("python_grad_func", None)
        for hint in ("out_names", "shape_func", "noinline"):
            kwargs.pop(hint, None)
        if kwargs:
            raise TypeError(f"Defun got unexpected arguments {sorted(kwargs)}.")
        if self._grad_func is not None and self._python_grad_func is not None:
            raise ValueError("Gradient defined twice for function: give grad_func or python_grad_func.")

    def __call__(self, func: Callable[..., Any]) -> _DefinedFunction:
        return _DefinedFunction(func, self._input_types, self._func_name, self._grad_func, self._python_grad_func)


class _DefinedFunction:
    """The result of `Defun`. Calling it adds a call to the graph."""

    def __init__(self, func: Any, types: Any, name: str | None, grad_func: Any, python_grad_func: Any) -> None:
        self._func = func
        self._types = [as_dtype(dtype) for dtype in types]
        self.name = name or unique_function_name(func.__name__)
        self._grad_func, self._python_grad_func = grad_func, python_grad_func
        self._function: Function | None = None
        self._structure: Any = None
        self._captured: list[Any] = []
        self.__name__, self.__doc__ = func.__name__, func.__doc__

    @property
    def captured_inputs(self) -> list[Any]:
        return list(self._captured)

    @property
    def definition(self) -> Any:
        """Returns the FunctionDef, if the function has been traced."""
        return self._traced([]).to_function_def()

    def _traced(self, values: list[Any]) -> Function:
        if self._function is None:
            types = self._types or [value.dtype.base_dtype for value in values]
            graph = FuncGraph(self.name)
            arguments = [graph.add_input(dtype, UNKNOWN_SHAPE) for dtype in types]
            traced = branches_and_loops.trace(graph, self._func, arguments)
            self._structure = traced.structure
            captures = graph.captures
            self._captured = [passed for passed, _ in captures]
            outputs = [tensor for tensor in traced.tensors if tensor is not None]
            controls: list[Operation] = graph.stateful_ops()
            inputs = [*arguments, *[inner for _, inner in captures]]
            self._function = Function(self.name, graph, inputs, outputs, controls)
            if self._grad_func is not None:
                self._function.gradient = self._grad_func._traced([])
        return self._function

    @property
    def function_ref(self) -> Any:
        return self._traced([]).ref

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        """Returns the outputs of a call.

        Raises:
            ValueError: the number of arguments differs from the number of dtypes.
        """
        if self._types and len(args) != len(self._types):
            raise ValueError(f"Expected number of arguments: {len(self._types)}, received: {len(args)}")
        types = self._types or [None] * len(args)
        values = [convert_to_tensor(arg, dtype) for arg, dtype in zip(args, types)]
        function = self._traced(values)
        passed = [*values, *self._captured]
        outputs = functional_gradients.call(function, passed, name or self.__name__)
        if self._python_grad_func is not None:
            outputs = _with_gradient(self._python_grad_func, passed, outputs)
        if self._structure is None or not outputs:
            return None
        return nest.pack_sequence_as(self._structure, list(outputs))


def _with_gradient(python_grad_func: Any, inputs: list[Any], outputs: list[Any]) -> list[Any]:
    """Returns `outputs` with a custom gradient, given as a function of (op, gradients)."""

    @custom_gradients.custom_gradient
    def passed(*_: Any) -> Any:
        def backward(*grads: Any) -> Any:
            op = SimpleNamespace(inputs=inputs, outputs=outputs, type="PartitionedCall", name=outputs[0].op.name)
            found = python_grad_func(op, *grads)
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            return found + [None] * (len(inputs) - len(found))

        return [shaping.identity(tensor) for tensor in outputs], backward

    return list(passed(*inputs))


# ---- eager.def_function, eager.function ------------------------------------------------------------------------------

defun = eager.defun

# ---- eager.backprop ----------------------------------------------------------------------------------------------------

val_and_grad_function = eager.value_and_gradients_function
gradients_function = eager.gradients_function
implicit_val_and_grad = eager.implicit_value_and_gradients
implicit_grad = eager.implicit_gradients


def make_vjp(f: Callable[..., Any], params: Any = None, persistent: bool = True) -> Callable[..., Any]:
    """Returns a function that computes (f(...), vjp), where vjp maps the gradient of the result to those of the arguments."""

    def decorated(*args: Any, **kwargs: Any) -> Any:
        values = [convert_to_tensor(arg) for arg in args]
        wanted = values if params is None else [values[position] for position in params]
        with GradientTape(persistent=persistent) as tape:
            tape.watch(wanted)
            result = f(*values, **kwargs)
        return result, lambda dy=None: tape.gradient(result, wanted, dy)

    return decorated


# ---- eager.context -----------------------------------------------------------------------------------------------------


def eager_mode() -> Any:
    """Returns a context in which ops run eagerly."""
    return contexts.enter_eager()


def graph_mode() -> Any:
    """Returns a context in which ops are added to the default graph."""
    return contexts.enter_graph(contexts.get_default_graph())


def in_eager_mode() -> bool:
    return contexts.executing_eagerly()


def num_gpus() -> int:
    """Returns the number of usable GPUs."""
    return sum(device.device_type == "GPU" for device in devices.list_local_devices())


class _Context:
    """The part of TensorFlow's context object that programs use."""

    executing_eagerly = staticmethod(contexts.executing_eagerly)
    num_gpus = staticmethod(num_gpus)

    def devices(self) -> list[str]:
        return [device.name for device in devices.list_local_devices()]


_CONTEXT = _Context()


def context() -> _Context:
    """Returns the context of this process."""
    return _CONTEXT


def ensure_initialized() -> None:
    """No-op: there is nothing to initialize."""
