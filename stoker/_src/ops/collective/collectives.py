"""Collective ops: TensorFlow's definitions, on torch.distributed.

Each op has two halves, `begin` and `finish`, between which the other processes may still be computing. A plan starts an op as soon as its
input is there, together with others of its kind, and finishes it when its result is needed (runtime/plan/background.py). The kernel itself
does both at once.

All processes must run the same collective ops in the same order. They do if they run the same training op of the same graph.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph import context
from stoker._src.graph.definition import FLOAT, INT, INTS, SHAPE, STATEFUL, STRING, define
from stoker._src.graph.late_binding import ops
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.collective import groups
from stoker._src.ops.support.values import torch_dtype

_NUMBERS = (dtypes.bfloat16, dtypes.float32, dtypes.float16, dtypes.float64, dtypes.int32, dtypes.int64)
_GATHERED = _NUMBERS[1:]
_MERGES = {
    "Min": dist.ReduceOp.MIN,
    "Max": dist.ReduceOp.MAX,
    "Mul": dist.ReduceOp.PRODUCT,
    "Add": dist.ReduceOp.SUM,
}
GROUP_KEY = 1  # there is one group: all processes
_DIVIDED_FIRST = (torch.float32, torch.float64)  # small 16-bit numbers would vanish
_SET = "_stoker_set"  # the attribute that ops have in common if they were created together


@dataclass
class Pending:
    """A collective op that was started."""

    works: list[Any]
    buffers: list[torch.Tensor]
    shapes: list[torch.Size]
    timeout: float
    sizes: torch.Tensor | None = None

    def wait(self) -> None:
        for work in self.works:
            groups.wait(work, self.timeout)


def _kind(op: Operation) -> Any:
    """Nodes of equal kind, created by one call of `all_reduce_all` or `all_gather_all`, can be one message."""
    if _SET not in op.attrs:
        return None
    names = (_SET, "group_size", "merge_op", "final_op", "timeout_seconds")
    dtype = op.outputs[0].dtype.base_dtype if "merge_op" in op.attrs else None
    return tuple(op.attrs.get(name) for name in names) + (dtype,)


# -- all-reduce --------------------------------------------------------------------------------------------------

COLLECTIVE_REDUCE = define(
    "CollectiveReduce(input: T) -> (data: T)",
    STATEFUL,
    T=_NUMBERS,
    group_size=INT,
    group_key=INT,
    instance_key=INT,
    merge_op=STRING(allowed=("Min", "Max", "Mul", "Add")),
    final_op=STRING(allowed=("Id", "Div")),
    subdiv_offsets=INTS,
    wait_for=INTS(()),
    communication_hint="auto",
    timeout_seconds=FLOAT(0.0),
)


def begin_reduce(
    inputs: list[torch.Tensor],
    *,
    group_size: int,
    merge_op: str,
    final_op: str,
    timeout_seconds: float,
) -> Any:
    """Starts to reduce tensors over all processes, in one message."""
    groups.check_size(group_size)
    if group_size > 1:
        groups.connect()
    shapes = [each.shape for each in inputs]
    count, dtype, device = sum(each.numel() for each in inputs), inputs[0].dtype, inputs[0].device
    part = groups.part(count, dtype, device) if group_size > 1 and merge_op == "Add" else None
    flat = inputs[0].new_empty(count) if part is None else part.tensor
    divisor = group_size if final_op == "Div" else 1
    divides = divisor > 1 and merge_op == "Add" and dtype in _DIVIDED_FIRST
    for each, piece in zip(inputs, flat.split([each.numel() for each in inputs])):
        # The copy into the message divides, so that the sum needs no pass of its own.
        torch.div(each, divisor, out=piece.view(each.shape)) if divides else piece.view(each.shape).copy_(each)
    works = []
    if part is not None:
        part.announce()
    elif group_size > 1:
        with groups.failures("CollectiveReduce"):
            works.append(dist.all_reduce(flat, _MERGES[merge_op], async_op=True))
    return Pending(works, [flat], shapes, timeout_seconds), part, 1 if divides else divisor


def finish_reduce(started: Any) -> tuple[torch.Tensor, ...]:
    pending, part, divisor = started
    pending.wait()
    (flat,) = pending.buffers if part is None else (part.total(groups.timeout(pending.timeout)),)
    if divisor > 1:
        flat.div_(divisor) if flat.is_floating_point() else flat.div_(divisor, rounding_mode="trunc")
    parts = flat.split([shape.numel() for shape in pending.shapes])
    return tuple(part.view(shape) for part, shape in zip(parts, pending.shapes))


@COLLECTIVE_REDUCE.kernel
def collective_reduce_kernel(
    input: torch.Tensor, *, group_size: int, merge_op: str, final_op: str, timeout_seconds: float
) -> torch.Tensor:
    started = begin_reduce(
        [input], group_size=group_size, merge_op=merge_op, final_op=final_op, timeout_seconds=timeout_seconds
    )
    return finish_reduce(started)[0]


COLLECTIVE_REDUCE.shape(lambda input: input)
COLLECTIVE_REDUCE.background(_kind, begin_reduce, finish_reduce)


# -- all-gather --------------------------------------------------------------------------------------------------

COLLECTIVE_GATHER = define(
    "CollectiveGather(input: T) -> (data: T)",
    STATEFUL,
    T=_GATHERED,
    group_size=INT,
    group_key=INT,
    instance_key=INT,
    shape=SHAPE,
    communication_hint="auto",
    timeout_seconds=FLOAT(0.0),
)


def begin_gather(inputs: list[torch.Tensor], *, group_size: int, timeout_seconds: float) -> Pending:
    """Starts to collect the rows of all processes. TensorFlow wants the same number from each; here it may differ."""
    groups.check_size(group_size)
    pending = Pending([], [], [each.shape for each in inputs], timeout_seconds)
    if group_size == 1:
        pending.buffers = [each.clone() for each in inputs]
        return pending
    groups.connect()
    mine = torch.tensor([len(each) for each in inputs], dtype=torch.int64)
    sizes = [torch.empty_like(mine) for _ in range(group_size)]
    with groups.failures("CollectiveGather"):
        dist.all_gather(sizes, mine)
        pending.sizes = torch.stack(sizes)
        for each, rows in zip(inputs, pending.sizes.amax(0).tolist()):
            padded = each.new_zeros((rows, *each.shape[1:]))
            padded[: len(each)] = each
            whole = each.new_empty((group_size, rows, *each.shape[1:]))
            pending.works.append(dist.all_gather(list(whole), padded, async_op=True))
            pending.buffers.append(whole)
    return pending


def finish_gather(pending: Pending) -> tuple[torch.Tensor, ...]:
    pending.wait()
    if pending.sizes is None:
        return tuple(pending.buffers)
    return tuple(
        torch.cat([rows[:count] for rows, count in zip(buffer, counts)])
        for buffer, counts in zip(pending.buffers, pending.sizes.T.tolist())
    )


@COLLECTIVE_GATHER.kernel
def collective_gather_kernel(input: torch.Tensor, *, group_size: int, timeout_seconds: float) -> torch.Tensor:
    return finish_gather(begin_gather([input], group_size=group_size, timeout_seconds=timeout_seconds))[0]


COLLECTIVE_GATHER.shape(lambda input, *, shape: shape)
COLLECTIVE_GATHER.background(_kind, begin_gather, finish_gather)


# -- broadcast ---------------------------------------------------------------------------------------------------

_BROADCAST = {
    "T": (dtypes.bool_, *_GATHERED),
    "group_size": INT,
    "group_key": INT,
    "instance_key": INT,
    "shape": SHAPE,
    "communication_hint": "auto",
    "timeout_seconds": FLOAT(0.0),
}
COLLECTIVE_BCAST_SEND = define("CollectiveBcastSend(input: T) -> (data: T)", STATEFUL, **_BROADCAST)
COLLECTIVE_BCAST_RECV = define("CollectiveBcastRecv() -> (data: T)", STATEFUL, **_BROADCAST)


def _begin_broadcast(value: torch.Tensor, source: int, group_size: int, timeout_seconds: float) -> Pending:
    groups.check_size(group_size)
    pending = Pending([], [value], [value.shape], timeout_seconds)
    if group_size > 1:
        groups.connect()
        with groups.failures("A broadcast"):
            pending.works.append(dist.broadcast(value, source, async_op=True))
    return pending


def begin_send(inputs: list[torch.Tensor], *, group_size: int, timeout_seconds: float) -> Pending:
    return _begin_broadcast(inputs[0].clone(), groups.rank(), group_size, timeout_seconds)


def begin_receive(
    inputs: list[torch.Tensor], *, T: DType, shape: Shape, group_size: int, timeout_seconds: float
) -> Pending:
    # The sender is the first process: these ops are made by `broadcast`.
    return _begin_broadcast(torch.empty(list(shape), dtype=torch_dtype(T)), 0, group_size, timeout_seconds)  # type: ignore[arg-type]


def finish_broadcast(pending: Pending) -> tuple[torch.Tensor, ...]:
    pending.wait()
    return tuple(pending.buffers)


@COLLECTIVE_BCAST_SEND.kernel
def collective_bcast_send_kernel(input: torch.Tensor, *, group_size: int, timeout_seconds: float) -> torch.Tensor:
    return finish_broadcast(begin_send([input], group_size=group_size, timeout_seconds=timeout_seconds))[0]


@COLLECTIVE_BCAST_RECV.kernel
def collective_bcast_recv_kernel(*, T: DType, shape: Shape, group_size: int, timeout_seconds: float) -> torch.Tensor:
    return finish_broadcast(
        begin_receive([], T=T, shape=shape, group_size=group_size, timeout_seconds=timeout_seconds)
    )[0]


COLLECTIVE_BCAST_SEND.background(lambda op: None, begin_send, finish_broadcast)
COLLECTIVE_BCAST_RECV.background(lambda op: None, begin_receive, finish_broadcast)
COLLECTIVE_BCAST_SEND.shape(lambda input, *, shape: input)
COLLECTIVE_BCAST_RECV.shape(lambda *, shape: shape)


# -- functions ---------------------------------------------------------------------------------------------------

_instances: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def _keys() -> dict[str, int]:
    """The attributes that TensorFlow matches the ops of different processes by. Graphs that are built alike number them alike."""
    graph = context.target()
    number = 0
    if not context.executing_eagerly():
        number = _instances.get(graph, 0) + 1
        _instances[graph] = number
    return {"group_size": groups.size(), "group_key": GROUP_KEY, "instance_key": number}


def all_reduce(tensor: Tensor, merge_op: str = "Add", final_op: str = "Id", name: str | None = None) -> Tensor:
    """The sum (or "Min", "Max", "Mul") of a tensor over all processes, divided by their number if `final_op` is "Div"."""
    return COLLECTIVE_REDUCE(tensor, **_keys(), merge_op=merge_op, final_op=final_op, subdiv_offsets=[0], name=name)


def all_gather(tensor: Tensor, name: str | None = None) -> Tensor:
    """The rows of a tensor of all processes, in the order of their ranks. Their numbers may differ."""
    known = tensor.static_shape
    shape = UNKNOWN_SHAPE if known.rank is None else Shape((None, *known.dims[1:]))  # type: ignore[index]
    return COLLECTIVE_GATHER(tensor, **_keys(), shape=shape, name=name)


def _together(made: list[Tensor]) -> list[Tensor]:
    """Marks the ops of these tensors as created together, so that they can share messages."""
    if not context.executing_eagerly() and made:
        number = made[0].op.attrs["instance_key"]
        for tensor in made:
            tensor.op.attrs[_SET] = number
    return made


def all_reduce_all(tensors: list[Tensor], merge_op: str = "Add", final_op: str = "Id") -> list[Tensor]:
    """`all_reduce` of each tensor, in few messages."""
    return _together([all_reduce(each, merge_op, final_op) for each in tensors])


def all_gather_all(tensors: list[Tensor]) -> list[Tensor]:
    """`all_gather` of each tensor, in few messages."""
    return _together([all_gather(each) for each in tensors])


def broadcast(tensor: Tensor, name: str | None = None) -> Tensor:
    """The value that a tensor has in the first process. Its shape must be known."""
    keys = _keys()
    if groups.rank() == 0:
        return COLLECTIVE_BCAST_SEND(tensor, **keys, shape=tensor.static_shape, name=name)
    return COLLECTIVE_BCAST_RECV(T=tensor.dtype.base_dtype, **keys, shape=tensor.static_shape, name=name)


@COLLECTIVE_REDUCE.grad
def collective_reduce_grad(op: Operation, g: Tensor) -> Tensor:
    """The gradient of a sum over all processes is the sum of their gradients."""
    if op.attrs["merge_op"] != "Add":
        raise LookupError(f"No gradient defined for operation '{op.name}': it reduces by {op.attrs['merge_op']}.")
    return all_reduce(g, "Add", op.attrs["final_op"])


@COLLECTIVE_GATHER.grad
def collective_gather_grad(op: Operation, g: Tensor) -> Tensor:
    """The rows of the summed gradient that belong to this process."""
    counts = all_gather(ops.Reshape(ops.shape(op.inputs[0], out_type=dtypes.int64)[0], [1]))
    before = ops.reduce_sum(counts[: groups.rank()])
    rows = ops.range(before, before + counts[groups.rank()])
    return ops.gather(all_reduce(g), rows)


COLLECTIVE_BCAST_SEND.not_differentiable()
COLLECTIVE_BCAST_RECV.not_differentiable()
