"""Every random number is TensorFlow's, bit for bit, in the first and in the following executions."""

import hashlib

import numpy as np
import pytest
import random_golden as golden
import torch
from random_golden import (
    ALPHA,
    ARRAYS,
    BOUNDED,
    COUNTS,
    FLOATS,
    PROBS,
    RATE,
    SEED,
    SEED2,
    assert_same_bits,
    torch_dtype,
)

from stoker._src.ops.random.bits import bounded_normal, choices, fills, native, rejection, stateless
from stoker._src.ops.random.bits.philox import PhiloxState, Stream

FILLS = {"uniform": fills.uniform, "normal": fills.normal, "truncated": fills.truncated_normal}
SIZES = (1, 3, 4, 5, 10, 301)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FILLS)
def test_floats_of_stateful_ops(twin, name, dtype, size):
    """RandomUniform, RandomStandardNormal and TruncatedNormal give TensorFlow's bits three executions long."""
    state = PhiloxState(SEED, SEED2)
    for execution in range(3):
        numbers = FILLS[name](state.reserve_outputs(size), size, torch_dtype(dtype))
        assert_same_bits(numbers, f"{name}/{dtype}/{size}/{execution}")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_of_stateful_ops(twin, dtype, size):
    """RandomUniformInt reduces words modulo the range, from the lower bound on."""
    state = PhiloxState(SEED, SEED2)
    for execution in range(3):
        numbers = fills.uniform_int(state.reserve_outputs(size), size, -7, 1000, torch_dtype(dtype))
        assert_same_bits(numbers, f"int/{dtype}/{size}/{execution}")


@pytest.mark.parametrize("width", [32, 64])
def test_integers_over_nearly_the_whole_range(twin, width):
    """Bounds whose difference does not fit the signed type are no obstacle."""
    stream = Stream.from_seeds(SEED, SEED2)
    low, high = -(2 ** (width - 1)), 2 ** (width - 1) - 1
    numbers = fills.uniform_int(stream, 9, low, high, torch_dtype(f"int{width}"))
    assert_same_bits(numbers, f"int_extreme/{width}/0")


@pytest.mark.parametrize("size", SIZES)
def test_shuffles(twin, size):
    """RandomShuffle makes TensorFlow's permutation and reserves only the blocks it needs."""
    state = PhiloxState(SEED, SEED2)
    for execution in range(3):
        order = choices.permutation(state.reserve(choices.permutation_reserve(size)), size)
        assert_same_bits(order.astype(np.int32), f"shuffle/{size}/{execution}")


@pytest.mark.parametrize("samples", [1, 3, 8, 61])
def test_categories(twin, samples):
    """Multinomial draws TensorFlow's classes; a logit of minus infinity is never drawn."""
    state = PhiloxState(SEED, SEED2)
    for execution in range(3):
        drawn = choices.categorical(state.reserve(choices.categorical_reserve(7, samples)), ARRAYS["logits"], samples)
        assert_same_bits(drawn, f"multinomial/{samples}/{execution}")


@pytest.mark.parametrize("samples", [1, 3, 8, 61])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_and_poisson(twin, dtype, samples):
    """RandomGamma and RandomPoissonV2 over every branch of their samplers."""
    name = np.dtype(dtype).name
    gamma_state, poisson_state = PhiloxState(SEED, SEED2), PhiloxState(SEED, SEED2)
    for execution in range(3):
        alpha, rate = np.array(ALPHA, dtype), np.array(RATE, dtype)
        numbers = rejection.gamma(gamma_state.reserve_outputs(samples * alpha.size), samples, alpha)
        assert_same_bits(numbers.astype(dtype), f"gamma/{name}/{samples}/{execution}")
        numbers = rejection.poisson(poisson_state.reserve_outputs(samples * rate.size), samples, rate)
        assert_same_bits(numbers.astype(np.int64), f"poisson/{name}/{samples}/{execution}")


