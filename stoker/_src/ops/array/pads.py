"""Padding, and the rearrangements between space, batch and depth that are built on it."""

from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Dim, Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, INT32, STRING, define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import joining, shaping, slicing
from stoker._src.ops.array.constants import constant
from stoker._src.ops.support import rows
from stoker._src.ops.support.movement import allocatable, fresh, itemsize, rearranges, signed

_PADDINGS = one_of(*INDEX, default=dtypes.int32)
_SMALL = 1 << 22  # elements that are allocated without a look at the machine's memory

# ---- Pad, PadV2 -------------------------------------------------------------------------------------------------

PAD = define("Pad(input: T, paddings: matrix host Tpaddings) -> (output: T)", T=ANY, Tpaddings=_PADDINGS)
PAD.small("pad")
PAD_V2 = define(
    "PadV2(input: T, paddings: matrix host Tpaddings, constant_values: any/scalar T) -> (output: T)",
    T=ANY,
    Tpaddings=_PADDINGS,
)


def _checked(input: Any, paddings: Any, mode: str | None = None) -> list[list[int]]:
    if len(paddings) != input.ndim or any(not isinstance(pair, list) or len(pair) != 2 for pair in paddings):
        raise InvalidArgumentError(
            None,
            None,
            f"The first dimension of paddings must be the rank of inputs, and the second 2: paddings {paddings}, inputs {Shape(input.shape)}",
        )
    for before, after in paddings:
        if before < 0 or after < 0:
            raise InvalidArgumentError(None, None, f"Paddings must be non-negative: {before} {after}")
    if mode is not None:
        for size, (before, after) in zip(input.shape, paddings):
            if before or after:
                _check_reach(size, before, after, mode)
    allocatable([size + before + after for size, (before, after) in zip(input.shape, paddings)], itemsize(input))
    return paddings


@PAD.kernel
def pad_kernel(input: Any, paddings: Any) -> Any:
    paddings = _checked(input, paddings)
    if isinstance(input, np.ndarray):
        return np.pad(input, paddings, constant_values=b"") if paddings else input.copy()
    if not paddings:
        return input.clone()
    flat = [each for pair in reversed(paddings) for each in pair]
    if input.dtype is torch.bool or any(flat):
        return torch.nn.functional.pad(input, flat)
    return input.clone()


@PAD.specialize
def pad_by_constants(op: Operation) -> Any:
    """For constant paddings, the checks of each call are few."""
    found = constant_value(op.inputs[1])
    if op.inputs[0].dtype is dtypes.string or found is None or found.ndim != 2 or found.shape[1] != 2:
        return None
    pairs = found.tolist()
    grown = product(1 + before + after for before, after in pairs)  # at most so many times as many elements
    if not found.any() or found.min() < 0 or grown > _SMALL:
        return None
    flat, rank, most = [each for pair in reversed(pairs) for each in pair], len(pairs), _SMALL // grown

    def padded(input: torch.Tensor, paddings: Any) -> torch.Tensor:
        if input.ndim != rank or input.numel() > most:
            return pad_kernel(input, paddings)
        return torch.constant_pad_nd(input, flat)

    return padded


def _padded_part(op: Operation, plan: Any) -> tuple[int, Any] | None:
    shape, paddings = plan.shape_of(op._inputs[0]), plan.known_value(op._inputs[1])
    if not shape.known or paddings is None or paddings.shape != (len(shape), 2) or (paddings < 0).any():
        return None
    return 0, tuple(slice(int(before), int(before) + size) for (before, _), size in zip(paddings, shape.dims))


PAD.planning.part = _padded_part


@PAD.rows
def pad_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    paddings = rows.numbers(inputs[1])
    if paddings is None or not inputs[0].stacked:
        return None
    return [PAD(inputs[0].tensor, [[0, 0], *paddings.tolist()])]


@PAD.lower
def pad_lower(build: Any, op: Operation, input: Any, paddings: Any) -> Any:
    return build.pad(input, paddings) if len(paddings) == len(input.shape) else None


