"""Contractions over named dimensions: Einsum and tensordot."""

from __future__ import annotations

import math
import re
import string
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Dim, Shape, merge_dims
from stoker._src.base.shapes import broadcast as broadcast_shapes
from stoker._src.graph.conversion import convert_to_tensor, dtype_of
from stoker._src.graph.definition import ANY, INT, STRING, define
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import broadcasting, casting, gathering, joining, ranges, selection, shaping, value_checks
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import arithmetic, comparison, masking, reductions, unary_functions

# ---- Einsum -----------------------------------------------------------------------------------------------------

EINSUM = define("Einsum(inputs: N * T) -> (output: T)", equation=STRING, N=INT(minimum=1), T=ANY)


def _parts(equation: str) -> tuple[list[str], str]:
    """The labels of each input and of the output. Raises InvalidArgumentError if the equation is invalid."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    if not arrow:
        raise InvalidArgumentError(None, None, f"Expecting exactly one '->' in einsum equation: {equation}")
    for labels in (*inputs, right):
        if not re.fullmatch(r"[a-zA-Z]*(\.\.\.)?[a-zA-Z]*", labels):
            raise InvalidArgumentError(None, None, f"Invalid labels {labels!r} in einsum equation: {equation}")
    missing = set(right.replace("...", "")) - set(left)
    if missing or len(set(right.replace("...", ""))) != len(right.replace("...", "")):
        raise InvalidArgumentError(
            None, None, f"The output labels of einsum equation {equation} must be inputs', each once."
        )
    return inputs, right


@EINSUM.kernel
def einsum_kernel(inputs: list[torch.Tensor], *, equation: str) -> torch.Tensor:
    parts, _ = _parts(equation)
    if len(parts) != len(inputs):
        raise InvalidArgumentError(
            None, None, f"Expected {len(parts)} inputs for equation {equation} but got: {len(inputs)}"
        )
    einsum_shape([Shape(each.shape) for each in inputs], equation=equation)
    kind = inputs[0].dtype
    if not (kind.is_floating_point or kind.is_complex or kind in (torch.bool, torch.int64)):
        # torch widens only some integer sums, so all are computed in 64 bits.
        wide = [each.view(torch.int64) if kind is torch.uint64 else each.long() for each in inputs]
        result = torch.einsum(equation, *wide).contiguous()
        return result.view(kind) if kind is torch.uint64 else result.to(kind)
    result = torch.einsum(equation, *inputs)
    # A mere permutation or diagonal is a view of the input.
    return result.clone() if len(inputs) == 1 else result


def einsum_shape(inputs: list[Shape], *, equation: str) -> Shape:
    parts, output = _parts(equation)
    if len(parts) != len(inputs):
        raise InvalidArgumentError(
            None, None, f"Expected {len(parts)} inputs for equation {equation} but got: {len(inputs)}"
        )
    sizes: dict[str, Dim] = {}
    spread: Shape = Shape(())
    known = True
    for labels, shape in zip(parts, inputs):
        head, dots, tail = labels.partition("...")
        if shape.dims is None:
            known = known and not dots
            continue
        rank = len(shape)
        if rank < len(head) + len(tail) or (not dots and rank != len(head)):
            raise InvalidArgumentError(
                None, None, f"Einsum labels {labels!r} do not fit a shape of rank {rank}: {shape}."
            )
        middle = shape[len(head) : rank - len(tail)]
        if dots:
            spread = broadcast_shapes(spread, middle)
        pairs = [*zip(head, shape.dims), *zip(tail, shape.dims[rank - len(tail) :])]
        for label, size in pairs:
            sizes[label] = merge_dims(sizes.get(label), size, *inputs)
    head, dots, tail = output.partition("...")
    if dots and not known:
        return UNKNOWN_SHAPE
    dims = [sizes.get(label) for label in head], [sizes.get(label) for label in tail]
    return Shape([*dims[0], *(spread if dots else ()), *dims[1]])


EINSUM.shape(einsum_shape)


@EINSUM.lower
def einsum_lower(build: Any, op: Operation, inputs: list[Any]) -> Any:
    """Two operands are one product of matrices, or as many as the labels of both operands and the result have elements."""
    parts, output = _parts(op.attr("equation"))
    sizes: dict[str, int] = {}
    for labels, x in zip(parts, inputs):
        if "." in labels or len(set(labels)) < len(labels) or len(labels) != len(x.shape):
            return None
        if any(sizes.setdefault(label, size) != size for label, size in zip(labels, x.shape)):
            return None
    if len(parts) != 2 or len(inputs) != 2:
        return None
    first, second = parts
    both = [label for label in output if label in first and label in second]
    rows = [label for label in output if label not in second]
    columns = [label for label in output if label not in first]
    inner = [label for label in first if label in second and label not in output]
    if len(both + rows + inner) < len(first) or len(both + columns + inner) < len(second):
        return None  # there is a sum over one operand alone
    left = _as_matrices(build, inputs[0], first, both, rows, inner)
    right = _as_matrices(build, inputs[1], second, both, inner, columns)
    if left is None or right is None:
        return None
    product = build.matmul(left[0], right[0], transpose_a=left[1], transpose_b=right[1])
    if product is None:
        return None
    made = [*both, *rows, *columns]
    result = build.reshape(product, tuple(sizes[label] for label in made))
    order = [made.index(label) for label in output]
    return result if order == sorted(order) else build.transpose(result, order)


def _as_matrices(build: Any, x: Any, labels: str, outer: list[str], rows: list[str], columns: list[str]) -> Any:
    """An operand as matrices, and whether they are transposed; None if they cannot be copied."""
    sizes = dict(zip(labels, x.shape))
    is_transposed = [*labels] == [*outer, *columns, *rows]
    groups = (outer, columns, rows) if is_transposed else (outer, rows, columns)
    order = [labels.index(label) for group in groups for label in group]
    if order != sorted(order):
        x = build.transpose(x, order)
    shape = tuple(math.prod(sizes[label] for label in group) for group in groups)
    return None if x is None else (build.reshape(x, shape if outer else shape[1:]), is_transposed)


@EINSUM.grad
def einsum_grad(op: Operation, g: Tensor) -> Any:
    """The gradient of an input is an einsum of the output's gradient with the other input.

    The gradient is broadcast along labels that occur only in this input, because they were summed. A label that occurs twice in
    this input selected a diagonal, so the gradient is scattered into that diagonal.
    """
    parts, output = _parts(op.attr("equation"))
    if len(parts) > 2:
        raise NotImplementedError("The gradient of an Einsum op of more than two inputs (tf.einsum makes ops of two).")
    results = []
    for i, labels in enumerate(parts):
        others = [(parts[j], op.inputs[j]) for j in range(len(parts)) if j != i]
        results.append(_input_gradient(g, output, labels, op.inputs[i], others))
    return results


def _input_gradient(g: Tensor, output: str, labels: str, x: Tensor, others: list[tuple[str, Tensor]]) -> Tensor:
    plain = labels.replace("...", "")
    dots = "..." in labels
    distinct = "".join(dict.fromkeys(plain))
    available = set(output.replace("...", "")) | {label for other, _ in others for label in other}
    found = [label for label in distinct if label in available]
    lost = [label for label in distinct if label not in available]
    wide = "..." in output or any("..." in other for other, _ in others)
    target = ("..." if wide else "") + "".join(found)
    equation = ",".join([output, *(other for other, _ in others)]) + "->" + target
    operands = [g, *(unary_functions.conj(tensor) for _, tensor in others)]
    gradient = EINSUM(operands, equation=equation)
    sizes = shaping.shape(x)
    positions = _positions(labels)
    if wide:
        gradient = _unspread(gradient, x, labels, len(found))
    if lost:
        # To broadcast along labels that occur only in this input, append dimensions and expand them.
        count = len(lost)
        flat = shaping.reshape(gradient, joining.concat([shaping.shape(gradient), [1] * count], 0))
        wanted = [sizes[positions[label]] for label in lost]
        full = joining.concat(
            [shaping.shape(gradient), joining.PACK([casting.cast(w, dtypes.int32) for w in wanted])], 0
        )
        gradient = ranges.broadcast_to(flat, full)
    order = ("..." if dots else "") + "".join(found) + "".join(lost)
    if len(distinct) != len(plain):
        return _put_diagonal(gradient, order, labels, x)
    if order != labels:
        gradient = EINSUM([gradient], equation=f"{order}->{labels}")
    return gradient


def _positions(labels: str) -> dict[str, int]:
    """The dimension of each label, counted from the front (or from the end, after '...')."""
    head, _, tail = labels.partition("...")
    places = {label: i for i, label in enumerate(head)}
    places.update({label: i - len(tail) for i, label in enumerate(tail)})
    return places


def _unspread(gradient: Tensor, x: Tensor, labels: str, named: int) -> Tensor:
    """Sums the broadcast dimensions (those of '...', at the front) to the sizes of this input."""
    head, dots, tail = labels.partition("...")
    sizes = shaping.shape(x)
    begin, end = len(head), -len(tail) or None
    own = sizes[begin:end] if dots else sizes[:0]
    now = shaping.shape(gradient)
    count = gradient.static_shape.rank
    front = now[: count - named] if count is not None else now[: shaping.shape(now)[0] - named]
    if not dots:
        known_own = Shape(())
    else:
        known_own = UNKNOWN_SHAPE if x.static_shape.rank is None else x.static_shape[begin:end]
    known_now = gradient.static_shape[: count - named] if count is not None else UNKNOWN_SHAPE
    if known_own.known and known_own == known_now:
        return gradient
    axes, _ = broadcasting.BROADCAST_GRADIENT_ARGS(own, front)
    summed = reductions.SUM(gradient, axes)
    rest = now[count - named :] if count is not None else now[shaping.shape(now)[0] - named :]
    return shaping.reshape(summed, joining.concat([own, rest], 0))


def _put_diagonal(gradient: Tensor, order: str, labels: str, x: Tensor) -> Tensor:
    """Scatters a gradient with distinct labels into the diagonal of an input that repeats a label."""
    fresh = iter(letter for letter in string.ascii_letters if letter not in labels)
    seen: set[str] = set()
    current, target = order, ""
    sizes = shaping.shape(x)
    head, dots, tail = labels.partition("...")
    places = [*enumerate(head), *([(0, dots)] if dots else []), *zip(range(-len(tail), 0), tail)]
    for i, label in places:
        if label not in seen:
            seen.add(label)
            target += label
            continue
        other = next(fresh)
        eye = shaping.reshape(ranges.range(0, sizes[i]), [-1, 1])
        mask = casting.cast(comparison.equal(eye, shaping.reshape(eye, [1, -1])), gradient.dtype.base_dtype)
        gradient = EINSUM([gradient, mask], equation=f"{current},{label}{other}->{current}{other}")
        current += other
        target += other
    return gradient if current == target else EINSUM([gradient], equation=f"{current}->{target}")


def _with_output(equation: str) -> str:
    """The equation with an explicit output. By default, these are the labels that occur once, in alphabetical order."""
    equation = equation.replace(" ", "")
    if "->" in equation:
        return equation
    labels = equation.replace(",", "").replace("...", "")
    once = "".join(sorted(label for label in set(labels) if labels.count(label) == 1))
    return f"{equation}->{'...' if '...' in equation else ''}{once}"


@export("einsum", "linalg.einsum")
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Sums products of tensors over the labels that are missing in the output: `einsum('ij,jk->ik', a, b)` is matmul.

    More than two inputs are contracted pairwise, the cheapest pair first.

    Args:
        equation: The dimension labels of each input and, after '->', of the output. '...' stands for broadcast dimensions.
        *inputs: The tensors.
        **kwargs: `name`; `optimize`, which is accepted and has no effect.

    Raises:
        TypeError: an unknown keyword.
        ValueError: the equation does not match the inputs.
    """
    name = kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError(f"Invalid keyword arguments for einsum: {', '.join(kwargs)}. Valid arguments: name, optimize")
    with name_scope(name, "einsum", [*inputs]):
        kind = next((each.dtype.base_dtype for each in inputs if isinstance(each, Tensor)), None)
        tensors = [convert_to_tensor(each, None if isinstance(each, Tensor) else kind) for each in inputs]
        full = _with_output(equation)
        try:
            parts, output = _parts(full)
        except InvalidArgumentError as error:
            raise ValueError(error.message) from None
        if len(parts) != len(tensors):
            raise ValueError(f'Got {len(tensors)} inputs for equation "{equation}", expecting {len(parts)}')
        terms = list(zip(parts, tensors))
        while len(terms) > 2:
            terms = _contract_cheapest(terms, output)
        return EINSUM([tensor for _, tensor in terms], equation=",".join(part for part, _ in terms) + "->" + output)


