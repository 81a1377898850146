"""Losses over many classes estimated from a few sampled ones: candidate samplers, NCE and sampled softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.formats import gfile
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import BOOL, FLOATS_LIST, INT, STATEFUL, OpDefinition, define
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops import array, linalg, math, random, reductions
from stoker._src.ops.nn.by_name import ops, public
from stoker._src.ops.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
)
from stoker._src.ops.random_bits import candidates
from stoker._src.ops.random_bits.candidates import Candidates, UnigramTable

_RESULTS = "(sampled_candidates: int64, true_expected_count: float32, sampled_expected_count: float32)"
_ONE_OR_MORE = INT(minimum=1)
_COMMON: dict[str, Any] = {"num_true": _ONE_OR_MORE, "num_sampled": _ONE_OR_MORE, "unique": BOOL}
_SEEDS: dict[str, Any] = {"seed": 0, "seed2": 0}

# ---- samplers ---------------------------------------------------------------------------------------------------


def _sampler(name: str, **attrs: Any) -> OpDefinition:
    definition = define(
        f"{name}(true_classes: int64) -> {_RESULTS}", STATEFUL, **_COMMON, **attrs, **_SEEDS
    ).not_differentiable()

    @definition.shape
    def sampler_shape(true_classes: Shape, *, num_true: int, num_sampled: int) -> tuple[Shape, Shape, Shape]:
        true_classes = true_classes.of_rank(2).merge(Shape((None, num_true)))
        return Shape((num_sampled,)), true_classes, Shape((num_sampled,))

    return definition


def _checked_classes(true_classes: torch.Tensor, num_true: int) -> np.ndarray:
    if true_classes.dim() != 2 or true_classes.shape[1] != num_true:
        raise InvalidArgumentError(
            None,
            None,
            f"true_classes must have num_true columns, expected: {num_true} was: {list(true_classes.shape)}",
        )
    return true_classes.cpu().numpy()


def _tensors(found: Candidates, like: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(np.ascontiguousarray(part)).to(like.device) for part in found)


def _ranged(name: str, draw: Callable[..., Candidates]) -> OpDefinition:
    """A sampler whose distribution follows from `range_max` alone."""
    definition = _sampler(name, range_max=_ONE_OR_MORE)

    @definition.kernel
    def sampler_kernel(
        true_classes: torch.Tensor,
        *,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
        seed: int,
        seed2: int,
        ctx: Any,
    ) -> tuple[torch.Tensor, ...]:
        classes = _checked_classes(true_classes, num_true)
        stream = random.generator(ctx, seed, seed2).reserve(candidates.candidate_reserve(num_sampled))
        return _tensors(draw(stream, classes, num_sampled, unique, range_max), true_classes)

    return definition


UNIFORM_CANDIDATE_SAMPLER = _ranged("UniformCandidateSampler", candidates.uniform_candidates)
LOG_UNIFORM_CANDIDATE_SAMPLER = _ranged("LogUniformCandidateSampler", candidates.log_uniform_candidates)

FIXED_UNIGRAM_CANDIDATE_SAMPLER = _sampler(
    "FixedUnigramCandidateSampler",
    range_max=_ONE_OR_MORE,
    vocab_file="",
    distortion=1.0,
    num_reserved_ids=0,
    num_shards=INT(1, minimum=1),
    shard=INT(0, minimum=0),
    unigrams=FLOATS_LIST(()),
)


class _UnigramState:
    """What a FixedUnigramCandidateSampler node keeps: its generator and the table made once from the weights."""

    def __init__(self, table: UnigramTable, seed: int, seed2: int) -> None:
        self.table = table
        self.state: Any = None
        self.seeds = (seed, seed2)


def _weights(vocab_file: str, unigrams: tuple[float, ...]) -> list[float]:
    """The weights: given, or the last column of each line of the vocabulary file."""
    if not vocab_file:
        return list(unigrams)
    if unigrams:
        raise InvalidArgumentError(None, None, "Must only provide one of vocab_file and unigrams.")
    with gfile.GFile(vocab_file, "r") as lines:
        return [float(line.rsplit(",", 1)[-1]) for line in lines if line.strip()]


@FIXED_UNIGRAM_CANDIDATE_SAMPLER.kernel
def fixed_unigram_candidate_sampler_kernel(
    true_classes: torch.Tensor,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str,
    distortion: float,
    num_reserved_ids: int,
    num_shards: int,
    shard: int,
    unigrams: tuple[float, ...],
    seed: int,
    seed2: int,
    ctx: Any,
) -> tuple[torch.Tensor, ...]:
    classes = _checked_classes(true_classes, num_true)
    if ctx.state is None:
        weights = _weights(vocab_file, unigrams)
        ctx.state = _UnigramState(UnigramTable(weights, distortion, num_reserved_ids, num_shards, shard), seed, seed2)
    kept = ctx.state
    stream = random.generator(kept, seed, seed2).reserve(candidates.candidate_reserve(num_sampled))
    found = candidates.fixed_unigram_candidates(stream, classes, num_sampled, unique, range_max, kept.table)
    return _tensors(found, true_classes)


ALL_CANDIDATE_SAMPLER = _sampler("AllCandidateSampler")


@ALL_CANDIDATE_SAMPLER.kernel
def all_candidate_sampler_kernel(
    true_classes: torch.Tensor, *, num_true: int, num_sampled: int
) -> tuple[torch.Tensor, ...]:
    classes = _checked_classes(true_classes, num_true)
    return _tensors(candidates.all_candidates(classes, num_sampled), true_classes)


COMPUTE_ACCIDENTAL_HITS = define(
    "ComputeAccidentalHits(true_classes: int64, sampled_candidates: int64) -> (indices: int32, ids: int64, weights: float32)",
    num_true=INT,
    **_SEEDS,
).not_differentiable()


@COMPUTE_ACCIDENTAL_HITS.kernel
def compute_accidental_hits_kernel(
    true_classes: torch.Tensor, sampled_candidates: torch.Tensor, *, num_true: int
) -> tuple[torch.Tensor, ...]:
    classes = _checked_classes(true_classes, num_true)
    found = candidates.accidental_hits(classes, sampled_candidates.cpu().numpy())
    return tuple(torch.from_numpy(part).to(true_classes.device) for part in found)


@COMPUTE_ACCIDENTAL_HITS.shape
def compute_accidental_hits_shape(true_classes: Shape, sampled_candidates: Shape) -> tuple[Shape, Shape, Shape]:
    true_classes.of_rank(2)
    sampled_candidates.of_rank(1)
    return Shape((None,)), Shape((None,)), Shape((None,))


def _seeds(seed: Any) -> dict[str, int]:
    first, second = random.get_seed(seed)
    return {"seed": first or 0, "seed2": second or 0}


@export("random.uniform_candidate_sampler", v1="nn.uniform_candidate_sampler")
def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: Any = None,
    name: str | None = None,
) -> Any:
    """(sampled classes, expected counts of the true and of the sampled ones), drawn evenly from [0, range_max)."""
    return UNIFORM_CANDIDATE_SAMPLER(
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        name=name,
        **_seeds(seed),
    )


@export("random.log_uniform_candidate_sampler", v1="nn.log_uniform_candidate_sampler")
def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: Any = None,
    name: str | None = None,
) -> Any:
    """Candidates drawn by Zipf's law: class k with probability log((k + 2) / (k + 1)) / log(range_max + 1)."""
    return LOG_UNIFORM_CANDIDATE_SAMPLER(
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        name=name,
        **_seeds(seed),
    )