@PAD_V2.kernel
def pad_v2_kernel(input: Any, paddings: Any, constant_values: Any) -> Any:
    paddings = _checked(input, paddings)
    sizes = [size + before + after for size, (before, after) in zip(input.shape, paddings)]
    inner = tuple(slice(before, before + size) for size, (before, _) in zip(input.shape, paddings))
    if isinstance(input, np.ndarray):
        result: Any = np.broadcast_to(constant_values, sizes).copy()
        result[inner] = input
        return result
    # torch's padding takes its value as a float, which cannot represent every integer.
    result = constant_values.reshape(()).expand(sizes).clone(memory_format=torch.contiguous_format)
    result[inner].copy_(input)
    return result


def _padded_shape(input: Shape, paddings: np.ndarray | None, *_: Any) -> Shape:
    if paddings is None:
        return UNKNOWN_SHAPE if input.dims is None else Shape((None,) * len(input))
    if paddings.ndim != 2 or paddings.shape[1] != 2:
        raise InvalidArgumentError(None, None, f"paddings must be a matrix with 2 columns: {list(paddings.shape)}")
    if (paddings < 0).any():
        raise InvalidArgumentError(None, None, f"Paddings must be non-negative: {paddings.tolist()}")
    input = input.of_rank(len(paddings))
    return Shape(
        None if size is None else size + int(sum(pair)) for size, pair in zip(input.dims or (), paddings.tolist())
    )


@PAD.shape(values=["paddings"])
def pad_shape(input: Shape, paddings: np.ndarray | None) -> Shape:
    return _padded_shape(input, paddings)


@PAD_V2.shape(values=["paddings"])
def pad_v2_shape(input: Shape, paddings: np.ndarray | None, constant_values: Shape) -> Shape:
    return _padded_shape(input, paddings)


def _unpadded(op: Operation, g: Tensor) -> Tensor:
    """The part of `g` that corresponds to the unpadded input."""
    x, paddings = op.inputs[0], op.inputs[1]
    before = constant_value(paddings)
    if before is not None:
        start: Any = before[:, 0]
    else:
        rows = shaping.shape(paddings)[:1]
        start = shaping.reshape(slicing.slice(paddings, [0, 0], joining.concat([rows, [1]], 0)), [-1])
    return slicing.SLICE(g, start, shaping.shape(x, out_type=paddings.dtype.base_dtype))


@PAD.grad
def pad_grad(op: Operation, g: Tensor) -> Any:
    return _unpadded(op, g), None


@PAD_V2.grad
def pad_v2_grad(op: Operation, g: Tensor) -> Any:
    return _unpadded(op, g), None, None  # TensorFlow gives the padding value no gradient


# ---- MirrorPad --------------------------------------------------------------------------------------------------

_MIRROR = STRING(allowed=("REFLECT", "SYMMETRIC"))
MIRROR_PAD = define(
    "MirrorPad(input: T, paddings: matrix host Tpaddings) -> (output: T)", T=ANY, Tpaddings=_PADDINGS, mode=_MIRROR
)
MIRROR_PAD_GRAD = define(
    "MirrorPadGrad(input: T, paddings: matrix host Tpaddings) -> (output: T)", T=ANY, Tpaddings=_PADDINGS, mode=_MIRROR
)


def _mirrored(size: int, before: int, after: int, mode: str, device: Any) -> torch.Tensor:
    """The source index of each element of a mirrored dimension."""
    _check_reach(size, before, after, mode)
    at = torch.arange(-before, size + after, device=device)
    if mode == "REFLECT":
        return (size - 1) - ((size - 1) - at.abs()).abs() if size > 1 else torch.zeros_like(at)
    at = torch.where(at < 0, -1 - at, at)
    return torch.where(at >= size, 2 * size - 1 - at, at)