def _contract_cheapest(terms: list[tuple[str, Tensor]], output: str) -> list[tuple[str, Tensor]]:
    """Contracts the pair of inputs whose result is smallest, as far as sizes are known."""
    best: tuple[float, int, int, str] | None = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            rest = output + "".join(part for k, (part, _) in enumerate(terms) if k not in (i, j))
            labels = dict.fromkeys((terms[i][0] + terms[j][0]).replace("...", ""))
            kept = "".join(label for label in labels if label in rest)
            cost = 1.0
            for label in kept:
                cost *= _label_size(label, terms[i]) or _label_size(label, terms[j]) or 10
            if best is None or cost < best[0]:
                best = (cost, i, j, kept)
    assert best is not None
    _, i, j, kept = best
    dots = "..." if "..." in terms[i][0] + terms[j][0] else ""
    merged = EINSUM([terms[i][1], terms[j][1]], equation=f"{terms[i][0]},{terms[j][0]}->{dots}{kept}")
    return [term for k, term in enumerate(terms) if k not in (i, j)] + [(dots + kept, merged)]


def _label_size(label: str, term: tuple[str, Tensor]) -> int | None:
    labels, tensor = term
    if label not in labels or tensor.static_shape.rank is None:
        return None
    return tensor.static_shape[_positions(labels)[label]]


