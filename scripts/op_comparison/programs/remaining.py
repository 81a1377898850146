"""Random numbers over several runs, samplers that learn, quantized tensors, dual coordinate ascent."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Run, program

SEEDS = {"seed": 3, "seed2": 11}


def _twice(run: Run, made: Any) -> None:
    """Two runs: the second goes on where the first ended."""
    made = list(made) if isinstance(made, (list, tuple)) else made
    run.get(made)
    run.get(made)


@program(
    "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "RandomShuffle", "Multinomial", "RandomGamma",
    "RandomPoissonV2", "ParameterizedTruncatedNormal",
)  # fmt: skip
def random_numbers(run: Run) -> None:
    raw, tf = run.raw, run.tf
    for shape in ([3, 5], [], [0, 2], [1000]):
        size = np.array(shape, np.int32)
        for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
            for op in (raw.RandomUniform, raw.RandomStandardNormal, raw.TruncatedNormal):
                _twice(run, op(shape=size, dtype=dtype, **SEEDS))
        for kind in (np.int32, np.int64):
            _twice(run, raw.RandomUniformInt(shape=size, minval=kind(-7), maxval=kind(2**30), **SEEDS))
    _twice(run, raw.RandomShuffle(value=np.arange(40).reshape(20, 2), **SEEDS))
    _twice(run, raw.RandomShuffle(value=np.array([b"a", b"b", b"c", b"d"], object), **SEEDS))
    logits = np.array([[0.5, -1, 2, 0], [-np.inf, 3, 3, -3]])
    for dtype in (np.float32, np.float64):
        _twice(run, raw.Multinomial(logits=logits.astype(dtype), num_samples=np.int32(30), **SEEDS))
    for dtype in (np.float32, np.float64, np.float16):
        alpha = np.array([0.02, 0.4, 1, 3, 50], dtype)
        _twice(run, raw.RandomGamma(shape=np.array([6], np.int32), alpha=alpha, **SEEDS))
        for kind in (tf.float32, tf.int64):
            _twice(run, raw.RandomPoissonV2(shape=np.array([6], np.int32), rate=alpha, dtype=kind, **SEEDS))
    for dtype in (np.float32, np.float64):
        for low, high in ((-1, 2), (3, 4), (-9, -6), (-20, 20)):
            bounds = {"means": dtype(0.5), "stdevs": dtype(1.5), "minvals": dtype(low), "maxvals": dtype(high)}
            bounds = {name: np.full(2, value) for name, value in bounds.items()}
            _twice(run, raw.ParameterizedTruncatedNormal(shape=np.array([2, 9], np.int32), **bounds, **SEEDS))


def _sampling(unique: bool) -> dict[str, Any]:
    true = np.array([[1, 4], [0, 7], [4, 4]], np.int64)
    return {"true_classes": true, "num_true": 2, "num_sampled": 6, "unique": unique, **SEEDS}


@program("LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler")
def learning_samplers(run: Run) -> None:
    raw = run.raw
    for unique in (True, False):
        for op in (raw.LearnedUnigramCandidateSampler, raw.ThreadUnsafeUnigramCandidateSampler):
            drawn = list(op(range_max=20, **_sampling(unique)))
            for _ in range(5):
                run.get(drawn)


@program("UniformCandidateSampler", "LogUniformCandidateSampler", "FixedUnigramCandidateSampler")
def candidate_samplers(run: Run) -> None:
    raw = run.raw
    for unique in (True, False):
        sampling = _sampling(unique)
        for op in (raw.UniformCandidateSampler, raw.LogUniformCandidateSampler):
            _twice(run, op(range_max=20, **sampling))
        fixed = raw.FixedUnigramCandidateSampler(
            range_max=8, unigrams=[float(k + 1) for k in range(8)], distortion=0.75, **sampling
        )
        _twice(run, fixed)


@program("RandomPoisson", producer=24)
def older_poisson(run: Run) -> None:
    for dtype in (np.float32, np.float64, np.float16):
        rate = np.array([0.02, 0.4, 1, 3, 50], dtype)
        _twice(run, run.raw.RandomPoisson(shape=np.array([6], np.int32), rate=rate, **SEEDS))


@program("RandomCrop", producer=7)
def older_crops(run: Run) -> None:
    image = np.arange(7 * 9 * 2).reshape(7, 9, 2)
    for dtype in (np.float32, np.float64, np.uint8, np.int8, np.int16, np.int32, np.int64):
        _twice(run, run.raw.RandomCrop(image=image.astype(dtype), size=np.array([3, 4], np.int64), **SEEDS))
    for size in ((3, 4), (7, 2), (5, 9), (7, 9)):
        drawn = run.raw.RandomCrop(image=image, size=np.array(size, np.int64), **SEEDS)
        run.note(np.concatenate([run.do(drawn).ravel() for _ in range(20)]))
    run.fails(lambda: run.raw.RandomCrop(image=image, size=np.array([8, 2], np.int64), **SEEDS))


@program("QuantizeV2", "Dequantize")
def quantized_tensors(run: Run) -> None:
    raw, tf = run.raw, run.tf
    x = np.array([[-9.0, -1.0, -0.5, -1e-6], [0.0, 0.3, 0.5000001, 7.0]], np.float32)
    ranges = [(np.float32(-1), np.float32(1)), (np.float32(0), np.float32(6)), (np.float32(-0.3), np.float32(2.7))]
    for name in ("qint8", "quint8", "qint16", "quint16", "qint32"):
        dtype, plain = tf.as_dtype(name), tf.as_dtype(name.removeprefix("q"))
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            for rounding in ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"):
                if rounding == "HALF_TO_EVEN" and mode != "SCALED":
                    continue
                for narrow in (False, True):
                    for low, high in ranges:
                        attrs = {"mode": mode, "round_mode": rounding, "narrow_range": narrow, "T": dtype}
                        made = raw.QuantizeV2(input=x, min_range=low, max_range=high, **attrs)
                        run.fails(lambda: list(made[1:]))  # noqa: B023
                        if mode == "MIN_COMBINED" and name == "qint32":
                            continue  # the scaled value overflows before it is cut
                        run.get([raw.Bitcast(input=made[0], type=plain), *made[1:]])
                        back = {"mode": mode, "narrow_range": narrow}
                        run.get(raw.Dequantize(input=made[0], min_range=made[1], max_range=made[2], **back))
    lows, highs = np.array([-1, -2, -0.5, 0], np.float32), np.array([1, 1.5, 3, 2], np.float32)
    made = raw.QuantizeV2(input=x, min_range=lows, max_range=highs, T=tf.qint8, mode="SCALED", axis=1)
    run.get([raw.Bitcast(input=made[0], type=tf.int8), *made[1:]])
    run.get(raw.Dequantize(input=made[0], min_range=made[1], max_range=made[2], mode="SCALED", axis=1))


@program("StatefulRandomBinomial")
def generated_binomials(run: Run) -> None:
    raw, tf = run.raw, run.tf
    state = raw.VarHandleOp(dtype=tf.int64, shape=[3], shared_name="state")
    run.do(raw.AssignVariableOp(resource=state, value=np.array([1, 2, 3], np.int64)))
    # The state must have memory of its own: TensorFlow's kernel does not advance one that shares the constant's.
    run.do(raw.RngSkip(resource=state, algorithm=np.int64(1), delta=np.int64(1)))
    for dtype in (tf.int32, tf.int64, tf.float32, tf.float64):
        chances = {"counts": np.array([9.0, 40.0]), "probs": np.array([0.3, 0.6])}
        place = {"resource": state, "algorithm": np.int64(1), "shape": np.array([4, 2], np.int32)}
        _twice(run, raw.StatefulRandomBinomial(**place, **chances, dtype=dtype))
        run.get(raw.ReadVariableOp(resource=state, dtype=tf.int64))


def _ascent(run: Run, optimize: Any, adaptive: str) -> None:
    random = np.random.RandomState(4)
    # TensorFlow visits the examples in a random order, so they share no feature; `adaptive` draws them at random.
    examples, features = 6, 12
    rows, columns = np.arange(12, dtype=np.int64) // 2, np.arange(12, dtype=np.int64)
    values = random.uniform(-1, 1, rows.size).astype(np.float32)
    dense = np.zeros((examples, 2), np.float32)
    dense[0, 0], dense[1, 1] = 0.7, -1.3
    for loss in ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"):
        labels = random.randint(0, 2, examples).astype(np.float32)
        found = optimize(
            sparse_example_indices=[rows], sparse_feature_indices=[columns], sparse_feature_values=[values],
            dense_features=[dense], example_weights=np.linspace(0.5, 1.5, examples, dtype=np.float32), example_labels=labels,
            sparse_indices=[np.arange(features)], sparse_weights=[np.zeros(features, np.float32)],
            dense_weights=[np.zeros(2, np.float32)], example_state_data=np.zeros((examples, 4), np.float32),
            loss_type=loss, l1=0.01, l2=0.5, num_loss_partitions=1, num_inner_iterations=3, **{adaptive: False},
        )  # fmt: skip
        run.get([*found[:1], *found[1], *found[2]])


@program("SdcaOptimizer")
def dual_coordinate_ascent(run: Run) -> None:
    _ascent(run, run.raw.SdcaOptimizer, "adaptative")


@program("SdcaOptimizerV2")
def dual_coordinate_ascent_2(run: Run) -> None:
    _ascent(run, run.raw.SdcaOptimizerV2, "adaptive")


@program("SdcaShrinkL1")
def shrinking(run: Run) -> None:
    raw, tf = run.raw, run.tf
    weights = [raw.VariableV2(shape=[3], dtype=tf.float32) for _ in range(2)]
    values = np.array([-1.0, 0.05, 0.4], np.float32)
    run.do([raw.Assign(ref=each, value=values * scale) for each, scale in zip(weights, (1, -2))])
    run.do(raw.SdcaShrinkL1(weights=weights, l1=0.1, l2=0.5))
    run.get([tf.identity(each) for each in weights])
