"""The mixed precision rewrite: eligible float32 ops of a plan run in 16 bits, with conversions only at the boundaries.

The rewrite works on the ops of one plan, in order, before they become instructions. The graph does not change. A converted op is
replaced in the plan by a 16-bit copy, whose inputs are 16-bit copies or conversions of the original inputs. If an op that was not
converted needs the result, or the result is fetched, a conversion back produces the graph's own tensor. A program therefore
always sees the dtypes it declared. Each tensor is converted once, and a variable's value once per step.

`ops/support/half_precision.py` has the lists and the reasons for them. They are applied by these rules:

1. An ALLOW op is converted.
2. An INFER or CLEAR op is converted if one of its inputs is, and no input is the result of an op that stayed in float32. Constants,
   variables, feeds and converted booleans may be rounded: they are cheap to convert and end up in the product anyway.
3. An INFER op whose result reaches no converted op, except through CLEAR ops, goes back to float32: converting it would only round.

The dtype depends on where an op runs: bfloat16 on the CPU, float16 on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from stoker._src.base import dtypes, settings, tf_logging
from stoker._src.base.dtypes import DType
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array.casting import CAST
from stoker._src.ops.support.half_precision import DATA_TYPES, ROLES, Role
from stoker._src.runtime.devices import Placement

_ON, _OFF = 1, 2  # RewriterConfig.Toggle
_CHANGES = Trait.WRITES | Trait.BLOCKING
_VOLTA = (7, 0)  # the first GPUs that multiply float16 matrices faster than float32 ones
_NAMES = {"bfloat16": "BFloat16", "float16": "Float16", "float32": "Float32"}


@dataclass(frozen=True)
class Precision:
    """The 16-bit dtype for ops on each kind of device; None leaves those ops unchanged."""

    placement: Placement
    cpu: DType | None
    gpu: DType | None

    def of(self, op: Operation) -> DType | None:
        """Returns the dtype that `op` is converted to if it is eligible."""
        device = self.placement.requested(op) or self.placement.gpu
        return self.cpu if device is None or device.type == "cpu" else self.gpu


def precision_of(placement: Placement, config: Any = None) -> Precision | None:
    """Returns what a ConfigProto and `enable_mixed_precision_graph_rewrite` request; None for plain float32.

    `auto_mixed_precision` converts on all devices. `auto_mixed_precision_onednn_bfloat16` (formerly `_mkl`) and
    `auto_mixed_precision_cpu` convert ops on the CPU; the latter uses float16, to try out programs meant for GPUs.
    """
    general, cpu_bfloat16, cpu_float16 = settings.mixed_precision_rewrite, False, False
    if config is not None:
        options = config.graph_options.rewrite_options
        if options.disable_meta_optimizer:
            return None
        general = options.auto_mixed_precision == _ON or (general and options.auto_mixed_precision != _OFF)
        cpu_bfloat16 = _ON in (options.auto_mixed_precision_onednn_bfloat16, options.auto_mixed_precision_mkl)
        cpu_float16 = options.auto_mixed_precision_cpu == _ON
    cpu = dtypes.float16 if cpu_float16 else dtypes.bfloat16 if general or cpu_bfloat16 else None
    quick = placement.gpu is None or torch.cuda.get_device_capability(placement.gpu) >= _VOLTA
    gpu = dtypes.float16 if general and quick else None
    return None if cpu is None and gpu is None else Precision(placement, cpu, gpu)


@dataclass
class Rewritten:
    """The ops of a plan with 16-bit copies of the converted ones, and a map from each op to its replacement."""

    ops: list[Operation]
    stand_ins: dict[Operation, list[Operation]] = field(default_factory=dict)


def rewrite(
    precision: Precision,
    ops: list[Operation],
    needed: set[Operation],
    fetches: Sequence[Tensor | None],
    feeds: set[Tensor],
    *,
    feeds_are_data: bool,
) -> Rewritten:
    """Replaces the ops that can be converted. `ops` must be in an executable order.

    Args:
        precision: the dtypes to convert to.
        ops: the ops of a plan.
        needed: the ops that run; the others only determine the order.
        fetches: the tensors whose values leave the plan.
        feeds: the tensors whose values come from outside.
        feeds_are_data: whether feeds may be rounded. This is False for a function's body, whose inputs are results of other ops.
    """
    chosen = _choose(precision, [op for op in ops if op in needed], feeds, feeds_are_data=feeds_are_data)
    if not chosen:
        return Rewritten(ops)
    return _Writer(chosen, ops, needed, fetches, feeds).write()


# -- which ops ---------------------------------------------------------------------------------------------------


def _choose(
    precision: Precision, ops: list[Operation], feeds: set[Tensor], *, feeds_are_data: bool
) -> dict[Operation, DType]:
    """Returns the ops to convert with their dtypes."""
    chosen: dict[Operation, DType] = {}
    for op in ops:
        role = ROLES.get(op.type)
        dtype = None if role is None else precision.of(op)
        if dtype is None or not _can_be(op, dtype):
            continue
        if role is Role.ALLOW:
            chosen[op] = dtype
            continue
        inputs = [tensor for tensor in _data_inputs(op) if not _is_given(tensor, feeds, feeds_are_data)]
        if inputs and all(tensor not in feeds and _is_converted(tensor, chosen, dtype) for tensor in inputs):
            chosen[op] = dtype
    for op in reversed(ops):
        if op in chosen and ROLES[op.type] is Role.INFER and not _meets_converted(op, chosen):
            del chosen[op]
    # A CLEAR op goes back to float32 if its converted input did.
    for op in ops:
        if op in chosen and ROLES[op.type] is Role.CLEAR:
            inputs = [t for t in _data_inputs(op) if not _is_given(t, feeds, feeds_are_data)]
            if not all(_is_converted(tensor, chosen, chosen[op]) for tensor in inputs):
                del chosen[op]
    return chosen


def _is_converted(tensor: Tensor, chosen: dict[Operation, DType], dtype: DType) -> bool:
    """Whether this output is converted to `dtype`. The statistics of a batch normalization, for example, are not."""
    if chosen.get(tensor.op) is not dtype:
        return False
    converted = {**tensor.op.attrs, **_converted_attrs(tensor.op, dtype)}
    return tensor.op.definition.output_dtypes(converted)[tensor.value_index] is dtype


def _converted_attrs(op: Operation, dtype: DType) -> dict[str, DType]:
    return {name: dtype for name in DATA_TYPES if op.attrs.get(name) is dtypes.float32}


def _can_be(op: Operation, dtype: DType) -> bool:
    """Whether the op's data is float32 and its definition also allows `dtype`."""
    converted = _converted_attrs(op, dtype)
    specs = op.definition.attrs
    return bool(converted) and all(not specs[name].allowed or dtype in specs[name].allowed for name in converted)


