"""The generator itself: published vectors, positions, reservations, and the equality of the two implementations."""

import threading
import types

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.ops.random.bits import bounded_normal, choices, fills, native, rejection, stateless
from stoker._src.ops.random.bits.float_math import exp_float, log_float, sincos_float
from stoker._src.ops.random.bits.philox import PhiloxState, Stream, bits, philox_blocks
from stoker._src.ops.random.uniform_normal import (
    RANDOM_STANDARD_NORMAL,
    RANDOM_UNIFORM,
    RANDOM_UNIFORM_INT,
    TRUNCATED_NORMAL,
)
from stoker._src.ops.support.values import torch_dtype

STREAMS = st.builds(Stream, st.integers(0, 2**64 - 1), st.integers(0, 2**128 - 1))
needs_compiled = pytest.mark.skipif(native.compiled is None, reason="the compiled module was not built")

# Counter words, key words and result of the Random123 distribution's known-answer tests for philox4x32-10.
KNOWN_ANSWERS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def number(words: list[int]) -> int:
    return sum(word << (32 * place) for place, word in enumerate(words))


@pytest.mark.parametrize("counter, key, answer", KNOWN_ANSWERS)
def test_published_vectors(twin, counter, key, answer):
    """The blocks are those its authors publish."""
    assert bits(Stream(number(key), number(counter)), 4).tolist() == answer


def test_the_counter_carries_and_wraps(twin):
    """Blocks go on over the end of the lower half of the counter, and over the end of the whole."""
    for counter in (2**64 - 2, 2**128 - 2):
        start = Stream(7, counter)
        expected = np.concatenate([philox_blocks(start.skip(block), 1) for block in range(5)])
        np.testing.assert_array_equal(bits(start, 20).reshape(5, 4), expected)


def same_in_both(draw) -> None:
    """`draw()` gives identical bytes compiled and in plain Python."""
    kept = native.compiled
    with_compiled = np.asarray(draw())
    try:
        native.compiled = None
        in_python = np.asarray(draw())
    finally:
        native.compiled = kept
    assert with_compiled.dtype == in_python.dtype
    assert with_compiled.tobytes() == in_python.tobytes()


@needs_compiled
@settings(max_examples=30, deadline=None)
@given(STREAMS, st.integers(0, 700))
def test_fills_agree(stream, count):
    """Uniforms, integers and normals of any stream and number are the same in both implementations."""
    for dtype in (torch.float16, torch.float32, torch.float64):
        same_in_both(lambda dtype=dtype: fills.uniform(stream, count, dtype))
    same_in_both(lambda: fills.normal(stream, count, torch.float32))
    same_in_both(lambda: fills.normal(stream, count, torch.float64))
    same_in_both(lambda: fills.truncated_normal(stream, count % 50, torch.float32))
    same_in_both(lambda: fills.truncated_normal(stream, count % 50, torch.float64))
    for fill in (fills.uniform, fills.normal, fills.truncated_normal):
        same_in_both(lambda fill=fill: fill(stream, count % 50, torch.float32, 3))
    same_in_both(lambda: fills.uniform_int(stream, count, -5, 77, torch.int64))
    same_in_both(lambda: choices.permutation(stream, count))


@pytest.mark.parametrize("fill", [fills.uniform, fills.normal, fills.truncated_normal])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 3, 257])
def test_many_executions_at_once(fill, dtype, count):
    """The numbers of several executions of an op are those of one execution after the other, each with 256 blocks for an output."""
    start = Stream(5, 2**64 - 700)
    found = fill(start, count, dtype, 3).view(3, count)
    for i, row in enumerate(found):
        assert torch.equal(row, fill(start.skip(i * count * 256), count, dtype))


def test_many_executions_are_shared_among_threads():
    """Large draws of several executions do not depend on the threads that share them."""
    start = Stream(1, 2)
    found = fills.uniform(start, 200_000, torch.float32, 3).view(3, -1)
    for i, row in enumerate(found):
        assert torch.equal(row, fills.uniform(start.skip(i * 200_000 * 256), 200_000, torch.float32))


@needs_compiled
@settings(max_examples=30, deadline=None)
@given(STREAMS, st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=3), st.floats(0, 1), st.integers(0, 6))
def test_samplers_agree(stream, parameters, probability, samples):
    """Gamma, Poisson, binomial and categorical draws are the same in both implementations."""
    values = np.array(parameters)
    same_in_both(lambda: rejection.gamma(stream, samples, values))
    same_in_both(lambda: rejection.poisson(stream, samples, values))
    same_in_both(lambda: rejection.binomial(stream, samples, np.floor(values), np.float64(probability)))
    same_in_both(lambda: choices.categorical(stream, np.log(values)[None, :], samples))


@needs_compiled
@pytest.mark.parametrize("value", [0.0, -0.5, -5.0, np.inf, np.nan])
def test_samplers_agree_on_odd_parameters(value):
    """Parameters outside the distributions' domains give the same (often NaN) results, in finite time."""
    stream, values = Stream(1, 2), np.array([value])
    same_in_both(lambda: rejection.gamma(stream, 3, values))
    same_in_both(lambda: rejection.poisson(stream, 3, values))
    same_in_both(lambda: rejection.binomial(stream, 3, values, np.float64(0.4)))
    same_in_both(lambda: rejection.binomial(stream, 3, np.float64(5.0), values))
    same_in_both(lambda: choices.categorical(stream, np.array([[value, 0.0], [value, value]]), 3))


