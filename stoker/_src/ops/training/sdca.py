"""Stochastic dual coordinate ascent for linear models (Shalev-Shwartz and Zhang, 2013), with L1 and L2 regularization.

This module has the ops and the preparation of their inputs. `sdca_solver.py` has the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.formats.fingerprint128 import fingerprint128
from stoker._src.graph.definition import FLOAT, INT, STATEFUL, STRING, WRITES, OpDefinition, define
from stoker._src.ops.training import sdca_solver
from stoker._src.ops.variables.state_ops import VariableState

_Labels = Callable[[np.ndarray], np.ndarray]


def _sides(labels: np.ndarray) -> np.ndarray:
    """Maps the labels 0 and 1 of two classes to -1 and 1."""
    wrong = labels[(labels != 0.0) & (labels != 1.0)]
    if len(wrong):
        raise InvalidArgumentError(
            None, None, f"Only labels of 0.0 or 1.0 are supported right now. Found example with label: {wrong[0]:g}"
        )
    return 2 * labels - 1


def _counts(labels: np.ndarray) -> np.ndarray:
    if (labels < 0).any():
        raise InvalidArgumentError(
            None,
            None,
            "Only non-negative labels can be used with the Poisson log loss. Found example with label: "
            f"{labels[labels < 0][0]:g}",
        )
    return labels


_LABELS: dict[str, _Labels] = {
    "logistic_loss": _sides,
    "hinge_loss": _sides,
    "smooth_hinge_loss": _sides,
    "squared_loss": lambda labels: labels,
    "poisson_loss": _counts,
}


def _check_group(examples: np.ndarray, features: np.ndarray, values: np.ndarray, count: int, weights: int) -> None:
    if examples.shape != features.shape or values.shape != features.shape:
        raise InvalidArgumentError(
            None, None, f"Found mismatched example_indices and feature_indices {examples.shape} vs {features.shape}"
        )
    if len(examples) and (examples.min() < 0 or examples.max() >= count):
        raise InvalidArgumentError(None, None, f"Example index {int(examples.max())} is not in [0, {count}).")
    if len(features) and (features.min() < 0 or features.max() >= weights):
        raise InvalidArgumentError(
            None,
            None,
            f"Found sparse feature indices out of valid range: {int(features.max())} of {weights} weights.",
        )


def _dense_rows(features: torch.Tensor, weights: torch.Tensor, count: int) -> np.ndarray:
    rows = features.cpu().numpy().reshape(len(features), -1)
    if len(rows) != count:
        raise InvalidArgumentError(None, None, f"Dense features have {len(rows)} rows, but there are {count} examples.")
    if rows.shape[1] != weights.numel():
        raise InvalidArgumentError(
            None,
            None,
            f"More or less dense features than weights: {rows.shape[1]} features, {weights.numel()} weights.",
        )
    return rows


def _joined(weights: list[torch.Tensor]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *[each.cpu().double().numpy().reshape(-1) for each in weights]])


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
    if not l2 > 0:
        raise InvalidArgumentError(None, None, f"l2 must be positive, but is {l2:g}.")
    examples, places, values = [], [], []
    first = 0
    for i, weights in enumerate(sparse_weights):
        features = sparse_feature_indices[i].cpu().numpy()
        given = i < len(sparse_feature_values)
        numbers = sparse_feature_values[i].cpu().numpy() if given else np.ones(features.shape, np.float32)
        owners = sparse_example_indices[i].cpu().numpy()
        _check_group(owners, features, numbers, count, weights.numel())
        examples.append(owners)
        places.append(features + first)
        values.append(numbers)
        first += weights.numel()
    dense = [_dense_rows(*pair, count) for pair in zip(dense_features, dense_weights)]
    starts, at, numbers = sdca_solver.sparse_rows(examples, places, values, count)
    problem = sdca_solver.Problem(
        labels=_LABELS[loss_type](labels),
        importance=importance,
        duals=example_state_data[:, 0].cpu().double().numpy().copy(),
        dense=np.concatenate([np.zeros([count, 0], np.float32), *dense], axis=1),
        dense_weights=_joined(dense_weights),
        starts=starts,
        places=at,
        values=numbers,
        sparse_weights=_joined(sparse_weights),
    )
    primal, dual = sdca_solver.solve(
        problem,
        sdca_solver.LOSSES[loss_type],
        l1,
        l2,
        partitions=num_loss_partitions,
        passes=num_inner_iterations,
        adaptive=adaptive,
    )
    state = np.stack([problem.duals, primal, dual, importance], axis=1).astype(np.float32)
    return (
        torch.from_numpy(state).to(device),
        _parted(problem.sparse_delta, sparse_weights, device),
        _parted(problem.dense_delta, dense_weights, device),
    )


def _parted(delta: np.ndarray, weights: list[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Splits the concatenated changes of several weights into tensors with the weights' shapes."""
    parts = torch.from_numpy(delta.astype(np.float32)).to(device).split([each.numel() for each in weights])
    return [part.reshape(each.shape).clone() for part, each in zip(parts, weights)]


def _define(name: str, adaptive: str) -> OpDefinition:
    definition = define(
        f"{name}(sparse_example_indices: num_sparse_features * int64, sparse_feature_indices: num_sparse_features * int64, "
        "sparse_feature_values: num_sparse_features_with_values * float32, dense_features: num_dense_features * float32, "
        "example_weights: float32, example_labels: float32, sparse_indices: num_sparse_features * int64, "
        "sparse_weights: num_sparse_features * float32, dense_weights: num_dense_features * float32, "
        "example_state_data: float32) -> (out_example_state_data: float32, "
        "out_delta_sparse_weights: num_sparse_features * float32, out_delta_dense_weights: num_dense_features * float32)",
        STATEFUL,
        loss_type=STRING(allowed=tuple(_LABELS)),
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
        sparse_example_indices, sparse_feature_indices, sparse_feature_values: lists with one vector for each group of sparse
            features: the example, the index into the group's weights, and the value (1 for groups without values).
        dense_features: a list of matrices, one row for each example.
        example_weights, example_labels: one number for each example.
        sparse_indices: the keys of the sparse weights.
        sparse_weights, dense_weights: lists of weights.
        example_state_data: four numbers for each example: dual variable, primal loss, dual loss, weight.
        loss_type: logistic_loss, squared_loss, hinge_loss, smooth_hinge_loss or poisson_loss.
        l1, l2: regularization.
        num_loss_partitions: the number of machines that share the loss.
        num_inner_iterations: the number of passes over the examples.
        adaptative: whether to visit examples with a large duality gap more often.
        name: the op's name.

    Returns:
        (the new example state, changes of the sparse weights, changes of the dense weights).

    Raises:
        InvalidArgumentError: the loss does not support the labels, or the shapes do not match.
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
    if not l2 > 0:
        raise InvalidArgumentError(None, None, f"l2 must be positive, but is {l2:g}.")
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
        l2: a positive divisor of `l1`.
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
    """Fingerprints of strings: for a vector of n strings an int64 matrix [n, 2], the low and high halves of 128 bits."""
    return SDCA_FPRINT(input, name=name)