def _check_reach(size: int, before: int, after: int, mode: str) -> None:
    reach = size - 1 if mode == "REFLECT" else size
    if before > reach or after > reach:
        bound = "less than the dimension size" if mode == "REFLECT" else "no greater than the dimension size"
        raise InvalidArgumentError(
            None,
            None,
            f"paddings must be {bound}: {before}, {after} not {'less than' if mode == 'REFLECT' else 'within'} {size}",
        )


@MIRROR_PAD.kernel
@rearranges
def mirror_pad_kernel(input: torch.Tensor, paddings: Any, *, mode: str) -> torch.Tensor:
    result = input
    for axis, (before, after) in enumerate(_checked(input, paddings, mode)):
        if before or after:
            result = result.index_select(axis, _mirrored(result.shape[axis], before, after, mode, input.device))
    return result.clone() if result is input else result


@MIRROR_PAD_GRAD.kernel
def mirror_pad_grad_kernel(input: torch.Tensor, paddings: Any, *, mode: str) -> torch.Tensor:
    if np.shape(paddings) != (input.ndim, 2):
        raise InvalidArgumentError(
            None, None, f"paddings {paddings} do not fit a tensor of shape {Shape(input.shape)}."
        )
    result = signed(input)
    for axis, (before, after) in enumerate(paddings):
        if before < 0 or after < 0:
            raise InvalidArgumentError(None, None, f"Paddings must be non-negative: {before}, {after}")
        if before or after:
            size = result.shape[axis] - before - after
            if size < 0:
                raise InvalidArgumentError(
                    None, None, f"paddings {paddings} are larger than the shape {Shape(input.shape)}."
                )
            source = _mirrored(size, before, after, mode, input.device)
            sizes = list(result.shape)
            sizes[axis] = size
            result = result.new_zeros(sizes).index_add_(axis, source, result)
    return fresh(result, input).view(input.dtype)


@MIRROR_PAD.shape(values=["paddings"])
def mirror_pad_shape(input: Shape, paddings: np.ndarray | None) -> Shape:
    return _padded_shape(input, paddings)


@MIRROR_PAD_GRAD.shape(values=["paddings"])
def mirror_pad_grad_shape(input: Shape, paddings: np.ndarray | None) -> Shape:
    if paddings is None:
        return UNKNOWN_SHAPE if input.dims is None else Shape((None,) * len(input))
    _check_pairs(paddings)
    input = input.of_rank(len(paddings))
    dims: list[Dim] = []
    for size, pair in zip(input.dims or (), paddings.tolist()):
        if size is not None and size < sum(pair):
            raise InvalidArgumentError(
                None, None, f"Negative dimension size caused by subtracting {sum(pair)} from {size}."
            )
        dims.append(None if size is None else size - sum(pair))
    return Shape(dims)


def _check_pairs(paddings: np.ndarray) -> None:
    if paddings.ndim != 2 or paddings.shape[1] != 2:
        raise InvalidArgumentError(None, None, f"paddings must be pairs, found the shape {list(paddings.shape)}.")
    if (paddings < 0).any():
        raise InvalidArgumentError(None, None, f"Paddings must be non-negative: {paddings.tolist()}")


@MIRROR_PAD.grad
def mirror_pad_gradient(op: Operation, g: Tensor) -> Any:
    return MIRROR_PAD_GRAD(g, op.inputs[1], mode=op.attr("mode")), None


@MIRROR_PAD_GRAD.grad
def mirror_pad_grad_gradient(op: Operation, g: Tensor) -> Any:
    return MIRROR_PAD(g, op.inputs[1], mode=op.attr("mode")), None


