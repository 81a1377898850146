"""Sobol sequences: low-discrepancy points in a unit cube."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.values import torch_dtype

_LONGEST = 2**30  # the direction numbers distinguish only this many points

SOBOL_SAMPLE = define(
    "SobolSample(dim: scalar host int32, num_results: scalar host int32, skip: scalar host int32) -> (samples: dtype)",
    dtype=one_of(dtypes.float32, dtypes.float64, default=dtypes.float32),
)


@SOBOL_SAMPLE.kernel
def sobol_sample_kernel(dim: int, num_results: int, skip: int, *, dtype: DType) -> torch.Tensor:
    for bad, message in (
        (dim < 1, "dim must be at least one"),
        (num_results < 1, "num_results must be at least one"),
        (skip < 0, "skip must be non-negative"),
        (dim > torch.quasirandom.SobolEngine.MAXDIM, f"dim must be at most {torch.quasirandom.SobolEngine.MAXDIM}"),
        (num_results + skip >= _LONGEST, f"num_results+skip must be less than {_LONGEST}"),
    ):
        if bad:
            raise InvalidArgumentError(None, None, f"{message}, got dim {dim}, num_results {num_results}, skip {skip}")
    allocatable([num_results, dim], 8)
    engine = torch.quasirandom.SobolEngine(dim)
    engine.fast_forward(skip + 1)  # skips the first point, the origin
    return engine.draw(num_results, dtype=torch_dtype(dtype))


@SOBOL_SAMPLE.shape(values=["dim", "num_results"])
def sobol_sample_shape(dim: Any, num_results: Any, skip: Shape) -> Shape:
    sizes = [None if each is None else int(each) for each in (num_results, dim)]
    return Shape(size if size is None or size > 0 else None for size in sizes)


@export("math.sobol_sample")
def sobol_sample(
    dim: Any, num_results: Any, skip: Any = 0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """`num_results` points of the Sobol sequence in the `dim`-dimensional unit cube, after the first `skip`."""
    with name_scope(name, "sobol", [dim, num_results, skip]):
        return SOBOL_SAMPLE(dim, num_results, skip, dtype=dtype)