# ---- tensordot --------------------------------------------------------------------------------------------------


def _contracted(axes: Any, a: Tensor, b: Tensor) -> tuple[Any, Any]:
    """The dimensions of each operand to sum over.

    Raises:
        ValueError: the axes do not match the operands.
    """
    if isinstance(axes, (int, np.integer)) and not isinstance(axes, bool):
        count = int(axes)
        if count < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {axes}.")
        rank = a.static_shape.rank
        if rank is not None:
            if count > rank:
                raise ValueError(
                    f"`axes` must not be larger than the number of dimensions of tensor {a}. Received {axes}, vs tensor dimensions {rank}."
                )
            return list(range(rank - count, rank)), list(range(count))
        here = ranges.rank(a)
        return ranges.range(arithmetic.subtract(here, count), here), ranges.range(0, count)
    if isinstance(axes, (list, tuple)):
        if len(axes) != 2:
            raise ValueError(f"`axes` must be an integer or have length 2. Received {axes}.")
        first, second = axes
        if isinstance(first, (int, np.integer)) != isinstance(second, (int, np.integer)) and not isinstance(
            first, Tensor
        ):
            raise ValueError(f"Different number of contraction axes `a` and `b`, {first} != {second}.")
        if isinstance(first, (int, np.integer)):
            first, second = [int(first)], [int(second)]
        if not isinstance(first, Tensor) and len(first) != len(second):
            raise ValueError(f"Different number of contraction axes `a` and `b`, {len(first)} != {len(second)}.")
        return first, second
    pair = convert_to_tensor(axes, name="axes", dtype=dtypes.int32)
    return pair[0], pair[1]


