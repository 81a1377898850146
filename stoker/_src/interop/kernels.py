"""Calls of the Session's kernels from the code of a module, for ops that have no torch form.

While torch traces (export, compile), a kernel written in torch is traced, and another one is a torch op of its own (`opaque.py`). Otherwise autograd
records the call as one step. The backward of that step is TensorFlow's gradient of the op, computed by the eager executor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stoker._src.graph.definition import OpDefinition
from stoker._src.interop import opaque
from stoker._src.interop.calls import Call, flattened, replaced


def kernel_call(definition: OpDefinition, attrs: dict[str, Any]) -> Callable[..., Any]:
    """Returns a function that runs the op on its inputs (tensors, plain numbers for host inputs, lists of them). Several outputs form a tuple."""
    kernel = definition.kernel_fn
    assert kernel is not None
    keywords = {name: attrs[name] for name in definition.kernel_attrs}
    text = opaque.described(definition, attrs) if definition.name in opaque.OPAQUE else ""
    single = definition.single

    def plain(results: Any) -> Any:
        return results if single else tuple(definition.flatten_results(results))

    def call(*args: Any) -> Any:
        if torch.compiler.is_compiling() and text:
            results = opaque.call(text, args)
            return results[0] if single else tuple(results)
        tensors = [value for value in flattened(args) if isinstance(value, torch.Tensor)]
        recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if torch.compiler.is_compiling() or not recorded:
            return plain(kernel(*args, **keywords))
        if not definition.differentiable:
            return plain(kernel(*replaced(args, lambda value: value.detach()), **keywords))
        results = _Recorded.apply(Call(definition, attrs, args), *tensors)
        return results[0] if single else results

    call.__name__ = definition.name
    return call


class _Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: Call, *tensors: torch.Tensor) -> Any:
        ctx.call = call
        ctx.save_for_backward(*tensors)
        results = call.run([tensor.detach() for tensor in tensors])
        # Autograd must treat integers as not differentiable.
        ctx.mark_non_differentiable(
            *[each for each in results if not each.dtype.is_floating_point and not each.is_complex()]
        )
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, *ctx.call.gradients(ctx.saved_tensors, gradients)
