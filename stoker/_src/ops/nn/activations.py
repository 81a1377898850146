"""Activations and their gradients."""

from __future__ import annotations

import math as scalars
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, REAL, DType
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, define, one_of, unchanged
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, selection, shaping
from stoker._src.ops.math import arithmetic, comparison, special, unary_functions
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.lowering import alike_loop, bits_of, unary_loop
from stoker._src.ops.support.unsigned import SIGNED_TWIN

_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}
_RELU_DTYPES = (*REAL, dtypes.qint8)


def _number(value: float, like: Tensor) -> Tensor:
    return convert_to_tensor(value, like.dtype.base_dtype)


def _zeros_like(x: Tensor) -> Tensor:
    return shaping.ZEROS_LIKE(x)


def _where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return selection.SELECT_V2(condition, x, y)


def _pair(name: str, saved: str, allowed: tuple[DType, ...], **attrs: Any) -> tuple[OpDefinition, OpDefinition]:
    """Defines an activation and its gradient op, which saves the activation's `features` or its `outputs`."""
    forward = define(f"{name}(features: T) -> (activations: T)", T=allowed, **attrs)
    backward = define(f"{name}Grad(gradients: T, {saved}: T) -> (backprops: T)", T=allowed, **attrs).alike()
    forward.shape(unchanged)
    return forward, backward.vanishing(0)


# ---- Relu, Relu6, LeakyRelu -------------------------------------------------------------------------------------

RELU, RELU_GRAD = _pair("Relu", "features", _RELU_DTYPES)
RELU.small("relu")
RELU_GRAD.small("relu_grad")


@RELU.kernel
def relu_kernel(features: torch.Tensor) -> torch.Tensor:
    # Unsigned numbers are never negative, and torch cannot compare uint32 and uint64.
    return features.clone() if features.dtype in _WIDER else torch.relu(features)


