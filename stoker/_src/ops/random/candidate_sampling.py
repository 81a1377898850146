"""Candidate samplers: classes drawn for sampled losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.formats import gfile
from stoker._src.graph.definition import BOOL, FLOATS_LIST, INT, INT32, STATEFUL, OpDefinition, define
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.random.bits import candidates
from stoker._src.ops.random.bits.candidates import Candidates, LearnedUnigrams, UnigramTable
from stoker._src.ops.random.uniform_normal import generator, op_seed_attrs
from stoker._src.ops.support.values import from_numpy, to_numpy

_OUTPUTS = "-> (sampled_candidates: int64, true_expected_count: float32, sampled_expected_count: float32)"
_COUNT = INT32(minimum=1, wide_in_shape=True)
_COUNTS: dict[str, Any] = {"num_true": _COUNT, "num_sampled": _COUNT, "unique": BOOL}
_POSITIVE = INT(minimum=1)


def _checked(true_classes: torch.Tensor, num_true: int) -> np.ndarray:
    if true_classes.ndim != 2:
        raise InvalidArgumentError(None, None, f"true_classes must be a matrix, got {Shape(true_classes.shape)}")
    if true_classes.shape[1] != num_true:
        raise InvalidArgumentError(
            None,
            None,
            f"true_classes must have num_true columns, expected: {true_classes.shape[1]} was: {num_true}",
        )
    return to_numpy(true_classes)


def _placed(drawn: Iterable[np.ndarray], like: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if like.is_cpu:
        return tuple(map(torch.from_numpy, drawn))
    return tuple(from_numpy(part).to(like.device) for part in drawn)


def _sampler_shape(true_classes: Shape, *, num_true: int, num_sampled: int) -> tuple[Shape, Shape, Shape]:
    rows, _ = true_classes.of_rank(2)
    return Shape((num_sampled,)), Shape((rows, num_true)), Shape((num_sampled,))


def _sampler(name: str, draw: Callable[..., Candidates]) -> OpDefinition:
    definition = define(
        f"{name}(true_classes: int64) {_OUTPUTS}", STATEFUL, **_COUNTS, range_max=_POSITIVE, seed=0, seed2=0
    )

    def kernel(
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
        classes = _checked(true_classes, num_true)
        stream = generator(ctx, seed, seed2).reserve(candidates.candidate_reserve(num_sampled))
        return _placed(draw(stream, classes, num_sampled, unique, range_max), true_classes)

    definition.kernel(kernel)
    definition.shape(_sampler_shape)
    return definition


UNIFORM = _sampler("UniformCandidateSampler", candidates.uniform_candidates)
LOG_UNIFORM = _sampler("LogUniformCandidateSampler", candidates.log_uniform_candidates)

FIXED_UNIGRAM = define(
    f"FixedUnigramCandidateSampler(true_classes: int64) {_OUTPUTS}",
    STATEFUL,
    **_COUNTS,
    range_max=_POSITIVE,
    vocab_file="",
    distortion=1.0,
    num_reserved_ids=0,
    num_shards=INT(1, minimum=1),
    shard=INT(0, minimum=0),
    unigrams=FLOATS_LIST(()),
    seed=0,
    seed2=0,
)
FIXED_UNIGRAM.shape(_sampler_shape)


@FIXED_UNIGRAM.kernel
def fixed_unigram_kernel(
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
    classes = _checked(true_classes, num_true)
    if ctx.state is None:
        if bool(vocab_file) == bool(unigrams):
            raise InvalidArgumentError(None, None, "Must only provide one of vocab_file and unigrams, and one of them.")
        weights = _vocabulary_weights(vocab_file) if vocab_file else list(unigrams)
        table = UnigramTable(weights, distortion, num_reserved_ids, num_shards, shard)
        stream_state = generator(ctx, seed, seed2)
        ctx.state = (stream_state, table)
    stream_state, table = ctx.state
    stream = stream_state.reserve(candidates.candidate_reserve(num_sampled))
    drawn = candidates.fixed_unigram_candidates(stream, classes, num_sampled, unique, range_max, table)
    return _placed(drawn, true_classes)


def _vocabulary_weights(path: str) -> list[float]:
    """The last column of a comma-separated vocabulary file.

    Raises:
        InvalidArgumentError: a line does not end in a number.
    """
    weights = []
    with gfile.GFile(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                weights.append(float(line.rstrip("\n").split(",")[-1]))
            except ValueError:
                raise InvalidArgumentError(
                    None, None, f"{path}, line {number}: {line.strip()!r} does not end in a weight."
                ) from None
    return weights


def learned_unigram_kernel(
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
    classes = _checked(true_classes, num_true)
    if ctx.state is None:
        ctx.state = (generator(ctx, seed, seed2), LearnedUnigrams(range_max))
    stream_state, learned = ctx.state
    stream = stream_state.reserve(candidates.candidate_reserve(num_sampled))
    return _placed(learned.candidates(stream, classes, num_sampled, unique), true_classes)


def _learned_sampler(name: str) -> OpDefinition:
    definition = define(
        f"{name}(true_classes: int64) {_OUTPUTS}", STATEFUL, **_COUNTS, range_max=_POSITIVE, seed=0, seed2=0
    )
    definition.kernel(learned_unigram_kernel)
    definition.shape(_sampler_shape)
    return definition


LEARNED_UNIGRAM = _learned_sampler("LearnedUnigramCandidateSampler")
THREAD_UNSAFE_UNIGRAM = _learned_sampler("ThreadUnsafeUnigramCandidateSampler")

ALL = define(f"AllCandidateSampler(true_classes: int64) {_OUTPUTS}", STATEFUL, **_COUNTS, seed=0, seed2=0)
ALL.shape(_sampler_shape)


@ALL.kernel
def all_candidates_kernel(true_classes: torch.Tensor, *, num_true: int, num_sampled: int) -> tuple[torch.Tensor, ...]:
    return _placed(candidates.all_candidates(_checked(true_classes, num_true), num_sampled), true_classes)


ACCIDENTAL_HITS = define(
    "ComputeAccidentalHits(true_classes: int64, sampled_candidates: int64) "
    "-> (indices: int32, ids: int64, weights: float32)",
    num_true=INT32(wide_in_shape=True),
    seed=0,
    seed2=0,
)


@ACCIDENTAL_HITS.kernel
def accidental_hits_kernel(
    true_classes: torch.Tensor, sampled_candidates: torch.Tensor, *, num_true: int
) -> tuple[torch.Tensor, ...]:
    if sampled_candidates.ndim != 1:
        raise InvalidArgumentError(
            None, None, "sampled_candidates must be a vector, which is typically an output from CandidateSampler"
        )
    found = candidates.accidental_hits(_checked(true_classes, num_true), to_numpy(sampled_candidates))
    return _placed(found, true_classes)


@ACCIDENTAL_HITS.shape
def accidental_hits_shape(
    true_classes: Shape, sampled_candidates: Shape, *, num_true: int
) -> tuple[Shape, Shape, Shape]:
    columns = true_classes.of_rank(2)[1]
    if columns is not None and columns != num_true:
        raise InvalidArgumentError(None, None, f"Dimension must be {num_true} (num_true) but is {columns}")
    sampled_candidates.of_rank(1)
    return Shape((None,)), Shape((None,)), Shape((None,))


# ---- functions --------------------------------------------------------------------------------------------------


def _sampled(
    definition: OpDefinition,
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None,
    name: str | None,
    **more: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    return definition(
        true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        name=name,
        **more,
        **op_seed_attrs(seed),
    )


@export("random.uniform_candidate_sampler", v1="nn.uniform_candidate_sampler")
def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws `num_sampled` classes with equal probability. Also returns the expected counts of the true and the drawn classes.

    Args:
        true_classes: the target classes, int64 [batch, num_true].
        num_true: the number of target classes of each example.
        num_sampled: the number of classes to draw.
        unique: whether a class may be drawn only once.
        range_max: the number of classes.
        seed: the op's seed.
        name: the op's name.
    """
    return _sampled(UNIFORM, true_classes, num_true, num_sampled, unique, range_max, seed, name)