@export(v1="pad")
def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """Pads `tensor` with `paddings[i]` = (before, after) elements along dimension i.

    Args:
        tensor: the tensor to pad.
        paddings: an integer matrix with one row for each dimension.
        mode: "CONSTANT" pads with `constant_values`; "REFLECT" mirrors without the border, "SYMMETRIC" with it.
        name: the op's name.
        constant_values: the value for CONSTANT mode.

    Raises:
        ValueError: another mode.
    """
    mode = mode.upper()
    if mode == "CONSTANT":
        plain = not isinstance(constant_values, Tensor) and np.ndim(constant_values) == 0 and constant_values == 0
        if plain:
            return _with_known_sizes(PAD(tensor, paddings, name=name), paddings)
        return _with_known_sizes(PAD_V2(tensor, paddings, constant_values, name=name), paddings)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(
            f"Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'. Received: {mode!r}"
        )
    return _with_known_sizes(MIRROR_PAD(tensor, paddings, mode=mode, name=name), paddings)


def _with_known_sizes(padded: Tensor, paddings: Any) -> Tensor:
    """States the sizes of the dimensions whose paddings are known, if `paddings` is a list in which others are tensors."""
    if not isinstance(paddings, (list, tuple)) or context.executing_eagerly():
        return padded
    before = padded.op.inputs[0].static_shape
    if before.rank != len(paddings):
        return padded
    sizes: list[int | None] = []
    for size, row in zip(before, paddings):
        known = [constant_value(each) if isinstance(each, Tensor) else each for each in row]
        sizes.append(None if size is None or None in known else size + int(known[0]) + int(known[1]))
    padded.set_shape(sizes)
    return padded


