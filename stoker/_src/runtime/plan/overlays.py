"""Fused loops whose results take the place of inputs: `uniform * 2 - 1` needs the memory of one table instead of two.

An input that nobody uses again may be overwritten by a result of the same size, once all loops that read the input have read the same
row of it. `overlays` finds such pairs when the loops are made, and memory.py those whose input is free when they run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.runtime.plan.loop_lines import Buffer, has_rows, native, written


def overlays(
    code: list[list[Any]], rows: int, inputs: list[Buffer | None], outputs: list[Buffer]
) -> tuple[tuple[int, int], ...]:
    """The numbers of inputs and outputs that may share memory: what a block of `rows` reads of the input, it reads before it writes the output.

    Inputs that are None are of other dtypes.
    """
    found = []
    for j, output in enumerate(outputs):
        first = next(at for at, line in enumerate(code) if id(output.base) in written([line]))
        for i, given in enumerate(inputs):
            if given is None or given.size != output.size or given.kind or output.kind:
                continue
            reads = [at for at, line in enumerate(code) if any(item is given.base for item in _bases(line))]
            if all(at < first and has_rows(code[at], rows, {id(given.base)}) for at in reads):
                found.append((i, j))
    return tuple(found)


def _bases(line: list[Any]) -> list[Buffer]:
    return [item.base for item in line if isinstance(item, Buffer)]


class Overlaid:
    """Fused loops whose result number j is written over input number i, for each (i, j) of `pairs`."""

    def __init__(self, program: Any, pairs: dict[int, int]) -> None:
        self.program = program
        self._over = {j: i for i, j in pairs.items()}
        groups = program.output_groups  # one for each output of large tensors
        self._shapes = [shape for _, shape, _, _ in groups]
        self._dtypes = program.dtypes

    def __call__(self, *tensors: Any) -> Any:
        fit = zip(tensors, self.program.input_shapes, self._dtypes)
        if not all(each.shape == shape and each.dtype is dtype and each.is_contiguous() for each, shape, dtype in fit):
            return self.program(*tensors)
        results = tuple(
            tensors[self._over[j]].view(shape) if j in self._over else torch.empty(shape, dtype=dtype)
            for j, (shape, dtype) in enumerate(zip(self._shapes, self._dtypes[len(tensors) :]))
        )
        moves = np.zeros((len(tensors) + len(results), 2), np.int64)
        moves[:, 0] = [each.data_ptr() for each in (*tensors, *results)]
        return results if native.run_loop((self.program,), (moves.tobytes(),), 0, 1) else self.program(*tensors)