@export("random.log_uniform_candidate_sampler", v1="nn.log_uniform_candidate_sampler")
def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws classes by Zipf's law, for classes sorted by descending frequency. The arguments are those of the uniform sampler."""
    return _sampled(LOG_UNIFORM, true_classes, num_true, num_sampled, unique, range_max, seed, name)


@export("random.learned_unigram_candidate_sampler", "nn.learned_unigram_candidate_sampler")
def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws classes by how often they were targets so far, with an initial count of one. The arguments are those of the uniform sampler."""
    return _sampled(LEARNED_UNIGRAM, true_classes, num_true, num_sampled, unique, range_max, seed, name)


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
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws classes in proportion to weights, given in a file or a list.

    Args:
        true_classes, num_true, num_sampled, unique, range_max, seed, name: see the uniform sampler.
        vocab_file: a comma-separated file with one line for each class, whose last column is the weight.
        distortion: the exponent applied to the weights. 1 leaves them unchanged, 0 makes all classes equally likely.
        num_reserved_ids: the number of classes before the first one with a weight. They are never drawn.
        num_shards, shard: the number of samplers that share the classes, and the index of this one.
        unigrams: the weights, instead of a file.
    """
    return _sampled(
        FIXED_UNIGRAM,
        true_classes,
        num_true,
        num_sampled,
        unique,
        range_max,
        seed,
        name,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=unigrams,
    )


@export("random.all_candidate_sampler", "nn.all_candidate_sampler")
def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns every class below `num_sampled`, for tests of sampled losses."""
    return ALL(
        true_classes, num_true=num_true, num_sampled=num_sampled, unique=unique, name=name, **op_seed_attrs(seed)
    )


@export("nn.compute_accidental_hits")
def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: int | None = None, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The sampled classes that are also targets: (rows, indices among the sampled, weights that cancel them in a softmax)."""
    return ACCIDENTAL_HITS(true_classes, sampled_candidates, num_true=num_true, name=name, **op_seed_attrs(seed))
