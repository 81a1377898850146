"""`custom_gradient` and functions built on it: the user supplies the gradient."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.gradient_registry import register_gradient
from stoker._src.graph.runtime_hooks import hooks
from stoker._src.graph.tapes import no_tapes, tapes
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.control_flow import gradients

_number = itertools.count()


class _VariableWatch:
    """Acts as a tape to record which variables a function reads."""

    def __init__(self) -> None:
        self.variables: dict[int, Any] = {}

    def record(self, op: Any) -> None:
        for tensor in op._inputs:
            reference = getattr(tensor, "variable", None)
            variable = None if reference is None else reference()
            if variable is not None and variable.trainable:
                self.variables.setdefault(id(variable), variable)

    def is_tracked(self, tensor: Any) -> bool:
        return False


class _Record:
    """What a tape records of a call in eager mode."""

    def __init__(self, inputs: list[Any], outputs: list[Any], backward: Callable[..., Any]) -> None:
        self._inputs, self.outputs, self.backward = inputs, outputs, backward
        self.name = self.type = "CustomGradient"


@export("custom_gradient")
def custom_gradient(f: Any = None) -> Any:
    """Decorator for a function that returns `(result, grad_fn)`, where `grad_fn` computes the gradient.

    `grad_fn(*dresults)` takes the gradients of the results and returns one gradient per argument. If the function reads
    trainable variables, `grad_fn` must accept `variables=` and return `(gradients of arguments, gradients of variables)`.

    Args:
        f: the function. It takes tensors by position, and any values by keyword.

    Raises:
        TypeError: the function reads variables, and `grad_fn` does not accept them.
        ValueError: `grad_fn` returns the wrong number of gradients.
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        return _Call(f, args, kwargs).run()

    return decorated


class _Call:
    """One call of a function with a custom gradient."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def run(self) -> Any:
        eager = context.executing_eagerly()
        if not eager and self.kwargs:
            tensors = [leaf for leaf in nest.flatten(self.kwargs) if isinstance(leaf, Tensor)]
            if tensors:
                raise ValueError(
                    "The custom_gradient decorator currently supports keywords arguments only when eager execution is enabled."
                )
        flat = nest.flatten(self.args, expand_composites=True)
        self.inputs = [convert_to_tensor(leaf) for leaf in flat]
        inner = self.inputs if eager else [shaping.identity(tensor) for tensor in self.inputs]
        args = nest.pack_sequence_as(self.args, inner, expand_composites=True)
        watch = _VariableWatch()
        with no_tapes():
            tapes.active = [watch]
            result, self.grad_fn = self.f(*args, **self.kwargs)
        self.result = result
        outputs = [convert_to_tensor(leaf) for leaf in nest.flatten(result, expand_composites=True)]
        self.count = len(outputs)
        given = {id(leaf) for leaf in flat}
        self.variables = [v for v in watch.variables.values() if id(v) not in given]
        self._check_signature()
        handles = [_handle(variable) for variable in self.variables]
        inputs = [*self.inputs, *handles]
        made = self._recorded(outputs, inputs) if eager else self._in_graph(outputs, inputs)
        return nest.pack_sequence_as(result, made, expand_composites=True)

    def _check_signature(self) -> None:
        if not self.variables:
            return
        parameters = inspect.signature(self.grad_fn).parameters.values()
        if not any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters):
            raise TypeError(
                "If using @custom_gradient with a function that uses variables, then grad_fn must accept a 'variables' "
                f"keyword argument. The function reads {[v.name for v in self.variables]}."
            )

    def backward(self, *grads: Any) -> list[Any]:
        """The gradients of arguments and variables, given those of the results."""
        if self.variables:
            found, of_variables = self.grad_fn(*grads, variables=self.variables)
            if len(of_variables) != len(self.variables):
                raise ValueError(
                    f"Must return gradient for each variable from @custom_gradient grad_fn: {len(of_variables)} for {len(self.variables)}."
                )
        else:
            found, of_variables = self.grad_fn(*grads), []
        flat = nest.flatten(found) if isinstance(found, (list, tuple)) else [found]
        if len(flat) != len(self.inputs):
            raise ValueError(
                f"custom_gradient function expected to return {len(self.inputs)} gradients, but returned {len(flat)} instead."
            )
        return [*flat, *of_variables]

    def _recorded(self, outputs: list[Any], inputs: list[Any]) -> list[Any]:
        # A result that is also an argument would be the same tensor to the tape.
        with no_tapes():
            outputs = [shaping.identity(tensor) for tensor in outputs]
        record = _Record(inputs, outputs, lambda *grads: self.backward(*_filled(grads, outputs)))
        for tape in tapes.active:
            tape.record(record)
        return outputs

    def _in_graph(self, outputs: list[Any], inputs: list[Any]) -> list[Any]:
        name = f"CustomGradient-{next(_number)}"

        def gradient(op: Any, *grads: Any) -> list[Any]:
            results = _filled(grads[: self.count], op.outputs[: self.count])
            return [*[None] * self.count, *self.backward(*results)]

        register_gradient(name, gradient)
        graph = context.target()
        with graph.gradient_override_map({"IdentityN": name}):
            made = shaping.IDENTITY_N([*outputs, *inputs])
        return made[: self.count]


def _filled(grads: Any, outputs: list[Any]) -> list[Any]:
    return [
        shaping.zeros_like(tensor) if g is None and gradients.is_trainable(tensor) else g
        for g, tensor in zip(grads, outputs)
    ]


def _handle(variable: Any) -> Any:
    handle = variable._gradient_source()
    target = context.target()
    return target.capture(handle) if target.building_function else handle


@export("grad_pass_through")
def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `f` so that its gradient is that of the identity.

    Raises:
        ValueError: `f` is not called with exactly one tensor.
    """

    @custom_gradient
    def passing(*args: Any, **kwargs: Any) -> Any:
        def grad(*dys: Any, **grad_kwargs: Any) -> Any:
            found = dys[0] if len(dys) == 1 else list(dys)
            used = grad_kwargs.get("variables")
            return (found, [None] * len(used)) if used is not None else found

        return f(*args, **kwargs), grad

    return passing


@export("recompute_grad")
def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `f` so that it is computed again for its gradient, and no intermediate values are kept."""

    @custom_gradient
    def inner(*args: Any, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)

        def grad(*dresult: Any, **grad_kwargs: Any) -> Any:
            used = grad_kwargs.get("variables", [])
            found = hooks.differentiate(f, args, kwargs, used, list(dresult))
            of_args = found[: len(found) - len(used)]
            of_args = of_args[0] if len(of_args) == 1 else of_args
            return (of_args, found[len(found) - len(used) :]) if used else of_args

        return result, grad

    return inner