def _as_matrix(x: Tensor, axes: Any, last: bool) -> tuple[Tensor, Any, Shape]:
    """x as a matrix with the contracted dimensions last (or first), and the sizes of the other dimensions."""
    shape = x.static_shape
    if shape.rank is not None and isinstance(axes, (list, tuple)):
        inner = [value_checks.static_axis(x, int(axis)) for axis in axes]
        free = [i for i in range(len(shape)) if i not in inner]
        order = free + inner if last else inner + free
        turned = x if order == list(range(len(order))) else shaping.transpose(x, order)
        free_shape, inner_shape = Shape(shape[i] for i in free), Shape(shape[i] for i in inner)
        if free_shape.known and inner_shape.known:
            sizes = [free_shape.size, inner_shape.size]
            flat = shaping.reshape(turned, sizes if last else sizes[::-1])
            return (turned if turned.static_shape == flat.static_shape else flat), list(free_shape), free_shape
        all_sizes = shaping.SHAPE_OP(x)
        free_sizes = gathering.GATHER_V2(all_sizes, np.array(free, np.int32), 0)
        inner_total = reductions.reduce_prod(gathering.GATHER_V2(all_sizes, np.array(inner, np.int32), 0))
        total = reductions.reduce_prod(free_sizes)
        flat = shaping.reshape(turned, joining.PACK([total, inner_total] if last else [inner_total, total]))
        return flat, free_sizes, free_shape
    count = ranges.rank(x)
    inner_axes = convert_to_tensor(axes, dtypes.int32, name="axes")
    inner_axes = selection.SELECT_V2(comparison.less(inner_axes, 0), arithmetic.add(inner_axes, count), inner_axes)
    every = ranges.range(0, count)
    is_free = comparison.logical_not(
        reductions.reduce_any(comparison.equal(shaping.reshape(inner_axes, [-1, 1]), every), 0)
    )
    free = masking.boolean_mask(every, is_free)
    all_sizes = shaping.SHAPE_OP(x)
    free_sizes = gathering.GATHER_V2(all_sizes, free, 0)
    total = reductions.reduce_prod(free_sizes)
    inner_total = reductions.reduce_prod(gathering.GATHER_V2(all_sizes, inner_axes, 0))
    order = joining.concat([free, inner_axes] if last else [inner_axes, free], 0)
    flat = shaping.reshape(
        shaping.transpose(x, order), joining.PACK([total, inner_total] if last else [inner_total, total])
    )
    return flat, free_sizes, UNKNOWN_SHAPE


@export("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Contracts dimensions of `a` with dimensions of `b`: the sum of their products.

    Args:
        a: A tensor.
        b: A tensor of the same dtype.
        axes: A number n (the last n of `a` with the first n of `b`), or a pair of lists of dimensions.
        name: A name for the scope.

    Raises:
        ValueError: the axes do not match.
    """
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, dtype_hint=a.dtype.base_dtype if dtype_of(b) is None else None, name="b")
        axes_a, axes_b = _contracted(axes, a, b)
        left, free_a, shape_a = _as_matrix(a, axes_a, True)
        right, free_b, shape_b = _as_matrix(b, axes_b, False)
        product = matrix_products.matmul(left, right)
        if isinstance(free_a, list) and isinstance(free_b, list):
            sizes = free_a + free_b
            if product.static_shape.dims == tuple(sizes):
                return product
            return shaping.reshape(product, np.array(sizes, np.int32), name=scope)
        parts = [convert_to_tensor(part, dtypes.int32) for part in (free_a, free_b)]
        result = shaping.reshape(product, joining.concat(parts, 0), name=scope)
        result.set_shape(shape_a.concat(shape_b))
        return result