@pytest.mark.parametrize("samples", [1, 3, 8, 61])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounded_normals(dtype, samples):
    """ParameterizedTruncatedNormal by every method, batch after batch."""
    state = PhiloxState(SEED, SEED2)
    parameters = np.array(BOUNDED, dtype).T
    for execution in range(3):
        stream = state.reserve(bounded_normal.bounded_reserve(10, samples))
        numbers = bounded_normal.bounded_normal(stream, 10, samples, *parameters)
        assert_same_bits(numbers, f"bounded/{np.dtype(dtype).name}/{samples}/{execution}")


@pytest.mark.parametrize("shape", [(12,), (4, 3)])
def test_bounded_normals_of_one_parameter_set(shape):
    """One parameter set serves every batch; the first dimension still counts the batches."""
    state = PhiloxState(SEED, SEED2)
    parameters = np.array([[0.5], [2.0], [-1.0], [1.5]], np.float32)
    batches, samples = shape[0], int(np.prod(shape[1:]))
    for execution in range(3):
        stream = state.reserve(bounded_normal.bounded_reserve(batches, samples))
        numbers = bounded_normal.bounded_normal(stream, batches, samples, *parameters).reshape(shape)
        assert_same_bits(numbers, f"bounded_one/{'x'.join(map(str, shape))}/{execution}")


LARGE = {
    "uniform/float32": lambda stream, size: fills.uniform(stream, size, torch.float32),
    "normal/float32": lambda stream, size: fills.normal(stream, size, torch.float32),
    "normal/float64": lambda stream, size: fills.normal(stream, size, torch.float64),
    "truncated/float32": lambda stream, size: fills.truncated_normal(stream, size, torch.float32),
    "gamma/float32": lambda stream, size: rejection.gamma(stream, 100_003, np.float32([0.7, 3.0])).astype(np.float32),
    "poisson/int64": lambda stream, size: rejection.poisson(stream, 100_003, np.float32([3, 50])).astype(np.int64),
}


@pytest.mark.skipif(native.compiled is None, reason="too slow in plain Python")
@pytest.mark.parametrize("name", LARGE)
def test_large_arrays(name):
    """A million numbers, filled by several threads, have the digest of TensorFlow's."""
    numbers = np.asarray(LARGE[name](Stream.from_seeds(SEED, SEED2), 1_000_003))
    assert hashlib.sha256(numbers.tobytes()).hexdigest() == golden.DIGESTS[name]


