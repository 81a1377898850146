"""Connectionist temporal classification (Graves et al., 2006): the loss, best-path decoding and beam search.

A labelling stands for all paths that reduce to it when repetitions are merged and blanks removed. The states of a path are
the labels with blanks between, before and after them. alpha and beta sum the probabilities of prefixes and suffixes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError

_NEVER = float("-inf")


# ---- loss -------------------------------------------------------------------------------------------------------


def label_rows(indices: torch.Tensor, values: torch.Tensor, batch: int) -> list[list[int]]:
    """The labels of a sparse matrix (indices, values), row by row.

    Raises:
        InvalidArgumentError: an index is outside the batch, repeated or unordered, or the numbers of indices and values differ.
    """
    if len(indices) != len(values):
        raise InvalidArgumentError(
            None,
            None,
            f"labels_indices and labels_values must contain the same number of rows, but saw shapes: {list(indices.shape)} vs. {list(values.shape)}",
        )
    rows: list[list[int]] = [[] for _ in range(batch)]
    previous: list[int] = []
    for number, (place, value) in enumerate(zip(indices.tolist(), values.tolist())):
        row, column = place
        if not 0 <= row < batch or not 0 <= column < 2**63 - 1:
            raise InvalidArgumentError(
                None,
                None,
                f"label SparseTensor is not valid: indices[{number}] = {place} is out of bounds ({batch} rows)",
            )
        if place <= previous:
            kind = "repeated" if place == previous else "out of order"
            raise InvalidArgumentError(
                None, None, f"label SparseTensor is not valid: indices[{number}] = {place} is {kind}"
            )
        rows[row].append(value)
        previous = place
    return rows


def checked_rows(
    rows: list[list[int]], lengths: list[int], classes: int, steps: int, collapse: bool, ignore_longer: bool, blank: int
) -> list[list[int] | None]:
    """Labels prepared for the loss; None for a row that is too long and is to be ignored.

    Raises:
        InvalidArgumentError: there are no labels, more labels than steps, or labels out of range.
    """
    if len(lengths) != len(rows):
        raise InvalidArgumentError(None, None, f"len(sequence_length) != batch_size: {len(lengths)} vs {len(rows)}")
    checked: list[list[int] | None] = []
    for i, (row, length) in enumerate(zip(rows, lengths)):
        if not 0 <= length <= steps:
            raise InvalidArgumentError(None, None, f"sequence_length({i}) <= {steps}")
        row = _until_blank(row, classes, i) if blank == classes - 1 else _within(row, classes, i)
        if collapse:
            row = [label for at, label in enumerate(row) if at == 0 or label != row[at - 1]]
        if not row:
            raise InvalidArgumentError(None, None, f"Labels length is zero in batch {i}")
        if len(row) > length:
            if not ignore_longer:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Not enough time for target transition sequence (required: {len(row)}, available: {length}) in "
                    f"batch {i}. You can turn this error into a warning by using the flag "
                    "ignore_longer_outputs_than_inputs",
                )
            checked.append(None)
        else:
            checked.append(row)
    return checked


def _until_blank(row: list[int], classes: int, at: int) -> list[int]:
    """The labels before the first one that is out of range or the blank. No valid label may follow it."""
    kept: list[int] = []
    ended = False
    for label in row:
        if label < 0:
            raise InvalidArgumentError(
                None, None, f"All labels must be nonnegative integers, batch: {at} labels: {row}"
            )
        if label >= classes - 1:
            ended = True
        elif ended:
            raise InvalidArgumentError(
                None,
                None,
                f"Saw a non-null label (index >= num_classes - 1) following a null label, batch: {at} "
                f"num_classes: {classes} labels: {','.join(map(str, row))} labels seen so far: {','.join(map(str, kept))}",
            )
        else:
            kept.append(label)
    return kept


def _within(row: list[int], classes: int, at: int) -> list[int]:
    if any(not 0 < label < classes for label in row):
        raise InvalidArgumentError(None, None, f"Labels must lie in [1, {classes}), batch: {at} labels: {row}")
    return row


def loss_and_gradient(
    inputs: torch.Tensor, rows: list[list[int] | None], lengths: list[int], merge_repeated: bool, blank: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(-log probability of each labelling, its gradient with respect to the logits [time, batch, classes])."""
    steps, batch, _ = inputs.shape
    kept = [row if row is not None else [] for row in rows]
    width = max((len(row) for row in kept), default=0)
    labels = torch.zeros((batch, max(width, 1)), dtype=torch.int64)
    for i, row in enumerate(kept):
        labels[i, : len(row)] = torch.tensor(row, dtype=torch.int64)
    labels = labels.to(inputs.device)
    logarithms = torch.log_softmax(inputs, 2)
    target_lengths = [len(row) for row in kept]
    if batch == 0 or steps == 0:
        return inputs.new_zeros((batch,)), torch.zeros_like(inputs)
    if merge_repeated:
        loss, alpha = torch.ops.aten._ctc_loss(logarithms, labels, lengths, target_lengths, blank, False)
        ones = torch.ones_like(loss)
        gradient = torch.ops.aten._ctc_loss_backward(
            ones, logarithms, labels, lengths, target_lengths, loss, alpha, blank, False
        )
    else:
        loss, gradient = _without_merging(logarithms, labels, target_lengths, lengths, blank)
    # A labelling without any path has a zero posterior.
    impossible = torch.isinf(loss)
    gradient = torch.where(impossible.reshape(1, -1, 1), torch.exp(logarithms), gradient)
    inside = torch.arange(steps).reshape(-1, 1) < torch.tensor(lengths).reshape(1, -1)
    taken = torch.tensor([row is not None for row in rows])
    mask = (inside & taken).unsqueeze(2).to(inputs.device)
    zero = inputs.new_zeros(())
    return torch.where(taken.to(inputs.device), loss, zero), torch.where(mask, gradient, zero)


