"""Cross entropies of logits: dense, sparse, sigmoid and weighted; and the Poisson loss."""

from __future__ import annotations

import math as scalars
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import Shape, broadcast
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, ranges, selection, shaping, slicing, value_checks
from stoker._src.ops.control_flow import assertions, grouping
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.nn.activations import relu
from stoker._src.ops.nn.softmax import LOG_SOFTMAX, SOFTMAX, merged_axis

_native = extension("stoker._src.ops.native.cross_entropy")

# ---- SoftmaxCrossEntropyWithLogits ------------------------------------------------------------------------------

SOFTMAX_CROSS_ENTROPY = define(
    "SoftmaxCrossEntropyWithLogits(features: rank<3 T, labels: rank<3 T) -> (loss: T, backprop: T)", T=FLOATS
)


@SOFTMAX_CROSS_ENTROPY.kernel
def softmax_cross_entropy_kernel(features: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if features.shape != labels.shape:
        try:
            features, labels = torch.broadcast_tensors(features, labels)
        except RuntimeError:
            raise InvalidArgumentError(
                None,
                None,
                f"logits and labels must be broadcastable: logits_size={list(features.shape)} "
                f"labels_size={list(labels.shape)}",
            ) from None
    if features.ndim != 2:
        raise InvalidArgumentError(None, None, f"logits must be 2-dimensional, but have shape {list(features.shape)}")
    if _native is not None and features.dtype is torch.float32 and features.is_cpu and features.numel():
        return _native_dense(features, labels)
    logarithms = torch.log_softmax(features, 1)
    loss = -torch.sum(labels * logarithms, 1)
    return loss, torch.exp(logarithms).sub_(labels)


def _native_dense(features: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes everything in one native pass."""
    rows, classes = features.shape
    loss, backprop = torch.empty(rows), torch.empty(rows, classes)
    _native.dense(loss, backprop, features.contiguous(), labels.contiguous(), rows, classes, torch.get_num_threads())
    return loss, backprop


@SOFTMAX_CROSS_ENTROPY.shape
def softmax_cross_entropy_shape(features: Shape, labels: Shape) -> tuple[Shape, Shape]:
    shape = broadcast(features, labels).of_rank(2)
    return Shape((shape[0],)), shape


def _scaled(vector: Tensor, matrix: Tensor) -> Tensor:
    """Multiplies each row of `matrix` by its element of `vector`."""
    return arithmetic.multiply(shaping.EXPAND_DIMS(vector, -1), matrix)


def _is_zero(g: Tensor) -> bool:
    """Whether `g` is a constant zero, which stands for an unused gradient."""
    maker = None if getattr(g, "is_eager", False) else g.op
    if maker is not None and maker.type == "ZerosLike":
        return True
    if maker is not None and maker.type == "Fill":
        g = maker.inputs[1]
    known = constant_value(g)
    return known is not None and not known.any()


def _through_probabilities(g: Tensor, logits: Tensor) -> Tensor:
    """The gradient of softmax(logits), given `g` for its output; for the second derivative."""
    probabilities = SOFTMAX(logits)
    total = reductions.reduce_sum(arithmetic.multiply(g, probabilities), 1, keepdims=True)
    return arithmetic.multiply(arithmetic.subtract(g, total), probabilities)


@SOFTMAX_CROSS_ENTROPY.grad
def softmax_cross_entropy_gradient(op: Operation, g_loss: Tensor, g_backprop: Tensor) -> tuple[Tensor, Tensor]:
    features = op.inputs[0]
    gradient = _scaled(g_loss, op.outputs[1])
    if not _is_zero(g_backprop):
        gradient = arithmetic.add(gradient, _through_probabilities(g_backprop, features))
    return gradient, _scaled(g_loss, unary_functions.negative(LOG_SOFTMAX(features)))


# ---- SparseSoftmaxCrossEntropyWithLogits ------------------------------------------------------------------------

SPARSE_SOFTMAX_CROSS_ENTROPY = define(
    "SparseSoftmaxCrossEntropyWithLogits(features: T, labels: Tlabels) -> (loss: T, backprop: T)",
    T=FLOATS,
    Tlabels=one_of(*INDEX, default=dtypes.int64),
)


@SPARSE_SOFTMAX_CROSS_ENTROPY.kernel
def sparse_softmax_cross_entropy_kernel(
    features: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    if features.dim() != 2 or labels.dim() != 1 or features.shape[0] != labels.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"logits and labels must have the same first dimension, got logits shape {list(features.shape)} "
            f"and labels shape {list(labels.shape)}",
        )
    classes = features.shape[1]
    if classes == 0:
        raise InvalidArgumentError(
            None, None, f"Must have at least one class, but got logits shape {list(features.shape)}"
        )
    if _native is not None and features.dtype is torch.float32 and features.device.type == "cpu":
        return _native_sparse(features, labels, classes)
    column = labels.to(torch.int64).unsqueeze(1)
    valid = None
    if column.device.type != "cpu":  # a check would wait for the device; the loss is NaN, as in TensorFlow
        valid = (column >= 0) & (column < classes)
        column = column.clamp(0, classes - 1)
    logarithms = torch.log_softmax(features, 1)
    try:
        loss = -torch.gather(logarithms, 1, column).squeeze(1)
    except RuntimeError:
        raise _no_class(labels, classes) from None
    backprop = torch.exp(logarithms).scatter_add_(
        1, column, column.new_full((), -1, dtype=features.dtype).expand_as(column)
    )
    if valid is not None:
        nan = features.new_full((), float("nan"))
        loss, backprop = torch.where(valid.squeeze(1), loss, nan), torch.where(valid, backprop, nan)
    return loss, backprop


def _native_sparse(features: torch.Tensor, labels: torch.Tensor, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Computes everything in one native pass. With few classes, separate torch calls take many times as long."""
    rows = features.shape[0]
    loss, backprop = torch.empty(rows), torch.empty(features.shape)
    given = (features.contiguous(), labels.to(torch.int64).contiguous())
    if _native.sparse(loss, backprop, *given, rows, classes, torch.get_num_threads()) >= 0:
        raise _no_class(labels, classes)
    return loss, backprop


def _no_class(labels: torch.Tensor, classes: int) -> InvalidArgumentError:
    bad = next(value for value in labels.tolist() if not 0 <= value < classes)
    shown = " ".join(str(value) for value in labels[:100].tolist())
    return InvalidArgumentError(
        None,
        None,
        f"Received a label value of {bad} which is outside the valid range of [0, {classes}).  Label values: {shown}",
    )


@SPARSE_SOFTMAX_CROSS_ENTROPY.shape
def sparse_softmax_cross_entropy_shape(features: Shape, labels: Shape) -> tuple[Shape, Shape]:
    features, labels = features.of_rank(2), labels.of_rank(1)
    batch = Shape((features[0],)).merge(labels)
    return batch, Shape((batch[0], features[1]))


@SPARSE_SOFTMAX_CROSS_ENTROPY.grad
def sparse_softmax_cross_entropy_gradient(op: Operation, g_loss: Tensor, g_backprop: Tensor) -> tuple[Tensor, None]:
    gradient = _scaled(g_loss, op.outputs[1])
    if not _is_zero(g_backprop):
        gradient = arithmetic.add(gradient, _through_probabilities(g_backprop, op.inputs[0]))
    return gradient, None


# ---- public functions -------------------------------------------------------------------------------------------


def _required(name: str, sentinel: Any, **arguments: Any) -> None:
    if sentinel is not None:
        raise ValueError(f"Only call `{name}` with named arguments (labels=..., logits=..., ...)")
    for key, value in arguments.items():
        if value is None:
            raise ValueError(f"Both labels and logits must be provided ({key} is missing).")


def _wide(logits: Tensor) -> Tensor:
    """Converts float16 and bfloat16 logits to float32, in which TensorFlow computes these losses."""
    return (
        casting.cast(logits, dtypes.float32) if logits.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16) else logits
    )


def _class_last(x: Tensor, axis: int) -> Tensor:
    rank = x.static_shape.rank
    order: Any
    if rank is None:
        count = ranges.rank(x)
        at = axis if axis >= 0 else arithmetic.add(count, axis)
        order = joining.concat(
            [ranges.range(at), ranges.range(arithmetic.add(at, 1), count), shaping.expand_dims(at, 0)], 0
        )
    else:
        axis = value_checks.static_axis(x, axis)
        order = [i for i in range(rank) if i != axis] + [axis]
    return shaping.transpose(x, order)


def _dense(labels: Any, logits: Any, axis: int, name: str | None, default: str) -> Tensor:
    with name_scope(name, default, [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        precise = _wide(logits)
        labels = casting.cast(labels, precise.dtype.base_dtype)
        rank = precise.static_shape.rank
        if axis != -1 and axis != (rank or 0) - 1:
            precise, labels = _class_last(precise, axis), _class_last(labels, axis)
        if rank == 2 and labels.static_shape.rank == 2:
            loss = SOFTMAX_CROSS_ENTROPY(precise, labels, name=scope).loss
            # TensorFlow's result is a Reshape of that name, which is a no-op for matrices.
            loss = shaping.identity(loss, name="Reshape_2")
        else:
            sizes = shaping.shape(precise)
            flat = [shaping.reshape(x, _rows(x)) for x in (precise, labels)]
            loss = SOFTMAX_CROSS_ENTROPY(*flat, name=scope).loss
            loss = shaping.reshape(loss, slicing.SLICE(sizes, [0], _one_less(precise)), name="Reshape_2")
            if precise.static_shape.rank is not None:
                loss.set_shape(precise.static_shape[:-1])
        return casting.cast(loss, logits.dtype.base_dtype)


def _rows(x: Tensor) -> Any:
    """Sizes that make `x` a matrix of rows along its last dimension."""
    last = x.static_shape[-1] if x.static_shape.rank else None
    if last is not None and last > 0:
        return [-1, last]
    sizes = shaping.shape(x)
    tail = slicing.SLICE(sizes, _one_less(x), [1])
    return joining.concat([[-1], tail], 0)


def _one_less(x: Tensor) -> Any:
    rank = x.static_shape.rank
    return [rank - 1] if rank is not None else joining.PACK([arithmetic.subtract(ranges.rank(x), 1)])


@export(v1="nn.softmax_cross_entropy_with_logits_v2")
def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: Any = None, name: str | None = None, dim: Any = None
) -> Tensor:
    """The cross entropy of softmax(logits) with `labels` (distributions along `axis`). Both have gradients."""
    axis = merged_axis(axis, dim)
    return _dense(labels, logits, -1 if axis is None else axis, name, "softmax_cross_entropy_with_logits")


@export(v2="nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits_2x(labels: Any, logits: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """The cross entropy of softmax(logits) with `labels` (distributions along `axis`). Both have gradients."""
    return _dense(labels, logits, axis, name, "softmax_cross_entropy_with_logits")


@export(v1="nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    dim: Any = -1,
    name: str | None = None,
    axis: Any = None,
    _sentinel: Any = None,
) -> Tensor:
    """The cross entropy of softmax(logits) with `labels`. The labels have no gradient."""
    _required("softmax_cross_entropy_with_logits", _sentinel, labels=labels, logits=logits)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = shaping.stop_gradient(labels, name="labels_stop_gradient")
        axis = dim if axis is None else axis
        return _dense(labels, logits, -1 if axis is None else axis, scope, "softmax_cross_entropy_with_logits_sg")


def _sparse(labels: Any, logits: Any, name: str | None) -> Tensor:
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels = convert_to_tensor(labels)
        logits = convert_to_tensor(logits)
        precise = _wide(logits)
        found, expected = labels.static_shape, logits.static_shape
        if expected.rank == 0:
            raise ValueError(f"`logits` cannot be a scalar. Received logits={logits}`")
        if found.rank is not None and expected.rank is not None and found.rank != expected.rank - 1:
            raise ValueError(
                "`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: "
                f"labels.shape={labels.shape} of rank {found.rank} and logits.shape={logits.shape} of rank {expected.rank}"
            )
        if found.known and expected.known and not found.compatible(expected[:-1]):
            raise ValueError(
                "`labels.shape` must equal `logits.shape` except for the last dimension. Received: "
                f"labels.shape={labels.shape} and logits.shape={logits.shape}"
            )
        if expected.rank == 2:
            loss = SPARSE_SOFTMAX_CROSS_ENTROPY(precise, labels, name=name).loss
        else:
            sizes = shaping.shape(labels)
            if not (found.known and expected.known):
                fits = comparison.equal(sizes, shaping.shape(logits)[:-1])
                check = assertions.assert_op(reductions.reduce_all(fits), ["labels and logits do not fit:", sizes])
                labels = labels if check is None else grouping.with_dependencies([check], labels)
            matrix, vector = shaping.reshape(precise, _rows(precise)), shaping.reshape(labels, [-1])
            loss = SPARSE_SOFTMAX_CROSS_ENTROPY(matrix, vector, name=name).loss
            loss = shaping.reshape(loss, sizes)
            loss.set_shape(found)
        return casting.cast(loss, logits.dtype.base_dtype)


@export(v1="nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None, _sentinel: Any = None
) -> Tensor:
    """The cross entropy of softmax(logits) with class indices `labels`, in the shape of the labels.

    Raises:
        ValueError: the shapes are incompatible.
    """
    _required("sparse_softmax_cross_entropy_with_logits", _sentinel, labels=labels, logits=logits)
    return _sparse(labels, logits, name)


@export(v2="nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits_v2(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """The cross entropy of softmax(logits) with class indices `labels`, in the shape of the labels."""
    return _sparse(labels, logits, name)


def _same_shape(logits: Tensor, other: Tensor, label: str) -> None:
    if not logits.static_shape.compatible(other.static_shape):
        raise ValueError(
            f"`logits` and `{label}` must have the same shape, received ({logits.shape} vs {other.shape})."
        )


@export(v1="nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    name: str | None = None,
    _sentinel: Any = None,
    targets: Any = None,
) -> Tensor:
    """max(x, 0) - x * z + log(1 + exp(-abs(x))) for logits x and labels z, element by element."""
    if targets is not None:
        if labels is not None:
            raise ValueError("Cannot specify both 'labels' and 'targets'.")
        labels = targets
    _required("sigmoid_cross_entropy_with_logits", _sentinel, labels=labels, logits=logits)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        x = convert_to_tensor(logits, name="logits")
        z = convert_to_tensor(labels, name="labels")
        _same_shape(x, z, "labels")
        zeros = shaping.zeros_like(x)
        positive = comparison.GREATER_EQUAL(x, zeros)
        # Uses selects rather than max and abs, whose gradients are wrong at 0.
        clipped = selection.SELECT(positive, x, zeros)
        below = selection.SELECT(positive, unary_functions.negative(x), x)
        return arithmetic.add(clipped - x * z, unary_functions.LOG1P(unary_functions.exp(below)), name=scope)


@export(v2="nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits_v2(labels: Any = None, logits: Any = None, name: str | None = None) -> Tensor:
    """max(x, 0) - x * z + log(1 + exp(-abs(x))) for logits x and labels z, element by element."""
    return sigmoid_cross_entropy_with_logits(labels, logits, name)


@export(v2="nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits_v2(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Tensor:
    """The sigmoid cross entropy in which the positive-label term is multiplied by `pos_weight`."""
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        x = convert_to_tensor(logits, name="logits")
        z = convert_to_tensor(labels, name="labels")
        _same_shape(x, z, "labels")
        weight = 1 + (pos_weight - 1) * z
        softened = unary_functions.LOG1P(unary_functions.exp(unary_functions.negative(unary_functions.ABS(x)))) + relu(
            unary_functions.negative(x)
        )
        return arithmetic.add((1 - z) * x, weight * softened, name=scope)


@export(v1="nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: str | None = None, targets: Any = None
) -> Tensor:
    """The sigmoid cross entropy in which the positive-label term is multiplied by `pos_weight`."""
    if targets is not None:
        if labels is not None:
            raise ValueError("Cannot specify both 'labels' and 'targets'.")
        labels = targets
    return weighted_cross_entropy_with_logits_v2(labels, logits, pos_weight, name)


@export("nn.log_poisson_loss")
def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """exp(log_input) - log_input * targets. `compute_full_loss` adds Stirling's approximation for targets above 1."""
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        c = convert_to_tensor(log_input, name="log_input")
        z = convert_to_tensor(targets, name="targets")
        _same_shape(c, z, "targets")
        result = unary_functions.exp(c) - c * z
        if compute_full_loss:
            dtype = z.dtype.base_dtype
            stirling = (
                z * unary_functions.log(z)
                - z
                + convert_to_tensor(0.5, dtype) * unary_functions.log(convert_to_tensor(2 * scalars.pi, dtype) * z)
            )
            zeros, ones = shaping.zeros_like(z), shaping.ones_like(z)
            small = comparison.LOGICAL_AND(comparison.GREATER_EQUAL(z, zeros), comparison.LESS_EQUAL(z, ones))
            result = result + selection.SELECT(small, zeros, stirling)
        return result
