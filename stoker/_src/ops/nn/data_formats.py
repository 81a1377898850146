"""Conversion of axes and vectors between image layouts (NHWC, NCHW, ...)."""

from __future__ import annotations

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import define, one_of, unchanged

_NUMBERS = one_of(*INDEX, default=dtypes.int32)

DATA_FORMAT_DIM_MAP = define("DataFormatDimMap(x: T) -> (y: T)", T=_NUMBERS, src_format="NHWC", dst_format="NCHW")
DATA_FORMAT_DIM_MAP.shape(unchanged)
DATA_FORMAT_VEC_PERMUTE = define(
    "DataFormatVecPermute(x: T) -> (y: T)", T=_NUMBERS, src_format="NHWC", dst_format="NCHW"
)


def _places(src: str, dst: str) -> list[int]:
    """The position in `dst` of each letter of `src`."""
    for what, letters in (("Source", src), ("Destination", dst)):
        if len(letters) not in (4, 5):
            short = "src" if what == "Source" else "dst"
            raise InvalidArgumentError(
                None, None, f"{what} format must be of length 4 or 5, received {short}_format = {letters}"
            )
    if sorted(src) != sorted(dst):
        raise InvalidArgumentError(
            None, None, f"Destination and source format must determine a permutation, got {src} and {dst}"
        )
    return [dst.index(letter) for letter in src]


@DATA_FORMAT_DIM_MAP.kernel
def data_format_dim_map_kernel(x: torch.Tensor, *, src_format: str, dst_format: str) -> torch.Tensor:
    """Converts dimension numbers (negative ones count from the end) to the other layout."""
    places = torch.tensor(_places(src_format, dst_format), dtype=x.dtype, device=x.device)
    return places[torch.remainder(x, len(src_format)).to(torch.int64)]


@DATA_FORMAT_VEC_PERMUTE.kernel
def data_format_vec_permute_kernel(x: torch.Tensor, *, src_format: str, dst_format: str) -> torch.Tensor:
    """Permutes one number (or pair) per dimension, or per spatial dimension, to the other layout."""
    _places(src_format, dst_format)
    if x.ndim not in (1, 2):
        raise InvalidArgumentError(None, None, f"input must be a vector or 2D tensor, but got shape {Shape(x.shape)}")
    full = len(src_format)
    spatial = [letter for letter in dst_format if letter not in "NC"]
    if x.shape[0] == len(spatial):
        order = [[letter for letter in src_format if letter not in "NC"].index(letter) for letter in spatial]
    elif x.shape[0] == full:
        order = [src_format.index(letter) for letter in dst_format]
    else:
        raise InvalidArgumentError(
            None,
            None,
            f"{x.ndim}D input must be of size {len(spatial)} or {full}, but got shape {Shape(x.shape)}",
        )
    if x.ndim == 2 and x.shape[1] != 2:
        raise InvalidArgumentError(
            None, None, f"Second dimension of 2D input must be of size 2, but got shape {Shape(x.shape)}"
        )
    return x[torch.tensor(order, device=x.device)]


@DATA_FORMAT_VEC_PERMUTE.shape
def data_format_vec_permute_shape(x: Shape) -> Shape:
    return x.at_least(1).at_most(2)