@export("random.fixed_unigram_candidate_sampler", "nn.fixed_unigram_candidate_sampler")
def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Any = (),
    seed: Any = None,
    name: str | None = None,
) -> Any:
    """Candidates drawn in proportion to weights: `unigrams`, or the last column of `vocab_file`."""
    return FIXED_UNIGRAM_CANDIDATE_SAMPLER(
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=list(unigrams),
        name=name,
        **_seeds(seed),
    )


@export("random.all_candidate_sampler", "nn.all_candidate_sampler")
def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: Any = None, name: str | None = None
) -> Any:
    """Every class below `num_sampled`: to check a sampled loss against the full one."""
    return ALL_CANDIDATE_SAMPLER(
        true_classes, num_true=num_true, num_sampled=num_sampled, unique=unique, name=name, **_seeds(seed)
    )


@export("nn.compute_accidental_hits")
def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: Any = None, name: str | None = None
) -> Any:
    """(rows, places among the candidates, weights) where a sampled class is a true one of that row."""
    return COMPUTE_ACCIDENTAL_HITS(true_classes, sampled_candidates, num_true=num_true, name=name, **_seeds(seed))


# ---- losses -----------------------------------------------------------------------------------------------------


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    subtract_log_q: bool,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: str | None,
    seed: Any,
) -> tuple[Tensor, Tensor]:
    """(logits of the true and sampled classes [batch, num_true + num_sampled], labels of the same shape)."""
    lookup = public("nn.embedding_lookup")
    parts = list(weights) if isinstance(weights, (list, tuple)) else [weights]
    with name_scope(name, "compute_sampled_logits", [*parts, biases, inputs, labels]):
        labels = math.cast(convert_to_tensor(labels), dtypes.int64)
        flat = array.reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
        sampled, true_count, sampled_count = (array.stop_gradient(part) for part in sampled_values)
        sampled = math.cast(sampled, dtypes.int64)
        ids = array.concat([flat, sampled], 0)
        rows = lookup(weights, ids, partition_strategy=partition_strategy)
        dtype = rows.dtype.base_dtype
        inputs = convert_to_tensor(inputs)
        inputs = math.cast(inputs, dtype)
        count = ops.Slice(array.shape(flat), [0], [1])
        width = ops.Slice(array.shape(rows), [1], [1])
        from_start = array.concat([count, [-1]], 0)
        true_rows = ops.Slice(rows, [0, 0], from_start)
        sampled_rows = ops.Slice(rows, array.concat([count, [0]], 0), [-1, -1])
        sampled_logits = linalg.matmul(inputs, sampled_rows, transpose_b=True)
        bias_rows = lookup(biases, ids, partition_strategy=partition_strategy)
        true_bias = ops.Slice(bias_rows, [0], count)
        sampled_bias = ops.Slice(bias_rows, count, [-1])
        grouped = array.reshape(true_rows, array.concat([[-1, num_true], width], 0))
        products = math.multiply(ops.ExpandDims(inputs, 1), grouped)
        true_logits = reductions.reduce_sum(products, 2) + array.reshape(true_bias, [-1, num_true])
        sampled_logits = sampled_logits + sampled_bias
        if remove_accidental_hits:
            sampled_logits = _without_hits(labels, sampled, sampled_logits, num_sampled, num_true)
        if subtract_log_q:
            true_logits = true_logits - math.cast(math.log(true_count), dtype)
            sampled_logits = sampled_logits - math.cast(math.log(sampled_count), dtype)
        logits = array.concat([true_logits, sampled_logits], 1)
        ones = array.ones_like(true_logits) / convert_to_tensor(num_true, dtype)
        return logits, array.concat([ones, array.zeros_like(sampled_logits)], 1)