def _data_inputs(op: Operation) -> list[Tensor]:
    """Returns the inputs whose dtype would be converted."""
    found: list[Tensor] = []
    for arg, group in zip(op.definition.inputs, op.definition.group(op._inputs, op.attrs)):
        if arg.type_attr in DATA_TYPES and not arg.is_ref:
            found.extend(group if arg.is_list else [group])
    return [tensor for tensor in found if tensor.dtype.base_dtype is dtypes.float32]


def _is_given(tensor: Tensor, feeds: set[Tensor], feeds_are_data: bool) -> bool:
    """Whether a value is given rather than computed: a constant, a variable's value, a feed, or a boolean cast to a number."""
    while tensor not in feeds and tensor.op.definition.traits & Trait.PASSES and tensor.op._inputs:
        tensor = tensor.op._inputs[0]
    if tensor in feeds:
        return feeds_are_data
    op = tensor.op
    if op.definition is CAST:
        return op.attrs["SrcT"] is dtypes.bool_
    return not op._inputs or bool(op.definition.traits & Trait.READS)


def _meets_converted(op: Operation, chosen: dict[Operation, DType]) -> bool:
    """Whether a converted op that computes uses the result, directly or through ops that only move data."""
    waiting, seen = [op], {op}
    while waiting:
        for tensor in waiting.pop().outputs:
            for user in tensor._consumers:
                if user in seen or user not in chosen:
                    continue
                if ROLES[user.type] is not Role.CLEAR:
                    return True
                seen.add(user)
                waiting.append(user)
    return False


