"""Square matrices: their shape, and results for those that may be singular."""

from __future__ import annotations

import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape, merge_dims
from stoker._src.ops.support.device_checks import require


def square(shape: Shape) -> Shape:
    """A batch of square matrices. Raises InvalidArgumentError for anything else."""
    if shape.at_least(2).dims is None:
        return shape
    size = merge_dims(shape[-2], shape[-1], shape)
    return shape[:-2].concat(Shape((size, size)))


def check_square(x: torch.Tensor) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InvalidArgumentError(None, None, f"Input matrix must be square, got shape {list(x.shape)}.")


def wide(x: torch.Tensor) -> torch.Tensor:
    """Half precision is computed in single precision, because LAPACK has no half kernels."""
    return x.float() if x.dtype == torch.float16 else x


def of_invertible(x: torch.Tensor, info: torch.Tensor, result: torch.Tensor, refusal: str) -> torch.Tensor:
    """The result for square matrices, with NaN for matrices that contain NaN.

    Raises:
        InvalidArgumentError: a matrix is singular, or starts with NaN, which TensorFlow treats as a zero pivot.
    """
    holes = torch.isnan(x).any(-1).any(-1)
    if x.is_cuda:
        good = ((info == 0) | holes) & ~torch.isnan(x[..., 0, 0])
        require(good, lambda: InvalidArgumentError(None, None, refusal))
        return torch.where(holes[..., None, None], torch.nan, result)
    if not bool(holes.any()):
        if bool((info != 0).any()):
            raise InvalidArgumentError(None, None, refusal)
        return result
    if bool(torch.isnan(x[..., 0, 0]).any()) or bool(((info != 0) & ~holes).any()):
        raise InvalidArgumentError(None, None, refusal)
    return torch.where(holes[..., None, None], torch.nan, result)
