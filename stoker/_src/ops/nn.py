"""Activations."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base.dtypes import REAL
from stoker._src.base.export import export
from stoker._src.graph.definition import define, unchanged
from stoker._src.graph.tensor import Operation, Tensor

# ---- Relu -------------------------------------------------------------------------------------------------------

RELU = define("Relu(features: T) -> (activations: T)", T=REAL)
RELU.kernel(torch.relu)
RELU.shape(unchanged)

RELU_GRAD = define("ReluGrad(gradients: T, features: T) -> (backprops: T)", T=REAL)
RELU_GRAD.shape(unchanged)


@RELU_GRAD.kernel
def relu_grad_kernel(gradients: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.threshold_backward(gradients, features, 0)


@RELU.grad
def relu_grad(op: Operation, g: Tensor) -> Tensor:
    return RELU_GRAD(g, op.outputs[0])


@RELU_GRAD.grad
def relu_grad_grad(op: Operation, g: Tensor) -> tuple[Tensor, None]:
    return RELU_GRAD(g, op.inputs[1]), None


@export("nn.relu")
def relu(features: Any, name: str | None = None) -> Tensor:
    """max(features, 0)."""
    return RELU(features, name=name)