@pytest.mark.parametrize("index", range(len(golden.STATELESS_SEEDS)))
class TestStateless:
    """The stateless ops, whose stream comes from a scrambled seed."""

    def test_key_and_counter(self, index):
        """StatelessRandomGetKeyCounter."""
        key, counter = stateless.key_counter(golden.STATELESS_SEEDS[index])
        assert_same_bits(np.array([key], np.uint64), f"stateless/key/{index}")
        assert_same_bits(np.array(counter, np.uint64), f"stateless/counter/{index}")

    def test_floats(self, twin, index):
        """StatelessRandomUniform, StatelessRandomNormal, StatelessTruncatedNormal."""
        stream = stateless.stream_of_seed(golden.STATELESS_SEEDS[index])
        for name, fill in FILLS.items():
            for dtype in FLOATS:
                assert_same_bits(fill(stream, 37, torch_dtype(dtype)), f"stateless/{name}/{dtype}/{index}")

    def test_integers(self, twin, index):
        """StatelessRandomUniformInt and StatelessRandomUniformFullInt."""
        stream = stateless.stream_of_seed(golden.STATELESS_SEEDS[index])
        for dtype in ("int32", "int64"):
            numbers = fills.uniform_int(stream, 37, -7, 1000, torch_dtype(dtype))
            assert_same_bits(numbers, f"stateless/int/{dtype}/{index}")
        for dtype in ("int32", "int64", "uint32", "uint64"):
            assert_same_bits(fills.uniform_full_int(stream, 37, torch_dtype(dtype)), f"stateless/full/{dtype}/{index}")

    def test_choices(self, twin, index):
        """StatelessMultinomial, stateless_shuffle, split and fold_in."""
        seed = golden.STATELESS_SEEDS[index]
        stream = stateless.stream_of_seed(seed)
        assert_same_bits(choices.categorical(stream, ARRAYS["logits"], 37), f"stateless/multinomial/{index}")
        assert_same_bits(choices.permutation(stream, 23).astype(np.int32), f"stateless/shuffle/{index}")
        assert_same_bits(stateless.split(seed, 3, torch.int64), f"stateless/split/{index}")
        assert_same_bits(stateless.fold_in(seed, 5, torch.int32), f"stateless/fold_in/{index}")

    def test_rejection_samplers(self, twin, index):
        """StatelessRandomGammaV2 and V3, StatelessRandomPoisson, StatelessRandomBinomial."""
        stream = stateless.stream_of_seed(golden.STATELESS_SEEDS[index])
        for dtype in (np.float16, np.float32, np.float64):
            name = np.dtype(dtype).name
            numbers = rejection.gamma(stream, 37, np.array(ALPHA, dtype)).astype(dtype)
            assert_same_bits(numbers, f"stateless/gamma/{name}/{index}")
            assert_same_bits(numbers, f"stateless/gamma3/{name}/{index}")
            numbers = rejection.poisson(stream, 37, np.array(RATE, dtype)).astype(np.int64)
            assert_same_bits(numbers, f"stateless/poisson/{name}/{index}")
        for dtype in (np.float32, np.float64):
            numbers = rejection.binomial(stream, 37, np.array(COUNTS, dtype), np.array(PROBS, dtype))
            assert_same_bits(numbers.astype(np.int64), f"stateless/binomial/{np.dtype(dtype).name}/{index}")

    def test_bounded_normals(self, index):
        """StatelessParameterizedTruncatedNormal: parameters are batches, laid along the last dimension."""
        stream = stateless.stream_of_seed(golden.STATELESS_SEEDS[index])
        for dtype in (np.float32, np.float64):
            numbers = bounded_normal.bounded_normal(stream, 10, 37, *np.array(BOUNDED, dtype).T)
            assert_same_bits(np.ascontiguousarray(numbers.T), f"stateless/bounded/{np.dtype(dtype).name}/{index}")


def test_key_and_counter_are_used_as_they_are():
    """A V2 op draws from exactly the position its inputs name."""
    stream = stateless.stream_of_key_counter([77], [5, 9], stateless.AUTO_SELECT)
    assert_same_bits(fills.uniform(stream, 37, torch.float32), "stateless_v2")


def test_generator_through_all_kinds_of_draws():
    """A tf.random.Generator's numbers and its state after each draw."""
    state = stateless.generator_state(1234)
    binomial_blocks = rejection.binomial_reserve(6, 4)
    draws = [
        ("uniform", 37 * 256, lambda stream: fills.uniform(stream, 37, torch.float32)),
        ("normal", 37 * 256, lambda stream: fills.normal(stream, 37, torch.float32)),
        ("truncated", 37 * 256, lambda stream: fills.truncated_normal(stream, 37, torch.float32)),
        ("int", 37 * 256, lambda stream: fills.uniform_int(stream, 37, 0, 100, torch.int32)),
        ("full", 5 * 256, lambda stream: fills.uniform_full_int(stream, 5, torch.uint64)),
        ("normal64", 37 * 256, lambda stream: fills.normal(stream, 37, torch.float64)),
        (
            "binomial",
            binomial_blocks,
            lambda stream: rejection.binomial(stream, 6, np.float32([5, 6, 70, 80]), np.float32(0.4)).astype(np.int32),
        ),
        ("skip", stateless.generator_blocks(10), None),
        ("int64", 6 * 256, lambda stream: fills.uniform_int(stream, 6, 0, 100, torch.int64)),
    ]
    for name, blocks, draw in draws:
        stream, state = stateless.read_and_skip(state, stateless.PHILOX, blocks)
        if draw is not None:
            assert_same_bits(draw(stream), f"generator/{name}")
        assert_same_bits(state, f"generator/{name}/state")
    assert_same_bits(stateless.generator_state([1, 2, 3]), "generator/three")
