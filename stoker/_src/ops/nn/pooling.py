"""Pooling ops: MaxPool, AvgPool, their 3-D forms, MaxPoolWithArgmax, and their gradient ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, REAL, DType
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import INT32S, INTS, STRING, OpDefinition, define, one_of
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.nn import pool_kernels
from stoker._src.ops.nn.activations import RELU_GRAD
from stoker._src.ops.nn.windows import channel_axis, explicit_pairs, image_shape, known_or_rank, spatial, window_dim
from stoker._src.ops.support.values import torch_dtype

_SAME_VALID = STRING(allowed=("SAME", "VALID"))
_WITH_EXPLICIT = STRING(allowed=("SAME", "VALID", "EXPLICIT"))
_FORMAT_2D = STRING("NHWC", allowed=("NHWC", "NCHW"))
_FORMAT_2D_VECT = STRING("NHWC", allowed=("NHWC", "NCHW", "NCHW_VECT_C"))
_FORMAT_3D = STRING("NDHWC", allowed=("NDHWC", "NCDHW"))
_WINDOW_2D: dict[str, Any] = {"ksize": INT32S(minimum=4), "strides": INT32S(minimum=4)}
_WINDOW_3D: dict[str, Any] = {"ksize": INT32S(minimum=5), "strides": INT32S(minimum=5)}
_POOLED = one_of(
    *FLOATS,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.int16,
    dtypes.int8,
    dtypes.uint16,
    dtypes.qint8,
    default=dtypes.float32,
)
_REAL_DEFAULT = one_of(*REAL, default=dtypes.float32)


def _pooled_shape(
    input: Shape,
    ksize: Any,
    strides: Any,
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    over_channels: bool = False,
) -> Shape:
    input = input.of_rank(len(data_format))
    for label, values in (("ksize", ksize), ("stride", strides)):
        if len(values) != len(data_format):
            raise InvalidArgumentError(
                None,
                None,
                f"Pooling requires the {label} attribute to contain {len(data_format)} values, but got: {len(values)}",
            )
    if min(strides) < 1:
        raise InvalidArgumentError(None, None, f"Stride must be > 0, but got {list(strides)}")
    explicit = explicit_pairs(explicit_paddings, padding, data_format)
    sizes = [
        window_dim(size, int(k), int(s), 1, padding, explicit[i] if explicit else (0, 0))
        for i, (size, k, s) in enumerate(
            zip(spatial(input.dims or (), data_format), spatial(ksize, data_format), spatial(strides, data_format))
        )
    ]
    axis = channel_axis(data_format)
    channels = input[axis]
    if channels is not None and (ksize[axis] != 1 or over_channels):
        channels = window_dim(channels, int(ksize[axis]), int(strides[axis]), 1, padding, (0, 0))
    return image_shape(input[0], sizes, channels, data_format)


def _window_attrs(op: Operation) -> dict[str, Any]:
    names = ("ksize", "strides", "padding", "explicit_paddings", "data_format")
    return {name: op.attr(name) for name in names if name in op.definition.attrs}


def _zeros(x: Tensor) -> Tensor:
    return shaping.ZEROS_LIKE(x)


def _like_images(x: Shape, *_: Shape) -> Shape:
    return x.of_rank(4)


def _like_volumes(x: Shape, *_: Shape) -> Shape:
    return x.of_rank(5)


# ---- MaxPool ----------------------------------------------------------------------------------------------------

MAX_POOL = define(
    "MaxPool(input: rank=4 T) -> (output: T)",
    T=_POOLED,
    **_WINDOW_2D,
    padding=_WITH_EXPLICIT,
    explicit_paddings=INTS(()),
    data_format=_FORMAT_2D_VECT,
)
MAX_POOL_GRAD = define(
    "MaxPoolGrad(orig_input: rank=4 T, orig_output: T, grad: T) -> (output: T)",
    **_WINDOW_2D,
    padding=_WITH_EXPLICIT,
    explicit_paddings=INTS(()),
    data_format=_FORMAT_2D,
    T=_REAL_DEFAULT,
)
MAX_POOL_GRAD.shape(_like_images)
MAX_POOL_GRAD_GRAD = define(
    "MaxPoolGradGrad(orig_input: T, orig_output: T, grad: T) -> (output: T)",
    **_WINDOW_2D,
    padding=_SAME_VALID,
    data_format=_FORMAT_2D,
    T=REAL,
)


@MAX_POOL.kernel
def max_pool_kernel(
    input: torch.Tensor,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
) -> torch.Tensor:
    return pool_kernels.max_pool(input, ksize, strides, padding, explicit_paddings, _plain_format(data_format))


def _plain_format(data_format: str) -> str:
    if data_format == "NCHW_VECT_C":
        raise NotImplementedError("pooling in the NCHW_VECT_C layout of quantized GPU kernels is not implemented")
    return data_format


@MAX_POOL.shape
def max_pool_shape(
    input: Shape,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
) -> Shape:
    return _pooled_shape(input, ksize, strides, padding, explicit_paddings, _plain_format(data_format), True)


@RELU_GRAD.exchange(MAX_POOL_GRAD)
def zeroed_before_it_is_spread(op: Operation, spread: Operation) -> tuple[int, int] | None:
    """Zeroes a window's gradient before it is scattered: it is zeroed at the position of the maximum if it is zeroed with the maximum.

    There are far fewer maxima than pixels, so this saves a pass over the image.
    """
    image, maxima = spread.inputs[:2]
    pool = maxima.op
    same = pool.definition is MAX_POOL and all(pool.attr(name) == spread.attr(name) for name in _POOLING)
    return (2, 1) if same and pool.inputs[0] is image and op.inputs[1] is image else None


_POOLING = ("ksize", "strides", "padding", "explicit_paddings", "data_format")


@MAX_POOL_GRAD.kernel
def max_pool_grad_kernel(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    grad: torch.Tensor,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
) -> torch.Tensor:
    return pool_kernels.max_pool_grad(
        orig_input, orig_output, grad, ksize, strides, padding, explicit_paddings, data_format
    )


@MAX_POOL_GRAD_GRAD.kernel
def max_pool_grad_grad_kernel(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    grad: torch.Tensor,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
) -> torch.Tensor:
    return pool_kernels.max_pool_grad_grad(orig_input, orig_output, grad, ksize, strides, padding, (), data_format)


@MAX_POOL_GRAD_GRAD.shape
def max_pool_grad_grad_shape(
    orig_input: Shape, orig_output: Shape, grad: Shape, *, ksize: Any, strides: Any, padding: str, data_format: str
) -> Shape:
    orig_input.merge(grad)
    return _pooled_shape(orig_input, ksize, strides, padding, (), data_format).merge(orig_output)


@MAX_POOL.grad
def max_pool_gradient(op: Operation, g: Tensor) -> Tensor:
    return MAX_POOL_GRAD(op.inputs[0], op.outputs[0], g, **_window_attrs(op))


def _without_explicit(op: Operation) -> dict[str, Any]:
    attrs = _window_attrs(op)
    if attrs.pop("explicit_paddings", ()):
        raise NotImplementedError("the second derivative of max pooling with explicit padding is not implemented")
    return attrs


@MAX_POOL_GRAD.grad
def max_pool_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, y, _ = op.inputs
    return _zeros(x), _zeros(y), MAX_POOL_GRAD_GRAD(x, y, g, **_without_explicit(op))


@MAX_POOL_GRAD_GRAD.grad
def max_pool_grad_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, y, _ = op.inputs
    return _zeros(x), _zeros(y), MAX_POOL_GRAD(x, y, g, **_window_attrs(op))


# ---- MaxPoolV2: window sizes are inputs -------------------------------------------------------------------------

MAX_POOL_V2 = define(
    "MaxPoolV2(input: rank=4 T, ksize: vector* host int32, strides: vector* host int32) -> (output: T)",
    T=_POOLED,
    padding=_SAME_VALID,
    data_format=_FORMAT_2D_VECT,
)
MAX_POOL_GRAD_V2 = define(
    "MaxPoolGradV2(orig_input: rank=4 T, orig_output: T, grad: T, ksize: host int32, strides: host int32) -> (output: T)",
    padding=_SAME_VALID,
    data_format=_FORMAT_2D,
    T=_REAL_DEFAULT,
)
MAX_POOL_GRAD_V2.shape(_like_images)
MAX_POOL_GRAD_GRAD_V2 = define(
    "MaxPoolGradGradV2(orig_input: rank=4 T, orig_output: T, grad: T, ksize: vector* host int32, strides: vector* host int32) -> (output: T)",
    padding=_SAME_VALID,
    data_format=_FORMAT_2D,
    T=REAL,
)


@MAX_POOL_V2.kernel
def max_pool_v2_kernel(
    input: torch.Tensor, ksize: list[int], strides: list[int], *, padding: str, data_format: str
) -> torch.Tensor:
    data_format = _plain_format(data_format)
    return pool_kernels.max_pool(input, *_window_inputs(ksize, strides, data_format), padding, (), data_format)


def _window_inputs(ksize: Any, strides: Any, data_format: str) -> tuple[list[int], list[int]]:
    """Window sizes and strides as vectors. Without a window over channels, their stride does not matter."""
    sizes, steps = np.ravel(ksize).tolist(), np.ravel(strides).tolist()
    axis = channel_axis(data_format)
    if len(sizes) == len(steps) == len(data_format) and sizes[axis] == 1:
        steps[axis] = 1
    return sizes, steps


@MAX_POOL_V2.shape(values=["ksize", "strides"])
def max_pool_v2_shape(
    input: Shape, ksize: np.ndarray | None, strides: np.ndarray | None, *, padding: str, data_format: str
) -> Shape:
    if ksize is None or strides is None:
        return Shape((input.of_rank(4)[0], None, None, None))
    return _pooled_shape(input, ksize.tolist(), strides.tolist(), padding, (), _plain_format(data_format))


@MAX_POOL_GRAD_V2.kernel
def max_pool_grad_v2_kernel(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    grad: torch.Tensor,
    ksize: list[int],
    strides: list[int],
    *,
    padding: str,
    data_format: str,
) -> torch.Tensor:
    windows = _window_inputs(ksize, strides, data_format)
    return pool_kernels.max_pool_grad(orig_input, orig_output, grad, *windows, padding, (), data_format)


@MAX_POOL_GRAD_GRAD_V2.kernel
def max_pool_grad_grad_v2_kernel(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    grad: torch.Tensor,
    ksize: list[int],
    strides: list[int],
    *,
    padding: str,
    data_format: str,
) -> torch.Tensor:
    windows = _window_inputs(ksize, strides, data_format)
    return pool_kernels.max_pool_grad_grad(orig_input, orig_output, grad, *windows, padding, (), data_format)


@MAX_POOL_GRAD_GRAD_V2.shape(values=["ksize", "strides"])
def max_pool_grad_grad_v2_shape(
    orig_input: Shape, orig_output: Shape, grad: Shape, ksize: Any, strides: Any, *, padding: str, data_format: str
) -> Shape:
    orig_input.merge(grad)
    if ksize is None or strides is None:
        return orig_output.of_rank(4)
    return _pooled_shape(orig_input, ksize.tolist(), strides.tolist(), padding, (), data_format).merge(orig_output)


@MAX_POOL_V2.grad
def max_pool_v2_gradient(op: Operation, g: Tensor) -> tuple[Tensor, None, None]:
    x, ksize, strides = op.inputs
    return MAX_POOL_GRAD_V2(x, op.outputs[0], g, ksize, strides, **_window_attrs(op)), None, None


@MAX_POOL_GRAD_V2.grad
def max_pool_grad_v2_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
    x, y, _, ksize, strides = op.inputs
    return _zeros(x), _zeros(y), MAX_POOL_GRAD_GRAD_V2(x, y, g, ksize, strides, **_window_attrs(op)), None, None


# ---- MaxPoolWithArgmax ------------------------------------------------------------------------------------------

_ARGMAX_ATTRS: dict[str, Any] = {**_WINDOW_2D, "padding": _SAME_VALID, "include_batch_in_index": False}
MAX_POOL_WITH_ARGMAX = define(
    "MaxPoolWithArgmax(input: rank=4 T) -> (output: T, argmax: Targmax)",
    Targmax=one_of(*INDEX, default=dtypes.int64),
    T=REAL,
    **_ARGMAX_ATTRS,
)
MAX_POOL_GRAD_WITH_ARGMAX = define(
    "MaxPoolGradWithArgmax(input: rank=4 T, grad: T, argmax: Targmax) -> (output: T)",
    Targmax=INDEX,
    T=REAL,
    **_ARGMAX_ATTRS,
)
MAX_POOL_GRAD_WITH_ARGMAX.shape(_like_images)
MAX_POOL_GRAD_GRAD_WITH_ARGMAX = define(
    "MaxPoolGradGradWithArgmax(input: T, grad: T, argmax: Targmax) -> (output: T)",
    Targmax=INDEX,
    T=REAL,
    **_ARGMAX_ATTRS,
)


@MAX_POOL_WITH_ARGMAX.kernel
def max_pool_with_argmax_kernel(
    input: torch.Tensor,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    include_batch_in_index: bool,
    Targmax: DType,
) -> tuple[torch.Tensor, torch.Tensor]:
    p = pool_kernels.plan_for(input.shape, ksize, strides, padding, (), "NHWC")
    if ksize[3] != 1:
        raise UnimplementedError(None, None, f"MaxPoolWithArgmax does not pool across depth: ksize is {list(ksize)}")
    if not input.numel():
        raise InvalidArgumentError(None, None, f"tensor_in must not be empty: {Shape(input.shape)}")
    values, positions = pool_kernels.argmax_positions(input, p, include_batch_in_index)
    return values, positions.to(torch_dtype(Targmax)).contiguous()


@MAX_POOL_WITH_ARGMAX.shape
def max_pool_with_argmax_shape(
    input: Shape, *, ksize: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> tuple[Shape, Shape]:
    if len(ksize) == 4 and min(ksize) < 1:
        raise InvalidArgumentError(None, None, f"ksize must be positive, got: {list(ksize)}")
    shape = _pooled_shape(input, ksize, strides, padding, (), "NHWC", True)
    return shape, shape


@MAX_POOL_GRAD_WITH_ARGMAX.kernel
def max_pool_grad_with_argmax_kernel(
    input: torch.Tensor,
    grad: torch.Tensor,
    argmax: torch.Tensor,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    include_batch_in_index: bool,
) -> torch.Tensor:
    pool_kernels.plan_for(input.shape, ksize, strides, padding, (), "NHWC")
    if grad.shape != argmax.shape:
        raise InvalidArgumentError(
            None, None, f"Expected grad shape to be {list(argmax.shape)} as argmax's, but got {list(grad.shape)}"
        )
    if grad.ndim != 4 or (grad.shape[0], grad.shape[3]) != (input.shape[0], input.shape[3]):
        raise InvalidArgumentError(
            None, None, f"grad of shape {list(grad.shape)} does not fit an input of shape {list(input.shape)}"
        )
    positions = pool_kernels.flat_positions(argmax, input, include_batch_in_index)
    return pool_kernels.scattered(input, positions, grad)


@MAX_POOL_GRAD_GRAD_WITH_ARGMAX.kernel
def max_pool_grad_grad_with_argmax_kernel(
    input: torch.Tensor, grad: torch.Tensor, argmax: torch.Tensor, *, include_batch_in_index: bool
) -> torch.Tensor:
    positions = pool_kernels.flat_positions(argmax, input, include_batch_in_index)
    return grad.reshape(-1)[positions].reshape(argmax.shape)


@MAX_POOL_GRAD_GRAD_WITH_ARGMAX.shape
def max_pool_grad_grad_with_argmax_shape(
    input: Shape, grad: Shape, argmax: Shape, *, ksize: Any, strides: Any, padding: str
) -> Shape:
    input.merge(grad)
    return _pooled_shape(input, ksize, strides, padding, (), "NHWC").merge(argmax)


def _argmax_attrs(op: Operation) -> dict[str, Any]:
    return {name: op.attr(name) for name in ("ksize", "strides", "padding", "include_batch_in_index")}


@MAX_POOL_WITH_ARGMAX.grad
def max_pool_with_argmax_gradient(op: Operation, g: Tensor, _: Any) -> Tensor:
    return MAX_POOL_GRAD_WITH_ARGMAX(op.inputs[0], g, op.outputs[1], **_argmax_attrs(op))


# ---- MaxPool3D --------------------------------------------------------------------------------------------------

_POOL_3D: dict[str, Any] = {**_WINDOW_3D, "padding": _SAME_VALID, "data_format": _FORMAT_3D}
_FLOATS_3D = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
# TensorFlow allows three floating point types here. float64 is supported as well.
_WIDE_3D = (*_FLOATS_3D, dtypes.float64)
MAX_POOL_3D = define("MaxPool3D(input: rank=5 T) -> (output: T)", T=_WIDE_3D, **_POOL_3D)
MAX_POOL_3D_GRAD = define(
    "MaxPool3DGrad(orig_input: rank=5 TInput, orig_output: TInput, grad: T) -> (output: T)",
    T=one_of(*_WIDE_3D, default=dtypes.float32),
    TInput=one_of(*_WIDE_3D, default=dtypes.float32),
    **_POOL_3D,
)
MAX_POOL_3D_GRAD.shape(_like_volumes)
MAX_POOL_3D_GRAD_GRAD = define(
    "MaxPool3DGradGrad(orig_input: rank=5 T, orig_output: T, grad: T) -> (output: T)", T=REAL, **_POOL_3D
)


@MAX_POOL_3D.kernel
def max_pool_3d_kernel(
    input: torch.Tensor, *, ksize: tuple[int, ...], strides: tuple[int, ...], padding: str, data_format: str
) -> torch.Tensor:
    return pool_kernels.max_pool(input, ksize, strides, padding, (), data_format)


def _shape_3d(input: Shape, *, ksize: Any, strides: Any, padding: str, data_format: str) -> Shape:
    return _pooled_shape(input, ksize, strides, padding, (), data_format)


MAX_POOL_3D.shape(_shape_3d)


@MAX_POOL_3D_GRAD.kernel
def max_pool_3d_grad_kernel(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    grad: torch.Tensor,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
) -> torch.Tensor:
    return pool_kernels.max_pool_3d_grad(orig_input, orig_output, grad, ksize, strides, padding, data_format)


@MAX_POOL_3D_GRAD_GRAD.kernel
def max_pool_3d_grad_grad_kernel(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    grad: torch.Tensor,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
) -> torch.Tensor:
    return pool_kernels.max_pool_grad_grad(orig_input, orig_output, grad, ksize, strides, padding, (), data_format)


MAX_POOL_3D_GRAD_GRAD.shape(max_pool_grad_grad_shape)


@MAX_POOL_3D.grad
def max_pool_3d_gradient(op: Operation, g: Tensor) -> Tensor:
    return MAX_POOL_3D_GRAD(op.inputs[0], op.outputs[0], g, **_window_attrs(op))


@MAX_POOL_3D_GRAD.grad
def max_pool_3d_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, y, _ = op.inputs
    return _zeros(x), _zeros(y), MAX_POOL_3D_GRAD_GRAD(x, y, g, **_window_attrs(op))


@MAX_POOL_3D_GRAD_GRAD.grad
def max_pool_3d_grad_grad_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, y, _ = op.inputs
    return _zeros(x), _zeros(y), MAX_POOL_3D_GRAD(x, y, g, **_window_attrs(op))


# ---- AvgPool, AvgPool3D -----------------------------------------------------------------------------------------

_POOL_2D: dict[str, Any] = {**_WINDOW_2D, "padding": _SAME_VALID, "data_format": _FORMAT_2D}
AVG_POOL = define("AvgPool(value: rank=4 T) -> (output: T)", **_POOL_2D, T=FLOATS)
AVG_POOL_GRAD = define("AvgPoolGrad(orig_input_shape: host int32, grad: T) -> (output: T)", **_POOL_2D, T=FLOATS)
AVG_POOL_3D = define("AvgPool3D(input: rank=5 T) -> (output: T)", **_POOL_3D, T=FLOATS)
AVG_POOL_3D_GRAD = define("AvgPool3DGrad(orig_input_shape: host int32, grad: T) -> (output: T)", **_POOL_3D, T=FLOATS)


def _register_average(forward: OpDefinition, backward: OpDefinition) -> None:
    """Average pooling is linear, so each of the two ops is the other's gradient."""

    @forward.kernel
    def avg_pool_kernel(
        value: torch.Tensor, *, ksize: tuple[int, ...], strides: tuple[int, ...], padding: str, data_format: str
    ) -> torch.Tensor:
        return pool_kernels.avg_pool(value, ksize, strides, padding, data_format)

    forward.shape(_shape_3d)

    @backward.kernel
    def avg_pool_grad_kernel(
        orig_input_shape: list[int],
        grad: torch.Tensor,
        *,
        ksize: tuple[int, ...],
        strides: tuple[int, ...],
        padding: str,
        data_format: str,
    ) -> torch.Tensor:
        return pool_kernels.avg_pool_grad(orig_input_shape, grad, ksize, strides, padding, data_format)

    @backward.shape(as_shapes=["orig_input_shape"])
    def avg_pool_grad_shape(orig_input_shape: Shape, grad: Shape, *, data_format: str) -> Shape:
        return known_or_rank(orig_input_shape, data_format).of_rank(len(data_format))

    @forward.grad
    def avg_pool_gradient(op: Operation, g: Tensor) -> Tensor:
        return backward(shaping.shape(op.inputs[0]), g, **_window_attrs(op))

    @backward.grad
    def avg_pool_grad_gradient(op: Operation, g: Tensor) -> tuple[None, Tensor]:
        return None, forward(g, **_window_attrs(op))


_register_average(AVG_POOL, AVG_POOL_GRAD)
_register_average(AVG_POOL_3D, AVG_POOL_3D_GRAD)
