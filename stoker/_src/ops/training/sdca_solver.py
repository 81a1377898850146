"""The solver behind SdcaOptimizer, on NumPy arrays. The loop over examples also has a C implementation (`native/sdca.c`).

Every example has a dual variable. A step takes one example, moves its dual variable to the optimum with all others
fixed, and updates the weights: w += x * (change of the dual) * weight / l2. Predictions use the given weights shrunk by
l1 / l2, plus the change so far. The change is not shrunk, because TensorFlow shrinks between calls.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stoker._src.base.extensions import extension

compiled = extension("stoker._src.ops.native.sdca")

_ROUNDS = 100
_UNIFORM_SHARE = 0.5  # the share of uniform draws in an adaptive pass


# ---- losses -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """A loss of predictions p and labels y, its dual (both for arrays), and the update of the dual variable.

    `update(dual, y, p, curvature)` returns the optimal dual variable if a change by d moves the prediction by
    d * curvature. `code` identifies the loss in the C implementation.
    """

    code: int
    primal: Callable[[np.ndarray, np.ndarray], np.ndarray]
    dual: Callable[[np.ndarray, np.ndarray], np.ndarray]
    update: Callable[[float, float, float, float], float]


def _root(
    low: float, high: float, at: float, unit: float, value_and_slope: Callable[[float], tuple[float, float]]
) -> float:
    """Finds the zero of an increasing function with Newton's method from `at`, inside a shrinking bracket.

    The result is accurate to 13 digits relative to the root plus `unit`.
    """
    for _ in range(_ROUNDS):
        value, slope = value_and_slope(at)
        if value > 0.0:
            high = at
        else:
            low = at
        following = at - value / slope
        if not low < following < high:
            following = 0.5 * (low + high)
        moved = abs(following - at)
        at = following
        if moved <= 1e-13 * (unit + abs(at)):
            break
    return at


def _clamped(candidate: float, y: float) -> float:
    """Clips the dual variable of a hinge loss to the range between 0 and the label's sign."""
    along = y * candidate
    along = along if along > 0.0 else 0.0
    return y * (along if along < 1.0 else 1.0)


def _hinge_update(dual: float, y: float, p: float, curvature: float) -> float:
    if curvature == 0.0:
        return y if y * p < 1.0 else 0.0
    return _clamped(dual + (y - p) / curvature, y)


def _smooth_hinge_update(dual: float, y: float, p: float, curvature: float) -> float:
    return _clamped(dual + (y - p - dual) / (curvature + 1.0), y)


def _squared_update(dual: float, y: float, p: float, curvature: float) -> float:
    return dual + (y - p - dual) / (1.0 + curvature)


def _sigmoid(t: float) -> float:
    e = math.exp(-abs(t))
    return (e if t < 0.0 else 1.0) / (1.0 + e)


def _logistic_update(dual: float, y: float, p: float, curvature: float) -> float:
    # With a = y * dual and a = sigmoid(t), the optimum is where t + y p + (a - before) * curvature = 0.
    before, margin = y * dual, y * p

    def value_and_slope(t: float) -> tuple[float, float]:
        share = _sigmoid(t)
        return t + margin + (share - before) * curvature, 1.0 + curvature * share * (1.0 - share)

    low, high = -margin - (1.0 - before) * curvature, -margin + before * curvature
    return y * _sigmoid(_root(low, high, 0.5 * (low + high), 1.0, value_and_slope))


def _poisson_update(dual: float, y: float, p: float, curvature: float) -> float:
    # With v = y - dual the optimum is where log(v) = p + (y - before - v) * curvature. The function is concave in v, so
    # Newton's steps from the left never pass the root.
    rate = y - dual
    log_mean = min(max(p, -700.0), 700.0)
    mean = math.exp(log_mean)
    least = (rate if rate < mean else mean) if rate > 0.0 else math.exp(log_mean - (mean - rate) * curvature)
    if not least > 1e-100:
        least = 1e-100

    def value_and_slope(v: float) -> tuple[float, float]:
        return math.log(v) - log_mean - (rate - v) * curvature, 1.0 / v + curvature

    return y - _root(least, rate if rate > mean else mean, least, 0.0, value_and_slope)


