"""SparseTensors and RaggedTensors out of the parts that parsing ops give."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any


def _module(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise NotImplementedError(f"This needs {what}, which is not part of this version.") from None


def sparse_tensors(indices: Sequence[Any], values: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    """A SparseTensor of each triple."""
    if not indices:
        return []
    kind = _module("stoker._src.graph.sparse_tensor", "SparseTensor").SparseTensor
    return [kind(*parts) for parts in zip(indices, values, shapes)]


def sparse_merge(ids: Any, values: Any, sizes: Any, *, already_sorted: bool) -> Any:
    return _module("stoker._src.ops.sparse", "sparse_merge").sparse_merge(
        ids, values, sizes, already_sorted=already_sorted
    )


def ragged_feature(key: Any, feature: Any, found: Mapping[Any, Any], *, batched: bool) -> Any:
    raise NotImplementedError(f"Feature {key} is a RaggedFeature, which needs RaggedTensor.")
