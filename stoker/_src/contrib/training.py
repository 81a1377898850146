"""`tf.contrib.training`: strategies that place variables on parameter servers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.tensor import Operation

_BYTES_OF_A_STRING = 8


@export(v1="contrib.training.GreedyLoadBalancingStrategy")
class GreedyLoadBalancingStrategy:
    """Places each op on the task with the smallest load so far, for `replica_device_setter`.

    Args:
        num_tasks: the number of parameter servers.
        load_fn: a function from an op to its load, such as `byte_size_load_fn`.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Operation], float]) -> None:
        self._loads: list[float] = [0] * num_tasks
        self._load_fn = load_fn

    def __call__(self, op: Operation) -> int:
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


@export(v1="contrib.training.byte_size_load_fn")
def byte_size_load_fn(op: Operation) -> int:
    """The size in bytes of an op's only output. A string counts as 8 bytes, and a resource handle as one, as in TensorFlow.

    Raises:
        ValueError: the op has not exactly one output, or its shape is not known.
    """
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op.node_def} must have a single output")
    output = op.outputs[0]
    elements = output.shape.num_elements()
    if elements is None:
        raise ValueError(f"Shape {output.shape} is not fully defined")
    dtype = output.dtype.base_dtype
    return elements * (_BYTES_OF_A_STRING if dtype is dtypes.string else dtype.size)


@export(v1="contrib.training.RandomStrategy")
class RandomStrategy:
    """Places each op on a random task, for `replica_device_setter`.

    Args:
        num_ps_tasks: the number of parameter servers.
        seed: the seed of the choice.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._tasks, self._random = num_ps_tasks, np.random.RandomState(seed)

    def __call__(self, op: Operation) -> int:
        return int(self._random.choice(self._tasks))