def _entropy(share: np.ndarray) -> np.ndarray:
    inside = np.where((share > 0) & (share < 1), share, 0.5)
    found = inside * np.log(inside) + (1 - inside) * np.log1p(-inside)
    return np.where((share > 0) & (share < 1), found, 0.0)


def _smooth_hinge(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    margin = y * p
    return np.where(margin >= 1, 0.0, np.where(margin <= 0, 0.5 - margin, 0.5 * (1 - margin) ** 2))


def _poisson_dual(dual: np.ndarray, y: np.ndarray) -> np.ndarray:
    rate = y - dual
    return np.where(rate > 0, rate * (np.log(np.where(rate > 0, rate, 1.0)) - 1), 0.0)


LOSSES = {
    "squared_loss": Loss(0, lambda p, y: 0.5 * (p - y) ** 2, lambda a, y: a * (0.5 * a - y), _squared_update),
    "hinge_loss": Loss(1, lambda p, y: np.maximum(0.0, 1 - y * p), lambda a, y: -a * y, _hinge_update),
    "smooth_hinge_loss": Loss(2, _smooth_hinge, lambda a, y: -a * y + 0.5 * a * a, _smooth_hinge_update),
    "logistic_loss": Loss(3, lambda p, y: np.logaddexp(0.0, -y * p), lambda a, y: _entropy(a * y), _logistic_update),
    "poisson_loss": Loss(4, lambda p, y: np.exp(p) - p * y, _poisson_dual, _poisson_update),
}

# ---- the problem ------------------------------------------------------------------------------------------------


@dataclass
class Problem:
    """Examples and weights. Dense features form a matrix with one row per example; sparse ones are rows of (place, value)."""

    labels: np.ndarray  # float64, in the form that the loss expects
    importance: np.ndarray  # float64
    duals: np.ndarray  # float64, updated in place
    dense: np.ndarray  # float32 [examples, width]
    dense_weights: np.ndarray  # float64 [width]
    starts: np.ndarray  # int64 [examples + 1]: the offset of each example's first entry
    places: np.ndarray  # int64, indices into the sparse weights
    values: np.ndarray  # float32
    sparse_weights: np.ndarray  # float64

    def __post_init__(self) -> None:
        self.dense_delta = np.zeros_like(self.dense_weights)
        self.sparse_delta = np.zeros_like(self.sparse_weights)
        wide = self.values.astype(np.float64)
        self.norms = np.einsum("ij,ij->i", self.dense, self.dense, dtype=np.float64) + self._by_example(wide * wide)

    def _by_example(self, entries: np.ndarray) -> np.ndarray:
        """The sum of each example's entries."""
        return np.add.reduceat(np.append(entries, 0.0), self.starts[:-1]) * (np.diff(self.starts) > 0)

    def products(self, dense: np.ndarray, sparse: np.ndarray) -> np.ndarray:
        """x . w for every example."""
        return self.dense @ dense + self._by_example(self.values * sparse[self.places])


def _shrunk(weights: np.ndarray, by: float) -> np.ndarray:
    return np.sign(weights) * np.maximum(np.abs(weights) - by, 0)


def sparse_rows(
    examples: list[np.ndarray], places: list[np.ndarray], values: list[np.ndarray], count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorts the entries of all groups by example. Returns (starts, places, values)."""
    if not examples:
        return np.zeros(count + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    owner = np.concatenate(examples)
    order = np.argsort(owner, kind="stable")
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=count), out=starts[1:])
    return starts, np.concatenate(places)[order], np.concatenate(values)[order]


def solve(
    problem: Problem, loss: Loss, l1: float, l2: float, *, partitions: int, passes: int, adaptive: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Runs passes over the examples, which update the problem's duals and deltas.

    Returns:
        (primal losses, dual losses) of the examples for the initial weights and duals, times their importance.
    """
    shrink = l1 / l2
    products = problem.products(_shrunk(problem.dense_weights, shrink), _shrunk(problem.sparse_weights, shrink))
    count = len(problem.labels)
    # Equal inputs give equal results, but the passes of different calls visit the examples in different orders.
    random = np.random.RandomState(zlib.crc32(problem.duals.tobytes()))
    losses = primal, dual = _losses(problem, loss, products)
    for number in range(passes):
        if number > 0 and adaptive:
            predictions = products + problem.products(problem.dense_delta, problem.sparse_delta)
            primal, dual = _losses(problem, loss, predictions)
        order = drawn(random, np.maximum(primal + dual, 0)) if adaptive else random.permutation(count)
        _pass(problem, loss, l2, float(partitions), order.astype(np.int64), products)
    return losses


def _losses(problem: Problem, loss: Loss, predictions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore"):
        primal = loss.primal(predictions, problem.labels) * problem.importance
    return primal, loss.dual(problem.duals, problem.labels) * problem.importance


def drawn(random: np.random.RandomState, gaps: np.ndarray) -> np.ndarray:
    """The examples of an adaptive pass: half of the draws are uniform, half are proportional to the share in the duality gap.

    The examples that were not drawn follow. Otherwise a pass could change nothing without having reached the optimum,
    and all later passes would repeat the same draws.

    An example's primal plus dual loss differs from its duality gap by x . w * dual. These terms sum to l2 |w|^2 over all
    examples, so the sum of the losses measures what the example can still gain.
    """
    count = len(gaps)
    total = gaps.sum()
    if count < 2 or not 0 < total < math.inf:
        return random.permutation(count)
    order = random.choice(count, count, p=(1 - _UNIFORM_SHARE) * gaps / total + _UNIFORM_SHARE / count)
    return np.concatenate([order, random.permutation(np.setdiff1d(np.arange(count), order))])


def _pass(problem: Problem, loss: Loss, l2: float, partitions: float, order: np.ndarray, products: np.ndarray) -> None:
    given = (order, problem.labels, problem.importance, problem.norms, products, problem.duals)
    dense, sparse = (problem.dense, problem.dense_delta), (problem.starts, problem.places, problem.values)
    if compiled is not None:
        compiled.sdca_pass(loss.code, l2, partitions, *given, *dense, *sparse, problem.sparse_delta)
    else:
        python_pass(loss.update, l2, partitions, *given, *dense, *sparse, problem.sparse_delta)


def python_pass(
    update: Callable[[float, float, float, float], float],
    l2: float,
    partitions: float,
    order: np.ndarray,
    labels: np.ndarray,
    importance: np.ndarray,
    norms: np.ndarray,
    products: np.ndarray,
    duals: np.ndarray,
    dense: np.ndarray,
    dense_delta: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    values: np.ndarray,
    sparse_delta: np.ndarray,
) -> None:
    """The Python form of the C loop. It adds terms in the same order."""
    for i in order.tolist():
        row = dense[i].astype(np.float64)
        first, last = starts[i], starts[i + 1]
        at, numbers = places[first:last], values[first:last].astype(np.float64)
        change = 0.0
        for term in (row * dense_delta).tolist():
            change += term
        for term in (numbers * sparse_delta[at]).tolist():
            change += term
        p = float(products[i]) + partitions * change
        before = float(duals[i])
        dual = update(before, float(labels[i]), p, partitions * float(importance[i]) * float(norms[i]) / l2)
        amount = (dual - before) * float(importance[i]) / l2
        duals[i] = dual
        dense_delta += row * amount
        np.add.at(sparse_delta, at, numbers * amount)
