"""A call of an op's kernel on torch tensors, and TensorFlow's gradient of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from stoker._src.base.dtypes import as_dtype
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition
from stoker._src.ops.support.values import to_numpy
from stoker._src.runtime.eager.executor import EagerTensor
from stoker._src.runtime.eager.tape import GradientTape


class Call:
    """An op with its attributes and arguments: tensors, plain numbers for host inputs, and lists of them."""

    def __init__(self, definition: OpDefinition, attrs: dict[str, Any], args: Sequence[Any]) -> None:
        self.definition, self.args = definition, args
        self.keywords = {name: attrs[name] for name in definition.kernel_attrs}
        self.attrs = {
            name: attrs[name] for name in definition.attrs if name not in definition.inferred and name in attrs
        }

    def filled(self, tensors: Sequence[Any]) -> list[Any]:
        """Returns the arguments with other tensors, in their order."""
        rest = iter(tensors)
        return replaced(self.args, lambda _: next(rest))

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Runs the kernel. No result is one of the tensors."""
        kernel = self.definition.kernel_fn
        assert kernel is not None
        results = self.definition.flatten_results(kernel(*self.filled(tensors), **self.keywords))
        given = {id(tensor) for tensor in tensors}
        return tuple(each.clone() if id(each) in given else each for each in results)

    def gradients(self, tensors: Sequence[torch.Tensor], gradients: Sequence[Any]) -> list[torch.Tensor | None]:
        """Returns the gradients of the tensors, computed by the eager executor. Those of the results may be None."""
        with context.enter_eager(), torch.no_grad():
            inputs = [_eager(tensor.detach()) for tensor in tensors]
            with GradientTape() as tape:
                for tensor in inputs:
                    tape.watch(tensor)
                outputs = self.definition(*self.filled(inputs), **self.attrs)
            flat = flattened(outputs if isinstance(outputs, tuple) else [outputs])
            pairs = [
                (o, _eager(g.contiguous())) for o, g in zip(flat, gradients) if g is not None and o.dtype.is_floating
            ]
            if not pairs:
                return [None] * len(inputs)
            found = tape.gradient([o for o, _ in pairs], inputs, [g for _, g in pairs])
            return [None if each is None else _dense(each) for each in found]


def _eager(value: torch.Tensor) -> EagerTensor:
    return EagerTensor(value, as_dtype(to_numpy(torch.zeros([], dtype=value.dtype)).dtype))


def _dense(value: Any) -> torch.Tensor:
    tensor: Any = convert_to_tensor(value)  # the gradient of a lookup is IndexedSlices
    return tensor._value


def flattened(values: Any) -> list[Any]:
    """Returns the items of nested lists and tuples."""
    flat: list[Any] = []
    for value in values:
        flat.extend(flattened(value)) if isinstance(value, (list, tuple)) else flat.append(value)
    return flat


def replaced(values: Any, function: Callable[[Any], Any]) -> list[Any]:
    """Returns the values with `function` applied to each tensor."""
    return [
        replaced(value, function)
        if isinstance(value, (list, tuple))
        else function(value)
        if isinstance(value, torch.Tensor)
        else value
        for value in values
    ]
