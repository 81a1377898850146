"""Write random.npz and digests.json: numbers of real TensorFlow 2.21's random ops on the CPU.

Run with a Python that has tensorflow-cpu 2.21:  python make_random.py
Keys of random.npz are "<case>/<parameter>/.../<execution>"; bfloat16 is stored as its bits (uint16).
"""

import hashlib
import json
import os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

# Multinomial and the bounded normals of large inputs depend on the number of threads.
tf.config.threading.set_intra_op_parallelism_threads(1)

v1 = tf.compat.v1
raw = tf.raw_ops
HERE = Path(__file__).parent
SEEDS = {"seed": 12345, "seed2": 6789}
FLOATS = [tf.float16, tf.bfloat16, tf.float32, tf.float64]
ALPHA = [0.3, 1.0, 0.99, 2.5, 40.0]
RATE = [0.3, 1.0, 0.0, 9.99, 10.0, 40.0, 1000.0]
COUNTS = [5, 100, 1000, 20, 30, 0, 7, 40, 1e6]
PROBS = [0.3, 0.5, 0.01, 0.9, 0.5, 0.5, 1.0, 0.2, 0.3]
INF = np.inf
# mean, deviation, lower and upper bound: every method of drawing, both directions.
BOUNDED = [
    [0, 1, -1, 1],
    [0, 1, -INF, 1],
    [1, 2, 3, 9],
    [0, 1, 4, INF],
    [0, 1, -INF, -4],
    [0, 1, 2, 2.1],
    [5, 3, -2, 6],
    [0, 1, 0.5, 3],
    [0, 1, -1, 3],
    [0, 1, -9, -3],
]
STATELESS_SEEDS = [[0, 0], [1, 2], [-5, 2**40 + 3], [123456789012, -77]]

arrays = {}
digests = {}


def stored(value):
    value = np.asarray(value)
    return value.view(np.uint16) if value.dtype.name == "bfloat16" else value


def executions(name, op, **inputs):
    """What one op with the common seeds gives in its first three executions in one session."""
    with tf.Graph().as_default():
        tensor = op(**inputs, **SEEDS)
        with v1.Session() as session:
            for execution in range(3):
                arrays[f"{name}/{execution}"] = stored(session.run(tensor))


def stateful():
    for n in (1, 3, 4, 5, 10, 301):
        for dtype in FLOATS:
            executions(f"uniform/{dtype.name}/{n}", raw.RandomUniform, shape=[n], dtype=dtype)
            executions(f"normal/{dtype.name}/{n}", raw.RandomStandardNormal, shape=[n], dtype=dtype)
            executions(f"truncated/{dtype.name}/{n}", raw.TruncatedNormal, shape=[n], dtype=dtype)
        for kind in (np.int32, np.int64):
            name = f"int/{np.dtype(kind).name}/{n}"
            executions(name, raw.RandomUniformInt, shape=[n], minval=kind(-7), maxval=kind(1000))
        executions(f"shuffle/{n}", raw.RandomShuffle, value=np.arange(n, dtype=np.int32))
    logits = np.random.RandomState(0).randn(7, 11).astype(np.float32)
    logits[2, 3] = -INF
    arrays["logits"] = logits
    for n in (1, 3, 8, 61):
        executions(f"multinomial/{n}", raw.Multinomial, logits=logits, num_samples=n)
        for kind in (np.float32, np.float64):
            name = f"{np.dtype(kind).name}/{n}"
            executions(f"gamma/{name}", raw.RandomGamma, shape=[n], alpha=np.array(ALPHA, kind))
            executions(f"poisson/{name}", raw.RandomPoissonV2, shape=[n], rate=np.array(RATE, kind), dtype=tf.int64)
            executions(f"bounded/{name}", raw.ParameterizedTruncatedNormal, shape=[10, n], **bounds(BOUNDED, kind))
    for shape in ([12], [4, 3]):
        name = "x".join(map(str, shape))
        one = bounds([[0.5, 2.0, -1.0, 1.5]], np.float32)
        executions(f"bounded_one/{name}", raw.ParameterizedTruncatedNormal, shape=shape, **one)
    for kind in (np.int32, np.int64):
        low, high = kind(np.iinfo(kind).min), kind(np.iinfo(kind).max)
        bits = np.iinfo(kind).bits
        executions(f"int_extreme/{bits}", raw.RandomUniformInt, shape=[9], minval=low, maxval=high)