@export(v2="pad")
def pad_v2(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Tensor:
    """Pads `tensor` with `paddings[i]` = (before, after) elements along dimension i. The 1.x form describes the modes."""
    return pad(tensor, paddings, mode, name, constant_values)


# ---- SpaceToBatch, BatchToSpace ---------------------------------------------------------------------------------

SPACE_TO_BATCH_ND = define(
    "SpaceToBatchND(input: T, block_shape: host Tblock_shape, paddings: host Tpaddings) -> (output: T)",
    T=ANY,
    Tblock_shape=_PADDINGS,
    Tpaddings=_PADDINGS,
)
BATCH_TO_SPACE_ND = define(
    "BatchToSpaceND(input: T, block_shape: host Tblock_shape, crops: host Tcrops) -> (output: T)",
    T=ANY,
    Tblock_shape=_PADDINGS,
    Tcrops=_PADDINGS,
)
SPACE_TO_BATCH = define(
    "SpaceToBatch(input: rank=4 T, paddings: matrix host Tpaddings) -> (output: T)",
    T=ANY,
    Tpaddings=_PADDINGS,
    block_size=INT32(minimum=2),
)
BATCH_TO_SPACE = define(
    "BatchToSpace(input: T, crops: matrix host Tidx) -> (output: T)", T=ANY, Tidx=_PADDINGS, block_size=INT32(minimum=2)
)


def _check_blocks(rank: int | None, block_shape: Any, margins: Any, label: str) -> None:
    if not isinstance(block_shape, list):
        raise InvalidArgumentError(None, None, f"block_shape must have rank 1, got {block_shape}.")
    if any(block < 1 for block in block_shape):
        raise InvalidArgumentError(None, None, f"All values in block_shape must be positive, got {block_shape}.")
    if np.shape(margins) != (len(block_shape), 2):
        raise InvalidArgumentError(None, None, f"{label} should have shape [{len(block_shape)}, 2], got {margins}.")
    if any(each < 0 for pair in margins for each in pair):
        raise InvalidArgumentError(None, None, f"{label} cannot be negative: {margins}")
    if rank is not None and rank < 1 + len(block_shape):
        raise InvalidArgumentError(None, None, f"input rank should be >= {1 + len(block_shape)} instead of {rank}")


@SPACE_TO_BATCH_ND.kernel
def space_to_batch_nd_kernel(input: torch.Tensor, block_shape: list[int], paddings: Any) -> torch.Tensor:
    _check_blocks(input.ndim, block_shape, paddings, "paddings")
    count = len(block_shape)
    rest = input.ndim - 1 - count
    flat = [0, 0] * rest + [each for pair in reversed(paddings) for each in pair]
    sizes = list(input.shape)
    for axis, pair in enumerate(paddings, 1):
        sizes[axis] += sum(pair)
    split = [sizes[0]]
    for size, block in zip(sizes[1 : 1 + count], block_shape):
        if size % block:
            raise InvalidArgumentError(
                None,
                None,
                f"padded_shape[{len(split) // 2}]={size} is not divisible by block_shape[{len(split) // 2}]={block}",
            )
        split += [size // block, block]
    blocks = [2 + 2 * i for i in range(count)]
    outer = [1 + 2 * i for i in range(count)]
    allocatable(sizes, itemsize(input))
    padded = torch.nn.functional.pad(input, flat) if any(flat) else input
    moved = padded.reshape(*split, *sizes[1 + count :]).permute(
        *blocks, 0, *outer, *range(1 + 2 * count, 1 + 2 * count + rest)
    )
    final = [sizes[0] * product(int(block) for block in block_shape), *(split[i] for i in outer), *sizes[1 + count :]]
    result = moved.reshape(final)
    return fresh(result, input)


@BATCH_TO_SPACE_ND.kernel
def batch_to_space_nd_kernel(input: torch.Tensor, block_shape: list[int], crops: Any) -> torch.Tensor:
    _check_blocks(input.ndim, block_shape, crops, "crops")
    count = len(block_shape)
    total = product(int(block) for block in block_shape)
    sizes = input.shape
    if sizes[0] % total:
        raise InvalidArgumentError(
            None, None, f"Input batch dimension ({sizes[0]}) is not divisible by product of block sizes ({total})"
        )
    rest = list(range(1 + 2 * count, input.ndim + count))
    order = [count, *(axis for i in range(count) for axis in (count + 1 + i, i)), *rest]
    moved = input.reshape(*block_shape, sizes[0] // total, *sizes[1:]).permute(order)
    whole = moved.reshape(
        sizes[0] // total, *(size * block for size, block in zip(sizes[1:], block_shape)), *sizes[1 + count :]
    )
    index: list[Any] = [slice(None)]
    for i, (before, after) in enumerate(crops):
        size = whole.shape[1 + i]
        if before + after > size:
            raise InvalidArgumentError(None, None, f"cropped_shape[{i}]={size - before - after} must be non-negative")
        index.append(slice(before, size - after))
    result = whole[tuple(index)]
    return fresh(result.contiguous(), input)


def _blocked(input: Shape, count: int | None, block_shape: Any, margins: Any, *, into_batch: bool) -> Shape:
    if block_shape is not None and margins is not None:
        label = "paddings" if into_batch else "crops"
        _check_blocks(None if input.dims is None else len(input), list(block_shape), margins.tolist(), label)
    if input.dims is None:
        return UNKNOWN_SHAPE
    if block_shape is None:
        moved = len(input) if count is None else min(count + 1, len(input))
        return Shape((None,) * moved + input.dims[moved:])
    dims: list[Dim] = list(input.dims)
    total = product(int(block) for block in block_shape)
    if dims[0] is not None:
        if not into_batch and dims[0] % total:
            raise InvalidArgumentError(
                None, None, f"Input batch dimension ({dims[0]}) is not divisible by product of block sizes ({total})"
            )
        dims[0] = dims[0] * total if into_batch else dims[0] // total
    for i, block in enumerate(int(each) for each in block_shape):
        size = dims[1 + i]
        if size is None or margins is None:
            dims[1 + i] = None
            continue
        margin = int(margins[i].sum())
        if into_batch:
            if (size + margin) % block:
                raise InvalidArgumentError(
                    None, None, f"padded_shape[{i}]={size + margin} is not divisible by block_shape[{i}]={block}"
                )
            dims[1 + i] = (size + margin) // block
        else:
            if size * block < margin:
                raise InvalidArgumentError(
                    None, None, f"cropped_shape[{i}]={size * block - margin} must be non-negative"
                )
            dims[1 + i] = size * block - margin
    return Shape(dims)


def _block_count(op: Any) -> int | None:
    """The number of blocks. As in TensorFlow, it must be statically known."""
    found = op._inputs[1].static_shape
    if found.rank != 1:
        raise InvalidArgumentError(None, None, f"block_shape must have rank 1, found the shape {found}.")
    if not found.known:
        raise InvalidArgumentError(None, None, f"block_shape must have known size, found the shape {found}.")
    return found[0]


@SPACE_TO_BATCH_ND.shape(values=["block_shape", "paddings"])
def space_to_batch_nd_shape(input: Shape, block_shape: Any, paddings: Any, *, op: Any) -> Shape:
    return _blocked(input, _block_count(op), block_shape, paddings, into_batch=True)


@BATCH_TO_SPACE_ND.shape(values=["block_shape", "crops"])
def batch_to_space_nd_shape(input: Shape, block_shape: Any, crops: Any, *, op: Any) -> Shape:
    return _blocked(input, _block_count(op), block_shape, crops, into_batch=False)


@SPACE_TO_BATCH_ND.grad
def space_to_batch_nd_grad(op: Operation, g: Tensor) -> Any:
    return BATCH_TO_SPACE_ND(g, op.inputs[1], op.inputs[2]), None, None


@BATCH_TO_SPACE_ND.grad
def batch_to_space_nd_grad(op: Operation, g: Tensor) -> Any:
    return SPACE_TO_BATCH_ND(g, op.inputs[1], op.inputs[2]), None, None


@SPACE_TO_BATCH.kernel
def space_to_batch_kernel(input: Any, paddings: Any, *, block_size: int) -> Any:
    return space_to_batch_nd_kernel(input, [block_size] * 2, paddings)


@BATCH_TO_SPACE.kernel
def batch_to_space_kernel(input: Any, crops: Any, *, block_size: int) -> Any:
    return batch_to_space_nd_kernel(input, [block_size] * 2, crops)


@SPACE_TO_BATCH.shape(values=["paddings"])
def space_to_batch_shape(input: Shape, paddings: Any, *, block_size: int) -> Shape:
    return _blocked(input.of_rank(4), 2, [block_size] * 2, paddings, into_batch=True)


@BATCH_TO_SPACE.shape(values=["crops"])
def batch_to_space_shape(input: Shape, crops: Any, *, block_size: int) -> Shape:
    return _blocked(input.of_rank(4), 2, [block_size] * 2, crops, into_batch=False)


@SPACE_TO_BATCH.grad
def space_to_batch_grad(op: Operation, g: Tensor) -> Any:
    return BATCH_TO_SPACE(g, op.inputs[1], block_size=op.attr("block_size")), None


@BATCH_TO_SPACE.grad
def batch_to_space_grad(op: Operation, g: Tensor) -> Any:
    return SPACE_TO_BATCH(g, op.inputs[1], block_size=op.attr("block_size")), None


@export("space_to_batch_nd", v1="manip.space_to_batch_nd")
def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Moves blocks of the padded spatial dimensions into the batch dimension."""
    return SPACE_TO_BATCH_ND(input, block_shape, paddings, name=name)


@export(v1=("batch_to_space_nd", "manip.batch_to_space_nd"))
def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of `space_to_batch_nd`: moves batches back into blocks of the spatial dimensions, then crops."""
    return BATCH_TO_SPACE_ND(input, block_shape, crops, name=name)


def _block_argument(block_size: Any, block_shape: Any) -> np.ndarray | Any:
    if block_size is not None and block_shape is not None:
        raise ValueError("Cannot specify both 'block_size' and 'block_shape'.")
    block: Any = block_shape if block_size is None else block_size
    return np.array([block, block], dtype=np.int64)


@export(v1=("space_to_batch", "nn.space_to_batch"))
def space_to_batch(
    input: Any, paddings: Any, block_size: Any = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """Moves square blocks of an image's padded height and width into the batch dimension."""
    made = SPACE_TO_BATCH_ND(input, _block_argument(block_size, block_shape), paddings, name=name)
    made.set_shape(made.shape.with_rank(4))
    return made


@export(v2=("space_to_batch", "nn.space_to_batch"))
def space_to_batch_v2(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Moves blocks of the padded spatial dimensions into the batch dimension."""
    return SPACE_TO_BATCH_ND(input, block_shape, paddings, name=name)


@export(v1="batch_to_space")
def batch_to_space(input: Any, crops: Any, block_size: Any, name: str | None = None, block_shape: Any = None) -> Tensor:
    """The inverse of `space_to_batch`."""
    made = BATCH_TO_SPACE_ND(input, _block_argument(block_size, block_shape), crops, name=name or "BatchToSpace")
    made.set_shape(made.shape.with_rank(4))
    return made


@export(v2="batch_to_space")
def batch_to_space_v2(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of `space_to_batch`."""
    return BATCH_TO_SPACE_ND(input, block_shape, crops, name=name)


@export("required_space_to_batch_paddings")
def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Any, Any]:
    """Computes paddings that make the spatial sizes divisible by `block_shape`, and the crops that undo them.

    Returns:
        (paddings, crops), each [N, 2]. The paddings are at least `base_paddings`, with the surplus at the end.
    """
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes = convert_to_tensor(input_shape, dtypes.int32, name="input_shape")
        blocks = convert_to_tensor(block_shape, dtypes.int32, name="block_shape")
        blocks.shape.assert_is_fully_defined()
        blocks.shape.assert_has_rank(1)
        count = blocks.static_shape[0]
        if not count:
            empty = np.zeros((0, 2), np.int32)
            return constant(empty, name="paddings"), constant(empty, name="crops")
        base = np.zeros((count, 2), np.int32) if base_paddings is None else base_paddings
        base = convert_to_tensor(base, dtypes.int32, name="base_paddings")
        for each, wanted in ((sizes, Shape((count,))), (base, Shape((count, 2)))):
            if not each.static_shape.compatible(wanted):
                raise ValueError(f"Shapes {each.shape} and {wanted} are incompatible")
        known = [constant_value(each) for each in (sizes, blocks, base)]
        if all(each is not None for each in known):
            size, block, start = known
            if (block < 1).any():
                raise ValueError(f"block_shape must be positive, got {block.tolist()}")
            whole = size + start.sum(1)
            surplus = (block - whole % block) % block
            paddings = np.stack([start[:, 0], start[:, 1] + surplus], 1)
            crops = np.stack([np.zeros_like(surplus), surplus], 1)
            return constant(paddings, dtypes.int32, name="paddings"), constant(crops, dtypes.int32, name="crops")
        before, after = base[:, 0], base[:, 1]
        whole = sizes + before + after
        surplus = (blocks - whole % blocks) % blocks
        paddings = joining.PACK([before, after + surplus], axis=1, name="paddings")
        return paddings, joining.PACK([shaping.zeros_like(surplus), surplus], axis=1, name="crops")


# ---- SpaceToDepth, DepthToSpace ---------------------------------------------------------------------------------

_FORMATS = STRING("NHWC", allowed=("NHWC", "NCHW", "NCHW_VECT_C"))
SPACE_TO_DEPTH = define(
    "SpaceToDepth(input: T) -> (output: T)", T=ANY, block_size=INT32(minimum=2), data_format=_FORMATS
)
DEPTH_TO_SPACE = define(
    "DepthToSpace(input: T) -> (output: T)", T=ANY, block_size=INT32(minimum=2), data_format=_FORMATS
)


def _channels_last(data_format: str, rank: int) -> bool:
    if data_format == "NCHW_VECT_C":
        raise NotImplementedError(
            "SpaceToDepth and DepthToSpace of NCHW_VECT_C (int8 vectors on GPUs) are not supported."
        )
    if rank != 4:
        raise InvalidArgumentError(None, None, f"Input rank should be 4 instead of {rank}")
    return data_format == "NHWC"


@SPACE_TO_DEPTH.kernel
@rearranges
def space_to_depth_kernel(input: torch.Tensor, *, block_size: int, data_format: str) -> torch.Tensor:
    last = _channels_last(data_format, input.ndim)
    b = block_size
    n, h, w, c = input.shape if last else (input.shape[0], input.shape[2], input.shape[3], input.shape[1])
    if h % b or w % b:
        raise InvalidArgumentError(None, None, f"Image width {w} and height {h} should be divisible by block_size: {b}")
    if last:
        return fresh(
            input.reshape(n, h // b, b, w // b, b, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h // b, w // b, b * b * c),
            input,
        )
    return fresh(
        input.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4).reshape(n, b * b * c, h // b, w // b), input
    )


@DEPTH_TO_SPACE.kernel
@rearranges
def depth_to_space_kernel(input: torch.Tensor, *, block_size: int, data_format: str) -> torch.Tensor:
    last = _channels_last(data_format, input.ndim)
    b = block_size
    n, h, w, c = input.shape if last else (input.shape[0], input.shape[2], input.shape[3], input.shape[1])
    if c % (b * b):
        raise InvalidArgumentError(None, None, f"Input depth dimension {c} should be divisible by: {b * b}")
    c //= b * b
    if last:
        return fresh(input.reshape(n, h, w, b, b, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c), input)
    return fresh(input.reshape(n, b, b, c, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c, h * b, w * b), input)


def _depth_shape(input: Shape, block_size: int, data_format: str, *, to_depth: bool) -> Shape:
    dims: Any = input.of_rank(4).dims
    last = data_format == "NHWC"
    n, h, w, c = dims if last else (dims[0], dims[2], dims[3], dims[1])
    square = block_size * block_size
    if to_depth:
        for size in (h, w):
            if size is not None and size % block_size:
                raise InvalidArgumentError(
                    None, None, f"Image sizes {h} and {w} should be divisible by block_size {block_size}."
                )
        h, w = (None if size is None else size // block_size for size in (h, w))
        c = None if c is None else c * square
    else:
        if c is not None and c % square:
            raise InvalidArgumentError(None, None, f"Input depth dimension {c} should be divisible by: {square}")
        h, w = (None if size is None else size * block_size for size in (h, w))
        c = None if c is None else c // square
    return Shape((n, h, w, c) if last else (n, c, h, w))


@SPACE_TO_DEPTH.shape
def space_to_depth_shape(input: Shape, *, block_size: int, data_format: str) -> Shape:
    return _depth_shape(input, block_size, data_format, to_depth=True)


@DEPTH_TO_SPACE.shape
def depth_to_space_shape(input: Shape, *, block_size: int, data_format: str) -> Shape:
    return _depth_shape(input, block_size, data_format, to_depth=False)


@SPACE_TO_DEPTH.grad
def space_to_depth_grad(op: Operation, g: Tensor) -> Tensor:
    return DEPTH_TO_SPACE(g, block_size=op.attr("block_size"), data_format=op.attr("data_format"))


@DEPTH_TO_SPACE.grad
def depth_to_space_grad(op: Operation, g: Tensor) -> Tensor:
    return SPACE_TO_DEPTH(g, block_size=op.attr("block_size"), data_format=op.attr("data_format"))


@export(v1=("space_to_depth", "nn.space_to_depth"))
def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves square blocks of an image into its channels."""
    return SPACE_TO_DEPTH(input, block_size=block_size, data_format=data_format, name=name)


@export(v2="nn.space_to_depth")
def space_to_depth_v2(input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Moves square blocks of an image into its channels."""
    return space_to_depth(input, block_size, name, data_format)


@export(v1=("depth_to_space", "nn.depth_to_space"))
def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves channels of an image into square blocks."""
    return DEPTH_TO_SPACE(input, block_size=block_size, data_format=data_format, name=name)


@export(v2="nn.depth_to_space")
def depth_to_space_v2(input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Moves channels of an image into square blocks."""
    return depth_to_space(input, block_size, name, data_format)
