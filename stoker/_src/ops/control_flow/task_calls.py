"""Ops of the parts of graphs that the tasks of a cluster run.

`StokerTaskCall` is a part that another task runs, called from within a branch, a loop or a function. The master of a distributed session puts it where
ops of a body are on another task than the body itself. `StokerLoopShare` is this task's share of a loop that TensorFlow's master has divided.
"""

from __future__ import annotations

from typing import Any

from stoker._src.base.errors import FailedPreconditionError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import BLOCKING, BOOL, SHAPES, STATEFUL, STRING, STRINGS, TYPES, define
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support.waiting import current_run

# `graph` is a serialized GraphDef, whose feeds and fetches have the keys `feeds` and `fetches`. `linked`: the task is one of stoker's.
TASK_CALL = define(
    "StokerTaskCall(input: [Tin]) -> (output: [Tout])",
    STATEFUL | BLOCKING,
    Tin=TYPES(minimum=0),
    Tout=TYPES(minimum=0),
    task=STRING,
    graph=STRING,
    feeds=STRINGS,
    fetches=STRINGS,
    linked=BOOL,
    output_shapes=SHAPES(()),
).not_differentiable()


@TASK_CALL.kernel
def task_call_kernel(
    input: list[Any], *, task: str, graph: Any, feeds: tuple[str, ...], fetches: tuple[str, ...], linked: bool
) -> tuple[Any, ...]:
    state = current_run()
    if state is None or state.caller is None:
        raise FailedPreconditionError(None, None, f"Only a step of a server can call the task {task}.")
    return tuple(state.caller(task, graph, dict(zip(feeds, input)), list(fetches), linked, state))


@TASK_CALL.shape
def task_call_shape(input: list[Shape], *, op: Operation) -> list[Shape]:
    return list(op.attrs["output_shapes"])


LOOP_SHARE = define(
    "StokerLoopShare(input: [Tin]) -> (output: [Tout])",
    STATEFUL | BLOCKING,
    Tin=TYPES(minimum=0),
    Tout=TYPES(minimum=0),
    frame=STRING,
).not_differentiable()


@LOOP_SHARE.kernel
def loop_share_kernel(input: list[Any], *, frame: str) -> tuple[Any, ...]:
    state = current_run()
    if state is None or frame not in state.loops:
        raise FailedPreconditionError(None, None, f"Only a step of a server can run a share of the loop {frame}.")
    return tuple(state.loops[frame](input))


@LOOP_SHARE.shape
def loop_share_shape(input: list[Shape], *, op: Operation) -> list[Shape]:
    return [UNKNOWN_SHAPE] * len(op.outputs)