def bounds(rows, kind):
    names = ("means", "stdevs", "minvals", "maxvals")
    return dict(zip(names, np.array(rows, kind).T, strict=True))


def large():
    """Digests of arrays large enough to be filled by several threads, and of odd size."""
    n = 1_000_003
    for name, make in {
        "uniform/float32": lambda: raw.RandomUniform(shape=[n], dtype=tf.float32, **SEEDS),
        "normal/float32": lambda: raw.RandomStandardNormal(shape=[n], dtype=tf.float32, **SEEDS),
        "normal/float64": lambda: raw.RandomStandardNormal(shape=[n], dtype=tf.float64, **SEEDS),
        "truncated/float32": lambda: raw.TruncatedNormal(shape=[n], dtype=tf.float32, **SEEDS),
        "gamma/float32": lambda: raw.RandomGamma(shape=[100_003], alpha=np.float32([0.7, 3.0]), **SEEDS),
        "poisson/int64": lambda: raw.RandomPoissonV2(
            shape=[100_003], rate=np.float32([3.0, 50.0]), dtype=tf.int64, **SEEDS
        ),
    }.items():
        with tf.Graph().as_default():
            tensor = make()
            with v1.Session() as session:
                digests[name] = hashlib.sha256(session.run(tensor).tobytes()).hexdigest()


def stateless():
    logits = arrays["logits"]
    for index, pair in enumerate(STATELESS_SEEDS):
        seed = tf.constant(pair, tf.int64)
        got = {}
        made = raw.StatelessRandomGetKeyCounter(seed=seed)
        got["key"], got["counter"] = made.key, made.counter
        for dtype in FLOATS:
            got[f"uniform/{dtype.name}"] = raw.StatelessRandomUniform(shape=[37], seed=seed, dtype=dtype)
            got[f"normal/{dtype.name}"] = raw.StatelessRandomNormal(shape=[37], seed=seed, dtype=dtype)
            got[f"truncated/{dtype.name}"] = raw.StatelessTruncatedNormal(shape=[37], seed=seed, dtype=dtype)
        for dtype in (tf.int32, tf.int64):
            got[f"int/{dtype.name}"] = raw.StatelessRandomUniformInt(
                shape=[37], seed=seed, minval=tf.constant(-7, dtype), maxval=tf.constant(1000, dtype)
            )
        for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
            got[f"full/{dtype.name}"] = raw.StatelessRandomUniformFullInt(shape=[37], seed=seed, dtype=dtype)
        got["multinomial"] = raw.StatelessMultinomial(logits=logits, num_samples=37, seed=seed)
        for kind in (np.float16, np.float32, np.float64):
            name = np.dtype(kind).name
            alpha, rate = np.array(ALPHA, kind), np.array(RATE, kind)
            got[f"gamma/{name}"] = raw.StatelessRandomGammaV2(shape=[37, 5], seed=seed, alpha=alpha)
            got[f"gamma3/{name}"] = raw.StatelessRandomGammaV3(
                shape=[37, 5], key=made.key, counter=made.counter, alg=1, alpha=alpha
            )
            got[f"poisson/{name}"] = raw.StatelessRandomPoisson(shape=[37, 7], seed=seed, lam=rate, dtype=tf.int64)
        for kind in (np.float32, np.float64):
            name = np.dtype(kind).name
            got[f"binomial/{name}"] = raw.StatelessRandomBinomial(
                shape=[37, 9], seed=seed, counts=np.array(COUNTS, kind), probs=np.array(PROBS, kind), dtype=tf.int64
            )
            means, deviations, lows, highs = np.array(BOUNDED, kind).T
            got[f"bounded/{name}"] = raw.StatelessParameterizedTruncatedNormal(
                shape=[37, 10], seed=seed, means=means, stddevs=deviations, minvals=lows, maxvals=highs
            )
        got["shuffle"] = tf.random.experimental.stateless_shuffle(tf.range(23), seed=seed)
        got["split"] = tf.random.split(seed, 3)
        got["fold_in"] = tf.random.fold_in(seed, 5)
        for name, value in got.items():
            arrays[f"stateless/{name}/{index}"] = stored(value.numpy())
    arrays["stateless_v2"] = raw.StatelessRandomUniformV2(
        shape=[37], key=tf.constant([77], tf.uint64), counter=tf.constant([5, 9], tf.uint64), alg=3
    ).numpy()


