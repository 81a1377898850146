"""Calls of the Session's kernels from the code of a module, for ops that have no torch form.

While torch traces (export, compile), the kernel itself is called, and a kernel written in torch is traced. Otherwise autograd records the call as
one step. The backward of that step is TensorFlow's gradient of the op, computed by the eager executor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base.dtypes import as_dtype
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition
from stoker._src.ops.support.values import to_numpy
from stoker._src.runtime.eager.executor import EagerTensor
from stoker._src.runtime.eager.tape import GradientTape


def kernel_call(definition: OpDefinition, attrs: dict[str, Any]) -> Callable[..., Any]:
    """Returns a function that runs the op on its inputs (tensors, plain numbers for host inputs, lists of them). Several outputs form a tuple."""
    kernel = definition.kernel_fn
    assert kernel is not None
    keywords = {name: attrs[name] for name in definition.kernel_attrs}
    given = {name: attrs[name] for name in definition.attrs if name not in definition.inferred and name in attrs}

    def plain(results: Any) -> Any:
        return results if definition.single else tuple(definition.flatten_results(results))

    def call(*args: Any) -> Any:
        tensors = [value for value in _flat(args) if isinstance(value, torch.Tensor) and value.requires_grad]
        if torch.compiler.is_compiling() or not tensors or not torch.is_grad_enabled():
            return plain(kernel(*args, **keywords))
        if not definition.differentiable:
            return plain(kernel(*_replaced(args, lambda value: value.detach()), **keywords))
        layout = _Layout(definition, kernel, keywords, given, args)
        results = _Recorded.apply(layout, *[v for v in _flat(args) if isinstance(v, torch.Tensor)])
        return results[0] if definition.single else results

    call.__name__ = definition.name
    return call


class _Layout:
    """The parts of a recorded call other than its tensors."""

    def __init__(self, definition: OpDefinition, kernel: Any, keywords: Any, attrs: Any, args: Any) -> None:
        self.definition, self.kernel, self.keywords, self.attrs, self.args = definition, kernel, keywords, attrs, args

    def filled(self, tensors: list[Any]) -> list[Any]:
        """The arguments with their tensors replaced, in order."""
        rest = iter(tensors)
        return _replaced(self.args, lambda _: next(rest))


class _Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layout: _Layout, *tensors: torch.Tensor) -> Any:
        ctx.layout = layout
        ctx.save_for_backward(*tensors)
        plain = [tensor.detach() for tensor in tensors]
        results = layout.definition.flatten_results(layout.kernel(*layout.filled(plain), **layout.keywords))
        # A result may not be an input, and autograd must treat integers as not differentiable.
        shared = {id(tensor) for tensor in plain}
        results = tuple(each.clone() if id(each) in shared else each for each in results)
        ctx.mark_non_differentiable(
            *[each for each in results if not each.dtype.is_floating_point and not each.is_complex()]
        )
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        definition = ctx.layout.definition
        with context.enter_eager(), torch.no_grad():
            inputs = [_eager(tensor.detach()) for tensor in ctx.saved_tensors]
            with GradientTape() as tape:
                for tensor in inputs:
                    tape.watch(tensor)
                outputs = definition(*ctx.layout.filled(inputs), **ctx.layout.attrs)
            flat = _flat(outputs if isinstance(outputs, tuple) else [outputs])
            pairs = [
                (o, _eager(g.contiguous())) for o, g in zip(flat, gradients) if g is not None and o.dtype.is_floating
            ]
            found = (
                tape.gradient([o for o, _ in pairs], inputs, [g for _, g in pairs]) if pairs else [None] * len(inputs)
            )
            return None, *[None if each is None else _dense(each) for each in found]


def _eager(value: torch.Tensor) -> EagerTensor:
    return EagerTensor(value, as_dtype(to_numpy(torch.zeros([], dtype=value.dtype)).dtype))


def _dense(value: Any) -> torch.Tensor:
    return _value_of(convert_to_tensor(value))  # the gradient of a lookup is IndexedSlices


def _value_of(tensor: Any) -> torch.Tensor:
    return tensor._value


def _flat(values: Any) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        flat.extend(_flat(value)) if isinstance(value, (list, tuple)) else flat.append(value)
    return flat


def _replaced(values: Any, function: Callable[[Any], Any]) -> list[Any]:
    """The values with `function` applied to each tensor."""
    return [
        _replaced(value, function)
        if isinstance(value, (list, tuple))
        else function(value)
        if isinstance(value, torch.Tensor)
        else value
        for value in values
    ]