# -- the 16-bit copies -------------------------------------------------------------------------------------------


class _Writer:
    def __init__(
        self,
        chosen: dict[Operation, DType],
        ops: list[Operation],
        needed: set[Operation],
        fetches: Sequence[Tensor | None],
        feeds: set[Tensor],
    ) -> None:
        self._chosen, self._ops, self._needed, self._feeds = chosen, ops, needed, feeds
        self._fetched = {tensor for tensor in fetches if tensor is not None}
        self._converted: dict[tuple[Tensor, DType], Tensor] = {}
        self._result = Rewritten([])

    def write(self) -> Rewritten:
        for op in self._ops:
            if op in self._chosen:
                self._replace(op, self._chosen[op])
            else:
                self._result.ops.append(op)
                if op.definition.traits & _CHANGES or op.definition.planning.calls:
                    self._forget_references()
        counts: dict[str, int] = {}
        for dtype in self._chosen.values():
            counts[dtype.name] = counts.get(dtype.name, 0) + 1
        casts = len(self._result.ops) - len(self._ops)
        for name, count in counts.items():
            tf_logging.info("Converted %d of %d ops to %s, with %d casts.", count, len(self._needed), name, casts)
        return self._result

    def _forget_references(self) -> None:
        """Forgets conversions of 1.x variables. Their value is read at each use and may differ after a write."""
        for tensor, dtype in list(self._converted):
            source = tensor
            while source.op.definition.traits & Trait.PASSES and source.op._inputs:
                source = source.op._inputs[0]
            if source.dtype._is_ref_dtype:
                del self._converted[tensor, dtype]

    def _replace(self, op: Operation, dtype: DType) -> None:
        self._result.stand_ins[op] = added = []
        attrs = {**op.attrs, **_converted_attrs(op, dtype)}
        wanted = {id(tensor) for tensor in _data_inputs(op)}
        inputs = [self._as(tensor, dtype, added) if id(tensor) in wanted else tensor for tensor in op._inputs]
        stand_in = _made(op, op.definition, op.name, inputs, attrs)
        added.append(stand_in)
        for position, tensor in enumerate(op.outputs):
            made = stand_in.outputs[position]
            made._static_shape = tensor.static_shape
            if made.dtype is tensor.dtype:
                stand_in.outputs[position] = tensor
            if made.dtype is tensor.dtype or tensor in self._feeds:
                continue
            self._converted[tensor, dtype] = made
            if self._is_needed_as_it_was(tensor):
                name = f"{op.name}-{position}-CastTo{_NAMES[tensor.dtype.name]}"
                back = _made(op, CAST, name, [made], {"SrcT": dtype, "DstT": tensor.dtype, "Truncate": False})
                back.outputs[0] = tensor  # the graph's own tensor, so that its other consumers find it
                added.append(back)
        self._result.ops.extend(added)

    def _as(self, tensor: Tensor, dtype: DType, added: list[Operation]) -> Tensor:
        """Returns `tensor` converted to the 16-bit dtype."""
        found = self._converted.get((tensor, dtype))
        if found is None:
            source = tensor.op
            name = f"{source.name}-{tensor.value_index}-CastTo{_NAMES[dtype.name]}"
            attrs = {"SrcT": dtypes.float32, "DstT": dtype, "Truncate": False}
            cast = _made(source, CAST, name, [tensor], attrs)
            cast.outputs[0]._static_shape = tensor.static_shape
            added.append(cast)
            found = self._converted[tensor, dtype] = cast.outputs[0]
        return found

    def _is_needed_as_it_was(self, tensor: Tensor) -> bool:
        return tensor in self._fetched or any(
            user in self._needed and self._chosen.get(user) is not self._chosen[tensor.op] for user in tensor._consumers
        )


def _made(origin: Operation, definition: Any, name: str, inputs: list[Tensor], attrs: dict[str, Any]) -> Operation:
    """Creates an operation that belongs to the plan only and is not part of the graph."""
    made = Operation(origin.graph, definition, name, inputs, attrs, [], origin._frames)
    made._device = origin._device
    return made