@needs_compiled
def test_a_row_without_finite_logits_gives_the_number_of_classes(twin):
    """TensorFlow's answer where nothing can be drawn."""
    assert choices.categorical(Stream(1, 2), np.full((1, 3), -np.inf), 2).tolist() == [[3, 3]]


def test_threads_do_not_change_numbers(monkeypatch):
    """A fill split among any number of threads gives the numbers of one thread."""
    expected = fills.normal(Stream(3, 4), 10_001, torch.float32)
    logits = np.linspace(0, 1, 60).reshape(20, 3)
    drawn = choices.categorical(Stream(3, 4), logits, 5)
    monkeypatch.setattr(choices, "_WORK_PER_THREAD", 10)
    monkeypatch.setattr(native, "_OUTPUTS_PER_THREAD", 1000)
    pieces = []

    def work(first: int, last: int) -> None:
        pieces.append((first, last))

    for threads in (1, 2, 3, 7):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert torch.equal(fills.normal(Stream(3, 4), 10_001, torch.float32), expected)
        np.testing.assert_array_equal(choices.categorical(Stream(3, 4), logits, 5), drawn)
        pieces.clear()
        native.share(work, 10_001, 4, per_thread=1000)
        assert sorted(pieces)[0][0] == 0 and sorted(pieces)[-1][1] == 10_001
        assert all(first % 4 == 0 for first, _ in pieces)


