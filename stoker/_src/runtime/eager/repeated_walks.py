"""Walks of tapes that repeat, compiled.

A training loop in eager mode records the same ops at every step, and its tape then calls the same gradient functions in the same order. When a
walk repeats (equal ops on tensors of the same shapes, connected in the same way), it is traced: the gradient functions run once more, on
placeholders of a graph, and the ops that they add are compiled like the step of a session. Later walks run that step. Its ops are fused, and no
Python of gradient functions is left.

Gradient functions that users register run at every step, as they may do anything. So does every walk that another tape records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.graph import context, placement_log
from stoker._src.graph.definition import BLOCKING, STATEFUL
from stoker._src.graph.gradient_registry import is_registered_by_user
from stoker._src.graph.graph import Graph
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.tapes import no_tapes
from stoker._src.ops.array import constants
from stoker._src.runtime.eager.executor import EagerOperation, EagerTensor, executor
from stoker._src.runtime.plan import threads
from stoker._src.runtime.plan.emit import emit
from stoker._src.runtime.plan.planner import Planner

Walk = Callable[[list[Any], list[Any], list[Any], list[Any], list[Any]], list[Any]]

_MOST_WALKS = 256  # that are remembered
_BEFORE_TRACING = 2  # equal walks that run op by op: compilation takes as long as some hundred ops
_FEW = 8  # integers that are part of what must be equal: axes, sizes, permutations
_INTEGERS = (torch.int32, torch.int64)
_NOT_TRACED = "not traced"

_walks: dict[Any, Any] = {}  # what must be equal -> how often it was seen, a compiled walk, or _NOT_TRACED


class _Layout:
    """The tensors of a tape by number, and what two tapes must have in common to share a compiled walk."""

    def __init__(self, tracked: dict[int, Any]) -> None:
        self.tensors: list[Any] = []
        self.constants: set[int] = set()
        self.key: list[Any] = []
        self._tracked = tracked
        self._numbers: dict[int, int] = {}

    def add(self, tensor: Any, *, computed: bool = False) -> bool:
        """Notes a tensor. Returns whether a compiled walk could use it."""
        key, number = self.key, self._numbers.get(id(tensor))
        if number is not None:
            key.append(number)
            return True
        number = self._numbers[id(tensor)] = len(self.tensors)
        self.tensors.append(tensor)
        is_tracked = id(tensor) in self._tracked
        value = tensor._value
        if type(value) is not torch.Tensor:
            key.append(is_tracked)
            return tensor.dtype is dtypes.resource
        if value.is_cuda:
            return False
        key.append(tensor.dtype._enum)
        key.append(is_tracked)
        key.append(value.shape)
        if not computed and not is_tracked and value.dtype in _INTEGERS and value.numel() <= _FEW:
            self.constants.add(number)
            key.append(tuple(value.view(-1).tolist()))
        return True

    def number(self, tensor: Any) -> int | None:
        return self._numbers.get(id(tensor))


def _layout(
    records: list[Any], tracked: dict[int, Any], targets: list[Any], sources: list[Any], starts: list[Any]
) -> _Layout | None:
    layout = _Layout(tracked)
    key = layout.key
    for record in records:
        if type(record) is not EagerOperation or record.known is None:
            return None
        key.append(record.known)
        for tensor in record.inputs:
            if not layout.add(tensor):
                return None
        for tensor in record.outputs:
            if not layout.add(tensor, computed=True):
                return None
    for start in starts:
        if start is None:
            key.append(None)
        elif not isinstance(start, EagerTensor) or not layout.add(start, computed=True):
            return None
    for target in targets:
        number = layout.number(target)
        if number is None:
            return None
        key.append(number)
    key.append("with respect to")
    key.extend([layout.number(source) for source in sources])
    return layout


def run(
    records: list[Any],
    tracked: dict[int, Any],
    targets: list[Any],
    sources: list[Any],
    starts: list[Any],
    walk: Walk,
) -> list[Any] | None:
    """Returns the gradients of sources by a compiled walk; None if the walk has not repeated often enough, or cannot be compiled.

    `walk(records, tracked, targets, sources, starts)` is how to walk over records of a graph's tensors.
    """
    if placement_log.enabled:
        return None
    layout = _layout(records, tracked, targets, sources, starts)
    if layout is None:
        return None
    key = tuple(layout.key)
    found = _walks.get(key, 0)
    if isinstance(found, int):
        if len(_walks) >= _MOST_WALKS:
            _walks.clear()
        found += 1
        if found > _BEFORE_TRACING:
            found = _traced(layout, records, targets, sources, starts, walk) or _NOT_TRACED
        _walks[key] = found
    if not isinstance(found, CompiledWalk):
        return None
    return found.run(layout.tensors)


def _traced(
    layout: _Layout, records: list[Any], targets: list[Any], sources: list[Any], starts: list[Any], walk: Walk
) -> CompiledWalk | None:
    if any(is_registered_by_user(record.type) for record in records):
        return None
    try:
        with context.enter_graph(Graph()), no_tapes():
            stand_ins = [
                constants.constant(tensor.static_array(), tensor.dtype)
                if i in layout.constants
                else constants.PLACEHOLDER(dtype=tensor.dtype, shape=tensor.static_shape)
                for i, tensor in enumerate(layout.tensors)
            ]

            def in_graph(tensor: Any) -> Any:
                number = None if tensor is None else layout.number(tensor)
                return tensor if number is None else stand_ins[number]

            copies = [
                EagerOperation(
                    record.definition,
                    [in_graph(each) for each in record.inputs],
                    record.attrs,
                    [in_graph(each) for each in record.outputs],
                    record.name,
                )
                for record in records
            ]
            tracked = [stand_ins[i] for i, tensor in enumerate(layout.tensors) if id(tensor) in layout._tracked]
            results = walk(
                copies,
                tracked,
                [in_graph(target) for target in targets],
                [in_graph(source) for source in sources],
                [in_graph(start) for start in starts],
            )
            return CompiledWalk(results, stand_ins)
    except Exception:
        return None  # the walk op by op reports what is wrong


class CompiledWalk:
    """A walk that was traced on placeholders, as a step that computes all gradients."""

    def __init__(self, results: list[Any], stand_ins: list[Any]) -> None:
        fetches: list[Any] = []
        self._forms: list[Any] = []  # for each gradient: the positions of its parts, and what makes it of them
        for result in results:
            if result is None:
                self._forms.append(None)
            elif isinstance(result, IndexedSlices):
                parts = [result.values, result.indices]
                parts += [] if result.dense_shape is None else [result.dense_shape]
                self._forms.append((IndexedSlices, range(len(fetches), len(fetches) + len(parts))))
                fetches += parts
            else:
                self._forms.append((None, range(len(fetches), len(fetches) + 1)))
                fetches.append(result)
        self._dtypes = [tensor.dtype.base_dtype for tensor in fetches]
        fed = [tensor for tensor in stand_ins if tensor.op.type == "Placeholder"]
        worker = executor.worker
        worker.look_for_devices()
        compiler = worker.compiler.for_plan().on_host()
        probe = Planner(fetches, [], fed, worker.node_context, compiler).build()
        if any(op.definition.traits & (STATEFUL | BLOCKING) or op.definition.needs_context for op in probe.ops):
            raise ValueError("the walk has ops with a state")
        used = {tensor for op in probe.ops for tensor in op._inputs} | set(fetches)
        if any(tensor in used and tensor.dtype is dtypes.resource for tensor in fed):
            raise ValueError("a gradient function uses a variable")
        self._feeds = [i for i, tensor in enumerate(stand_ins) if tensor in used and tensor.op.type == "Placeholder"]
        planner = Planner(fetches, [], [stand_ins[i] for i in self._feeds], worker.node_context, compiler)
        self._step = threads.Tuned(emit(planner.build()).function)

    def run(self, tensors: list[Any]) -> list[Any] | None:
        try:
            with torch.no_grad():
                values = self._step(None, *[tensors[i]._value for i in self._feeds])
        except Exception:
            return None  # the walk op by op reports what is wrong
        flat = [EagerTensor(value, dtype) for value, dtype in zip(values, self._dtypes)]
        return [
            None if form is None else flat[form[1][0]] if form[0] is None else form[0](*[flat[i] for i in form[1]])
            for form in self._forms
        ]