@RELU_GRAD.kernel
def relu_grad_kernel(gradients: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    wider = _WIDER.get(features.dtype)
    if wider is not None:
        return torch.where(features.view(SIGNED_TWIN[features.dtype]) != 0, gradients.to(wider), 0).to(features.dtype)
    if features.is_floating_point():
        # A product with 0 or 1, as in TensorFlow: gradients that are not finite remain so, and a NaN feature counts as 0.
        return torch.ops.aten.leaky_relu_backward(gradients, features, 0.0, False)
    return torch.ops.aten.threshold_backward(gradients, features, 0)


RELU.in_place(0, torch.relu_).lower(unary_loop("relu"))


def relu_grad_(gradients: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.leaky_relu_backward.grad_input(gradients, features, 0.0, False, grad_input=gradients)


RELU_GRAD.in_place(0, relu_grad_).lower(alike_loop("relu_grad"))


@RELU.grad
def relu_gradient(op: Operation, g: Tensor) -> Tensor:
    return RELU_GRAD(g, op.outputs[0])


@RELU_GRAD.grad
def relu_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    return RELU_GRAD(g, op.inputs[1]), _zeros_like(op.inputs[1])


RELU6, RELU6_GRAD = _pair("Relu6", "features", REAL)


@RELU6.kernel
def relu6_kernel(features: torch.Tensor) -> torch.Tensor:
    wider = _WIDER.get(features.dtype)
    if wider is None:
        return torch.clamp(features, 0, 6)
    if features.dtype == torch.uint64:  # the upper half would be negative as signed numbers
        signed = features.view(torch.int64)
        return torch.where(signed < 0, 6, signed.clamp(0, 6)).to(torch.uint64)
    return features.to(wider).clamp(0, 6).to(features.dtype)


@RELU6_GRAD.kernel
def relu6_grad_kernel(gradients: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    wider = _WIDER.get(features.dtype)
    if wider is None:
        return gradients * ((features > 0) & (features < 6))
    values = features.to(wider)
    return torch.where((values > 0) & (values < 6), gradients.to(wider), 0).to(features.dtype)


RELU6.lower(unary_loop("relu6"))
RELU6_GRAD.lower(alike_loop("relu6_grad"))


@RELU6.grad
def relu6_gradient(op: Operation, g: Tensor) -> Tensor:
    return RELU6_GRAD(g, op.outputs[0])


@RELU6_GRAD.grad
def relu6_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    return RELU6_GRAD(g, op.inputs[1]), _zeros_like(op.inputs[1])


_LEAKY_DTYPES = one_of(*FLOATS, default=dtypes.float32)
LEAKY_RELU, LEAKY_RELU_GRAD = _pair("LeakyRelu", "features", _LEAKY_DTYPES, alpha=0.2)
LEAKY_RELU.small("leaky_relu", lambda op: [bits_of(op.attrs["alpha"])])
LEAKY_RELU_GRAD.small("leaky_relu_grad", lambda op: [bits_of(op.attrs["alpha"])])


def _rounded(number: float, dtype: torch.dtype) -> float:
    """Rounds the number to the tensor's 16-bit dtype. torch would multiply with more digits."""
    return float(torch.tensor(number, dtype=dtype)) if dtype.itemsize == 2 else number


@LEAKY_RELU.kernel
def leaky_relu_kernel(features: torch.Tensor, *, alpha: float) -> torch.Tensor:
    return F.leaky_relu(features, _rounded(alpha, features.dtype))


@LEAKY_RELU_GRAD.kernel
def leaky_relu_grad_kernel(gradients: torch.Tensor, features: torch.Tensor, *, alpha: float) -> torch.Tensor:
    return torch.where(features > 0, gradients, gradients * _rounded(alpha, features.dtype))


@LEAKY_RELU.lower
def leaky_relu_lower(build: Any, op: Operation, features: Any) -> Any:
    return build.binary("leaky_relu", features, build.scalar(op.attr("alpha")))


@LEAKY_RELU_GRAD.lower
def leaky_relu_grad_lower(build: Any, op: Operation, gradients: Any, features: Any) -> Any:
    if gradients.shape != features.shape:
        return None
    scaled = build.binary("mul", gradients, build.scalar(op.attr("alpha")))
    mask = build.binary("greater", features, build.scalar(0.0))
    return None if scaled is None or mask is None else build.select(mask, gradients, scaled)


@LEAKY_RELU.grad
def leaky_relu_gradient(op: Operation, g: Tensor) -> Tensor:
    return LEAKY_RELU_GRAD(g, op.inputs[0], alpha=op.attr("alpha"))


@LEAKY_RELU_GRAD.grad
def leaky_relu_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    x = op.inputs[1]
    return LEAKY_RELU_GRAD(g, x, alpha=op.attr("alpha")), _zeros_like(x)


# ---- Elu, Selu --------------------------------------------------------------------------------------------------

ELU, ELU_GRAD = _pair("Elu", "outputs", FLOATS)


@ELU.kernel
def elu_kernel(features: torch.Tensor) -> torch.Tensor:
    return F.elu(features)


@ELU_GRAD.kernel
def elu_grad_kernel(gradients: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
    return torch.where(outputs < 0, (outputs + 1) * gradients, gradients)


ELU.lower(unary_loop("elu"))
ELU_GRAD.lower(alike_loop("elu_grad"))


@ELU.grad
def elu_gradient(op: Operation, g: Tensor) -> Tensor:
    return ELU_GRAD(g, op.outputs[0])


@ELU_GRAD.grad
def elu_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    gradients, outputs = op.inputs
    negative = comparison.LESS(outputs, _number(0, outputs))
    return ELU_GRAD(g, outputs), _where(negative, arithmetic.multiply(g, gradients), _zeros_like(outputs))


SELU, SELU_GRAD = _pair("Selu", "outputs", FLOATS)
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


@SELU.kernel
def selu_kernel(features: torch.Tensor) -> torch.Tensor:
    return torch.where(features < 0, torch.expm1(features) * _SELU_SCALE_ALPHA, features * _SELU_SCALE)


@SELU_GRAD.kernel
def selu_grad_kernel(gradients: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
    return torch.where(outputs < 0, gradients * (outputs + _SELU_SCALE_ALPHA), gradients * _SELU_SCALE)


@SELU.lower
def selu_lower(build: Any, op: Operation, features: Any) -> Any:
    falling = build.binary("mul", build.unary("expm1", features), build.scalar(_SELU_SCALE_ALPHA))
    rising = build.binary("mul", features, build.scalar(_SELU_SCALE))
    return build.select(build.binary("less", features, build.scalar(0.0)), falling, rising)


@SELU_GRAD.lower
def selu_grad_lower(build: Any, op: Operation, gradients: Any, outputs: Any) -> Any:
    if gradients.shape != outputs.shape:
        return None
    falling = build.binary("mul", gradients, build.binary("add", outputs, build.scalar(_SELU_SCALE_ALPHA)))
    rising = build.binary("mul", gradients, build.scalar(_SELU_SCALE))
    return build.select(build.binary("less", outputs, build.scalar(0.0)), falling, rising)


@SELU.grad
def selu_gradient(op: Operation, g: Tensor) -> Tensor:
    return SELU_GRAD(g, op.outputs[0])


@SELU_GRAD.grad
def selu_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    gradients, outputs = op.inputs
    negative = comparison.LESS(outputs, _number(0, outputs))
    return SELU_GRAD(g, outputs), _where(negative, arithmetic.multiply(g, gradients), _zeros_like(outputs))


# ---- Softplus, Softsign -----------------------------------------------------------------------------------------

SOFTPLUS, SOFTPLUS_GRAD = _pair("Softplus", "features", FLOATS)


@SOFTPLUS.kernel
def softplus_kernel(features: torch.Tensor) -> torch.Tensor:
    # Accurate for every x. F.softplus switches to x above a threshold.
    return F.relu(features) + torch.log1p(torch.exp(-torch.abs(features)))


@SOFTPLUS_GRAD.kernel
def softplus_grad_kernel(gradients: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    return gradients * torch.sigmoid(features)


@SOFTPLUS.lower
def softplus_lower(build: Any, op: Operation, features: Any) -> Any:
    falling = build.unary("exp", build.unary("neg", build.unary("abs", features)))
    return build.binary("add", build.unary("relu", features), build.unary("log1p", falling))


@SOFTPLUS_GRAD.lower
def softplus_grad_lower(build: Any, op: Operation, gradients: Any, features: Any) -> Any:
    if gradients.shape != features.shape:
        return None
    return build.binary("mul", gradients, build.unary("sigmoid", features))


@SOFTPLUS.grad
def softplus_gradient(op: Operation, g: Tensor) -> Tensor:
    return SOFTPLUS_GRAD(g, op.inputs[0])


@SOFTPLUS_GRAD.grad
def softplus_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    # sigmoid' = sigmoid(x) * sigmoid(-x) = 1 / (e^-x + 2 + e^x)
    gradients, x = op.inputs
    spread = arithmetic.add(
        arithmetic.add(unary_functions.exp(unary_functions.negative(x)), _number(2, x)), unary_functions.exp(x)
    )
    return SOFTPLUS_GRAD(g, x), arithmetic.realdiv(arithmetic.multiply(g, gradients), spread)


SOFTSIGN, SOFTSIGN_GRAD = _pair("Softsign", "features", FLOATS)


@SOFTSIGN.kernel
def softsign_kernel(features: torch.Tensor) -> torch.Tensor:
    return features / (torch.abs(features) + 1)


@SOFTSIGN_GRAD.kernel
def softsign_grad_kernel(gradients: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    return gradients / torch.square(torch.abs(features) + 1)


@SOFTSIGN.grad
def softsign_gradient(op: Operation, g: Tensor) -> Tensor:
    return SOFTSIGN_GRAD(g, op.inputs[0])


# ---- public functions -------------------------------------------------------------------------------------------


@export("nn.relu")
@elementwise
def relu(features: Any, name: str | None = None) -> Tensor:
    """max(features, 0)."""
    return RELU(features, name=name)


@export("nn.relu6")
@elementwise
def relu6(features: Any, name: str | None = None) -> Tensor:
    """min(max(features, 0), 6)."""
    with name_scope(name, "Relu6", [features]) as scope:
        return RELU6(convert_to_tensor(features, name="features"), name=scope)


@export("nn.leaky_relu")
@elementwise
def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """features where positive, alpha * features elsewhere (alpha is 0.2 for None). Integers are converted to float32."""
    alpha = 0.2 if alpha is None else alpha
    with name_scope(name, "LeakyRelu", [features, alpha]) as scope:
        features = convert_to_tensor(features, name="features")
        if features.dtype.is_integer:
            features = casting.cast(features, dtypes.float32)
        return LEAKY_RELU(features, alpha=alpha, name=scope)


@export("nn.elu")
@elementwise
def elu(features: Any, name: str | None = None) -> Tensor:
    """features where positive, exp(features) - 1 elsewhere."""
    return ELU(features, name=name)


@export("nn.selu")
@elementwise
def selu(features: Any, name: str | None = None) -> Tensor:
    """The scaled exponential linear unit (Klambauer et al., 2017)."""
    return SELU(features, name=name)


@export("nn.softplus", "math.softplus")
@elementwise
def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(exp(features) + 1)."""
    return SOFTPLUS(features, name=name)


@export("nn.softsign", "math.softsign")
@elementwise
def softsign(features: Any, name: str | None = None) -> Tensor:
    """features / (abs(features) + 1)."""
    return SOFTSIGN(features, name=name)


@export(v1="nn.crelu")
def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """Concatenates relu(features) and relu(-features) along `axis` (Shang et al., 2016)."""
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        return relu(joining.concat([features, unary_functions.negative(features)], axis, name=scope))


@export(v2="nn.crelu")
def crelu_v2(features: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """Concatenates relu(features) and relu(-features) along `axis` (Shang et al., 2016)."""
    return crelu(features, name, axis)


@export("math.log_sigmoid", v1="log_sigmoid")
@elementwise
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(sigmoid(x)), accurate even if the sigmoid underflows."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return unary_functions.negative(softplus(unary_functions.negative(x)), name=scope)


@export("nn.swish", "nn.silu")
@elementwise
def swish(features: Any, beta: Any = 1.0) -> Tensor:
    """features * sigmoid(beta * features) (Ramachandran et al., 2017)."""
    with name_scope(None, "swish", [features]):
        features = convert_to_tensor(features, name="features")
        beta = casting.cast(convert_to_tensor(beta, name="beta"), features.dtype.base_dtype)
        product = arithmetic.multiply(features, unary_functions.SIGMOID(arithmetic.multiply(beta, features)))
    return shaping.identity(product, name="IdentityN")  # TensorFlow's name for a result with a custom gradient


@export(v2="nn.gelu")
def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """x * P(X <= x) for a standard normal X (Hendrycks and Gimpel, 2016); `approximate` uses tanh."""
    with name_scope(name, "Gelu", [features]):
        x = convert_to_tensor(features, name="features")
        if not x.dtype.is_floating:
            raise ValueError(
                f"`features.dtype` must be a floating point tensor. Received: features.dtype={x.dtype.name}."
            )
        half = _number(0.5, x) * x
        if approximate:
            cube = arithmetic.power(x, _number(3, x))
            inner = _number(scalars.sqrt(2 / scalars.pi), x) * (x + _number(_single(0.044715), x) * cube)
            return half * (_number(1, x) + unary_functions.tanh(inner))
        # Uses erfc, which is accurate for very negative x.
        return half * special.ERFC(unary_functions.negative(x) * _number(_single(scalars.sqrt(0.5)), x))


def _single(number: float) -> float:
    """Rounds the number to single precision, as TensorFlow's constants are here even for float64."""
    return float(np.float32(number))
