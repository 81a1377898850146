"""Stochastic dual coordinate ascent for linear models (Shalev-Shwartz and Zhang, 2013), with L1 and L2 regularization.

For every example there is a dual variable. A step takes one example, moves its dual variable to the optimum with all others
fixed, and moves the weights accordingly: w += x * (change of the dual) * weight / l2. Predictions use weights shrunk by l1 / l2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.formats.fingerprint128 import fingerprint128
from stoker._src.graph.definition import FLOAT, INT, STATEFUL, STRING, WRITES, OpDefinition, define
from stoker._src.ops.state import VariableState

# ---- losses -----------------------------------------------------------------------------------------------------


def _root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function that changes its sign between two ends is zero."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 0.5 * (low + high)


@dataclass(frozen=True)
class _Loss:
    """A loss of a prediction p and label y, its dual, and the optimal dual variable.

    `update(dual, y, p, curvature)` is the dual variable that is best when a change by d moves the prediction by
    d * curvature.
    """

    primal: Callable[[float, float], float]
    dual: Callable[[float, float], float]
    update: Callable[[float, float, float, float], float]
    label: Callable[[float], float]


def _any_label(label: float) -> float:
    return label


def _side(label: float) -> float:
    if label not in (0.0, 1.0):
        raise InvalidArgumentError(
            None, None, f"Only labels of 0.0 or 1.0 are supported right now. Found example with label: {label:g}"
        )
    return 2 * label - 1


def _count(label: float) -> float:
    if label < 0:
        raise InvalidArgumentError(
            None,
            None,
            f"Only non-negative labels can be used with the Poisson log loss. Found example with label: {label:g}",
        )
    return label


def _clamped(candidate: float, y: float) -> float:
    """The dual variable of a hinge: between 0 and the side of the label."""
    return y * min(max(y * candidate, 0.0), 1.0)


def _entropy(share: float) -> float:
    return 0.0 if share <= 0 or share >= 1 else share * math.log(share) + (1 - share) * math.log1p(-share)


def _logistic_update(dual: float, y: float, p: float, curvature: float) -> float:
    before = y * dual
    share = _root(lambda a: math.log(a) - math.log1p(-a) + y * p + (a - before) * curvature, 1e-300, 1 - 1e-16)
    return y * share


def _smooth_hinge(p: float, y: float) -> float:
    margin = y * p
    return 0.0 if margin >= 1 else 0.5 - margin if margin <= 0 else 0.5 * (1 - margin) ** 2


def _poisson_dual(dual: float, y: float) -> float:
    rate = y - dual
    return rate * (math.log(rate) - 1) if rate > 0 else 0.0


def _poisson_update(dual: float, y: float, p: float, curvature: float) -> float:
    # With r = y - dual the optimum is where log(r) = p + (y - r - before) * curvature.
    def slope(log_rate: float) -> float:
        return log_rate - p - (y - math.exp(log_rate) - dual) * curvature

    return y - math.exp(_root(slope, -700.0, min(700.0, max(p, p + (y - dual) * curvature) + 1)))


_LOSSES = {
    "squared_loss": _Loss(
        primal=lambda p, y: 0.5 * (p - y) ** 2,
        dual=lambda a, y: a * (0.5 * a - y),
        update=lambda a, y, p, c: a + (y - p - a) / (1 + c),
        label=_any_label,
    ),
    "hinge_loss": _Loss(
        primal=lambda p, y: max(0.0, 1 - y * p),
        dual=lambda a, y: -a * y,
        update=lambda a, y, p, c: _clamped(a + (y - p) / c, y) if c else _clamped(math.inf if y * p < 1 else 0.0, y),
        label=_side,
    ),
    "smooth_hinge_loss": _Loss(
        primal=_smooth_hinge,
        dual=lambda a, y: -a * y + 0.5 * a * a,
        update=lambda a, y, p, c: _clamped(a + (y - p - a) / (c + 1), y),
        label=_side,
    ),
    "logistic_loss": _Loss(
        primal=lambda p, y: float(np.logaddexp(0.0, -y * p)),
        dual=lambda a, y: _entropy(a * y),
        update=_logistic_update,
        label=_side,
    ),
    "poisson_loss": _Loss(
        primal=lambda p, y: math.exp(p) - p * y, dual=_poisson_dual, update=_poisson_update, label=_count
    ),
}

# ---- the solver -------------------------------------------------------------------------------------------------


class _Group:
    """Features that share a vector of weights: for each example its positions in it (None for all) and values."""

    def __init__(self, weights: np.ndarray, rows: list[tuple[Any, np.ndarray]]) -> None:
        self.weights = weights
        self.delta = np.zeros_like(weights)
        self.rows = rows

    def product(self, example: int, shrink: float, ahead: float) -> float:
        """x . shrunk(w + ahead * delta) for one example."""
        at, values = self.rows[example]
        weights = self.weights[at] + ahead * self.delta[at]
        return float(values @ (np.sign(weights) * np.maximum(np.abs(weights) - shrink, 0)))

    def move(self, example: int, amount: float) -> None:
        at, values = self.rows[example]
        if isinstance(at, slice):
            self.delta += values * amount
        else:
            np.add.at(self.delta, at, values * amount)


def _sparse_group(examples: np.ndarray, features: np.ndarray, values: Any, weights: np.ndarray, count: int) -> _Group:
    if examples.shape != features.shape or (values is not None and values.shape != features.shape):
        raise InvalidArgumentError(
            None, None, f"Found mismatched example_indices and feature_indices {examples.shape} vs {features.shape}"
        )
    if len(examples) and (examples.min() < 0 or examples.max() >= count):
        raise InvalidArgumentError(None, None, f"Example index {int(examples.max())} is not in [0, {count}).")
    if len(features) and (features.min() < 0 or features.max() >= len(weights)):
        raise InvalidArgumentError(
            None,
            None,
            f"Found sparse feature indices out of valid range: {int(features.max())} of {len(weights)} weights.",
        )
    order = np.argsort(examples, kind="stable")
    cuts = np.searchsorted(examples[order], np.arange(count + 1))
    numbers = np.ones(len(features)) if values is None else values.astype(np.float64)
    parts = [order[cuts[i] : cuts[i + 1]] for i in range(count)]
    return _Group(weights.astype(np.float64), [(features[part], numbers[part]) for part in parts])


def _dense_group(features: np.ndarray, weights: np.ndarray, count: int) -> _Group:
    features = features.reshape(len(features), -1)
    if len(features) != count:
        raise InvalidArgumentError(
            None, None, f"Dense features have {len(features)} rows, but there are {count} examples."
        )
    flat = weights.reshape(-1).astype(np.float64)
    if features.shape[1] != len(flat):
        raise InvalidArgumentError(
            None, None, f"More or less dense features than weights: {features.shape[1]} features, {len(flat)} weights."
        )
    return _Group(flat, [(slice(None), row) for row in features.astype(np.float64)])


def _solve(
    sparse_example_indices: list[torch.Tensor],
    sparse_feature_indices: list[torch.Tensor],
    sparse_feature_values: list[torch.Tensor],
    dense_features: list[torch.Tensor],
    example_weights: torch.Tensor,
    example_labels: torch.Tensor,
    sparse_indices: list[torch.Tensor],
    sparse_weights: list[torch.Tensor],
    dense_weights: list[torch.Tensor],
    example_state_data: torch.Tensor,
    loss_type: str,
    adaptive: bool,
    l1: float,
    l2: float,
    num_loss_partitions: int,
    num_inner_iterations: int,
) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
    device = example_labels.device
    labels, importance = example_labels.cpu().double().numpy(), example_weights.cpu().double().numpy()
    count = len(labels)
    if tuple(example_state_data.shape) != (count, 4):
        raise InvalidArgumentError(
            None,
            None,
            f"Expected shape [{count},4] for example_state_data, got {Shape(example_state_data.shape)}",
        )
    if importance.shape != labels.shape:
        raise InvalidArgumentError(
            None, None, f"{len(importance)} example weights for {count} labels: they must be equally many."
        )
    groups = []
    for i, weights in enumerate(sparse_weights):
        values = sparse_feature_values[i].cpu().numpy() if i < len(sparse_feature_values) else None
        examples, features = sparse_example_indices[i].cpu().numpy(), sparse_feature_indices[i].cpu().numpy()
        groups.append(_sparse_group(examples, features, values, weights.cpu().numpy(), count))
    for features, weights in zip(dense_features, dense_weights):
        groups.append(_dense_group(features.cpu().numpy(), weights.cpu().numpy(), count))
    loss = _LOSSES[loss_type]
    sides = [loss.label(float(label)) for label in labels]
    state = example_state_data.cpu().double().numpy().copy()
    shrink = l1 / l2 if l2 else math.inf
    norms = [sum(float(group.rows[i][1] @ group.rows[i][1]) for group in groups) for i in range(count)]
    before = [sum(group.product(i, shrink, 0.0) for group in groups) for i in range(count)]
    for i in range(count):  # the losses are those of the weights and duals the step began with
        state[i, 1] = loss.primal(before[i], sides[i]) * importance[i]
        state[i, 2] = loss.dual(state[i, 0], sides[i]) * importance[i]
        state[i, 3] = importance[i]
    random = np.random.RandomState(count)
    for _ in range(num_inner_iterations):
        for i in _order(random, count, adaptive, state):
            p = sum(group.product(i, shrink, num_loss_partitions) for group in groups)
            curvature = num_loss_partitions * importance[i] * norms[i] / l2 if l2 else math.inf
            dual = loss.update(state[i, 0], sides[i], p, curvature)
            amount = (dual - state[i, 0]) * importance[i] / l2 if l2 else math.nan
            for group in groups:
                group.move(i, amount)
            state[i, 0] = dual
    deltas = [torch.from_numpy(group.delta.astype(np.float32)).to(device) for group in groups]
    sparse, dense = deltas[: len(sparse_weights)], deltas[len(sparse_weights) :]
    return (
        torch.from_numpy(state.astype(np.float32)).to(device),
        sparse,
        [delta.reshape(weights.shape) for delta, weights in zip(dense, dense_weights)],
    )


def _order(random: np.random.RandomState, count: int, adaptive: bool, state: np.ndarray) -> np.ndarray:
    """The examples of one pass: each once in random order; adaptively, those with a large duality gap more often."""
    if not adaptive or count < 2:
        return random.permutation(count)
    gaps = np.maximum(state[:, 1] + state[:, 2], 0)
    total = gaps.sum()
    if not total > 0:
        return random.permutation(count)
    return random.choice(count, count, p=0.5 * gaps / total + 0.5 / count)


def _define(name: str, adaptive: str) -> OpDefinition:
    definition = define(
        f"{name}(sparse_example_indices: num_sparse_features * int64, sparse_feature_indices: num_sparse_features * int64, "
        "sparse_feature_values: num_sparse_features_with_values * float32, dense_features: num_dense_features * float32, "
        "example_weights: float32, example_labels: float32, sparse_indices: num_sparse_features * int64, "
        "sparse_weights: num_sparse_features * float32, dense_weights: num_dense_features * float32, "
        "example_state_data: float32) -> (out_example_state_data: float32, "
        "out_delta_sparse_weights: num_sparse_features * float32, out_delta_dense_weights: num_dense_features * float32)",
        STATEFUL,
        loss_type=STRING(allowed=tuple(_LOSSES)),
        **{adaptive: False},
        num_sparse_features=INT(minimum=0),
        num_sparse_features_with_values=INT(minimum=0),
        num_dense_features=INT(minimum=0),
        l1=FLOAT,
        l2=FLOAT,
        num_loss_partitions=INT(minimum=1),
        num_inner_iterations=INT(minimum=1),
    ).not_differentiable()

    @definition.shape
    def shape(*inputs: Any) -> Any:
        sparse, dense, state = inputs[7], inputs[8], inputs[9]
        return state if state.rank is not None else UNKNOWN_SHAPE, list(sparse), list(dense)

    return definition


SDCA_OPTIMIZER = _define("SdcaOptimizer", "adaptative")
SDCA_OPTIMIZER_V2 = _define("SdcaOptimizerV2", "adaptive")


@SDCA_OPTIMIZER.kernel
def sdca_optimizer_kernel(
    *inputs: Any,
    loss_type: str,
    adaptative: bool,
    l1: float,
    l2: float,
    num_loss_partitions: int,
    num_inner_iterations: int,
) -> Any:
    options = (loss_type, adaptative, l1, l2, num_loss_partitions, num_inner_iterations)
    return _solve(*inputs, *options)  # type: ignore[call-arg]


@SDCA_OPTIMIZER_V2.kernel
def sdca_optimizer_v2_kernel(
    *inputs: Any,
    loss_type: str,
    adaptive: bool,
    l1: float,
    l2: float,
    num_loss_partitions: int,
    num_inner_iterations: int,
) -> Any:
    options = (loss_type, adaptive, l1, l2, num_loss_partitions, num_inner_iterations)
    return _solve(*inputs, *options)  # type: ignore[call-arg]


@export(v1="train.sdca_optimizer")
def sdca_optimizer(
    sparse_example_indices: Any,
    sparse_feature_indices: Any,
    sparse_feature_values: Any,
    dense_features: Any,
    example_weights: Any,
    example_labels: Any,
    sparse_indices: Any,
    sparse_weights: Any,
    dense_weights: Any,
    example_state_data: Any,
    loss_type: str,
    l1: float,
    l2: float,
    num_loss_partitions: int,
    num_inner_iterations: int,
    adaptative: bool = True,
    name: str | None = None,
) -> Any:
    """Steps of dual coordinate ascent for sum_i loss(w . x_i, y_i) + l2 / 2 * |w|^2 + l1 * |w|.

    Args:
        sparse_example_indices, sparse_feature_indices, sparse_feature_values: lists with a vector for each group of sparse
            features: the example, the position in the group's weights, and the value (1 where the list is shorter).
        dense_features: a list of matrices, one row for each example.
        example_weights, example_labels: a number for each example.
        sparse_indices: the keys of the sparse weights.
        sparse_weights, dense_weights: lists of weights.
        example_state_data: four numbers for each example: dual variable, primal loss, dual loss, weight.
        loss_type: logistic_loss, squared_loss, hinge_loss, smooth_hinge_loss or poisson_loss.
        l1, l2: regularization.
        num_loss_partitions: how many machines share the loss.
        num_inner_iterations: passes over the examples.
        adaptative: whether to visit examples with a large duality gap more often.
        name: the op's name.

    Returns:
        (the new example state, changes of the sparse weights, changes of the dense weights).

    Raises:
        InvalidArgumentError: labels that the loss does not know, or shapes that do not fit.
    """
    return SDCA_OPTIMIZER(
        list(sparse_example_indices),
        list(sparse_feature_indices),
        list(sparse_feature_values),
        list(dense_features),
        example_weights,
        example_labels,
        list(sparse_indices),
        list(sparse_weights),
        list(dense_weights),
        example_state_data,
        loss_type=loss_type,
        adaptative=adaptative,
        l1=l1,
        l2=l2,
        num_loss_partitions=num_loss_partitions,
        num_inner_iterations=num_inner_iterations,
        name=name,
    )


# ---- SdcaShrinkL1 -----------------------------------------------------------------------------------------------

SDCA_SHRINK_L1 = define(
    "SdcaShrinkL1(weights: Ref(num_features * float32)) -> ()",
    WRITES | STATEFUL,
    num_features=INT(minimum=0),
    l1=FLOAT,
    l2=FLOAT,
).not_differentiable()


@SDCA_SHRINK_L1.kernel
def sdca_shrink_l1_kernel(weights: list[VariableState], *, l1: float, l2: float) -> None:
    shrink = l1 / l2
    for variable in weights:
        value = variable.read()
        value.copy_(torch.sign(value) * torch.clamp_min(torch.abs(value) - shrink, 0))


@export(v1="train.sdca_shrink_l1")
def sdca_shrink_l1(weights: Any, l1: float, l2: float, name: str | None = None) -> Any:
    """An op that shrinks variables in place: sign(w) * max(|w| - l1 / l2, 0).

    Args:
        weights: a list of reference variables.
        l1: the strength of the shrinkage.
        l2: positive.
        name: the op's name.
    """
    return SDCA_SHRINK_L1(list(weights), l1=l1, l2=l2, name=name)


# ---- SdcaFprint -------------------------------------------------------------------------------------------------

SDCA_FPRINT = define("SdcaFprint(input: string) -> (output: int64)").not_differentiable()


@SDCA_FPRINT.kernel
def sdca_fprint_kernel(input: np.ndarray) -> torch.Tensor:
    if input.ndim != 1:
        raise InvalidArgumentError(None, None, f"Input must be a vector, got shape {Shape(input.shape)}")
    words = np.array([fingerprint128(text) for text in input], np.uint64).reshape(len(input), 2)
    return torch.from_numpy(words.view(np.int64))


@SDCA_FPRINT.shape
def sdca_fprint_shape(input: Shape) -> Shape:
    return Shape((input.of_rank(1)[0], 2))


@export(v1="train.sdca_fprint")
def sdca_fprint(input: Any, name: str | None = None) -> Any:
    """Fingerprints of strings: for a vector of n an int64 matrix [n, 2], the low and the high half of 128 bits."""
    return SDCA_FPRINT(input, name=name)