def test_reservations_do_not_overlap():
    """Executions from many threads each get blocks of their own."""
    state, taken = PhiloxState(1, 2), []

    def execute() -> None:
        for _ in range(200):
            taken.append(state.reserve_outputs(3).counter)

    threads = [threading.Thread(target=execute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    start = 2 << 64
    assert sorted(taken) == list(range(start, start + 800 * 3 * 256, 3 * 256))


@pytest.mark.parametrize("shape", [[], [3], [2, 1, 4], [1]])
@pytest.mark.parametrize("kind", ["float32", "float16", "int32", "int64"])
def test_executions_that_draw_together(twin, shape, kind):
    """An op that is executed again and again returns what each execution draws on its own, also if shapes change in between."""
    dtype, draw, draw_int = as_dtype(kind), RANDOM_UNIFORM.kernel_fn, RANDOM_UNIFORM_INT.kernel_fn
    assert draw is not None and draw_int is not None
    node, drawn, own = types.SimpleNamespace(state=None), [], []
    stream = PhiloxState(3, 4)
    for i in range(90):
        sizes = [2] if i in (20, 21, 50) else [4, 5] if i == 60 else shape
        count = int(np.prod(sizes))
        if dtype.is_floating:
            made = draw(sizes, seed=3, seed2=4, dtype=dtype, ctx=node)
            plain = fills.uniform(stream.reserve_outputs(count), count, torch_dtype(dtype))
        else:
            low = -5 if i != 30 else 2
            made = draw_int(sizes, low, 1000, seed=3, seed2=4, Tout=dtype, ctx=node)
            plain = fills.uniform_int(stream.reserve_outputs(count), count, low, 1000, torch_dtype(dtype))
        drawn.append(made)
        own.append(plain.reshape(sizes))
    for one, other in zip(drawn, own):
        assert one.dtype is other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["normal", "truncated_normal", "uniform"])
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
def test_executions_of_every_distribution_that_draw_together(twin, name, kind):
    """The same for normal numbers, for which an execution may draw again, and for numbers of 64 bits."""
    definition = {"normal": RANDOM_STANDARD_NORMAL, "truncated_normal": TRUNCATED_NORMAL, "uniform": RANDOM_UNIFORM}[
        name
    ]
    dtype, fill, draw = as_dtype(kind), getattr(fills, name), definition.kernel_fn
    assert draw is not None
    node, stream = types.SimpleNamespace(state=None), PhiloxState(3, 4)
    for i in range(50):
        sizes = [5] if i != 20 else [2, 1]
        made = draw(sizes, seed=3, seed2=4, dtype=dtype, ctx=node)
        count = int(np.prod(sizes))
        plain = fill(stream.reserve_outputs(count), count, torch_dtype(dtype)).reshape(sizes)
        assert made.dtype is plain.dtype
        np.testing.assert_array_equal(made.double(), plain.double())


def test_two_zero_seeds_mean_any_stream():
    """Without seeds two ops draw different numbers."""
    assert PhiloxState(0, 0).reserve(1) != PhiloxState(0, 0).reserve(1)
    assert PhiloxState(0, 1).reserve(1) == PhiloxState(0, 1).reserve(1)


def test_float_functions_are_close_to_the_truth():
    """Within one unit in the last place of the correctly rounded float32 value."""
    x = np.linspace(1e-7, 1.0, 20_001, dtype=np.float32)
    np.testing.assert_array_max_ulp(log_float(x[:-1]), np.log(x[:-1].astype(np.float64)).astype(np.float32), 1)
    angle = (2 * np.pi * x).astype(np.float32)
    sine, cosine = sincos_float(angle)
    np.testing.assert_array_max_ulp(sine, np.sin(angle.astype(np.float64)).astype(np.float32), 1)
    np.testing.assert_array_max_ulp(cosine, np.cos(angle.astype(np.float64)).astype(np.float32), 1)
    power = np.array([exp_float(float(value)) for value in -20 * x[::10]], np.float32)
    exact = np.exp((-20 * x[::10]).astype(np.float64)).astype(np.float32)
    np.testing.assert_array_max_ulp(power, exact, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiny_gamma_numbers_are_zero(twin, dtype):
    """No subnormal number comes out, however small the parameter."""
    numbers = rejection.gamma(Stream(1, 2), 300, np.array([0.008], dtype))
    assert numbers.dtype == dtype
    assert (numbers == 0).any() and (numbers[numbers != 0] >= np.finfo(dtype).tiny).all()


def test_empty_requests_draw_nothing(twin):
    """No outputs, no numbers; not even bounds are looked at."""
    stream = Stream(1, 2)
    assert fills.normal(stream, 0, torch.float32).shape == (0,)
    assert fills.truncated_normal(stream, 0, torch.float64).shape == (0,)
    assert fills.uniform_int(stream, 0, 5, 5, torch.int32).shape == (0,)
    assert rejection.gamma(stream, 0, np.ones(3)).shape == (0, 3)
    assert rejection.poisson(stream, 3, np.ones((0, 2))).shape == (3, 0, 2)
    assert choices.permutation(stream, 0).shape == (0,) and choices.permutation_reserve(0) == 0


def test_bad_requests_are_refused():
    """What cannot be drawn raises TensorFlow's error, naming the numbers."""
    stream = Stream(1, 2)
    with pytest.raises(InvalidArgumentError, match="Need minval < maxval, got 5 >= 3"):
        fills.uniform_int(stream, 2, 5, 3, torch.int32)
    with pytest.raises(InvalidArgumentError, match="int16"):
        fills.uniform_int(stream, 2, 0, 3, torch.int16)
    with pytest.raises(InvalidArgumentError, match="int32"):
        fills.normal(stream, 2, torch.int32)
    with pytest.raises(InvalidArgumentError, match="num_classes should be positive, got 0"):
        choices.categorical(stream, np.zeros((2, 0)), 3)
    with pytest.raises(InvalidArgumentError, match=r"seed must have shape \[2\], not \[3\]"):
        stateless.key_counter([1, 2, 3])
    with pytest.raises(InvalidArgumentError, match="length at least 2"):
        stateless.stream_of_key_counter([1], [1], stateless.PHILOX)
    with pytest.raises(InvalidArgumentError, match=r"key must have shape \[1\]"):
        stateless.stream_of_key_counter([1, 2], [1, 2], stateless.PHILOX)
    with pytest.raises(InvalidArgumentError, match="Unsupported algorithm id: 2"):
        stateless.stream_of_key_counter([1], [1, 2], stateless.THREEFRY)
    with pytest.raises(UnimplementedError, match="ThreeFry"):
        stateless.read_and_skip(np.zeros(3, np.int64), stateless.THREEFRY, 1)
    with pytest.raises(InvalidArgumentError, match="Unsupported algorithm id: 9"):
        stateless.read_and_skip(np.zeros(3, np.int64), 9, 1)
    with pytest.raises(InvalidArgumentError, match="at least 3 elements"):
        stateless.read_and_skip(np.zeros(2, np.int64), stateless.PHILOX, 1)
    one = np.ones(1, np.float32)
    for low, high in ((one, one), (-np.inf * one, np.inf * one), (np.nan * one, one)):
        with pytest.raises(InvalidArgumentError, match="Invalid parameters"):
            bounded_normal.bounded_normal(stream, 1, 1, one, one, low, high)
    with pytest.raises(InvalidArgumentError, match="1 or 3 elements"):
        bounded_normal.bounded_normal(stream, 3, 1, one, one, np.zeros(2, np.float32), one)


@needs_compiled
def test_compiled_functions_check_their_buffers():
    """Sizes that would read or write outside a buffer are refused."""
    with pytest.raises(ValueError, match="8 bytes"):
        native.compiled.fill_normal_double(bytearray(12), 1, 2, 3)
    with pytest.raises(ValueError, match="more outputs"):
        native.compiled.fill_gamma(np.empty(5), 1, 2, 3, 2, 0, np.ones(2))
    with pytest.raises(ValueError, match="more outputs"):
        native.compiled.fill_gamma(np.empty(5), 1, 2, 3, 0, 0, np.ones(2))
    with pytest.raises(ValueError, match="one word per swap"):
        native.compiled.shuffle(np.arange(5), np.zeros(3, np.uint32))
    with pytest.raises(ValueError, match="divide among the rows"):
        native.compiled.fill_categorical(np.empty(5, np.int64), 1, 2, 3, np.zeros((2, 3)), 3, False)