def generator():
    """A tf.random.Generator driven through every kind of draw; its state after each."""
    made = tf.random.Generator.from_seed(1234, alg=1)
    draws = {
        "uniform": lambda: made.uniform([37]),
        "normal": lambda: made.normal([37]),
        "truncated": lambda: made.truncated_normal([37]),
        "int": lambda: made.uniform([37], 0, 100, tf.int32),
        "full": lambda: made.uniform_full_int([5], tf.uint64),
        "normal64": lambda: made.normal([37], dtype=tf.float64),
        "binomial": lambda: made.binomial([6, 4], [5.0, 6.0, 70.0, 80.0], 0.4),
        "skip": lambda: made.skip(10),
        "int64": lambda: made.uniform([6], 0, 100, tf.int64),
    }
    arrays["generator/start"] = np.array(made.state.numpy())
    for name, draw in draws.items():
        value = draw()
        if name != "skip":
            arrays[f"generator/{name}"] = value.numpy()
        arrays[f"generator/{name}/state"] = np.array(made.state.numpy())
    arrays["generator/three"] = tf.random.Generator.from_seed([1, 2, 3], alg=1).state.numpy()


def candidates():
    """Candidate samplers: the three outputs of three executions."""
    true_classes = np.int64([[3, 70], [0, 5]])
    samplers = {"uniform": raw.UniformCandidateSampler, "log_uniform": raw.LogUniformCandidateSampler}
    for name, op in samplers.items():
        for unique in (False, True):
            for n, range_max in ((1, 2**40), (7, 100), (40, 100), (100, 100), (500, 10**6)):
                with tf.Graph().as_default():
                    outputs = op(
                        true_classes=true_classes,
                        num_true=2,
                        num_sampled=n,
                        unique=unique,
                        range_max=range_max,
                        **SEEDS,
                    )
                    with v1.Session() as session:
                        for execution in range(3):
                            for part, value in zip(outputs._fields, session.run(outputs), strict=True):
                                arrays[f"candidates/{name}/{int(unique)}/{n}/{range_max}/{part}/{execution}"] = value
    growing = [k + 1.0 for k in range(18)]
    fixed = {
        "plain": {"unigrams": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "range_max": 6, "distortion": 0.75},
        "reserved": {"unigrams": [5.0, 1.0, 9.0, 0.5], "range_max": 6, "num_reserved_ids": 2},
        "shard": {"unigrams": growing, "range_max": 10, "num_reserved_ids": 2, "num_shards": 2, "shard": 1},
        "third": {"unigrams": growing, "range_max": 6, "num_reserved_ids": 1, "num_shards": 3, "shard": 2},
        "long": {"unigrams": [1e6 / (k + 1) for k in range(1000)], "range_max": 1000, "distortion": 0.75},
    }
    for name, options in fixed.items():
        for unique in (False, True):
            n = 4 if unique else 50
            with tf.Graph().as_default():
                outputs = raw.FixedUnigramCandidateSampler(
                    true_classes=true_classes % 6, num_true=2, num_sampled=n, unique=unique, **options, **SEEDS
                )
                with v1.Session() as session:
                    for execution in range(3):
                        for part, value in zip(outputs._fields, session.run(outputs), strict=True):
                            arrays[f"candidates/fixed/{name}/{int(unique)}/{part}/{execution}"] = value
    hits = raw.ComputeAccidentalHits(
        true_classes=true_classes, sampled_candidates=np.int64([5, 3, 9, 70, 5, 0]), num_true=2
    )
    for part, value in zip(hits._fields, hits, strict=True):
        arrays[f"hits/{part}"] = value.numpy()


def seeds():
    """The seed pair each op gets, in graphs and in eager mode."""
    values = [None, 0, 5, 9, 2**31 - 1, 2**31 + 7, -3]
    table = []
    for global_seed in values:
        for op_seed in values:
            with tf.Graph().as_default():
                if global_seed is not None:
                    v1.set_random_seed(global_seed)
                in_graph = [v1.get_seed(op_seed) for _ in range(3)]
            in_eager = None
            if global_seed is not None:
                tf.random.set_seed(global_seed)
                in_eager = [v1.get_seed(op_seed) for _ in range(3)]
            table.append({"global": global_seed, "op": op_seed, "graph": in_graph, "eager": in_eager})
    return table


stateful()
large()
stateless()
generator()
candidates()
np.savez_compressed(HERE / "random.npz", **arrays)
(HERE / "digests.json").write_text(json.dumps(digests, indent=1) + "\n")
(HERE / "seeds.json").write_text(json.dumps(seeds(), default=lambda value: int(value)) + "\n")
