"""What cells that create their variables with `tf.get_variable` are made of: linear maps and normalized activations."""

from __future__ import annotations

from typing import Any

from stoker._src.base import nest
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import unary_functions
from stoker._src.ops.nn import bias as biases
from stoker._src.ops.nn import moments
from stoker._src.ops.variables import initializers, variable_scope

_SMALLEST_VARIANCE = 1e-12


def width(x: Any) -> int:
    """The size of the last dimension.

    Raises:
        ValueError: it is unknown.
    """
    shape = convert_to_tensor(x).static_shape
    size = shape.dims[-1] if shape.dims else None
    if size is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {x.shape}")
    return size


def linear(
    args: Any,
    output_size: int,
    use_bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Tensor:
    """[args] kernel + bias. The variables `kernel` and `bias` are in the current variable scope.

    Raises:
        ValueError: there are no arguments, one is not a matrix, or its second size is unknown.
    """
    flat = [convert_to_tensor(each) for each in nest.flatten(args)]
    if not flat:
        raise ValueError("`args` must be specified")
    for each in flat:
        if each.static_shape.rank not in (None, 2):
            raise ValueError(f"linear is expecting 2D arguments: {[each.shape for each in flat]}")
    kind = flat[0].dtype.base_dtype
    size = sum(width(each) for each in flat)
    kernel = variable_scope.get_variable("kernel", [size, output_size], dtype=kind, initializer=kernel_initializer)
    whole = flat[0] if len(flat) == 1 else joining.concat(flat, 1)
    product = matrix_products.matmul(whole, kernel)
    if not use_bias:
        return product
    initializer = initializers.Constant(0.0, dtype=kind) if bias_initializer is None else bias_initializer
    return biases.bias_add(
        product, variable_scope.get_variable("bias", [output_size], dtype=kind, initializer=initializer)
    )


def layer_normalized(x: Tensor, scope: str, gain: float, shift: float) -> Tensor:
    """Layer normalization (Ba et al., 2016) with the variables `gamma` and `beta` of a scope."""
    kind, size = x.dtype.base_dtype, width(x)
    with variable_scope.variable_scope(scope):
        gamma = variable_scope.get_variable(
            "gamma", [size], dtype=kind, initializer=initializers.Constant(gain, dtype=kind)
        )
        beta = variable_scope.get_variable(
            "beta", [size], dtype=kind, initializer=initializers.Constant(shift, dtype=kind)
        )
    mean, variance = moments.moments(x, [1], keepdims=True)
    return (x - mean) * unary_functions.rsqrt(variance + _SMALLEST_VARIANCE) * gamma + beta