def _without_hits(labels: Tensor, sampled: Tensor, logits: Tensor, num_sampled: int, num_true: int) -> Tensor:
    """`logits` of the sampled classes, with those that are true classes of their row made so low that they vanish."""
    hits = compute_accidental_hits(labels, sampled, num_true)
    rows = math.cast(hits.indices, dtypes.int64)
    target = ops.Pack([rows, hits.ids], axis=1)
    batch = math.cast(ops.Slice(array.shape(labels), [0], [1]), dtypes.int64)
    shape = array.concat([batch, convert_to_tensor([num_sampled], dtypes.int64)], 0)
    penalty = ops.ScatterNd(target, math.cast(hits.weights, logits.dtype.base_dtype), shape)
    return logits + penalty


def _nce(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: str | None,
) -> Tensor:
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        True,
        remove_accidental_hits,
        partition_strategy,
        name,
        None,
    )
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    return reductions.reduce_sum(losses, 1)


@export(v1="nn.nce_loss")
def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:
    """The noise-contrastive estimation loss (Gutmann and Hyvarinen, 2010) of each example."""
    return _nce(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
    )


@export(v2="nn.nce_loss")
def nce_loss_v2(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str | None = "nce_loss",
) -> Tensor:
    """The noise-contrastive estimation loss (Gutmann and Hyvarinen, 2010) of each example."""
    return _nce(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        "div",
        name,
    )


@export(v1="nn.sampled_softmax_loss")
def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: Any = None,
) -> Tensor:
    """The softmax cross entropy over the true and the sampled classes (Jean et al., 2014) of each example."""
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        True,
        remove_accidental_hits,
        partition_strategy,
        name,
        seed,
    )
    targets = array.stop_gradient(targets, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)


@export(v2="nn.sampled_softmax_loss")
def sampled_softmax_loss_v2(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: Any = None,
    name: str | None = "sampled_softmax_loss",
) -> Tensor:
    """The softmax cross entropy over the true and the sampled classes (Jean et al., 2014) of each example."""
    return sampled_softmax_loss(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        "div",
        name,
        seed,
    )