def _without_merging(
    logarithms: torch.Tensor, labels: torch.Tensor, target_lengths: list[int], lengths: list[int], blank: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss if each label is emitted exactly once, so that repeated outputs are repeated labels."""
    steps, batch, _ = logarithms.shape
    states = 2 * labels.shape[1] + 1
    emitted = torch.full((batch, states), blank, dtype=torch.int64, device=labels.device)
    emitted[:, 1::2] = labels
    scores = torch.gather(logarithms, 2, emitted.unsqueeze(0).expand(steps, -1, -1))
    is_blank = (torch.arange(states, device=labels.device) % 2 == 0).expand(batch, -1)
    never = logarithms.new_full((), _NEVER)
    ends = torch.tensor(target_lengths, device=labels.device) * 2
    last = torch.tensor(lengths, device=labels.device) - 1

    def shifted(values: torch.Tensor, by: int) -> torch.Tensor:
        return torch.nn.functional.pad(values, (by, 0) if by > 0 else (0, -by), value=_NEVER)[
            :, : states if by > 0 else None
        ][:, (0 if by > 0 else -by) :]

    alpha = [torch.full_like(scores[0], _NEVER)]
    alpha[0][:, :2] = scores[0, :, :2]
    for t in range(1, steps):
        before = alpha[-1]
        stay = torch.where(is_blank, before, never)
        skip = torch.where(is_blank, never, shifted(before, 2))
        alpha.append(torch.logsumexp(torch.stack([stay, shifted(before, 1), skip]), 0) + scores[t])
    column = torch.arange(states, device=labels.device).reshape(1, -1)
    final = torch.where((column == ends.reshape(-1, 1)) | (column == ends.reshape(-1, 1) - 1), 0.0, _NEVER)
    final = final.to(logarithms.dtype)
    beta = [final] * steps
    for t in range(steps - 2, -1, -1):
        after = beta[t + 1] + scores[t + 1]
        stay = torch.where(is_blank, after, never)
        skip = torch.where(is_blank, never, shifted(after, -2))
        moved = torch.logsumexp(torch.stack([stay, shifted(after, -1), skip]), 0)
        beta[t] = torch.where((t >= last).reshape(-1, 1), final, moved)
    at_end = torch.stack(alpha)[last.clamp(min=0), torch.arange(batch, device=labels.device)]
    total = torch.logsumexp(at_end + final, 1)
    posterior = torch.exp(torch.stack(alpha) + torch.stack(beta) - total.reshape(1, -1, 1)).nan_to_num(0.0)
    expected = torch.zeros_like(logarithms).scatter_add_(2, emitted.unsqueeze(0).expand(steps, -1, -1), posterior)
    return -total, torch.exp(logarithms) - expected


# ---- decoding ---------------------------------------------------------------------------------------------------


def checked_sizes(inputs: torch.Tensor) -> tuple[int, int, int]:
    """(steps, batch, classes).

    Raises:
        InvalidArgumentError: the rank is wrong, or the input is empty.
    """
    if inputs.dim() != 3:
        raise InvalidArgumentError(None, None, f"inputs is not a 3-Tensor: {list(inputs.shape)}")
    if not inputs.numel():
        raise InvalidArgumentError(None, None, f"inputs must not be empty: {list(inputs.shape)}")
    steps, batch, classes = inputs.shape
    return steps, batch, classes


def check_lengths(lengths: list[int], batch: int, steps: int) -> None:
    """
    Raises:
        FailedPreconditionError: the number of lengths differs from the batch size, or a length exceeds the input.
    """
    if not (batch and steps):
        raise InvalidArgumentError(None, None, f"inputs must not be empty: {steps} steps of {batch} sequences")
    if len(lengths) != batch:
        raise FailedPreconditionError(None, None, f"len(sequence_length) != batch_size: {len(lengths)} vs {batch}")
    for i, length in enumerate(lengths):
        if length > steps:
            raise FailedPreconditionError(None, None, f"sequence_length({i}) <= {steps}")


def sparse_rows(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows of labels as (indices, values, dense shape)."""
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = [label for row in rows for label in row]
    width = max((len(row) for row in rows), default=0)
    return (
        torch.tensor(indices, dtype=torch.int64).reshape(-1, 2),
        torch.tensor(values, dtype=torch.int64),
        torch.tensor([len(rows), width], dtype=torch.int64),
    )


def greedy_rows(
    inputs: torch.Tensor, lengths: list[int], merge_repeated: bool, blank: int
) -> tuple[list[list[int]], torch.Tensor]:
    """Best-path decoding: (the labels of each sequence, the negated sum of the logits [batch, 1])."""
    best, chosen = inputs.max(2)
    inside = torch.arange(inputs.shape[0], device=inputs.device).reshape(-1, 1) < torch.tensor(
        lengths, device=inputs.device
    )
    scores = -torch.where(inside, best, 0).sum(0)
    rows = []
    for path, length in zip(chosen.t().tolist(), lengths):
        row, previous = [], None
        for label in path[: max(length, 0)]:
            if label != blank and not (merge_repeated and label == previous):
                row.append(label)
            previous = label
        rows.append(row)
    return rows, scores.reshape(-1, 1).to(inputs.dtype)


def beam_rows(logits: np.ndarray, beam_width: int, top_paths: int) -> tuple[list[list[int]], list[float]]:
    """Beam search: the `top_paths` best labellings of one sequence [time, classes] (the last class is the blank) and their scores.

    Keeps the `beam_width` most probable prefixes, each with the probability of its paths that end in a blank
    and of those that end in its last label.
    """
    classes = logits.shape[1]
    blank = classes - 1
    shifted = logits - logits.max(1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    prefixes: list[tuple[int, ...]] = [()]
    in_blank, in_label = np.zeros(1), np.full(1, -np.inf)
    with np.errstate(invalid="ignore"):
        for scores in logarithms:
            prefixes, in_blank, in_label = _advance(scores, blank, prefixes, in_blank, in_label, beam_width)
    total = np.logaddexp(in_blank, in_label)
    order = np.argsort(-total, kind="stable")[:top_paths]
    if len(order) < top_paths:
        raise InvalidArgumentError(
            None, None, f"Less leaves in the beam search than requested: {len(order)} < {top_paths}."
        )
    return [list(prefixes[i]) for i in order], [float(total[i]) for i in order]


def _advance(
    scores: np.ndarray,
    blank: int,
    prefixes: list[tuple[int, ...]],
    in_blank: np.ndarray,
    in_label: np.ndarray,
    beam_width: int,
) -> tuple[list[tuple[int, ...]], np.ndarray, np.ndarray]:
    """The beam after one more step."""
    total = np.logaddexp(in_blank, in_label)
    place: dict[tuple[int, ...], int] = {prefix: i for i, prefix in enumerate(prefixes)}
    last = np.array([prefix[-1] if prefix else -1 for prefix in prefixes])
    grown = total[:, None] + scores[None, :blank]
    ends = last >= 0
    grown[np.flatnonzero(ends), last[ends]] = in_blank[ends] + scores[last[ends]]
    next_blank = total + scores[blank]
    next_label = np.where(ends, in_label + scores[np.maximum(last, 0)], -np.inf)
    for i, prefix in enumerate(prefixes):
        parent = place.get(prefix[:-1]) if prefix else None
        if parent is not None:  # paths that extend the parent to this prefix; counted here, not as a new prefix
            next_label[i] = np.logaddexp(next_label[i], grown[parent, last[i]])
            grown[parent, last[i]] = -np.inf
    candidates = np.concatenate([np.logaddexp(next_blank, next_label), grown.reshape(-1)])
    order = np.argsort(-candidates, kind="stable")[:beam_width]
    order = order[candidates[order] != -np.inf]  # NaN stays
    kept = len(prefixes)
    chosen, blanks, labels = [], [], []
    for at in order.tolist():
        if at < kept:
            chosen.append(prefixes[at])
            blanks.append(next_blank[at])
            labels.append(next_label[at])
        else:
            source, label = divmod(at - kept, blank)
            chosen.append((*prefixes[source], label))
            blanks.append(-np.inf)
            labels.append(candidates[at])
    return chosen, np.array(blanks), np.array(labels)


def without_repetitions(row: list[int]) -> list[int]:
    return [label for at, label in enumerate(row) if at == 0 or label != row[at - 1]]


def numpy_of(inputs: torch.Tensor) -> Any:
    return inputs.detach().cpu().numpy().astype(np.float64)
