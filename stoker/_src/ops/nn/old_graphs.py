"""Ops that older or rewritten graphs contain and today's functions do not make."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base.dtypes import FLOATS
from stoker._src.base.errors import AbortedError, InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import ANY, INT32S, PASSES, SHAPE, STATEFUL, STRING, TYPE, define
from stoker._src.ops.array import constants, pads
from stoker._src.ops.nn import conv

# ---- placeholders and references --------------------------------------------------------------------------------

PLACEHOLDER_V2 = define("PlaceholderV2() -> (output: dtype)", STATEFUL, dtype=TYPE, shape=SHAPE)
PLACEHOLDER_V2.kernel(constants.placeholder_kernel)
PLACEHOLDER_V2.shape(constants.placeholder_shape)

REF_IDENTITY = define("RefIdentity(input: Ref(T)) -> (output: Ref(T))", PASSES, T=ANY)
REF_IDENTITY.kernel(lambda input: input)
REF_IDENTITY.shape(lambda input: input)
REF_IDENTITY.grad(lambda op, g: g)

ABORT = define("Abort() -> ()", STATEFUL, error_msg="", exit_without_error=False)


@ABORT.kernel
def abort_kernel(*, error_msg: str, exit_without_error: bool) -> None:
    """TensorFlow ends the process; here the run ends, with an error unless the op asks for none."""
    if not exit_without_error:
        raise AbortedError(None, None, f"Abort_op intentional failure; {error_msg}")


# ---- a convolution of a padded input -----------------------------------------------------------------------------

FUSED_PAD_CONV2D = define(
    "FusedPadConv2D(input: rank=4 T, paddings: matrix host int32, filter: rank=4 T) -> (output: T)",
    T=FLOATS,
    mode=STRING(allowed=("REFLECT", "SYMMETRIC")),
    strides=INT32S,
    padding=STRING(allowed=("SAME", "VALID")),
)
_PLAIN: dict[str, Any] = {"explicit_paddings": (), "data_format": "NHWC", "dilations": (1, 1, 1, 1)}


@FUSED_PAD_CONV2D.kernel
def fused_pad_conv2d_kernel(
    input: torch.Tensor, paddings: Any, filter: torch.Tensor, *, mode: str, strides: Any, padding: str
) -> torch.Tensor:
    if input.numel() == 0 or filter.shape[-1] == 0:
        raise InvalidArgumentError(
            None,
            None,
            f"Input and output tensor can't be empty: input {list(input.shape)}, filter {list(filter.shape)}",
        )
    padded = pads.mirror_pad_kernel(input, paddings, mode=mode)
    return conv.conv2d_kernel(padded, filter, strides=strides, padding=padding, **_PLAIN)


@FUSED_PAD_CONV2D.shape(values=["paddings"])
def fused_pad_conv2d_shape(input: Shape, paddings: Any, filter: Shape, *, strides: Any, padding: str) -> Shape:
    padded = pads.mirror_pad_shape(input.of_rank(4), paddings)
    return conv.conv2d_shape(padded, filter, strides=strides, padding=padding, **_PLAIN)  # type: ignore[call-arg]
