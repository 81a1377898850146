"""Models that several processes train together: those compiled in the scope of a `tf.distribute` strategy.

Each process computes the outputs of its rows of a batch. Outputs, targets and weights are then gathered, so that every process has the losses and
metrics of the whole batch. The gradient of a gathered output is summed over the processes, each of which has the whole loss; the mean of the
processes' gradients is therefore that of the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.ops.array import casting
from stoker._src.ops.collective import collectives, groups, replicas
from stoker._src.train.optimizers.replicated import reduced

_SENT = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)


def strategy() -> Any:
    """The strategy whose processes train a model that is compiled here; None if one process does."""
    found, _ = replicas.current()
    return found if found is not None and found.num_replicas_in_sync > 1 else None


def apart() -> AbstractContextManager[None]:
    """The context in which optimizers of `tf.train` do not reduce gradients once more."""
    return replicas.entered(None, None)


def own_rows(batch: Any, count: int) -> Any:
    """The rows that this process has of a batch of `count` rows."""
    rank, size = groups.rank(), groups.size()
    rows = slice(count * rank // size, count * (rank + 1) // size)
    return None if batch is None else nest.map_structure(lambda part: None if part is None else part[rows], batch)


def row_count(batch: Any) -> int:
    return int(np.shape(nest.flatten(batch)[0])[0])


def gathered(tensors: list[Any]) -> list[Any]:
    """The tensors, or None, with the rows of all processes."""
    known = [i for i, each in enumerate(tensors) if each is not None]
    sent = [tensors[i] if tensors[i].dtype in _SENT else casting.cast(tensors[i], dtypes.float32) for i in known]
    found = list(tensors)
    for i, whole in zip(known, collectives.all_gather_all(sent)):
        found[i] = whole
    return found


def averaged(gradients: list[Any]) -> list[Any]:
    """The means of gradients, or None, over all processes."""
    return [gradient for gradient, _ in reduced([(gradient, None) for gradient in gradients], mean=True)]


def equalized(variables: Iterable[Any]) -> list[Any]:
    """The ops that set variables that no gradient changes, such as moving averages, to their means over all processes."""
    chosen = [variable for variable in variables if variable.dtype.is_floating]
    means = collectives.all_reduce_all([variable.value() for variable in chosen], "Add", "Div")
    return [variable.assign(mean) for variable, mean in zip(chosen, means)]
